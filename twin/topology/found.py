"""A design beside what was found in the field: which planes that is, and how its ports are numbered."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from twin.errors import InputError
from twin.topology.drift import Cable, Mistake, cables_of, compare_cables
from twin.topology.ibports import renumbering
from twin.topology.model import NONE, Topology
from twin.topology.presets import PRESETS

_HEAD = 65_536
_DUMP = re.compile(rb'^(?:(?:Switch|H?[Cc]a|Rt)\s+\d+\s+"[SHR]-|\s*(?:SW|CA|RT)\s+\d+\s+\d+\s+0x)', re.MULTILINE)


@dataclass(frozen=True)
class Drift:
    """mistakes: one a difference. planes: which of the design were compared. notes: what had to be decided."""

    mistakes: tuple[Mistake, ...]
    planes: tuple[str, ...]
    cables: int
    notes: tuple[str, ...]

    @property
    def verdict(self) -> str:
        """The last line for a person."""
        if not self.mistakes:
            return f"as designed: all {self.cables:,} cables"
        number = len(self.mistakes)
        return f"{number:,} difference{'s' if number > 1 else ''}; {self.cables:,} cables are planned"

    def to_json(self) -> dict[str, Any]:
        return {
            "mistakes": [m.to_json() for m in self.mistakes],
            "planes": list(self.planes),
            "cables": self.cables,
            "notes": list(self.notes),
        }


def read(argument: str) -> Topology:
    """What was found: a dump of ibnetdiscover, told by its content, else a preset, site file or wiring file."""
    path = Path(argument)
    if argument not in PRESETS and path.is_file():
        try:
            with path.open("rb") as file:
                head = file.read(_HEAD)
        except OSError as problem:
            raise InputError(f"{argument}: cannot be read: {problem.strerror}") from problem
        if _DUMP.search(head):
            from twin.topology.discovery import discover_files

            return discover_files({"A": path})
    from twin.site import load_site

    return load_site(argument).topology


def drift(design: Topology, found: Topology) -> Drift:
    """Every difference; of the planes that `found` has a switch of, where it has fewer planes than the design.

    A discovery of InfiniBand counts ports from 1 and sees one plane: neither is a difference by itself.
    """
    notes = []
    known = set(found.switches.name)
    planes = [p for p in range(len(design.planes)) if known & _switches(design, p)]
    planned = cables_of(design)
    if planes and len(found.planes) < len(design.planes) > len(planes):
        names = ", ".join(design.planes[p] for p in planes)
        notes.append(f"only plane {names} is compared: no switch of the others was found")
        without = [NONE] if known & _switches(design, NONE) else []
        inside = np.isin(design.links.plane, planes + without).tolist()
        planned = {c: s for (c, s), mine in zip(planned.items(), inside, strict=True) if mine}
    else:
        planes = list(range(len(design.planes)))
    if not known & set(design.switches.name) and not set(found.nodes.name) & set(design.nodes.name):
        notes.append("no switch and no node of the design was found by its name: is this the same fabric?")
    seen, renumbered = _numbered(design, planned, cables_of(found))
    if renumbered:
        notes.append("ports are found numbered from 1; they are told here as the design counts them, from 0")
    return Drift(
        tuple(compare_cables(planned, seen)), tuple(design.planes[p] for p in planes), len(planned), tuple(notes)
    )


def _switches(design: Topology, plane: int) -> set[str]:
    return {design.switches.name[s] for s in np.flatnonzero(design.switches.plane == plane).tolist()}


def _numbered(
    design: Topology, planned: Mapping[Cable, float], seen: Mapping[Cable, float]
) -> tuple[dict[Cable, float], bool]:
    """Found cables under the numbering, theirs or InfiniBand's, that agrees with more of the planned ones."""
    name = renumbering(design)
    if name is None:
        return dict(seen), False
    shifted = {(name(a), name(b)): speed for (a, b), speed in seen.items()}
    keys = {frozenset(c) for c in planned}
    agree, agree_shifted = (sum(frozenset(c) in keys for c in cables) for cables in (seen, shifted))
    return (shifted, True) if agree_shifted > agree else (dict(seen), False)
