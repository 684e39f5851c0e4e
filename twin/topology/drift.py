"""Design against what was found: cables that go elsewhere, are missing or were never planned.

Ports are compared by address. Cables that differ and share a port are one mistake: two cables swapped are one,
not four. A device none of whose planned cables was found is missing as a whole.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from twin.address import link_name, natural
from twin.topology.model import Topology

Cable = tuple[str, str]  # two port addresses, the lower tier (or the first by name) first


@dataclass(frozen=True, slots=True)
class Mistake:
    """One difference. kind: `swapped`, `moved`, `missing`, `unplanned` or `speed`.

    planned, found: cables as designed and as they are. device: what is missing as a whole, else empty.
    crossing: whether a cable leads to another plane, rail or switch than planned.
    """

    kind: str
    planned: tuple[Cable, ...]
    found: tuple[Cable, ...]
    device: str = ""
    crossing: bool = False
    text: str = ""

    @property
    def cause(self) -> str:
        """The address an incident goes by: the device, or the first cable as designed."""
        return self.device or link_name(*(self.planned or self.found)[0])

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "cause": self.cause,
            "planned": [link_name(*c) for c in self.planned],
            "found": [link_name(*c) for c in self.found],
            "crossing": self.crossing,
            "summary": self.text,
        }


def cables_of(topo: Topology) -> dict[Cable, float]:
    """Every cable of a wiring with its speed in bits/s."""
    ports = topo.port_names
    rows = zip(topo.links.a.tolist(), topo.links.b.tolist(), topo.links.speed.tolist(), strict=True)
    return {(ports[a], ports[b]): speed for a, b, speed in rows}


def compare(design: Topology, found: Topology) -> list[Mistake]:
    """Every difference between a design and a discovery, the serious ones first."""
    planned, seen = cables_of(design), cables_of(found)
    mistakes = mistaken_cables(design, seen)
    both = {_key(c): s for c, s in seen.items()}
    slow = [
        Mistake("speed", (c,), (c,), text=f"{link_name(*c)} is built for another speed than planned")
        for c, speed in planned.items()
        if _key(c) in both and both[_key(c)] == both[_key(c)] and both[_key(c)] != speed
    ]
    return sorted(mistakes + slow, key=lambda m: (not m.crossing, m.kind, natural(m.cause)))


def mistaken_cables(design: Topology, found: Iterable[Cable]) -> list[Mistake]:
    """Differences between the planned cables and those found, one a mistake."""
    planned = {_key(c): c for c in cables_of(design)}
    low = {a for a, _ in planned.values()}  # ends that point up: they come first in found cables too
    seen = {_key((a, b)): (b, a) if b in low and a not in low else (a, b) for a, b in found}
    lost = [c for k, c in planned.items() if k not in seen]
    extra = [c for k, c in seen.items() if k not in planned]
    total = _by_device(planned.values())
    out: list[Mistake] = []
    missing: list[Cable] = []
    for group_lost, group_extra in _components(lost, extra):
        if not group_extra:
            missing.extend(group_lost)
        elif not group_lost:
            out.extend(_unplanned(c) for c in group_extra)
        else:
            out.append(_elsewhere(group_lost, group_extra))
    out.extend(_missing(missing, total))
    return out


def _key(cable: Cable) -> frozenset[str]:
    return frozenset(cable)


def _owner(port: str) -> str:
    """The switch or node a port belongs to."""
    return port.split("/")[0]


def _by_device(cables: Iterable[Cable]) -> dict[str, int]:
    count: dict[str, int] = defaultdict(int)
    for a, b in cables:
        count[_owner(a)] += 1
        count[_owner(b)] += 1
    return count


def _components(lost: list[Cable], extra: list[Cable]) -> list[tuple[list[Cable], list[Cable]]]:
    """Cables that share a port, directly or through others, together."""
    at: dict[str, list[tuple[int, Cable]]] = defaultdict(list)
    for which, cables in enumerate((lost, extra)):
        for cable in cables:
            for port in cable:
                at[port].append((which, cable))
    out, done = [], set[str]()
    for start in at:
        if start in done:
            continue
        group: tuple[dict[Cable, None], dict[Cable, None]] = ({}, {})
        todo = [start]
        while todo:
            port = todo.pop()
            if port in done:
                continue
            done.add(port)
            for which, cable in at[port]:
                group[which][cable] = None
                todo.extend(cable)
        out.append((sorted(group[0], key=_order), sorted(group[1], key=_order)))
    return out


def _order(cable: Cable) -> list[list[tuple[int, int, str]]]:
    return [natural(end) for end in cable]


def _elsewhere(lost: list[Cable], extra: list[Cable]) -> Mistake:
    kind = "swapped" if len(lost) == len(extra) == 2 else "moved"
    crossing = any(_crosses(lost, cable) for cable in extra)
    was, is_ = (" and ".join(link_name(*c) for c in cables) for cables in (lost, extra))
    verb = "are swapped" if kind == "swapped" else "goes elsewhere" if len(lost) == 1 else "go elsewhere"
    return Mistake(kind, tuple(lost), tuple(extra), crossing=crossing, text=f"{was} {verb}: found {is_}")


def _crosses(lost: list[Cable], cable: Cable) -> bool:
    """Whether a cable leads up to another switch than its planned one does (so to another rail or plane)."""
    planned = {a: _owner(b) for a, b in lost}
    return any(near in planned and planned[near] != _owner(far) for near, far in (cable, cable[::-1]))


def _unplanned(cable: Cable) -> Mistake:
    return Mistake("unplanned", (), (cable,), text=f"{link_name(*cable)} was found and is not in the design")


def _missing(cables: list[Cable], total: Mapping[str, int]) -> list[Mistake]:
    """Missing cables; those of a device of which no cable is left are one mistake."""
    left = dict.fromkeys(cables)
    gone = _by_device(cables)
    out = []
    for device in sorted(gone, key=lambda d: (-gone[d], natural(d))):
        mine = [c for c in left if device in (_owner(c[0]), _owner(c[1]))]
        if len(mine) > 1 and gone[device] == total[device]:
            for cable in mine:
                del left[cable]
            out.append(
                Mistake("missing", tuple(mine), (), device, text=f"{device} was not found, {len(mine)} cables")
            )
    out.extend(Mistake("missing", (c,), (), text=f"{link_name(*c)} was not found") for c in left)
    return out
