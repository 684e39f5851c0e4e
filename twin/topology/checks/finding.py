"""Findings of `topology validate`: single ones, and those of a kind told as one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from twin.address import natural
from twin.topology.checks.accept import RULES

MOST_IN_A_PLANE = 5  # devices that are listed one by one; more of a rule in a plane are one finding


@dataclass(frozen=True, slots=True)
class Issue:
    """One thing at one place. device: the node, switch or rack it belongs to. plane: its name, or empty."""

    rule: str
    place: str
    device: str
    plane: str
    found: str
    expected: str

    @property
    def addresses(self) -> tuple[str, ...]:
        """What an `accept` entry may name to mean this one."""
        return (self.place, self.device, *((f"plane:{self.plane}",) if self.plane else ()))


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the list. place: an address, or empty for the whole fabric. places: of each thing it stands for."""

    rule: str
    place: str
    found: str
    expected: str
    places: tuple[str, ...]

    @property
    def accept(self) -> str:
        """The entry that says it is meant so."""
        return f"{self.rule}:{self.place}" if self.place else self.rule

    def to_json(self) -> dict[str, Any]:
        return {
            "rule": self.rule,
            "place": self.place or None,
            "found": self.found,
            "expected": self.expected,
            "places": list(self.places),
            "accept": self.accept,
        }


def grouped(issues: Iterable[Issue]) -> list[Finding]:
    """Issues of a rule at one device are one finding; those of many devices of a plane are one as well."""
    devices: dict[tuple[str, str, str], list[Issue]] = {}
    for issue in issues:
        devices.setdefault((issue.rule, issue.plane, issue.device), []).append(issue)
    planes: dict[tuple[str, str], list[list[Issue]]] = {}
    for (rule, plane, _), same in devices.items():
        planes.setdefault((rule, plane), []).append(sorted(same, key=lambda i: natural(i.place)))
    out: list[Finding] = []
    for (_, plane), groups in planes.items():
        if len(groups) > MOST_IN_A_PLANE:
            every = sorted((i for same in groups for i in same), key=lambda i: natural(i.place))
            out.append(_together(every, f"plane:{plane}" if plane else ""))
        else:
            out.extend(_together(same, same[0].device if len(same) > 1 else same[0].place) for same in groups)
    order = {rule: i for i, rule in enumerate(RULES)}
    return sorted(out, key=lambda f: (order[f.rule], natural(f.place)))


def _together(issues: list[Issue], place: str) -> Finding:
    first = issues[0]
    found = first.found if first.place == place else f"{first.place}: {first.found}"
    more = f"; and {len(issues) - 1:,} more" if len(issues) > 1 else ""
    return Finding(first.rule, place, found + more, first.expected, tuple(i.place for i in issues))


def count(number: int, word: str) -> str:
    """`1 link`, `2 links`."""
    return f"{number:,} {word}" + ("" if number == 1 else "es" if word.endswith("ch") else "s")


def listed(names: Iterable[str], most: int = 3) -> str:
    """`a, b, c and 4 more`."""
    every = list(names)
    rest = f" and {len(every) - most:,} more" if len(every) > most else ""
    return ", ".join(every[:most]) + rest
