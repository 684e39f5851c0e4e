"""Which links lead from a switch to a leaf, over the links that are up: the next hops of up-down routing.

From a switch above the leaf a way goes down; from any other it goes up, to the switches that are above the leaf
where there are some, else to those that find one further up. No way goes down and up again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from twin.flows.routes import F64, I64, Bool, offsets, ragged, sums
from twin.topology.model import LEAF_SPINE, SPINE_CORE, Topology


class Hops(NamedTuple):
    """The candidates of row r of what was asked are start[r] to start[r] + fan[r] of the other columns.

    far: the switch that a link leads to. link: directed. room: bits/s that fit through it towards the leaf, its part
    of what is narrower beyond.
    """

    start: I64
    fan: I64
    far: I64
    link: I64
    room: F64


class _Candidates(NamedTuple):
    row: I64
    far: I64
    link: I64
    room: F64


class _Side(NamedTuple):
    """Links as seen from one end, by the near switch, from start[switch] on, then by the far one.
    trunk: float64[links], bits/s of all links between the same two switches."""

    start: I64
    ends: I64  # near x switches + far, ascending
    far: I64
    link: I64
    speed: F64
    trunk: F64

    def of(self, switch: I64) -> tuple[I64, I64]:
        """Their links: (position in `switch`, place)."""
        return ragged(self.start[switch], np.diff(self.start)[switch])

    def towards(self, switch: I64, leaf: I64, switches: int) -> tuple[I64, I64]:
        """The links to the leaf itself of a switch that has any, else all its links, as `of` gives them."""
        ends = switch * switches + leaf
        first, last = np.searchsorted(self.ends, ends), np.searchsorted(self.ends, ends, "right")
        near = last > first
        first = np.where(near, first, self.start[switch])
        return ragged(first, np.where(near, last, self.start[switch + 1]) - first)

    def part(self, place: I64, beyond: F64) -> F64:
        """float64[place], the part of each link in what fits through its trunk and beyond."""
        return np.minimum(self.trunk[place], beyond) * self.speed[place] / self.trunk[place]


class NextHops:
    """Next hops towards some leaves. speed: float64[links], bits/s now, 0 where down. leaves: distinct switch rows.

    Directed links: row l is link l upwards, from its end a to b; row l + number of links is the other direction.
    """

    def __init__(self, topo: Topology, speed: F64, leaves: I64) -> None:
        self.switches = len(topo.switches.name)
        rows = np.flatnonzero(((topo.links.tier == LEAF_SPINE) | (topo.links.tier == SPINE_CORE)) & (speed > 0))
        low, high = (topo.ports.switch[end[rows]].astype(np.int64) for end in (topo.links.a, topo.links.b))
        pair, trunk = np.unique(low * self.switches + high, return_inverse=True)
        width = sums(trunk, speed[rows], len(pair))
        self._up = self._side(low, high, rows, speed[rows], width[trunk])
        self._down = self._side(high, low, rows + len(speed), speed[rows], width[trunk])
        self._column = np.full(self.switches, -1, np.int64)
        self._column[leaves] = np.arange(len(leaves))
        first = np.unique(trunk, return_index=True)[1]
        self._rooms(low[first], high[first], width, topo.links.tier[rows[first]].astype(np.int64))

    def _side(self, near: I64, far: I64, link: I64, speed: F64, trunk: F64) -> _Side:
        ends = near * self.switches + far
        order = np.argsort(ends, kind="stable")
        start = offsets(np.bincount(near, minlength=self.switches))
        return _Side(start, ends[order], far[order], link[order], speed[order], trunk[order])

    def _rooms(self, low: I64, high: I64, width: F64, tier: I64) -> None:
        """Makes below and above: float64[switches, leaves], bits/s from switch to leaf, going down or up first."""
        shape = (self.switches, np.count_nonzero(self._column >= 0))
        self._below, self._above = np.zeros(shape), np.zeros(shape)
        last = np.flatnonzero((tier == LEAF_SPINE) & (self._column[low] >= 0))
        self._below[high[last], self._column[low[last]]] = width[last]
        core = np.flatnonzero(tier == SPINE_CORE)
        if len(core):
            self._below += _through(core, low, high, width, self._below)
            self._above += _through(core, high, low, width, self._below)

    def __call__(self, switch: I64, leaf: I64) -> Hops:
        """Candidates from each switch towards each leaf (a switch row), which must not be the switch itself."""
        asked, mine = np.unique(switch * self.switches + leaf, return_inverse=True)
        switch, leaf = np.divmod(asked, self.switches)
        goes_down = self._below[switch, self._column[leaf]] > 0
        parts = (
            self._descend(np.flatnonzero(goes_down), switch, leaf),
            self._climb(np.flatnonzero(~goes_down), switch, leaf),
        )
        row, far, link, room = (np.concatenate(pair) for pair in zip(*parts, strict=True))
        order = np.argsort(row, kind="stable")
        order = order[room[order] > 0]
        start = offsets(np.bincount(row[order], minlength=len(asked)))
        return Hops(start[mine], np.diff(start)[mine], far[order], link[order], room[order])

    def reach(self, switch: I64, leaf: I64) -> Bool:
        """bool[], whether each switch has a way to each leaf; itself it has."""
        out: Bool = switch == leaf
        other = np.flatnonzero(~out)
        out[other] = self(switch[other], leaf[other]).fan > 0
        return out

    def _descend(self, rows: I64, switch: I64, leaf: I64) -> _Candidates:
        at, place = self._down.towards(switch[rows], leaf[rows], self.switches)
        row, far = rows[at], self._down.far[place]
        beyond = np.where(far == leaf[row], np.inf, self._below[far, self._column[leaf[row]]])
        return _Candidates(row, far, self._down.link[place], self._down.part(place, beyond))

    def _climb(self, rows: I64, switch: I64, leaf: I64) -> _Candidates:
        at, place = self._up.of(switch[rows])
        row, far = rows[at], self._up.far[place]
        column = self._column[leaf[row]]
        direct = self._below[far, column]
        has_direct = sums(row, direct, len(switch)) > 0
        beyond = np.where(has_direct[row], direct, self._above[far, column])
        return _Candidates(row, far, self._up.link[place], self._up.part(place, beyond))


def _through(trunks: I64, source: I64, into: I64, width: F64, room: F64) -> F64:
    """float64 like `room`: what switches `into` reach over these trunks, each no wider than what is beyond it."""
    out = np.zeros_like(room)
    trunks = trunks[np.argsort(into[trunks], kind="stable")]
    switch, start = np.unique(into[trunks], return_index=True)
    out[switch] = np.add.reduceat(np.minimum(width[trunks][:, None], room[source[trunks]]), start, axis=0)
    return out
