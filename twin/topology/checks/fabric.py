"""Are planes apart, uplinks equal, and do the cables of a switch fit its ports?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from twin.catalog import hardware
from twin.topology.checks.finding import Issue, count, listed
from twin.topology.model import TIERS, Topology
from twin.units import bits_per_second, show_speed

Rows = npt.NDArray[np.integer]
Uplinks = tuple[int, float]  # links, and bits/s of all together (unknown speeds as 0)

_ROUND_UP = 1 + 1e-9


def switches(topo: Topology) -> Iterator[Issue]:
    """All rules about switches and the links between them."""
    fabric = np.flatnonzero((topo.ports.switch[topo.links.a] >= 0) & (topo.ports.switch[topo.links.b] >= 0))
    low, high = topo.ports.switch[topo.links.a[fabric]], topo.ports.switch[topo.links.b[fabric]]
    isolated = list(_isolated(topo))
    unequal = list(_uplinks(topo, fabric, low, {i.place for i in isolated}))
    touching = list(_touching(topo, fabric, low, high))
    yield from touching
    yield from isolated
    yield from unequal
    yield from _spread(topo, low, high, {i.place for i in (*touching, *unequal)})
    yield from _apart(topo, low, high, {i.plane for i in (*isolated, *unequal)})
    yield from _overfull(topo)


def _plane(topo: Topology, switch: int) -> str:
    row = int(topo.switches.plane[switch])
    return topo.planes[row] if row >= 0 else ""


def _touching(topo: Topology, fabric: Rows, low: Rows, high: Rows) -> Iterator[Issue]:
    plane = topo.switches.plane
    wrong = (plane[low] >= 0) & (plane[high] >= 0) & (plane[low] != plane[high])
    by_low: dict[int, list[int]] = {}
    for link, switch in zip(fabric[wrong].tolist(), low[wrong].tolist(), strict=True):
        by_low.setdefault(switch, []).append(link)
    for switch, links in by_low.items():
        mine = _plane(topo, switch)
        others = sorted({_plane(topo, int(topo.ports.switch[topo.links.b[i]])) for i in links})
        yield Issue(
            "planes-touch", topo.switches.name[switch], topo.switches.name[switch], mine,
            f"{count(len(links), 'link')} into plane {listed(others)}: {listed([topo.link_name(i) for i in links])}",
            f"links to switches of plane {mine} only",
        )  # fmt: skip
    for switch in np.flatnonzero(plane < 0).tolist():
        near = np.r_[plane[high[low == switch]], plane[low[high == switch]]]
        joined = [topo.planes[p] for p in np.unique(near[near >= 0]).tolist()]
        if len(joined) > 1:
            name = topo.switches.name[switch]
            yield Issue("planes-touch", name, name, "", f"joins planes {listed(joined)}", "links into one plane")


def _isolated(topo: Topology) -> Iterator[Issue]:
    used = np.bincount(topo.ports.switch[topo.ports.switch >= 0], minlength=len(topo.switches.name))
    for switch in np.flatnonzero(used == 0).tolist():
        name = topo.switches.name[switch]
        yield Issue("switch-isolated", name, name, _plane(topo, switch), "no cable at all", "a cable at least")


def _families(topo: Topology) -> dict[tuple[int, int], list[int]]:
    """Switches by plane and tier."""
    out: dict[tuple[int, int], list[int]] = {}
    for switch, key in enumerate(zip(topo.switches.plane.tolist(), topo.switches.tier.tolist(), strict=True)):
        out.setdefault(key, []).append(switch)
    return out


def _uplinks(topo: Topology, fabric: Rows, low: Rows, isolated: set[str]) -> Iterator[Issue]:
    n = len(topo.switches.name)
    links = np.bincount(low, minlength=n)
    speed = np.bincount(low, np.nan_to_num(topo.links.speed[fabric]), n)
    up: list[Uplinks] = list(zip(links.tolist(), speed.tolist(), strict=True))
    for (_, tier), family in _families(topo).items():
        mine = [s for s in family if topo.switches.name[s] not in isolated]
        if len(mine) < 2:
            continue
        usual, how_many = max(Counter(up[s] for s in mine).items(), key=lambda item: (item[1], item[0]))
        for switch in mine:
            if up[switch] != usual:
                name = topo.switches.name[switch]
                yield Issue(
                    "uplinks-unequal", name, name, _plane(topo, switch), _show(up[switch]),
                    f"{_show(usual)}, as {how_many:,} of {count(len(mine), TIERS[tier] + ' switch')} "
                    f"{'of its plane ' if topo.planes else ''}{'has' if how_many == 1 else 'have'}",
                )  # fmt: skip


def _show(up: Uplinks) -> str:
    return count(up[0], "uplink") + (f" of {show_speed(up[1])}b/s in all" if up[1] else "")


def _spread(topo: Topology, low: Rows, high: Rows, told: set[str]) -> Iterator[Issue]:
    """Links of a switch to each one above it: all alike, and as many as its fellows have."""
    n = len(topo.switches.name)
    pair, links = np.unique(low.astype(np.int64) * n + high, return_counts=True)
    of: dict[int, dict[int, int]] = {}
    for p, number in zip(pair.tolist(), links.tolist(), strict=True):
        of.setdefault(p // n, {})[p % n] = number
    for family in _families(topo).values():
        numbers = Counter(number for s in family for number in of.get(s, {}).values())
        if not numbers:
            continue
        usual = max(numbers.items(), key=lambda item: (item[1], -item[0]))[0]
        for switch in family:
            odd = {h: number for h, number in of.get(switch, {}).items() if number != usual}
            name = topo.switches.name[switch]
            if odd and name not in told:
                found = [f"{number} to {topo.switches.name[h]}" for h, number in odd.items()]
                yield Issue(
                    "links-unequal", name, name, _plane(topo, switch), f"{listed(found)}, {usual} to others",
                    f"{count(usual, 'link')} to each, so that traffic spreads evenly",
                )  # fmt: skip


def _apart(topo: Topology, low: Rows, high: Rows, told: set[str]) -> Iterator[Issue]:
    """Parts of a plane with no way between them."""
    part = list(range(len(topo.switches.name)))

    def root(switch: int) -> int:
        while part[switch] != switch:
            part[switch] = part[part[switch]]
            switch = part[switch]
        return switch

    for a, b in np.unique(np.stack([low, high], axis=1), axis=0).tolist():
        part[root(a)] = root(b)
    parts: dict[int, dict[int, list[int]]] = {}
    for switch, plane in enumerate(topo.switches.plane.tolist()):
        parts.setdefault(plane, {}).setdefault(root(switch), []).append(switch)
    for plane, islands in parts.items():
        name = topo.planes[plane] if plane >= 0 else ""
        if len(islands) > 1 and name not in told:
            small = min(islands.values(), key=len)
            place = f"plane:{name}" if name else topo.switches.name[small[0]]
            yield Issue(
                "plane-apart", place, place, name,
                f"{len(islands)} parts that no link joins; the smallest is {_names(topo, small)}",
                "one part: a way between any two switches",
            )  # fmt: skip


def _names(topo: Topology, rows: list[int]) -> str:
    return listed([topo.switches.name[s] for s in rows])


def _overfull(topo: Topology) -> Iterator[Issue]:
    switch, radix = topo.ports.switch, topo.switches.radix
    mine = np.flatnonzero(switch >= 0)
    used = np.bincount(switch[mine], minlength=len(radix))
    load = np.bincount(switch[mine], np.nan_to_num(topo.port_speed[mine]), len(radix))
    most = np.array([_capacity(model) for model in topo.switches.model])
    for s in np.flatnonzero((radix > 0) & (used > radix)).tolist():
        name = topo.switches.name[s]
        yield Issue(
            "cables-over-ports", name, name, _plane(topo, s), count(int(used[s]), "cable"),
            f"no more than its {count(int(radix[s]), 'port')}",
        )  # fmt: skip
    for s in np.flatnonzero((load > most * _ROUND_UP) & ~((radix > 0) & (used > radix))).tolist():
        name = topo.switches.name[s]
        yield Issue(
            "cables-over-ports", name, name, _plane(topo, s),
            f"{count(int(used[s]), 'cable')} of {show_speed(float(load[s]))}b/s in all",
            f"no more than {show_speed(float(most[s]))}b/s, the ports of {topo.switches.model[s]} together",
        )  # fmt: skip


def _capacity(model: str) -> float:
    """Bits/s, one direction, of all ports of a switch; without end where the catalogue does not know it."""
    ports = hardware()["switch"].get(model, {}).get("ports", {})
    return max((bits_per_second(speed) * n for speed, n in ports.items()), default=float("inf"))
