"""The filter language of tables: `plane:B down`, `power>90%`, `rail=3,4`, `node=n01*`, `!ok`, words of addresses.

    filter = { ["!"] ( name operator value { "," value } | word ) }         all of them must hold
    operator = ":" | "=" | "!=" | "<" | "<=" | ">" | ">="                   ":" is "="
    value = a number with a unit | a name, `*` for any characters | "?"     "?" is what is unknown

A word is a state that the table knows (`lost`), else part of an address; with `*` it is a whole address. What is
unknown fulfils no comparison, neither `power>90%` nor `power<90%`.

A table says what there is to ask as columns (`Filterable`). A column may have a second axis, a place for each plane:
what is asked then has to hold at the places that `plane:B` names, so that `plane:B down` is not met by plane A.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import translate
from typing import Any

import numpy as np
import numpy.typing as npt

from twin.errors import InputError

F64 = npt.NDArray[np.float64]
Bool = npt.NDArray[np.bool_]

_TERM = re.compile(r"(!?)([A-Za-z_]+)(!=|<=|>=|[:=<>])(.*)", re.DOTALL)
_NUMBER = re.compile(r"([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*([^\d\s]*)")
_KEPT = 64  # patterns whose matches a list of labels remembers


class FilterError(InputError):
    """A filter that makes no sense; the message says where and what was expected."""


# --- the language ---


@dataclass(frozen=True, slots=True)
class Comparison:
    """`power>90%`. operator: `=`, `!=`, `<`, `<=`, `>` or `>=`."""

    name: str
    operator: str
    values: tuple[str, ...]
    negated: bool = False

    def __str__(self) -> str:
        return f"{'!' * self.negated}{self.name}{self.operator}{','.join(self.values)}"


@dataclass(frozen=True, slots=True)
class Word:
    text: str
    negated: bool = False

    def __str__(self) -> str:
        return f"{'!' * self.negated}{self.text}"


Term = Comparison | Word


def parse(text: str) -> tuple[Term, ...]:
    """The terms of a filter. Raises FilterError."""
    return tuple(_term(part) for part in text.split())


def _term(part: str) -> Term:
    match = _TERM.fullmatch(part)
    if match is not None:
        negated, name, operator, rest = match.groups()
        values = tuple(rest.split(","))
        if not all(values):
            raise FilterError(f"{part}: a value is missing, as in {name}{operator}90%; unknown is {name}=?")
        if len(values) > 1 and operator not in (":", "=", "!="):
            raise FilterError(f"{part}: one value goes with {operator}; several go with =")
        return Comparison(name.lower(), "=" if operator == ":" else operator, values, bool(negated))
    if part[0] in "<>=:" or part.startswith("!="):
        raise FilterError(f"{part}: a name is missing before it, without a space: power{part}")
    word = part.removeprefix("!")
    if not word:
        raise FilterError("!: a word is missing after it, as in !ok")
    return Word(word, part.startswith("!"))


# --- what can be asked ---


class Labels:
    """Names that rows have, matched without a loop over rows; what a pattern matched is remembered."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = tuple(names)
        self._lower: npt.NDArray[np.str_] | None = None
        self._known: dict[tuple[str, bool], Bool] = {}

    def match(self, pattern: str, *, part: bool = False) -> Bool:
        """bool[names], whatever the case. part: a pattern without `*` may be any part of the name."""
        key = pattern.lower(), part
        if key not in self._known:
            if len(self._known) >= _KEPT:
                self._known.clear()
            self._known[key] = self._search(*key)
        return self._known[key]

    def _search(self, pattern: str, part: bool) -> Bool:
        if self._lower is None:
            self._lower = np.array([name.lower() for name in self.names], dtype=np.str_)
        if not len(self.names):
            return np.zeros(0, bool)
        if "*" in pattern:
            whole = re.compile(translate(pattern.replace("[", "[[]")), re.DOTALL).fullmatch
            return np.fromiter((whole(name) is not None for name in self._lower.tolist()), bool, len(self.names))
        found: Bool = np.char.find(self._lower, pattern) >= 0 if part else self._lower == pattern
        return found


@dataclass(frozen=True, slots=True)
class Text:
    """A name for each row. rows: int[n] or int[n, places] of labels, -1 for none; None: row i has label i."""

    labels: Labels
    rows: npt.NDArray[np.integer[Any]] | None = None

    def equal(self, value: str) -> Bool:
        if value == "?":
            return np.zeros(len(self.labels.names), bool) if self.rows is None else self.rows < 0
        found = self.labels.match(value)
        return found if self.rows is None else np.append(found, False)[self.rows]


@dataclass(frozen=True, slots=True)
class Number:
    """A number for each row, NaN unknown. units: what may stand behind a number, and how much one is.

    whole: what 100 % is, of all or of each. bare: the unit of a number without one.
    """

    values: F64
    units: Mapping[str, float] = field(default_factory=dict)
    whole: F64 | float | None = None
    bare: str = ""

    def read(self, text: str) -> F64 | float:
        """A value as it is compared. Raises FilterError."""
        match = _NUMBER.fullmatch(text)
        unit = (match[2] or self.bare) if match is not None else ""
        units = {name.lower(): size for name, size in self.units.items()}
        if match is not None and unit == "%" and self.whole is not None:
            return float(match[1]) / 100 * self.whole
        if match is not None and (unit.lower() in units or unit == self.bare):
            return float(match[1]) * units.get(unit.lower(), 1.0)
        known = [*self.units, *(["%"] if self.whole is not None else [])]
        wanted = f", with {', '.join(known)} or nothing behind it" if known else ""
        raise FilterError(f"{text!r} is no such number: a number is expected{wanted}")

    def compare(self, operator: str, value: str) -> Bool:
        if value == "?" and operator == "=":
            return np.isnan(self.values)
        other, values = self.read(value), self.values
        with np.errstate(invalid="ignore"):
            match operator:
                case "<":
                    return values < other
                case "<=":
                    return values <= other
                case ">":
                    return values > other
                case ">=":
                    return values >= other
            return np.isclose(values, other, rtol=1e-9, atol=0)


Field = Text | Number


@dataclass(frozen=True, slots=True)
class Filterable:
    """What may be asked of a table of `n` rows. fields: by name. states: words and where they hold, bool[n] or
    bool[n, places]. address: what any other word is looked for in."""

    n: int
    fields: Mapping[str, Field]
    states: Mapping[str, Bool]
    address: Text

    def help(self) -> str:
        """What may be asked for, for a line of hints."""
        return f"{' '.join(self.fields)}; words: {' '.join(self.states)}, parts of addresses"


def select(terms: Sequence[Term], table: Filterable) -> Bool:
    """bool[n], the rows of which all terms hold. Raises FilterError for a name or a value that makes no sense."""
    holds = np.ones(table.n, bool)
    places: Bool | None = None
    asked: list[tuple[Bool, bool]] = []
    for term in terms:
        found = _compare(term, table) if isinstance(term, Comparison) else _word(term.text, table)
        if isinstance(term, Comparison) and found.ndim == 2:  # `plane:B` says where the rest is asked
            chosen = found ^ term.negated
            places = chosen if places is None else places & chosen
        else:
            asked.append((found, term.negated))
    if places is not None:
        holds &= places.any(1)
    for found, negated in asked:
        if found.ndim == 2:
            found = np.any(found if places is None else found & places, axis=1)
        holds &= found ^ negated
    return holds


def _compare(term: Comparison, table: Filterable) -> Bool:
    known = table.fields.get(term.name)
    if known is None:
        if term.operator == "=" and f"{term.name}:" in _COLONS:
            return _word(f"{term.name}:{','.join(term.values)}", table)
        raise FilterError(f"{term}: there is no {term.name!r} here; there is {_listed(table.fields)}")
    equal = term.operator in ("=", "!=")
    if isinstance(known, Text):
        if not equal:
            raise FilterError(f"{term}: {term.name} is a name, it goes with = or !=, and * for any characters")
        return _any([known.equal(value) for value in term.values]) ^ (term.operator == "!=")
    try:
        if not equal:
            return known.compare(term.operator, term.values[0])
        found = _any([known.compare("=", value) for value in term.values])
    except FilterError as problem:
        raise FilterError(f"{term}: {problem}") from None
    if term.operator == "=":
        return found
    return ~found & (~np.isnan(known.values) | ("?" in term.values))


def _listed(names: Iterable[str]) -> str:
    return ", ".join([*names]) or "parts of addresses"


def _any(found: list[Bool]) -> Bool:
    holds: Bool = np.logical_or.reduce(found)
    return holds


_COLONS = ("plane:", "domain:", "rail:")  # addresses that look like comparisons


def _word(text: str, table: Filterable) -> Bool:
    state = table.states.get(text.lower())
    if state is not None:
        return state
    found = table.address.labels.match(text, part=True)
    meant = [name for name in table.fields if name.startswith(text.lower())]
    if meant and not found.any():  # most likely the start of a comparison
        raise FilterError(f"{text}: no address has it; {_listed(meant)} can be compared, as in {meant[0]}=?")
    return found if table.address.rows is None else np.append(found, False)[table.address.rows]
