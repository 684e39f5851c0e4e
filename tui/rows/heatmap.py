"""A plane as a map: a row a leaf, a column a spine, parallel links of a pair told as one cell."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from twin.snapshot import DOWN, UNKNOWN, UP, Snapshot
from twin.topology.model import HOST_LEAF, I32, LEAF_SPINE, TIERS, Topology

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
SLOW = 0.99  # an up link below this share of its designed speed is slow
NO_LINK, ALL_DOWN, PART, NOT_KNOWN, GOOD = range(5)


@dataclass(frozen=True, slots=True)
class PlaneIndex:
    """Which links belong where, for one plane of one topology; made once, used for every snapshot.

    host_links, up_links: rows of links. host_leaf, up_leaf: for each the row in `leaves`; up_spine in `spines`.
    """

    topology: Topology
    plane: int
    leaves: I32
    spines: I32
    host_links: I64
    host_leaf: I64
    up_links: I64
    up_leaf: I64
    up_spine: I64


def plane_index(topology: Topology, plane: int) -> PlaneIndex:
    """plane: row of planes, or -1 for switches that belong to none."""
    switches, links = topology.switches, topology.links
    of_plane = switches.plane == plane
    leaves = np.flatnonzero(of_plane & (switches.tier == TIERS.index("leaf"))).astype(np.int32)
    spines = np.flatnonzero(of_plane & (switches.tier == TIERS.index("spine"))).astype(np.int32)
    place = np.full(len(switches.name) + 1, -1, np.int64)  # the last entry stands for "no switch"
    place[leaves] = np.arange(len(leaves))
    column = np.full(len(switches.name) + 1, -1, np.int64)
    column[spines] = np.arange(len(spines))
    upper = topology.ports.switch[links.b] if len(links.b) else np.zeros(0, np.int32)
    lower = topology.ports.switch[links.a] if len(links.a) else np.zeros(0, np.int32)
    host = np.flatnonzero((links.tier == HOST_LEAF) & (place[upper] >= 0))
    up = np.flatnonzero((links.tier == LEAF_SPINE) & (place[lower] >= 0) & (column[upper] >= 0))
    return PlaneIndex(
        topology, plane, leaves, spines, host, place[upper[host]], up, place[lower[up]], column[upper[up]]
    )


@dataclass(frozen=True, slots=True)
class Tally:
    """Links counted by group: int64[groups] each; load: float64[groups], share of the designed speed, NaN unknown."""

    total: I64
    up: I64
    down: I64
    slow: I64
    unknown: I64
    load: F64

    @property
    def kind(self) -> I64:
        """int64[groups]: NO_LINK, ALL_DOWN, PART (some down or slow), NOT_KNOWN or GOOD."""
        kind = np.full(self.total.shape, GOOD, np.int64)
        kind[self.unknown > 0] = NOT_KNOWN
        kind[(self.down > 0) | (self.slow > 0)] = PART
        kind[(self.down == self.total) & (self.total > 0)] = ALL_DOWN
        kind[self.total == 0] = NO_LINK
        return kind


def tally(snapshot: Snapshot, links: I64, group: I64, groups: int) -> Tally:
    """Counts the given links by `group`; a load is summed over parallel links, weighted by designed speed."""
    state = snapshot.link_state[links]
    designed = snapshot.topology.links.speed[links]
    load = snapshot.link_load[links]

    def number(mask: npt.NDArray[np.bool_]) -> I64:
        return np.bincount(group[mask], minlength=groups)

    known = np.isfinite(load)
    with np.errstate(invalid="ignore", divide="ignore"):
        slow = (state == UP) & (snapshot.link_speed[links] < SLOW * designed)
        carried = np.bincount(group[known], (load * designed)[known], minlength=groups)
        share = carried / np.bincount(group[known], designed[known], minlength=groups)
    return Tally(
        total=np.bincount(group, minlength=groups),
        up=number(state == UP),
        down=number(state == DOWN),
        slow=number(slow),
        unknown=number(state == UNKNOWN),
        load=share,
    )


@dataclass(frozen=True, slots=True)
class PlaneMap:
    """One plane at one moment. pairs: a group a (leaf, spine), row by row; hosts and ups: a group a leaf."""

    index: PlaneIndex
    pairs: Tally
    hosts: Tally
    ups: Tally


def plane_map(snapshot: Snapshot, index: PlaneIndex) -> PlaneMap:
    leaves, spines = len(index.leaves), len(index.spines)
    return PlaneMap(
        index,
        tally(snapshot, index.up_links, index.up_leaf * spines + index.up_spine, leaves * spines),
        tally(snapshot, index.host_links, index.host_leaf, leaves),
        tally(snapshot, index.up_links, index.up_leaf, leaves),
    )


def merge_columns(pairs: Tally, leaves: int, spines: int, each: int) -> tuple[Tally, int]:
    """Neighbouring spines told as one column where they don't fit: counts are summed, loads averaged."""
    if each <= 1 or not spines:
        return pairs, spines
    columns = -(-spines // each)

    def grouped(values: npt.NDArray[np.generic], fill: float) -> npt.NDArray[np.float64]:
        wide = np.full((leaves, columns * each), fill)
        wide[:, :spines] = values.reshape(leaves, spines)
        return wide.reshape(leaves, columns, each)

    def summed(values: I64) -> I64:
        total: I64 = grouped(values, 0).sum(2).astype(np.int64).ravel()
        return total

    load = grouped(pairs.load, np.nan)
    known = np.isfinite(load)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(known, load, 0).sum(2) / known.sum(2)
    return (
        Tally(summed(pairs.total), summed(pairs.up), summed(pairs.down), summed(pairs.slow), summed(pairs.unknown),
              mean.ravel()),
        columns,
    )  # fmt: skip
