"""Profiles: what the series of an exporter mean to us, as YAML files; one loader for the shipped and a site's own.

A profile names entities. Each says of which labels its address is made and which series are its metrics:

    source: where the names were looked up
    prefixes: ["", gnmic_]                # what every series name may begin with; no prefix when absent
    unknown_from: 140737488355328         # readings from here up mean "not supported"
    joins:                                # labels that another series has, taken over where the labels `by` agree
      - {series: infiniband_switch_info, by: [guid], add: [switch]}
    entities:
      - kind: port
        device: [Hostname, instance]      # labels that may name the node or switch; the first that is known
        interface: ["{device}:{port}", "{device}"]  # what is placed on a port (collectors.portnames) …
        address: "gpu{gpu}"               # … or the address below the device; one of the two
        ids: [UUID]                       # labels that the site may map to a whole address with `names`
        skip: {GPU_I_ID: ".+"}            # series whose label matches are not of this entity
        extract: {local_name: '(?P<host>\\S+) (?P<adapter>\\S+)'}  # more labels from the parts of one
        metrics:
          node_network_up: up
          ifHighSpeed: {to: speed_bits_per_second, scale: 1000000}
          ifOperStatus: {to: up, values: {1: 1, 2: 0}}             # a value that is not listed is unknown
          oper_status: {to: up, label: oper_status, words: {UP: 1, DOWN: 0}}  # where it has the label, and is 1

Of two series of one entity for the same metric, the one that comes first in the file is believed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import files
from math import inf
from pathlib import Path
from string import Formatter
from typing import Any, Literal

from pydantic import Field, model_validator

from twin.errors import InputError
from twin.metrics import REGISTRY
from twin.sitespecs import Words
from twin.yamlfile import Document, Strict, load

_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")


class Entry(Strict):
    """What one series is: our metric, and how a value becomes ours."""

    to: str
    scale: float = Field(default=1.0, gt=0)
    unknown_from: float | None = None
    values: dict[float, float] | None = None
    label: str | None = None
    words: dict[str, float] | None = None

    @model_validator(mode="before")
    @classmethod
    def _short(cls, data: Any) -> Any:
        return {"to": data} if isinstance(data, str) else data

    @model_validator(mode="after")
    def _words_have_a_label(self) -> Entry:
        if (self.label is None) != (self.words is None):
            raise ValueError("label and words belong together")
        return self


class Join(Strict):
    """A series that exists for its labels: where all of `by` agree, others take over `add`."""

    series: str
    by: Words = Field(min_length=1)
    add: Words = Field(min_length=1)


class Entity(Strict):
    """Series of one kind of entity: of which labels the address is made, and what each is."""

    kind: Literal["node", "gpu", "nvlink", "port", "psu", "feed"]
    device: Words = Field(min_length=1)
    address: str | None = None
    interface: Words = []
    ids: Words = []
    skip: dict[str, re.Pattern[str]] = {}
    extract: dict[str, re.Pattern[str]] = {}
    metrics: dict[str, Entry] = Field(min_length=1)

    @model_validator(mode="after")
    def _complete(self) -> Entity:
        if (self.address is None) == (not self.interface):
            raise ValueError("expected one of address and interface")
        if self.interface and self.kind != "port":
            raise ValueError(f"an interface is placed on a port; a {self.kind} needs an address")
        for template in [*self.interface, *([] if self.address is None else [self.address])]:
            fields_of(template)
        return self


class ProfileFile(Strict):
    source: str
    prefixes: Words = Field(default=[""], min_length=1)
    unknown_from: float = inf
    joins: list[Join] = []
    entities: list[Entity] = Field(min_length=1)


def fields_of(template: str) -> list[str]:
    """The labels that a template names. Raises ValueError where it is none."""
    found = []
    for _, name, spec, conversion in Formatter().parse(template):
        if name is not None:
            if not name.isidentifier() or spec or conversion:
                raise ValueError(f"{template!r}: expected labels in braces, such as gpu{{gpu}}")
            found.append(name)
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """What a series is as one of the metrics of one entity. rank: lower is believed before higher."""

    profile: str
    entity: Entity
    entry: Entry
    rank: int
    unknown_from: float


@dataclass(frozen=True, slots=True)
class Profile:
    """One profile, ready for use. rules: by the name of the series."""

    name: str
    rules: dict[str, list[Rule]]
    joins: dict[str, Join]

    @property
    def series(self) -> list[str]:
        """All names of series that it reads."""
        return [*self.rules, *self.joins]


def shipped() -> dict[str, Any]:
    """The profiles that come with fabrictwin, by name."""
    here = files(__package__).joinpath("profiles")
    return {f.name.removesuffix(".yaml"): f for f in here.iterdir() if f.name.endswith(".yaml")}


def load_profiles(names: Iterable[str], directory: Path) -> list[Profile]:
    """Shipped profiles by name, others as files relative to `directory`. Raises InputError with every mistake."""
    known = shipped()
    out, problems = [], []
    for name in dict.fromkeys(names):
        try:
            if name in known:
                document = Document(f"{name}.yaml", known[name].read_text("utf-8"))
            elif "/" in name or name.endswith((".yaml", ".yml")):
                document = load(directory / name)
            else:
                raise InputError(
                    f"{name!r} is no profile; there are {', '.join(sorted(known))}, or name a file of your own"
                )
            file = document.check(ProfileFile)
            problems.extend(_wrong_metrics(document, file))
            out.append(_profile(name if name in known else Path(name).stem, file))
        except InputError as problem:
            problems.extend(problem.problems)
    if problems:
        raise InputError(problems)
    return out


def _wrong_metrics(document: Document, file: ProfileFile) -> list[str]:
    problems = []
    for i, entity in enumerate(file.entities):
        for series, entry in entity.metrics.items():
            place = ("entities", i, "metrics", series)
            if _NAME.fullmatch(series) is None:
                problems.append(document.problem(place, "not the name of a series"))
            if (entity.kind, entry.to) not in REGISTRY:
                have = ", ".join(name for kind, name in REGISTRY if kind == entity.kind)
                problems.append(document.problem(place, f"a {entity.kind} has no {entry.to!r}; it has {have}"))
    return problems


def _profile(name: str, file: ProfileFile) -> Profile:
    rules: dict[str, list[Rule]] = {}
    rank = 0
    for entity in file.entities:
        for series, entry in entity.metrics.items():
            limit = file.unknown_from if entry.unknown_from is None else entry.unknown_from
            rank += 1
            for prefix in file.prefixes:
                rules.setdefault(prefix + series, []).append(Rule(name, entity, entry, rank, limit))
    joins = {prefix + join.series: join for join in file.joins for prefix in file.prefixes}
    return Profile(name, rules, joins)
