"""What the twin shows of itself: plane figures at every evaluation, a short history, and snapshots."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import nan

import numpy as np
import numpy.typing as npt

from twin.capacity import Capacity
from twin.clock import Clocks
from twin.frames import NS
from twin.incident import Incident
from twin.linkstate import LinkState
from twin.snapshot import DOWN, NO_POWER, UNKNOWN, UP, Event, History, PlaneView, PowerView, Snapshot, SourceView
from twin.sources import Sources
from twin.state import KindState
from twin.topology.model import HOST_LEAF, Topology

F64 = npt.NDArray[np.float64]

KEPT = 900  # evaluations in the history: 15 minutes


class Observer:
    """Figures of every evaluation, so that a snapshot costs copies only."""

    def __init__(self, topo: Topology) -> None:
        self.topo = topo
        self.version = 0
        self._links: LinkState | None = None
        self._capacity: Capacity | None = None
        planes = len(topo.planes)
        self._time: list[int] = []
        self._used: list[F64] = []
        self._left: list[F64] = []
        self._open: list[int] = []
        fabric = topo.compute_links & (topo.links.plane >= 0)
        self._host = np.flatnonzero(fabric & (topo.links.tier == HOST_LEAF))
        self._fabric = np.flatnonzero(fabric)
        self._host_plane = topo.links.plane[self._host]
        self._n_links = np.bincount(topo.links.plane[self._fabric], minlength=planes)
        self._design = np.bincount(self._host_plane, np.nan_to_num(topo.links.speed[self._host]), planes)

    def note(self, now: int, links: LinkState, capacity: Capacity, ports: KindState, n_open: int) -> None:
        """Remembers one evaluation."""
        self.version += 1
        capacity = self._known_only(links, capacity)
        self._links, self._capacity = links, capacity
        self._tx = self._plane_tx(links, ports)
        self._time.append(now)
        self._used.append(self._tx / self._design if len(self._design) else self._tx)
        self._left.append(capacity.plane)
        self._open.append(n_open)
        if len(self._time) > 2 * KEPT:
            for series in (self._time, self._used, self._left, self._open):
                del series[:-KEPT]

    def _known_only(self, links: LinkState, capacity: Capacity) -> Capacity:
        """Capacity with what nothing reports on as unknown, instead of as designed."""
        topo = self.topo
        known = ~np.isnan(links.up) | links.down
        mine = known[self._fabric]
        per_plane = np.bincount(topo.links.plane[self._fabric][mine], minlength=len(topo.planes))
        plane = np.where(per_plane > 0, capacity.plane, np.nan)
        port = np.where(topo.ports.link >= 0, known[topo.ports.link], False) if len(known) else topo.ports.compute
        seen = np.zeros(len(topo.nics.node) + 1, bool)
        seen[topo.ports.nic[port & topo.ports.compute]] = True
        return replace(capacity, plane=plane, gpu=np.where(seen[topo.gpus.nic], capacity.gpu, np.nan))

    def _plane_tx(self, links: LinkState, ports: KindState) -> F64:
        """Bits/s sent by the hosts of each plane, NaN where none of it is known; a down port sends nothing."""
        tx = ports.value("tx_bytes")[self.topo.links.a[self._host]] * 8
        tx[links.down[self._host]] = 0.0
        known = ~np.isnan(tx)
        planes = len(self.topo.planes)
        total = np.bincount(self._host_plane[known], tx[known], planes).astype(np.float64)
        total[np.bincount(self._host_plane[known], minlength=planes) == 0] = np.nan
        return total

    def _planes(self, links: LinkState, capacity: Capacity) -> tuple[PlaneView, ...]:
        topo, rows = self.topo, self._fabric
        plane, n = topo.links.plane[rows], len(topo.planes)
        down = np.bincount(plane[links.down[rows]], minlength=n)
        slow = np.bincount(plane[links.slow[rows] & ~links.down[rows]], minlength=n)
        known = np.bincount(plane[~np.isnan(links.up[rows])], minlength=n)
        return tuple(
            PlaneView(
                plane=name,
                capacity_fraction=float(capacity.plane[p]),
                used_fraction=float(self._used[-1][p]),
                known_fraction=float(known[p] / self._n_links[p]) if self._n_links[p] else float("nan"),
                links=int(self._n_links[p]),
                links_down=int(down[p]),
                links_slow=int(slow[p]),
                tx_bits_per_second=float(self._tx[p]),
                capacity_bits_per_second=float(self._design[p]),
            )
            for p, name in enumerate(topo.planes)
        )

    def _load(self, ports: KindState) -> F64:
        """Busier direction of each link as a share of its designed speed, NaN unknown."""
        rate = np.fmax(ports.value("tx_bytes"), ports.value("rx_bytes"))
        return np.fmax(rate[self.topo.links.a], rate[self.topo.links.b]) * 8 / self.topo.links.speed

    def snapshot(
        self,
        now: int,
        kinds: Mapping[str, KindState],
        sources: Sources,
        clocks: Clocks,
        incidents: tuple[Incident, ...],
        events: tuple[Event, ...],
        power: PowerView = NO_POWER,
    ) -> Snapshot:
        topo, links, capacity = self.topo, self._links, self._capacity
        n = len(topo.links.a)
        ports, gpus = kinds["port"], kinds["gpu"]
        state = np.full(n, UNKNOWN, np.int8)
        speed = np.full(n, np.nan)
        bandwidth = np.full(len(topo.gpus.node), np.nan)
        planes: tuple[PlaneView, ...] = ()
        if links is not None and capacity is not None:
            state = np.where(np.isnan(links.up), UNKNOWN, np.where(links.up == 1, UP, DOWN)).astype(np.int8)
            speed, bandwidth = links.speed.copy(), capacity.gpu.copy()
            planes = self._planes(links, capacity)
        return Snapshot(
            topology=topo,
            time=now,
            version=self.version,
            planes=planes,
            gpu_bandwidth=bandwidth,
            link_state=state,
            link_speed=speed,
            link_load=self._load(ports),
            port_age=_age(ports, now),
            port=_values(ports),
            gpu=_values(gpus),
            gpu_age=_age(gpus, now),
            incidents=incidents,
            sources=_source_views(sources, clocks, now),
            events=events,
            history=self._history(),
            power=power,
            node=_values(kinds["node"]),
            psu=_values(kinds["psu"]),
            feed=_values(kinds["feed"]),
            nvlink=_nvlinks(kinds["nvlink"]) if "nvlink" in kinds else {},
            age={kind: _age(kinds[kind], now, "up") for kind in ("node", "psu", "feed", "nvlink") if kind in kinds},
        )

    def _history(self) -> History:
        time = np.array(self._time[-KEPT:], dtype=np.int64)
        shape = len(time), len(self.topo.planes)
        return History(
            time,
            np.array(self._used[-KEPT:], dtype=np.float64).reshape(shape),
            np.array(self._left[-KEPT:], dtype=np.float64).reshape(shape),
            np.array(self._open[-KEPT:], dtype=np.int32),
        )


def _values(kind: KindState) -> dict[str, F64]:
    return {name: s.value.copy() for name, s in kind.series.items()}


def _nvlinks(kind: KindState) -> dict[str, F64]:
    """`up`, and `errors`: all kinds of them together, a second; NaN where none is known."""
    rates = [s.value for name, s in kind.series.items() if name.endswith("_errors")]
    shown = {"up": kind.value("up").copy()}
    if rates:
        total, known = np.zeros(kind.n), np.zeros(kind.n, bool)
        for rate in rates:
            counted = ~np.isnan(rate)
            np.add(total, rate, out=total, where=counted)
            known |= counted
        total[~known] = np.nan
        shown["errors"] = total
    return shown


def _age(kind: KindState, now: int, metric: str = "") -> F64:
    """Seconds since an entity was heard of, NaN never; by one metric where that is read, as others are with it."""
    series = kind.get(metric)
    last = series.time if series is not None else kind.last_time()
    return np.where(last > 0, (now - last) / NS, np.nan)


def _source_views(sources: Sources, clocks: Clocks, now: int) -> tuple[SourceView, ...]:
    interval = sources.interval()
    states = ["ok"] * len(sources.names)
    for state, rows in (("late", sources.late()), ("stale", sources.stale(now))):
        for i in rows:
            states[i] = state
    views = []
    for i, name in enumerate(sources.names):
        offset = sources.offsets.get(name, clocks.offset(name) / NS or nan)
        views.append(
            SourceView(
                name=name,
                state="failed" if name in sources.failed_since else states[i],
                age_seconds=(now - sources.newest[i]) / NS,
                interval_seconds=float(interval[i]) / NS,
                failures=sources.failures.get(name, 0),
                entities=sources.entities[i],
                frames=sources.frames[i],
                delay_seconds=sources.delay[i] / NS,
                duration_seconds=sources.durations.get(name, nan),
                clock_offset_seconds=offset,
                skewed=abs(offset) > sources.rules.clock_offset,
            )
        )
    views.extend(
        SourceView(name, "failed", nan, nan, sources.failures.get(name, 0), 0, 0)
        for name in sources.failed_since
        if name not in sources.index
    )
    return tuple(views)
