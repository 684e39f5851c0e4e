"""From links that are down to the smallest cause that explains them: plane, switch, node, NIC or link.

A device is the cause when every link of it that was read since the trouble began is down, and at least
two are. A plane is the cause when what is left of its capacity is next to nothing, or when several of its
parts went together. What remains are single links.
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


class Cause(NamedTuple):
    """kind of thing (`plane`, `part` of a plane, `switch`, `node`, `nic`, `link`), its row, the links it explains."""

    what: str
    row: int
    links: LinkRows
    since: int
    ready: bool


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


class CauseFinder:
    """Finds causes of down links; holds only what follows from the wiring."""

    def __init__(self, topo: Topology, model: CapacityModel, rules: Rules) -> None:
        self.topo, self.model, self.rules = topo, model, rules
        links, ports = topo.links, topo.ports
        end_a, end_b = topo.link_ends
        compute = topo.compute_links
        nic = np.where(compute, ports.nic[links.a], -1)
        node = np.where(compute, topo.port_node[links.a], -1)
        self._switches = _Devices.of(
            "switch", len(topo.switches.name), [(ports.switch[links.a], end_b), (ports.switch[links.b], end_a)]
        )
        self._nodes = _Devices.of("node", len(topo.nodes.name), [(node, end_b)])
        self._nics = _Devices.of("nic", len(topo.nics.node), [(nic, end_b)])
        self._group = np.where(links.plane >= 0, links.plane, len(topo.planes)) * 4 + links.tier
        self._switches_in_plane = np.bincount(
            topo.switches.plane[topo.switches.plane >= 0], minlength=len(topo.planes)
        )

    def find(self, now: int, state: LinkState, held: Bool) -> list[Cause]:
        """Causes of every down link but the `held` ones (an incident that is recovering explains those)."""
        left = state.down & ~state.flapping & ~held & self.topo.compute_links
        if not left.any():
            return []
        causes = []
        onset, settled = self._onset(now, state, left)
        for plane in self._dead_planes(state, onset):
            mine = left & (self.topo.links.plane == plane)
            if mine.any():
                causes.append(self._cause("plane", plane, mine, now, state, settled))
                left &= ~mine
        parts = list(self._devices(now, state, left, onset, settled))
        for cause in parts:
            left[cause.links] = False
        parts.extend(
            self._cause("link", row, _mask(len(left), row), now, state, settled)
            for row in np.flatnonzero(left).tolist()
        )
        return causes + self._group_parts(now, state, parts, settled)

    def _cause(self, what: str, row: int, links: Bool, now: int, state: LinkState, settled: Bool) -> Cause:
        rows = np.flatnonzero(links)
        since = int(state.since[rows].min())
        fresh = bool((state.up[rows] == 0).any())  # never raised on what is not known now
        ready = fresh and bool(settled[rows].all()) and now - since >= ns(self.rules.link_debounce)
        return Cause(what, row, rows, since, ready)

    def _onset(self, now: int, state: LinkState, left: Bool) -> tuple[I64, Bool]:
        """Per link: when the newest burst in its plane began, and whether half of the plane has spoken since."""
        groups = self._group // 4
        count = len(self.topo.planes) + 1
        newest = np.zeros(count, np.int64)
        np.maximum.at(newest, groups[left], state.since[left])
        burst = left & (state.since >= newest[groups] - ns(self.rules.burst))
        begin = np.full(count, np.iinfo(np.int64).max)
        np.minimum.at(begin, groups[burst], state.since[burst])
        onset = begin[groups]
        alive = ~np.isnan(state.up)
        spoken = alive & (state.sampled >= onset)
        share = np.bincount(groups, spoken, count) / np.maximum(np.bincount(groups, alive, count), 1)
        waited = np.array([now - int(b) >= 2 * ns(self.rules.stale_floor) for b in begin])
        return onset, ((share >= 0.5) | waited)[groups]

    def _dead_planes(self, state: LinkState, onset: I64) -> list[int]:
        """Planes with (nearly) no capacity left, judged by the links read since the trouble began."""
        capacity = self.model.at(self._guess(state, onset)).plane
        many = self._switches_in_plane > 1
        return [int(p) for p in np.flatnonzero(many & (capacity <= self.rules.plane_down_fraction))]

    def _guess(self, state: LinkState, onset: I64) -> npt.NDArray[np.float64]:
        """Speeds for judging a plane: a link not read since the onset is as likely down as its peers are."""
        speed = np.where(state.down, 0.0, self.topo.links.speed)
        spoken = (state.sampled >= onset) | state.down
        count = int(self._group.max(initial=0)) + 1
        said = np.bincount(self._group, spoken, count)
        down = np.bincount(self._group, state.down, count)
        share = np.where(said > 0, down / np.maximum(said, 1), 0.0)
        return np.where(spoken, speed, self.topo.links.speed * (1.0 - share[self._group]))

    def _devices(self, now: int, state: LinkState, left: Bool, onset: I64, settled: Bool) -> Iterator[Cause]:
        """Switches, nodes and NICs all of whose links are down, those that explain most first."""
        left = left.copy()
        known = state.down | (~np.isnan(state.up) & (state.sampled >= onset))
        while True:
            best: tuple[int, int, _Devices] | None = None
            for devices in (self._switches, self._nodes, self._nics):
                count, row = self._best(devices, known, state.down, left)
                if count >= 2 and (best is None or count > best[0]):
                    best = count, row, devices
            if best is None:
                return
            _, row, devices = best
            mine = np.zeros(len(left), bool)
            mine[devices.link[devices.device == row]] = True
            mine &= left
            yield self._cause(devices.what, row, mine, now, state, settled)
            left &= ~mine

    def _best(self, devices: _Devices, known: Bool, down: Bool, left: Bool) -> tuple[int, int]:
        """The device that explains most of what is left: (links explained, row)."""
        d, link = devices.device, devices.link
        n_known = np.bincount(d[known[link]], minlength=devices.count)
        n_down = np.bincount(d[down[link]], minlength=devices.count)
        explained = np.bincount(d[left[link]], minlength=devices.count)
        explained[(n_down != n_known) | (explained < 2)] = 0
        if devices.what == "switch" and explained.any():
            explained[self._peers(devices, left) < 2] = 0
        row = int(explained.argmax()) if len(explained) else 0
        return (int(explained[row]), row) if len(explained) else (0, 0)

    def _peers(self, devices: _Devices, left: Bool) -> npt.NDArray[np.int64]:
        """For each device, how many different neighbours the links that are left go to."""
        mine = left[devices.link]
        pairs = np.unique(np.stack([devices.device[mine], devices.peer[mine]]), axis=1)
        return np.bincount(pairs[0], minlength=devices.count).astype(np.int64)

    def _group_parts(self, now: int, state: LinkState, parts: list[Cause], settled: Bool) -> list[Cause]:
        """Parts of one plane that went together, and took a good part of it along, are one cause."""
        out = list(parts)
        for plane in range(len(self.topo.planes)):
            mine = [c for c in parts if int(self.topo.links.plane[c.links[0]]) == plane and c.what != "node"]
            for burst in self._bursts(mine):
                switches = [c for c in burst if c.what == "switch"]
                if len(switches) < 2 and len(burst) < 3:
                    continue
                links = np.zeros(len(self.topo.links.a), bool)
                for c in burst:
                    links[c.links] = True
                lost = self.model.without(np.flatnonzero(links).tolist()).plane[plane]
                if lost <= self.rules.plane_degraded_fraction:
                    out = [c for c in out if c not in burst]
                    out.append(self._cause("part", plane, links, now, state, settled))
        return out

    def _bursts(self, causes: list[Cause]) -> Iterator[list[Cause]]:
        """Causes split where more than the burst time lies between one and the next."""
        run: list[Cause] = []
        for cause in sorted(causes, key=lambda c: (c.since, c.row)):
            if run and cause.since - run[-1].since > ns(self.rules.burst):
                yield run
                run = []
            run.append(cause)
        if run:
            yield run


def _mask(n: int, row: int) -> Bool:
    out = np.zeros(n, bool)
    out[row] = True
    return out
