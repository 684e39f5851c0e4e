"""Ranges in names, `n[000-063]/nic[0-7]/p0`: what one short entry of a wiring file stands for.

A range is written as in hostlists. A letter ties ranges of one entry together: `n[i=000-063]` and `p[i=0-63]` move as
one. `[i=000-063x4]` moves in runs of four: `i` counts the runs, and inside a run it is a range without a letter.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeVar

import numpy as np
import numpy.typing as npt

Steps = npt.NDArray[np.intp]
T = TypeVar("T")

MOST_NAMES = 2_000_000  # that one entry may stand for: more is a mistake or an attack
_NUMBERS = r"[0-9]{1,9}(?:-[0-9]{1,9})?"
_RANGE = re.compile(rf"(?:(?P<letter>[a-z])=)?(?P<numbers>{_NUMBERS}(?:,{_NUMBERS})*)(?:x(?P<run>[0-9]{{1,9}}))?")
_EXPECTED = "expected for example [00-07], [0-3,8] or, tied to another range by a letter, [i=0-63x4]"


def holds_range(text: str) -> bool:
    return "[" in text or "]" in text


@dataclass(frozen=True, slots=True)
class Range:
    """letter: what it is tied by, or empty. run: how many of its values go together in one step of the letter."""

    letter: str
    values: tuple[str, ...]
    run: int = 1


@dataclass(frozen=True, slots=True)
class Pattern:
    """A text with ranges: literals[0], ranges[0], literals[1], and so on."""

    text: str
    literals: tuple[str, ...]
    ranges: tuple[Range, ...]

    @property
    def count(self) -> int:
        """How many texts it stands for, taken alone."""
        tied = {r.letter: len(r.values) // r.run for r in self.ranges if r.letter}
        return prod(tied.values()) * self.loose_count

    @property
    def loose(self) -> list[int]:
        """Sizes of what no letter ties, left to right."""
        return [r.run if r.letter else len(r.values) for r in self.ranges if not r.letter or r.run > 1]

    @property
    def loose_count(self) -> int:
        return prod(self.loose)


def parse(text: str) -> Pattern:
    """Raises ValueError saying what is wrong with a range in it."""
    literals, ranges, rest = [], [], text
    while "[" in rest:
        before, _, rest = rest.partition("[")
        inside, closed, rest = rest.partition("]")
        if not closed or "]" in before:
            raise ValueError(f"{text!r}: brackets do not match; {_EXPECTED}")
        literals.append(before)
        ranges.append(_range(inside, text))
    if "]" in rest:
        raise ValueError(f"{text!r}: brackets do not match; {_EXPECTED}")
    pattern = Pattern(text, (*literals, rest), tuple(ranges))
    sizes: dict[str, int] = {}
    for r in ranges:
        if r.letter and sizes.setdefault(r.letter, len(r.values) // r.run) != len(r.values) // r.run:
            raise ValueError(
                f"{text!r}: {r.letter} is {sizes[r.letter]} long in one range, {len(r.values) // r.run} in another"
            )
    if pattern.count > MOST_NAMES:
        raise ValueError(f"{text!r} stands for {pattern.count:,} names; at most {MOST_NAMES:,}")
    return pattern


def _range(inside: str, text: str) -> Range:
    match = _RANGE.fullmatch(inside)
    if match is None:
        raise ValueError(f"{text!r}: [{inside[:40]}] is not a range; {_EXPECTED}")
    values: list[str] = []
    for part in match["numbers"].split(","):
        low, _, high = part.partition("-")
        first, last = int(low), int(high or low)
        if last < first:
            raise ValueError(f"{text!r}: {part} goes down; a range goes from low to high")
        if last - first >= MOST_NAMES:
            raise ValueError(f"{text!r}: {part} is more than {MOST_NAMES:,} names")
        values.extend(str(n).zfill(len(low)) for n in range(first, last + 1))
    letter, run = match["letter"] or "", int(match["run"] or 1)
    if run < 1 or len(values) % run:
        raise ValueError(f"{text!r}: [{inside[:40]}] is {len(values)} long, which runs of {run} do not divide")
    if run > 1 and not letter:
        raise ValueError(f"{text!r}: runs need a letter, as in [i={inside[:40]}]")
    return Range(letter, tuple(values), run)


class Walk:
    """The order in which a leading pattern goes through what it stands for: left to right, the last range fastest."""

    def __init__(self, lead: Pattern) -> None:
        self.lead = lead
        sizes: list[int] = []
        tied: dict[str, int] = {}
        loose: list[int] = []
        for r in lead.ranges:
            if r.letter and r.letter not in tied:
                tied[r.letter] = len(sizes)
                sizes.append(len(r.values) // r.run)
            if not r.letter or r.run > 1:
                loose.append(len(sizes))
                sizes.append(r.run if r.letter else len(r.values))
        self.count = prod(sizes)
        steps = np.unravel_index(np.arange(self.count), sizes) if sizes else ()
        self.sizes = {letter: sizes[k] for letter, k in tied.items()}
        self.tied: dict[str, Steps] = {letter: steps[k] for letter, k in tied.items()}
        self.loose: Steps = np.zeros(self.count, np.intp)
        for k in loose:
            self.loose = self.loose * sizes[k] + steps[k]

    def picks(self, pattern: Pattern) -> list[Steps]:
        """For each range of a pattern that goes along: which value at each step. Ranges without a letter pair with
        those of the lead one to one; a pattern that has none stays the same over them."""
        self._check_letters(pattern)
        if pattern.loose and pattern.loose_count != self.lead.loose_count:
            raise ValueError(self._lengths(pattern))
        return self._values(pattern, self.tied, self.loose)

    def lists(self, pattern: Pattern) -> list[list[str]]:
        """For each step the list that a pattern stands for there: its ranges without a letter go through all."""
        self._check_letters(pattern)
        many = pattern.loose_count
        if self.count * many > MOST_NAMES:
            raise ValueError(f"{pattern.text!r} stands for {self.count * many:,} names; at most {MOST_NAMES:,}")
        tied = {letter: np.repeat(steps, many) for letter, steps in self.tied.items()}
        flat = texts(pattern, self._values(pattern, tied, np.tile(np.arange(many), self.count)), self.count * many)
        return [flat[k : k + many] for k in range(0, len(flat), many)]

    def _values(self, pattern: Pattern, tied: dict[str, Steps], loose: Steps) -> list[Steps]:
        inner = iter(np.unravel_index(loose, pattern.loose) if pattern.loose else ())
        out: list[Steps] = []
        for r in pattern.ranges:
            within: Steps = next(inner) if not r.letter or r.run > 1 else np.zeros_like(loose)
            out.append(tied[r.letter] * r.run + within if r.letter else within)
        return out

    def _check_letters(self, pattern: Pattern) -> None:
        for r in pattern.ranges:
            if not r.letter:
                continue
            size = len(r.values) // r.run
            if r.letter not in self.sizes:
                raise ValueError(f"{pattern.text!r}: {self.lead.text!r} has no range with the letter {r.letter}")
            if size != self.sizes[r.letter]:
                have = self.sizes[r.letter]
                raise ValueError(
                    f"{pattern.text!r}: {r.letter} is {size} long here and {have} long in {self.lead.text!r}"
                )

    def _lengths(self, pattern: Pattern) -> str:
        return (
            f"{pattern.text!r} stands for {pattern.loose_count}, {self.lead.text!r} for {self.lead.loose_count}"
            + " a step of the letters" * bool(self.sizes)
        )


def texts(pattern: Pattern, picks: Sequence[Steps], count: int) -> list[str]:
    """What a pattern stands for at each of `count` steps."""
    return column(pattern, picks, count, str)


def column(pattern: Pattern, picks: Sequence[Steps], count: int, of: Callable[[str], T]) -> list[T]:
    """`of` each text that a pattern stands for; called once a value where it can be."""
    if not pattern.ranges:
        return [of(pattern.text)] * count
    if len(pattern.ranges) == 1:
        before, after = pattern.literals
        made = [of(before + value + after) for value in pattern.ranges[0].values]
        return [made[k] for k in picks[0].tolist()]
    form = "%s".join(literal.replace("%", "%%") for literal in pattern.literals)
    parts = [[r.values[k] for k in pick.tolist()] for r, pick in zip(pattern.ranges, picks, strict=True)]
    return [of(form % values) for values in zip(*parts, strict=True)]


def at(pattern: Pattern, picks: Sequence[Steps], step: int) -> str:
    """What a pattern stands for at one step."""
    values = [r.values[pick[step]] for r, pick in zip(pattern.ranges, picks, strict=True)]
    return pattern.literals[0] + "".join(v + after for v, after in zip(values, pattern.literals[1:], strict=True))
