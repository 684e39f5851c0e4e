"""Power: what feeds and supplies can give, what is drawn, and what would be left after the next loss.

A holder is a node with supplies of its own, or a rack with feeds or power shelves. What a holder can lose as one are
its units: the feeds of its rack where redundancy is counted in feeds, halves of its supplies for N+N without feeds,
else single supplies. N units of rating r survive the loss of k where (N - k) x r is at least the load.

Supplies hang on the feeds of their rack in blocks, `psu0` on the first; so are those of power shelves numbered.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import floor, nan, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from twin.catalog import hardware
from twin.topology.checks.power import feeds_to_lose, node_watts
from twin.topology.model import NONE, Topology

F64 = npt.NDArray[np.float64]
Bool = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.intp]
CONTINUOUS = 0.8  # of a breaker's rating that a load may draw continuously (North American practice, NEC 210.20)
Read = Callable[[str, str], F64]  # kind, metric -> value of each entity, NaN unknown


# --- arithmetic ---


def amperes(watts: float, volts: float, phases: int = 1) -> float:
    """Current a conductor at unity power factor; `volts` between lines where there are three phases."""
    return watts / (volts * (sqrt(3) if phases == 3 else 1.0))


def breaker_watts(volts: float, amps: float, phases: int = 1, share: float = CONTINUOUS) -> float:
    """What a breaker carries continuously at unity power factor."""
    return volts * (sqrt(3) if phases == 3 else 1.0) * amps * share


def left_after(watts: F64, load: float, losses: int) -> float:
    """Headroom in W when the `losses` largest of these units are gone; below zero, the load is too much."""
    return float(np.sort(watts)[: max(0, len(watts) - losses)].sum()) - load


def lower_limit(draws: F64, excess: float, floor_watts: float) -> float | None:
    """The highest common power limit (W) that takes `excess` W off GPUs which draw `draws` W each.

    None where even `floor_watts`, the lowest limit that they can be set to, is not low enough.
    """
    draws = np.sort(draws[~np.isnan(draws)])[::-1]
    if excess <= 0 or not len(draws):
        return float(draws[0]) if len(draws) else None
    limits = (np.cumsum(draws) - excess) / np.arange(1, len(draws) + 1)  # when the first k are capped
    for k, limit in enumerate(limits.tolist()):
        if k + 1 == len(draws) or limit >= draws[k + 1]:
            return limit if limit >= floor_watts else None
    return None


def more_gpus(headroom: float, busy_watts: float, idle_watts: float = 0.0) -> int:
    """How many idle GPUs may be put to work."""
    return max(0, floor(headroom / max(busy_watts - idle_watts, 1.0) + 1e-9))


# --- the fabric ---


@dataclass(frozen=True)
class PowerState:
    """One moment. Arrays over holders (nodes, then racks) or feeds, in W; NaN unknown.

    capacity: what is left in service. after_next: without the largest unit. after_loss: without as many as the
    design lets it lose, fewer where some are lost already. lost_units: how many of its units give nothing.
    """

    load: F64
    capacity: F64
    after_next: F64
    after_loss: F64
    lost_units: Ints
    feed_load: F64
    feed_capacity: F64
    site_load: float  # of those that are known: at least that much
    site_known: float  # share of nodes and racks whose load is known


class PowerModel:
    """The wiring of power, compiled once."""

    def __init__(self, topo: Topology) -> None:
        self.topo = topo
        self.n_nodes, self.n_racks = len(topo.nodes.name), len(topo.racks.name)
        self.n = self.n_nodes + self.n_racks
        self.site_watts = nan if topo.site_watts is None else topo.site_watts
        psus = topo.psus
        self.psu_holder = np.where(psus.node >= 0, psus.node, self.n_nodes + psus.rack).astype(np.intp)
        self.psu_feed = np.full(len(psus.node), NONE, np.intp)
        self.spare = np.zeros(self.n, np.intp)  # units that the design lets it lose
        feeds = len(topo.feeds.name)
        self._psu_unit = np.zeros(len(psus.node), np.intp)
        self._unit_holder: list[int] = []
        self._feed_unit = np.zeros(feeds, np.intp)
        self.rack_feeds: dict[int, list[int]] = {}
        for feed, rack in enumerate(topo.feeds.rack.tolist()):
            self.rack_feeds.setdefault(rack, []).append(feed)
        for rack in range(self.n_racks):
            self._rack(rack)
        for node in np.flatnonzero(topo.nodes.n_psus).tolist():
            self._node(node)
        self._holder_of_unit = np.array(self._unit_holder, dtype=np.intp)
        self._has_units = np.bincount(self._holder_of_unit, minlength=self.n) > 0
        self._shelves = np.bincount(self.psu_holder, minlength=self.n)[self.n_nodes :] > 0
        fed = np.array([bool(self.rack_feeds.get(r)) for r in range(self.n_racks)], dtype=bool)
        self._fed = fed
        self._racked = topo.nodes.rack >= 0

    def _units(self, holder: int, count: int) -> Ints:
        first = len(self._unit_holder)
        self._unit_holder.extend([holder] * count)
        return np.arange(first, first + count)

    def _rack(self, rack: int) -> None:
        topo, holder = self.topo, self.n_nodes + rack
        feeds, redundancy = self.rack_feeds.get(rack, []), topo.racks.redundancy[rack]
        first, count = int(topo.racks.psu0[rack]), int(topo.racks.n_psus[rack])
        supplies = np.arange(first, first + count)
        if feeds:
            units = self._units(holder, len(feeds))
            self._feed_unit[feeds] = units
            self.psu_feed[supplies] = np.array(feeds)[_blocks(count, len(feeds))]
            self._psu_unit[supplies] = units[_blocks(count, len(feeds))]
            self.spare[holder] = min(feeds_to_lose(redundancy, len(feeds)), len(feeds) - 1)
        elif count:
            self._by_supply(holder, supplies, redundancy)

    def _node(self, node: int) -> None:
        topo, rack = self.topo, int(self.topo.nodes.rack[node])
        first, count = int(topo.nodes.psu0[node]), int(topo.nodes.n_psus[node])
        supplies = np.arange(first, first + count)
        feeds = self.rack_feeds.get(rack, [])
        redundancy = topo.racks.redundancy[rack] if rack >= 0 else "none"
        if feeds:
            self.psu_feed[supplies] = np.array(feeds)[_blocks(count, len(feeds))]
        spare = feeds_to_lose(redundancy, len(feeds))
        if 1 <= spare < min(len(feeds), count):
            self._psu_unit[supplies] = self._units(node, len(feeds))[_blocks(count, len(feeds))]
            self.spare[node] = spare
        elif feeds_to_lose(redundancy, count):
            self._by_supply(node, supplies, redundancy)
        else:
            self._psu_unit[supplies] = self._units(node, count)
            self.spare[node] = self._node_spare(node, topo.psus.watts[supplies])

    def _by_supply(self, holder: int, supplies: Ints, redundancy: str) -> None:
        """Redundancy without feeds: halves for N+N, else single supplies."""
        halves = redundancy.strip().upper() == "N+N" and len(supplies) > 1
        units = self._units(holder, 2 if halves else len(supplies))
        self._psu_unit[supplies] = units[_blocks(len(supplies), len(units))]
        self.spare[holder] = 1 if halves else min(feeds_to_lose(redundancy, len(supplies)), len(supplies) - 1)

    def _node_spare(self, node: int, watts: F64) -> int:
        """Supplies that a node may lose where its rack does not say: as its maker says, else one where its full
        load leaves one to spare."""
        nodes = self.topo.nodes
        mine = (nodes.gpu_model[node], int(nodes.n_gpus[node]), len(watts))
        for server in hardware()["server"].values():
            if (server["gpu"], server["gpus"], server.get("psus")) == mine and "spare_psus" in server:
                return int(server["spare_psus"])
        return int(len(watts) > 1 and left_after(watts, node_watts(self.topo, node), 1) >= 0)

    # --- now ---

    def at(self, read: Read, lost: Bool, dark: Bool) -> PowerState:
        """read: readings now. lost: bool[psus], known to be down; dark: bool[feeds], known to be without power.

        What is not known to be lost counts as designed.
        """
        topo = self.topo
        rating = _known_or(read("psu", "capacity_watts"), topo.psus.watts)
        feed_capacity = np.where(dark, 0.0, _known_or(read("feed", "capacity_watts"), topo.feeds.watts))
        units = self._unit_watts(np.where(lost, 0.0, rating), feed_capacity)
        gone = np.bincount(self._holder_of_unit[units == 0], minlength=self.n)
        feed_load = np.where(dark, 0.0, read("feed", "power_watts"))
        load = self._loads(read, lost, feed_load)
        known = ~np.isnan(load)
        alone = np.r_[~self._racked, np.ones(self.n_racks, bool)]
        capacity = total(self._holder_of_unit, units, self.n)
        capacity[~self._has_units] = np.nan
        return PowerState(
            load=load,
            capacity=capacity,
            after_next=capacity - self._largest(units, np.ones(self.n, np.intp)),
            after_loss=capacity - self._largest(units, np.maximum(self.spare - gone, 0)),
            lost_units=gone,
            feed_load=feed_load,
            feed_capacity=feed_capacity,
            site_load=float(np.nansum(load[alone])) if (known & alone).any() else nan,
            site_known=float(known[alone].mean()) if alone.any() else 0.0,
        )

    def _unit_watts(self, supplies: F64, feeds: F64) -> F64:
        """A feed gives no more than its breaker, and no more than the shelf supplies that hang on it."""
        n = len(self._unit_holder)
        out = total(self._psu_unit, supplies, n)
        has = np.bincount(self._psu_unit, minlength=n)[self._feed_unit] > 0
        of_feed = self._feed_unit
        out[of_feed] = np.where(has, np.fmin(out[of_feed], feeds), feeds)
        return out

    def _largest(self, units: F64, count: Ints) -> F64:
        """W of the `count` largest units of each holder."""
        order = np.lexsort((-np.nan_to_num(units), self._holder_of_unit))
        holder = self._holder_of_unit[order]
        start = np.searchsorted(holder, np.arange(self.n))
        rank = np.arange(len(order)) - start[holder]
        taken = rank < count[holder]
        return total(holder[taken], units[order][taken], self.n)

    def _loads(self, read: Read, lost: Bool, feed_load: F64) -> F64:
        """Drawn by each node and rack: as its meter says, else the sum of its parts where all are known."""
        topo = self.topo
        given = np.where(lost, 0.0, read("psu", "output_watts"))
        supplies = total(self.psu_holder, given, self.n)
        supplies[np.bincount(self.psu_holder, minlength=self.n) == 0] = np.nan
        nodes = _known_or(read("node", "power_watts"), supplies[: self.n_nodes])
        racks = supplies[self.n_nodes :]
        fed = total(topo.feeds.rack, feed_load, self.n_racks)
        fed[~self._fed] = np.nan
        of_nodes = total(topo.nodes.rack, nodes, self.n_racks)
        of_nodes[np.bincount(topo.nodes.rack[self._racked], minlength=self.n_racks) == 0] = np.nan
        loads: F64 = np.concatenate([nodes, _known_or(_known_or(racks, fed), of_nodes)])
        return loads

    # --- names ---

    def name(self, holder: int) -> str:
        """The address of a node or rack."""
        topo = self.topo
        return topo.nodes.name[holder] if holder < self.n_nodes else topo.racks.name[holder - self.n_nodes]

    def unpowered(self, lost: Bool, dark: Bool) -> Ints:
        """Rows of the nodes that have no supply, no shelf and no feed left. lost: bool[psus], dark: bool[feeds]."""
        count = np.bincount(self.psu_holder, minlength=self.n)
        none_left = (count > 0) & (np.bincount(self.psu_holder[lost], minlength=self.n) == count)
        racks = self.topo.feeds.rack
        feeds = np.bincount(racks, minlength=self.n_racks)
        all_feeds = (feeds > 0) & (np.bincount(racks[dark], minlength=self.n_racks) == feeds)
        dark_rack = np.append(none_left[self.n_nodes :] | all_feeds, False)
        return np.flatnonzero(none_left[: self.n_nodes] | dark_rack[self.topo.nodes.rack])

    def nodes_of(self, holder: int) -> Ints:
        """Node rows of a holder; all nodes for the site, which is the holder after the last."""
        if holder < self.n_nodes:
            return np.array([holder])
        if holder == self.n:
            return np.arange(self.n_nodes)
        return np.flatnonzero(self.topo.nodes.rack == holder - self.n_nodes)

    def gpus_of(self, holder: int) -> Ints:
        """GPU rows of a holder."""
        return np.flatnonzero(np.isin(self.topo.gpus.node, self.nodes_of(holder)))


def _blocks(items: int, groups: int) -> Ints:
    """The group of each item, `items` spread over `groups` in blocks."""
    return np.arange(items) * groups // max(items, 1)


def _known_or(value: F64, other: F64) -> F64:
    out: F64 = np.where(np.isnan(value), other, value)
    return out


def total(group: npt.NDArray[np.integer[Any]], values: F64, n: int) -> F64:
    """float64[n], the sum of the values of each group; those of group -1 belong to none."""
    sums: F64 = np.bincount(np.where(group >= 0, group, n), values, n + 1)[:n].astype(np.float64)
    return sums
