"""Design against what was found: cables that go elsewhere, are missing or were never planned.

Ports are compared by address. Cables that differ and share a port are one mistake: two cables swapped are one,
not four. A device none of whose planned cables was found is missing as a whole, one that the design does not know
is unplanned as a whole, and where the second has the cables of the first it is the first under another name.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from twin.address import link_name, natural
from twin.topology.model import Topology
from twin.units import show_speed

_SHOWN = 4  # cables that a text names
_MANY = 4  # cables of one wrong speed that are listed one by one; more of them are one mistake

Cable = tuple[str, str]  # two port addresses, the lower tier (or the first by name) first


@dataclass(frozen=True, slots=True)
class Mistake:
    """One difference. kind: `swapped`, `moved`, `missing`, `unplanned` or `speed`.

    planned, found: cables as designed and as they are. device: the switch or node that it is about as a whole
    (missing, unplanned, or found under another name), else empty.
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
    return compare_cables(cables_of(design), cables_of(found))


def compare_cables(planned: Mapping[Cable, float], seen: Mapping[Cable, float]) -> list[Mistake]:
    """The same of cables with their speeds in bits/s, NaN where unknown."""
    mistakes = _mistaken(planned, seen) + _speeds(planned, seen)
    return sorted(mistakes, key=lambda m: (not m.crossing, m.kind, natural(m.cause)))


def mistaken_cables(design: Topology, found: Iterable[Cable]) -> list[Mistake]:
    """Differences between the planned cables and those found, one a mistake."""
    return _mistaken(cables_of(design), found)


def _mistaken(design: Iterable[Cable], found: Iterable[Cable]) -> list[Mistake]:
    planned = {_key(c): c for c in design}
    low = {a for a, _ in planned.values()}  # ends that point up: they come first in found cables too
    seen = {_key((a, b)): (b, a) if b in low and a not in low else (a, b) for a, b in found}
    lost = [c for k, c in planned.items() if k not in seen]
    extra = [c for k, c in seen.items() if k not in planned]
    in_design, in_found = _by_device(planned.values()), _by_device(seen.values())
    out, lost, extra = _renamed(lost, extra, in_design, in_found)
    missing: list[Cable] = []
    unplanned: list[Cable] = []
    for group_lost, group_extra in _components(lost, extra):
        if not group_extra:
            missing.extend(group_lost)
        elif not group_lost:
            unplanned.extend(group_extra)
        else:
            out.append(_elsewhere(group_lost, group_extra))
    for device, cables in _whole(missing, in_design):
        text = f"{device} was not found, {len(cables)} cables" if device else f"{_names(cables)} was not found"
        out.append(Mistake("missing", cables, (), device, text=text))
    for device, cables in _whole(unplanned, {d: n for d, n in in_found.items() if d not in in_design}):
        text = f"was found and is not in the design{f', {len(cables)} cables' if device else ''}"
        out.append(Mistake("unplanned", (), cables, device, text=f"{device or _names(cables)} {text}"))
    return out


def _key(cable: Cable) -> frozenset[str]:
    return frozenset(cable)


def _owner(port: str) -> str:
    """The switch or node a port belongs to."""
    return port.split("/", 1)[0]


def _names(cables: Iterable[Cable]) -> str:
    names = [link_name(*c) for c in cables]
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return (" and " if len(names) == 2 else ", ").join(names[:_SHOWN]) + more


def _by_device(cables: Iterable[Cable]) -> dict[str, int]:
    count: dict[str, int] = defaultdict(int)
    for cable in cables:
        for device in {_owner(end) for end in cable}:
            count[device] += 1
    return dict(count)


def _at(cables: Iterable[Cable]) -> dict[str, list[Cable]]:
    """Cables by each device they end at."""
    out: dict[str, list[Cable]] = defaultdict(list)
    for cable in cables:
        for device in {_owner(end) for end in cable}:
            out[device].append(cable)
    return out


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
    verb = "are swapped" if kind == "swapped" else "goes elsewhere" if len(lost) == 1 else "go elsewhere"
    text = f"{_names(lost)} {verb}: found {_names(extra)}"
    return Mistake(kind, tuple(lost), tuple(extra), crossing=crossing, text=text)


def _crosses(lost: list[Cable], cable: Cable) -> bool:
    """Whether a cable leads up to another switch than its planned one does (so to another rail or plane)."""
    planned = {a: _owner(b) for a, b in lost}
    return any(near in planned and planned[near] != _owner(far) for near, far in (cable, cable[::-1]))


def _whole(cables: list[Cable], total: Mapping[str, int]) -> list[tuple[str, tuple[Cable, ...]]]:
    """Cables of devices that have no others are together, under the device's name; the rest are alone, under none."""
    left = dict.fromkeys(cables)
    at = _at(cables)
    out: list[tuple[str, tuple[Cable, ...]]] = []
    for device in sorted(at, key=lambda d: (-len(at[d]), natural(d))):
        mine = [c for c in at[device] if c in left]
        if len(mine) > 1 and len(at[device]) == total.get(device):
            for cable in mine:
                del left[cable]
            out.append((device, tuple(mine)))
    return out + [("", (c,)) for c in left]


def _renamed(
    lost: list[Cable], extra: list[Cable], in_design: Mapping[str, int], in_found: Mapping[str, int]
) -> tuple[list[Mistake], list[Cable], list[Cable]]:
    """Devices that were found under another name, with all their cables at the same ports; and what is left."""
    gone = {d: cables for d, cables in _at(lost).items() if len(cables) == in_design[d] > 1 and d not in in_found}
    new = {d: cables for d, cables in _at(extra).items() if len(cables) == in_found[d] and d not in in_design}
    shape = {_shape(d, cables): d for d, cables in new.items()}
    out: list[Mistake] = []
    done: set[Cable] = set()
    for device, cables in gone.items():
        other = shape.get(_shape(device, cables))
        if other is not None and not done & {*cables, *new[other]}:
            done |= {*cables, *new[other]}
            text = f"{device} was found as {other}: {len(cables)} cables, at the same ports"
            out.append(Mistake("moved", tuple(cables), tuple(new[other]), device, text=text))
    return out, [c for c in lost if c not in done], [c for c in extra if c not in done]


def _shape(device: str, cables: Iterable[Cable]) -> frozenset[frozenset[str]]:
    """Its cables without its name."""
    return frozenset(_key((_nameless(device, a), _nameless(device, b))) for a, b in cables)


def _nameless(device: str, port: str) -> str:
    return port[len(device) :] if _owner(port) == device else port


def _speeds(planned: Mapping[Cable, float], seen: Mapping[Cable, float]) -> list[Mistake]:
    """Cables of another speed than planned; many of the same two speeds are one mistake."""
    both = {_key(c): s for c, s in seen.items()}
    wrong: dict[tuple[float, float], list[Cable]] = defaultdict(list)
    for cable, speed in planned.items():
        is_ = both.get(_key(cable), float("nan"))
        if is_ != speed and is_ == is_ and speed == speed:
            wrong[speed, is_].append(cable)
    out = []
    for (speed, is_), cables in wrong.items():
        rates = f"for {show_speed(is_)}b/s, planned {show_speed(speed)}b/s"
        together = [tuple(cables)] if len(cables) > _MANY else [(c,) for c in cables]
        for some in together:
            verb = "is" if len(some) == 1 else "are"
            out.append(Mistake("speed", some, some, text=f"{_names(some)} {verb} built {rates}"))
    return out
