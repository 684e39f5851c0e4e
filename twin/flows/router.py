"""The ways of flows between NICs over a fabric as it is now."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from twin.flows.hops import NextHops
from twin.flows.routes import F64, I64, Routes, ragged, sums
from twin.flows.ways import U64, hashed, mix, split
from twin.topology.model import NONE, Topology

Paths = Literal["split", "hash"]
Planes = Literal["spread", "hash"]


class _Lanes(NamedTuple):
    """The parts of flows, one for each pair of ports that may be used, those of a flow together.

    first, last: the links of the ports, directed. leaf, end: their switches, or -1 on a direct cable.
    room: bits/s of the narrower port.
    """

    flow: I64
    first: I64
    last: I64
    leaf: I64
    end: I64
    room: F64

    def only(self, rows: I64) -> _Lanes:
        flow, first, last, leaf, end = (column[rows] for column in self[:5])
        return _Lanes(flow, first, last, leaf, end, self.room[rows])


class _Plan(NamedTuple):
    """Lanes with the part of its flow that each carries, and its way between leaves: a row of `ways`, or -1."""

    lanes: _Lanes
    part: F64
    way: I64
    ways: Routes
    stuck: I64  # flows without a lane


class Router:
    """Routes between NICs with the links as they are.

    speed: float64[links], bits/s now; 0 where down, NaN counts as designed. A directed link is a row of `capacity`:
    float64[2 x links + 1], bits/s. Row l is link l from its end a to b, row l + number of links from b to a; the last
    row has no capacity: what has no way crosses it.

    paths: `split` is adaptive routing, every flow over all its shortest ways at once, in proportion to what fits
    through each. `hash` is ECMP: one of the equal links at each hop, drawn from NICs, `qp` and seed, the same on
    every run; it avoids links that are down but does not see slow ones.
    planes: `spread` is plane load balancing, a flow over all ports of its NIC, in proportion to the narrower of the
    ports at its ends. `hash` is one queue pair on one plane.
    """

    def __init__(
        self, topo: Topology, speed: F64, *, paths: Paths = "split", planes: Planes = "spread", seed: int = 0
    ) -> None:
        self._topo, self._paths, self._planes, self._seed = topo, paths, planes, seed
        self._speed = np.where(np.isnan(speed), np.nan_to_num(topo.links.speed), speed)
        self.capacity: F64 = np.concatenate([self._speed, self._speed, [0.0]])
        self._ports = _ports_by_plane(topo)

    def routes(self, source: I64, target: I64, qp: I64 | int = 0) -> Routes:
        """A flow from each NIC row of `source` to that of `target`. qp: int64[flows], tells flows of one pair apart.
        A flow from a NIC to itself crosses nothing."""
        lanes, part, way, ways, stuck = self._plan(source, target, qp)
        across, two = np.flatnonzero(way >= 0), np.flatnonzero(lanes.last != lanes.first)
        row, entry = ragged(ways.start[way[across]], np.diff(ways.start)[way[across]])
        lane = across[row]
        flow = (lanes.flow, lanes.flow[two], lanes.flow[lane], stuck)
        link = (lanes.first, lanes.last[two], ways.link[entry], np.full(len(stuck), len(self.capacity) - 1))
        share = (part, part[two], part[lane] * ways.share[entry], np.ones(len(stuck)))
        return Routes.of_entries(len(source), np.concatenate(flow), np.concatenate(link), np.concatenate(share))

    def load(self, source: I64, target: I64, volume: F64) -> F64:
        """float64[directed links], what these flows put on each link if flow f carries volume[f]: that of
        `routes(source, target)`, without a row a flow."""
        lanes, part, way, ways, stuck = self._plan(source, target, 0)
        across, two = np.flatnonzero(way >= 0), np.flatnonzero(lanes.last != lanes.first)
        n, carried = len(self.capacity), part * volume[lanes.flow]
        out = ways.load(sums(way[across], carried[across], len(ways.start) - 1), n)
        out += sums(lanes.first, carried, n) + sums(lanes.last[two], carried[two], n)
        out[-1] += volume[stuck].sum()
        return out

    def _plan(self, source: I64, target: I64, qp: I64 | int) -> _Plan:
        lanes = self._lanes(source, target)
        hops = NextHops(self._topo, self._speed, np.unique(lanes.end[lanes.end >= 0]))
        key = mix(mix(mix(np.full(len(source), self._seed, np.uint64), source), target), qp)
        lanes = lanes.only(np.flatnonzero(hops.reach(lanes.leaf, lanes.end)))
        if self._planes == "hash":
            lanes = lanes.only(_one_each(lanes.flow, key))
        part = lanes.room / sums(lanes.flow, lanes.room, len(source))[lanes.flow]
        across = np.flatnonzero(lanes.leaf != lanes.end)
        way = np.full(len(lanes.flow), NONE, np.int64)
        if self._paths == "hash":
            way[across] = np.arange(len(across))
            ways = hashed(
                hops, lanes.leaf[across], lanes.end[across], mix(key[lanes.flow[across]], lanes.leaf[across])
            )
        else:
            n = hops.switches
            pairs, way[across] = np.unique(lanes.leaf[across] * n + lanes.end[across], return_inverse=True)
            ways = split(hops, *np.divmod(pairs, n))
        stuck = np.bincount(lanes.flow, minlength=len(source)) == 0
        return _Plan(lanes, part, way, ways, np.flatnonzero(stuck & (source != target)))

    def _lanes(self, source: I64, target: I64) -> _Lanes:
        """Pairs of ports that are up, the n-th plane of a NIC to the n-th: both on switches, or on one cable."""
        topo, links = self._topo, len(self._speed)
        there = (self._ports[source] >= 0) & (self._ports[target] >= 0) & (source != target)[:, None]
        flow, place = np.nonzero(there)
        p, q = self._ports[source[flow], place], self._ports[target[flow], place]
        first, last = topo.ports.link[p], topo.ports.link[q]
        leaf, end = topo.peer_switch[p].astype(np.int64), topo.peer_switch[q].astype(np.int64)
        switched = (leaf >= 0) & (end >= 0)
        room = np.where(switched | (topo.ports.peer[p] == q), np.minimum(self._speed[first], self._speed[last]), 0.0)
        outward = np.where(topo.links.a[first] == p, first, first + links)
        inward = np.where(topo.links.a[last] == q, last + links, last)
        return _Lanes(flow, outward, inward, leaf, end, room).only(np.flatnonzero(room > 0))


def _one_each(flow: I64, key: U64) -> I64:
    """One of the lanes of each flow, drawn by its key. flow: int64[lanes], ascending. key: uint64[flows]."""
    flows, first, count = np.unique(flow, return_index=True, return_counts=True)
    drawn: I64 = first + (key[flows] % count.astype(np.uint64)).astype(np.int64)
    return drawn


def _ports_by_plane(topo: Topology) -> I64:
    """int64[nics, most ports of a NIC], the cabled ports of each NIC by plane, -1 where it has no more."""
    ports = np.flatnonzero((topo.ports.nic >= 0) & (topo.ports.link >= 0))
    nic = topo.ports.nic[ports]
    order = np.lexsort((ports, topo.ports.plane[ports], nic))
    ports, nic = ports[order], nic[order]
    place = np.arange(len(nic)) - np.searchsorted(nic, nic)
    out = np.full((len(topo.nics.node), int(place.max(initial=-1)) + 1), NONE, np.int64)
    out[nic, place] = ports
    return out
