"""Profiles: what the measurements of Telegraf's inputs mean here, as data files (`profiles/*.toml`).

    measurement = "net"               which records
    where = {port = "1"}              only those with these tags
    kind = "port"                     what they describe
    device = ["host"]                 tags that may name the node or switch; the first one that is there does
    interface = ["interface"]         of ports: tags that may name the interface
    address = "{device}/gpu{index}"   of other kinds: the address, made of tags
    also = ["uuid"]                   tags whose value a site may map to an address under `names`
    [metrics]
    tx_bytes = {field = "port_xmit_data", scale = 4}
    up = {field = "ifOperStatus", values = {1 = 1, 2 = 0}}      what is not listed is unknown
    speed_bits_per_second = {field = "speed", scale = 1000000, unknown = [-1]}

Of several fields the sum is taken, where all are there.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, ValidationError, model_validator

from twin.errors import InputError
from twin.frames import UNKNOWN_U64
from twin.metrics import REGISTRY, Kind, Metric
from twin.yamlfile import Strict

# Shipped, in the order of their word: what the wire counted before what the kernel did. `net` comes last, because the
# kernel's byte counters leave RDMA out (NVIDIA mlx5 driver, counters.rst), so a busy port can look idle there.
SHIPPED = ("ethtool", "infiniband", "snmp", "nvidia_smi", "net")

_LIMIT = int(UNKNOWN_U64)
_FRACTIONAL = ("s", "J")

Words = Annotated[list[str], BeforeValidator(lambda v: [v] if isinstance(v, str) else v)]


class _Rule(Strict):
    field: Words = Field(min_length=1)
    scale: float = Field(default=1.0, gt=0)
    values: dict[str, float] | None = None
    unknown: list[float] = []


class _File(Strict):
    measurement: str
    kind: Kind
    where: dict[str, str] = {}
    device: Words = Field(min_length=1)
    interface: Words = []
    address: str = ""
    also: Words = []
    metrics: dict[str, _Rule] = Field(min_length=1)

    @model_validator(mode="after")
    def _check(self) -> _File:
        if bool(self.interface) == bool(self.address) or bool(self.interface) != (self.kind == "port"):
            raise ValueError("expected `interface` for ports and `address` for all other kinds")
        unknown = [m for m in self.metrics if (self.kind, m) not in REGISTRY]
        if unknown:
            raise ValueError(f"{self.kind} has no metric {unknown[0]!r}")
        return self


@dataclass(frozen=True, slots=True)
class Rule:
    """How one metric is had from the fields of a record."""

    metric: Metric
    fields: tuple[str, ...]
    scale: float
    values: Mapping[str, float] | None
    unknown: frozenset[float]

    def value(self, fields: Mapping[str, Any]) -> float | int | None:
        """The metric in its own unit, whole for a whole counter; None where unknown."""
        total: float | int = 0
        for name in self.fields:
            number = self._number(fields.get(name))
            if number is None:
                return None
            total += number
        total *= self.scale
        if not self.metric.counter or self.metric.unit in _FRACTIONAL:
            return float(total)
        if isinstance(total, float) and not total.is_integer():
            return None
        return int(total) if total < _LIMIT else None

    def _number(self, value: Any) -> float | int | None:
        """A number that is neither below zero nor endless; no metric of ours can be."""
        if self.values is not None:
            return self.values.get(_word(value))
        if isinstance(value, bool):
            value = int(value)
        if not isinstance(value, int | float) or not 0 <= value < _LIMIT or value in self.unknown:
            return None
        return value


def _word(value: Any) -> str:
    """A value as `values` has it: 1 for 1, 1.0, true and "1"."""
    if isinstance(value, bool | float) and math.isfinite(value) and value == int(value):
        return str(int(value))
    return str(value)


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """One data file. rank: the profile of the lower rank has the word where two give the same metric."""

    name: str
    rank: int
    measurement: str
    kind: Kind
    where: Mapping[str, str]
    device: tuple[str, ...]
    interface: tuple[str, ...]
    address: str
    also: tuple[str, ...]
    rules: tuple[Rule, ...]


def load_profiles(names: Sequence[str], directory: Path) -> list[Profile]:
    """The profiles of a site in its order, or all that are shipped. A name with `.toml` is a file in `directory`.

    Raises InputError where one is unknown or wrong.
    """
    return [_load(name, rank, directory) for rank, name in enumerate(names or SHIPPED)]


def _load(name: str, rank: int, directory: Path) -> Profile:
    if name in SHIPPED:
        where, text = f"profile {name}", files(__package__).joinpath("profiles", f"{name}.toml").read_text("utf-8")
    elif name.endswith(".toml"):
        where = str(directory / name)
        try:
            text = (directory / name).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as problem:
            raise InputError(f"collectors: mqtt: profile {where} cannot be read: {problem}") from problem
    else:
        raise InputError(
            f"collectors: mqtt: no profile {name!r}; shipped are {', '.join(SHIPPED)}, or a file named .toml"
        )
    try:
        found = _File.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as problem:
        raise InputError(f"{where}: not TOML: {problem}") from problem
    except ValidationError as problem:
        raise InputError([f"{where}: {_place(e)}{e['msg']}" for e in problem.errors()]) from problem
    rules = tuple(
        Rule(
            REGISTRY[found.kind, metric], tuple(rule.field),
            int(rule.scale) if rule.scale.is_integer() else rule.scale, rule.values, frozenset(rule.unknown),
        )
        for metric, rule in found.metrics.items()
    )  # fmt: skip
    return Profile(
        Path(name).stem, rank, found.measurement, found.kind, found.where, tuple(found.device),
        tuple(found.interface), found.address, tuple(found.also), rules,
    )  # fmt: skip


def _place(error: Any) -> str:
    return "".join(f"{part}: " for part in error["loc"])
