"""Who reports what: the sources of a simulated fabric, and their frames of one interval.

A counter goes on within an interval, so each source reads it a little later than the one before. It is worked out
once for all entities; a source takes its rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from twin.frames import UNKNOWN_U64, Column, Frame
from twin.metrics import REGISTRY
from twin.simulator.world import F64, Rows, Signals
from twin.topology.model import Topology

_FRACTIONAL = ("s", "J")


@dataclass(slots=True)
class Source:
    """Who reports: kind -> the rows it reads and their names."""

    name: str
    rows: dict[str, Rows | slice]
    names: dict[str, tuple[str, ...]]


class Reporters:
    """All sources of a fabric. An entity is read by one of them at most."""

    def __init__(self, topo: Topology, sources: Sequence[Source]) -> None:
        self.sources = sources
        self._owner = {}  # kind -> the source of each entity
        for kind in sorted({kind for s in sources for kind in s.rows}):
            owner = np.full(len(topo.names(kind)), len(sources), np.intp)
            for i, source in enumerate(sources):
                if kind in source.rows:
                    owner[source.rows[kind]] = i
            self._owner[kind] = owner

    def read(self, signals: Signals, seconds: F64) -> Readings:
        """seconds: float64[sources], how far into the interval each of them reads."""
        after = np.append(seconds, 0.0)
        columns: dict[str, dict[str, Column]] = {k: dict(signals.gauges.get(k, {})) for k in self._owner}
        absent: list[set[tuple[str, str]]] = [set() for _ in self.sources]
        for kind, owner in self._owner.items():
            late = after[owner]
            for metric, (value, rate) in signals.counters.get(kind, {}).items():
                now = value + rate * late
                known = ~np.isnan(now)
                columns[kind][metric] = _counted(kind, metric, now, known)
                seen = np.bincount(owner[known], minlength=len(self.sources) + 1)[: len(self.sources)]
                for i in np.flatnonzero(seen == 0).tolist():
                    absent[i].add((kind, metric))
        return Readings(self.sources, columns, absent)


class Readings:
    """What the sources read in one interval."""

    def __init__(
        self,
        sources: Sequence[Source],
        columns: dict[str, dict[str, Column]],
        absent: Sequence[set[tuple[str, str]]],
    ) -> None:
        """absent: of each source, the counters that none of its entities has."""
        self._sources, self._columns, self._absent = sources, columns, absent

    def frames(self, source: int, time: int) -> Iterator[Frame]:
        """What a source reports, ns since the epoch."""
        who, absent = self._sources[source], self._absent[source]
        for kind, rows in who.rows.items():
            mine = {m: c[rows] for m, c in self._columns[kind].items() if (kind, m) not in absent}
            if mine:
                yield Frame(time, who.name, kind, who.names[kind], mine)


def _counted(kind: str, metric: str, now: F64, known: npt.NDArray[np.bool_]) -> Column:
    if REGISTRY[kind, metric].unit in _FRACTIONAL:
        return now
    if known.all():
        return now.astype(np.uint64)
    return np.where(known, np.nan_to_num(now).astype(np.uint64), UNKNOWN_U64)


# --- the sources of a fabric ---


def devices(topo: Topology) -> list[Source]:
    """A source a node (its GPUs, NVLinks, NIC ports and supplies), then one a switch (its ports)."""
    names = topo.port_names
    order = np.argsort(topo.ports.switch, kind="stable")
    bounds = np.searchsorted(topo.ports.switch[order], np.arange(len(topo.switches.name) + 1))
    links = np.concatenate([[0], np.cumsum(topo.nvlinks_per_gpu)])
    out = []
    for i, node in enumerate(topo.nodes.name):
        first, last = topo.nodes.nic0[i], topo.nodes.nic0[i] + topo.nodes.n_nics[i]
        ports = np.flatnonzero((topo.ports.nic >= first) & (topo.ports.nic < last) & (topo.ports.link >= 0))
        gpu0, n_gpus = int(topo.nodes.gpu0[i]), int(topo.nodes.n_gpus[i])
        psu0 = int(topo.nodes.psu0[i])
        rows: dict[str, Rows | slice] = {
            "port": ports,
            "gpu": slice(gpu0, gpu0 + n_gpus),
            "nvlink": slice(int(links[gpu0]), int(links[gpu0 + n_gpus])),
            "psu": slice(psu0, psu0 + int(topo.nodes.n_psus[i])),
            "node": slice(i, i + 1),
        }
        out.append(_source(topo, node, rows, tuple(names[p] for p in ports)))
    for s, switch in enumerate(topo.switches.name):
        ports = order[bounds[s] : bounds[s + 1]]
        out.append(_source(topo, switch, {"port": ports}, tuple(names[p] for p in ports)))
    return out


def racks(topo: Topology) -> list[Source]:
    """A source a rack: its feeds and power shelves."""
    out = []
    for r, rack in enumerate(topo.racks.name):
        feeds, psu0 = np.flatnonzero(topo.feeds.rack == r), int(topo.racks.psu0[r])
        rows: dict[str, Rows | slice] = {"feed": feeds, "psu": slice(psu0, psu0 + int(topo.racks.n_psus[r]))}
        source = _source(topo, rack, rows, ())
        if source.rows:
            out.append(source)
    return out


def _source(topo: Topology, name: str, rows: dict[str, Rows | slice], ports: tuple[str, ...]) -> Source:
    names = {"port": ports}
    for kind, mine in rows.items():
        if kind != "port":
            all_ = topo.names(kind)
            names[kind] = all_[mine] if isinstance(mine, slice) else tuple(all_[r] for r in mine)
    kept = {kind: mine for kind, mine in rows.items() if len(names[kind])}
    return Source(name, kept, {kind: names[kind] for kind in kept})
