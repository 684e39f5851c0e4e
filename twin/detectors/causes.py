"""From links that are down (or slow, or flapping) to the smallest cause that explains them.

A plane is the cause when what is left of its capacity is next to nothing. A switch, node or NIC is when every link
of it that was read since the trouble began is down, and at least two are; when many of its links went at once, it
is named as the place. Parts of one plane that went together are told as one. What remains are single links.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from twin.capacity import CapacityModel
from twin.detectors.finding import LinkRows
from twin.detectors.rules import Rules, ns
from twin.linkstate import LinkState
from twin.topology.model import Topology

Bool = npt.NDArray[np.bool_]
I64 = npt.NDArray[np.int64]

SEVERAL = 4  # links of one device that went at once and are told as one, though others of it are up
MANY_PARTS = 8  # causes of one plane (and a hundredth of its links) that went at once are told as one
KNOWN_SHARE = 0.3  # of a plane's links must be known before the plane is judged


class Cause(NamedTuple):
    """what: `plane`, `part` of a plane, `switch`, `node`, `nic`, or `link`; row: of that table.

    whole: all known links of the device are in it. since: start of the newest burst among its links.
    """

    what: str
    row: int
    links: LinkRows
    since: int
    ready: bool
    whole: bool = True


@dataclass(slots=True)
class _Devices:
    """Which links belong to which device of one class: parallel arrays of (device, link)."""

    what: str
    count: int
    device: npt.NDArray[np.int64]
    link: npt.NDArray[np.int64]
    peer: npt.NDArray[np.int64]  # the device at the other end, numbered over nodes and switches

    @classmethod
    def of(cls, what: str, count: int, pairs: list[tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]]) -> _Devices:
        rows = [np.flatnonzero(device >= 0) for device, _ in pairs]
        return cls(
            what,
            count,
            np.concatenate([d[r] for (d, _), r in zip(pairs, rows, strict=True)]).astype(np.int64),
            np.concatenate(rows),
            np.concatenate([p[r] for (_, p), r in zip(pairs, rows, strict=True)]).astype(np.int64),
        )

    def per_device(self, links: Bool) -> I64:
        """How many of these links each device has."""
        return np.bincount(self.device[links[self.link]], minlength=self.count).astype(np.int64)

    def peers(self, links: Bool) -> I64:
        """How many different neighbours these links of each device lead to."""
        mine = links[self.link]
        pairs = np.unique(np.stack([self.device[mine], self.peer[mine]]), axis=1)
        return np.bincount(pairs[0], minlength=self.count).astype(np.int64)

    def links_of(self, row: int, links: Bool) -> Bool:
        out = np.zeros(len(links), bool)
        out[self.link[self.device == row]] = True
        return out & links


class CauseFinder:
    """Finds causes; holds only what follows from the wiring."""

    def __init__(self, topo: Topology, model: CapacityModel, rules: Rules) -> None:
        self.topo, self.model, self.rules = topo, model, rules
        links, ports = topo.links, topo.ports
        self._ends = topo.link_ends
        nic, node = ports.nic[links.a], topo.port_node[links.a]
        self._switches = _Devices.of(
            "switch",
            len(topo.switches.name),
            [(ports.switch[links.a], self._ends[1]), (ports.switch[links.b], self._ends[0])],
        )
        self._nodes = _Devices.of("node", len(topo.nodes.name), [(node, self._ends[1])])
        self._nics = _Devices.of("nic", len(topo.nics.node), [(nic, self._ends[1])])
        self._plane = np.where(links.plane >= 0, links.plane, len(topo.planes))
        self._group = self._plane * 4 + links.tier
        planes = topo.switches.plane
        self._n_switches = np.bincount(planes[planes >= 0], minlength=len(topo.planes))
        self._n_plane = np.bincount(self._plane, minlength=len(topo.planes) + 1)

    # --- down ---

    def find(self, now: int, state: LinkState, held: Bool) -> list[Cause]:
        """Causes of every down link but the `held` ones (an incident that is recovering explains those)."""
        left = state.down & ~state.flapping & ~held
        if not left.any():
            return []
        onset, settled = self._onset(now, state, left)
        known = state.down | (~np.isnan(state.up) & (state.sampled >= onset))
        silent = np.isnan(state.up) | ((state.sampled < onset) & ~state.awaited)
        gone = silent & ~state.down & (state.sampled > 0)  # read before, by nobody now
        causes = []
        for plane in self._dead_planes(state, onset):
            mine = left & (self._plane == plane)
            if mine.any():
                causes.append(self._down("plane", plane, mine, now, state, settled))
                left &= ~mine
        parts = [
            self._down(what, row, mine, now, state, settled, whole)
            for what, row, mine, whole in self._devices(known, state.down, left, state.since, gone)
        ]
        for cause in parts:
            left[cause.links] = False
        parts.extend(
            self._down("link", row, _mask(len(left), row), now, state, settled)
            for row in np.flatnonzero(left).tolist()
        )
        return causes + self._join_parts(now, state, parts, settled)

    def _down(
        self, what: str, row: int, links: Bool, now: int, state: LinkState, settled: Bool, whole: bool = True
    ) -> Cause:
        rows = np.flatnonzero(links)
        times = state.since[rows]
        since = int(times[times >= times.max() - ns(self.rules.burst)].min())
        fresh = bool((state.up[rows] == 0).any())  # never raised on what is not known now
        ready = fresh and bool(settled[rows].all()) and now - since >= ns(self.rules.link_debounce)
        return Cause(what, row, rows, since, ready, whole)

    def _onset(self, now: int, state: LinkState, left: Bool) -> tuple[I64, Bool]:
        """Per link: when the newest burst of its plane began, 0 without one; and whether half of the plane's
        links that can still speak have spoken since."""
        count = len(self.topo.planes) + 1
        newest = np.zeros(count, np.int64)
        np.maximum.at(newest, self._plane[left], state.since[left])
        burst = left & (state.since >= newest[self._plane] - ns(self.rules.burst))
        begin = np.full(count, np.iinfo(np.int64).max)
        np.minimum.at(begin, self._plane[burst], state.since[burst])
        begin[newest == 0] = 0
        onset = begin[self._plane]
        spoken = ~np.isnan(state.up) & (state.sampled >= onset)
        able = spoken | state.awaited
        share = np.bincount(self._plane[spoken], minlength=count) / np.maximum(
            np.bincount(self._plane[able], minlength=count), 1
        )
        waited = now - begin >= 2 * ns(self.rules.stale_floor)
        return onset, ((share >= 0.5) | waited)[self._plane]

    def _dead_planes(self, state: LinkState, onset: I64) -> list[int]:
        """Planes with (nearly) no capacity left, judged by the links read since the trouble began: a good part of
        them must be known, and what is down must have several devices at its lower ends."""
        n = len(self.topo.planes)
        capacity = self.model.at(self._guess(state, onset)).plane
        known = np.bincount(self._plane, state.down | ~np.isnan(state.up), n + 1)
        enough = known[:n] >= KNOWN_SHARE * self._n_plane[:n]
        out = []
        for plane in np.flatnonzero(enough & (capacity <= self.rules.plane_down_fraction)).tolist():
            mine = state.down & (self._plane == plane)
            if self._n_switches[plane] > 1 and len(np.unique(self._ends[0][mine])) > 1:
                out.append(plane)
        return out

    def _guess(self, state: LinkState, onset: I64) -> npt.NDArray[np.float64]:
        """Speeds for judging a plane: a link not read since the onset is as likely down as its peers are."""
        speed = np.where(state.down, 0.0, self.topo.links.speed)
        spoken = (~np.isnan(state.up) & (state.sampled >= onset)) | state.down
        count = int(self._group.max(initial=0)) + 1
        said = np.bincount(self._group, spoken, count)
        down = np.bincount(self._group, state.down, count)
        share = np.where(said > 0, down / np.maximum(said, 1), 0.0)
        return np.where(spoken, speed, self.topo.links.speed * (1.0 - share[self._group]))

    # --- devices ---

    def group(self, links: Bool, known: Bool, since: I64) -> list[Cause]:
        """Causes of links that are slow or flap: planes nearly all of whose known links do, devices, single links."""
        left, causes = links.copy(), []
        for plane in range(len(self.topo.planes)):
            mine = left & (self._plane == plane)
            share = np.count_nonzero(mine) / max(1, int(np.count_nonzero(known & (self._plane == plane))))
            if share >= 1 - self.rules.plane_down_fraction and len(np.unique(self._ends[0][mine])) > 1:
                causes.append(self._like("plane", plane, mine, since))
                left &= ~mine
        for what, row, mine, whole in self._devices(known, links, left, since):
            causes.append(self._like(what, row, mine, since, whole))
            left &= ~mine
        causes.extend(self._like("link", row, _mask(len(left), row), since) for row in np.flatnonzero(left).tolist())
        return causes

    def _like(self, what: str, row: int, links: Bool, since: I64, whole: bool = True) -> Cause:
        rows = np.flatnonzero(links)
        return Cause(what, row, rows, int(since[rows].min()), True, whole)

    def _devices(
        self, known: Bool, bad: Bool, left: Bool, since: I64, gone: Bool | None = None
    ) -> Iterator[tuple[str, int, Bool, bool]]:
        """Devices all of whose known links are bad, those that explain most first; then those with many bad links.

        gone: links that can no longer be read, as behind a dead switch.
        """
        left = left.copy()
        gone = np.zeros(len(left), bool) if gone is None else gone
        classes = (self._switches, self._nodes, self._nics)
        while True:
            count, row, devices = max(
                ((*self._wholly(d, known, bad, left, gone), d) for d in classes), key=lambda found: found[0]
            )
            if count < 2:
                break
            mine = devices.links_of(row, left)
            yield devices.what, row, mine, True
            left &= ~mine
        while True:
            count, row, devices, mine = max(
                (self._partly(d, left, since) for d in classes[:2]), key=lambda found: found[0]
            )
            if count < SEVERAL:
                return
            yield devices.what, row, mine, False
            left &= ~mine

    def _wholly(self, devices: _Devices, known: Bool, bad: Bool, left: Bool, gone: Bool) -> tuple[int, int]:
        """The device that explains most of what is left: (links explained, row). A switch is suspected only when its
        links lead to several neighbours, or others of its links can no longer be read."""
        explained = devices.per_device(left)
        if not explained.any():
            return 0, 0
        explained[devices.per_device(known & bad) != devices.per_device(known)] = 0
        if devices.what == "switch":
            explained[(devices.peers(left) < 2) & (devices.per_device(gone) == 0)] = 0
        row = int(explained.argmax())
        return int(explained[row]), row

    def _partly(self, devices: _Devices, left: Bool, since: I64) -> tuple[int, int, _Devices, Bool]:
        """The device with most of the links that are left and went in one burst."""
        nothing = 0, 0, devices, left
        count = devices.per_device(left)
        if not count.any() or count.max() < SEVERAL:
            return nothing
        row = int(count.argmax())
        mine = devices.links_of(row, left)
        times = since[mine]
        mine &= since >= times.max() - ns(self.rules.burst)
        return int(np.count_nonzero(mine)), row, devices, mine

    # --- parts of a plane ---

    def _join_parts(self, now: int, state: LinkState, parts: list[Cause], settled: Bool) -> list[Cause]:
        """Parts of one plane that went together, and took a good part of it along, are one cause."""
        out = list(parts)
        for plane in range(len(self.topo.planes)):
            mine = [c for c in parts if c.what != "node" and int(self._plane[c.links[0]]) == plane]
            for burst in self._bursts(mine):
                if self._is_one(plane, burst):
                    links = np.zeros(len(self._plane), bool)
                    for c in burst:
                        links[c.links] = True
                    out = [c for c in out if c not in burst]
                    out.append(self._down("part", plane, links, now, state, settled))
        return out

    def _is_one(self, plane: int, burst: list[Cause]) -> bool:
        if len(burst) >= max(MANY_PARTS, int(self._n_plane[plane]) // 100):
            return True
        switches = [int(self.topo.switches.tier[c.row]) for c in burst if c.what == "switch" and c.whole]
        few = max(switches.count(t) for t in range(3)) < 2 and len(burst) - len(switches) < 3
        if few and not self._all_of_a_tier(plane, burst):
            return False
        lost = 1 - self.model.without(np.concatenate([c.links for c in burst]).tolist()).plane[plane]
        largest = max(burst, key=lambda c: len(c.links))
        alone = 1 - self.model.without(largest.links.tolist()).plane[plane]
        return bool(lost >= 1 - self.rules.plane_degraded_fraction and alone < 0.9 * lost)

    def _all_of_a_tier(self, plane: int, burst: list[Cause]) -> bool:
        """Whether every spine (or core) of the plane, two or more, lost a part."""
        switches = self.topo.switches
        hit = {c.row for c in burst if c.what == "switch"}
        tiers = [set(np.flatnonzero((switches.plane == plane) & (switches.tier == t)).tolist()) for t in (1, 2)]
        return any(len(tier) >= 2 and tier <= hit for tier in tiers)

    def _bursts(self, causes: list[Cause]) -> Iterator[list[Cause]]:
        """Causes that began within the burst time of the first of them."""
        run: list[Cause] = []
        for cause in sorted(causes, key=lambda c: (c.since, c.row)):
            if run and cause.since - run[0].since > ns(self.rules.burst):
                yield run
                run = []
            run.append(cause)
        if run:
            yield run


def _mask(n: int, row: int) -> Bool:
    out = np.zeros(n, bool)
    out[row] = True
    return out
