"""Which links are up and carry next to nothing while their siblings carry load, since when, and what came before.

Siblings of a host link: where NICs are split over planes the other ports of its NIC, which lockstep traffic fills
alike; elsewhere the other NICs of its node, of which more than half must carry while its own GPU works, since a job
may leave GPUs out. Siblings of an uplink: all uplinks of its leaf, among which routing spreads what leaves it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from twin.detectors.rules import Rules, ns
from twin.detectors.scene import Scene
from twin.topology.model import HOST_LEAF, LEAF_SPINE, Topology

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
Bool = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.intp]

WORKING = 0.5  # utilization from which on a GPU is at work; one that waits for a collective reads close to 1
_OUTDATED = 2  # intervals of the other end by which a reading must be older than that end's to be no witness any more


@dataclass(frozen=True, slots=True)
class Loads:
    """Of each link, as a share of its designed speed. least: the busier direction where both are known, else NaN.
    most: the busier of the directions that are known. time: of the newest reading of either end, 0 never."""

    least: F64
    most: F64
    time: I64


def loads(scene: Scene) -> Loads:
    """What each link carries. A direction is read at either end; the end that is read no more does not count."""
    links, owner = scene.topo.links, scene.table("port").series["tx_bytes"].owner
    interval = scene.sources.expected()[owner]
    time = np.maximum(scene.time("port", "tx_bytes"), scene.time("port", "rx_bytes"))
    tx, rx = scene.fresh("port", "tx_bytes"), scene.fresh("port", "rx_bytes")
    a, b = links.a, links.b
    old_a = time[b] - time[a] > _OUTDATED * interval[b]
    old_b = time[a] - time[b] > _OUTDATED * interval[a]

    def direction(sent: F64, received: F64, sent_old: Bool, received_old: Bool) -> F64:
        sent_counts = np.where(sent_old & ~np.isnan(received), np.nan, sent)
        received_counts = np.where(received_old & ~np.isnan(sent), np.nan, received)
        return np.fmax(sent_counts, received_counts)

    up, down = direction(tx[a], rx[b], old_a, old_b), direction(tx[b], rx[a], old_b, old_a)
    per_second = links.speed / 8
    return Loads(np.maximum(up, down) / per_second, np.fmax(up, down) / per_second, np.maximum(time[a], time[b]))


class _Groups:
    """Links that are siblings: the members of each group as a table, and the group of each link."""

    def __init__(self, links: Rows, owner: npt.NDArray[np.int32]) -> None:
        owners, group = np.unique(owner, return_inverse=True)
        order = np.argsort(group, kind="stable")
        sizes = np.bincount(group, minlength=len(owners))
        place = np.arange(len(links)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        self.links, self.group = links, group
        self._table = np.full((len(owners), int(sizes.max(initial=0))), -1, np.intp)
        self._table[group[order], place] = links[order]

    def quantile(self, load: F64, share: float) -> F64:
        """For each member: the load that is not exceeded by `share` of those of its group that are known."""
        if not len(self.links):
            return np.zeros(0)
        rows = np.sort(np.append(load, np.nan)[self._table], axis=1)  # what is unknown goes last
        known = np.count_nonzero(~np.isnan(rows), axis=1)
        at = np.maximum((known - 1) * share, 0).astype(np.intp)
        out: F64 = rows[np.arange(len(rows)), at][self.group]
        return out


class Siblings:
    """Who is compared with whom; holds only what follows from the wiring."""

    def __init__(self, topo: Topology) -> None:
        self.topo = topo
        links = topo.links
        host = np.flatnonzero((links.tier == HOST_LEAF) & topo.compute_links)
        self.split = topo.plane_kind == "split"
        owner = topo.ports.nic[links.a[host]] if self.split else topo.port_node[links.a[host]]
        self.host = _Groups(host, owner)
        up = np.flatnonzero(links.tier == LEAF_SPINE)
        self.uplinks = _Groups(up, topo.ports.switch[links.a[up]])
        self.gpu = topo.port_gpu[links.a[host]]

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self

    def carry(self, load: F64, utilization: F64) -> F64:
        """float64[links]: what the siblings of each link carry, NaN where that says nothing about it."""
        out = np.full(len(load), np.nan)
        out[self.uplinks.links] = self.uplinks.quantile(load, 0.75)  # half of the spines may be silent at once
        if self.split:
            out[self.host.links] = self.host.quantile(load, 1.0)
        else:
            idle = ~(np.append(utilization, np.nan)[self.gpu] >= WORKING)
            out[self.host.links] = np.where(idle, np.nan, self.host.quantile(load, 0.5))
        return out


class LinkUse:
    """What a single evaluation cannot know of each link: arrays of event times, 0 for never.

    since: of the first reading that showed it silent, while it is. again: of the newest one. carried: when it last
    carried a share. idle: since when its siblings carry nothing either. back: when it was last seen to have come up.
    """

    def __init__(self, topo: Topology, rules: Rules) -> None:
        n = len(topo.links.a)
        self.topo, self.rules = topo, rules
        self.siblings = Siblings(topo)
        self.since, self.again, self.carried, self.idle, self.back = (np.zeros(n, np.int64) for _ in range(5))
        self._down = np.zeros(n, bool)
        self.load = self.expected = np.full(n, np.nan)

    @property
    def silent(self) -> Bool:
        return self.since > 0

    def note(self, scene: Scene) -> None:
        """Takes what is read now. Unknown changes nothing; siblings that rest leave what was established."""
        read, state = loads(scene), scene.links
        up = (state.up == 1) & ~np.isnan(state.up)
        load = np.where(up, read.most, np.nan)
        working = load if self.siblings.split else scene.fresh("gpu", "utilization_ratio")
        expected = self.siblings.carry(load, working)
        self.back[self._down & up] = scene.now
        self._down = (self._down & ~up) | state.down
        settled = read.time >= self.back + np.where(self.back > 0, ns(self.rules.plane_return), 0)
        busy = expected >= self.rules.plane_busy_fraction
        limit = self.rules.plane_silent_fraction * expected
        carries = up & busy & (read.most >= limit)
        silent = up & busy & (read.least < limit) & settled
        self._times(read.time, carries, silent, up & (expected < self.rules.plane_busy_fraction))
        self.since[state.down] = 0
        self.load, self.expected = load, expected

    def _times(self, time: I64, carries: Bool, silent: Bool, resting: Bool) -> None:
        self.carried[carries] = time[carries]
        self.since[carries] = 0
        begins = silent & (self.since == 0)
        self.since[begins] = time[begins]
        self.again[silent] = time[silent]
        self.since[resting & (self.again <= self.since)] = 0  # one reading at the end of a burst of work
        self.idle[carries | silent] = 0
        begins = resting & (self.idle == 0)
        self.idle[begins] = time[begins]

    def forget(self, links: Rows) -> None:
        """These are silent no more, as far as one can know."""
        self.since[links] = 0
