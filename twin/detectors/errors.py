"""link_errors: a link whose counters of errors grow beyond its budget. Repairs by forward error correction are none.

Errors are counted by the end that receives, so the far end's transmitter or the cable between are suspect; where both
ends count, the cable. Increases are summed over windows; a counter that began anew, stands at its limit or jumped
further than the link could carry adds nothing. What a port counts while its link comes up is no error of the link.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from twin.capacity import CapacityModel
from twin.detectors.causes import Cause, CauseFinder
from twin.detectors.errors_tell import ErrorTeller, Quality
from twin.detectors.finding import NO_LINKS, Finding
from twin.detectors.growth import Growth
from twin.detectors.reports import one_report
from twin.detectors.rules import Rules, ns
from twin.detectors.scene import Scene
from twin.detectors.windows import Window
from twin.frames import NS
from twin.topology.model import HOST_LEAF, Topology

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
Bool = npt.NDArray[np.bool_]

METRICS = ("symbol_errors", "rx_errors", "fec_uncorrected")
_REFERENCE = 400e9  # bits/s, the speed that budgets are given for
_BURST = 10.0  # times the budget: a single reading that says so is believed
_GAPS = 3.0  # times the usual gap between errors without one, and they have ended
_SMALLEST = 512.0  # bits of a packet: no port counts more errors than it could receive packets


@dataclass(slots=True)
class _Count:
    """Errors of one metric at every port. readings: how many of them showed an increase in this run of errors."""

    growth: Growth
    windows: tuple[tuple[Window, float], ...]  # with the budget of each
    first: I64
    last: I64
    readings: I64

    def total(self) -> F64:
        return self.windows[-1][0].total


class ErrorDetector:
    def __init__(self, topo: Topology, rules: Rules) -> None:
        self.topo, self.rules = topo, rules
        n = len(topo.ports.link)
        self._finder = CauseFinder(topo, CapacityModel(topo), rules)
        self._teller = ErrorTeller(topo, rules)
        self._scale = np.maximum(1.0, np.nan_to_num(topo.port_speed, nan=_REFERENCE) / _REFERENCE)
        self._most = np.nan_to_num(topo.port_speed, nan=_REFERENCE) / _SMALLEST
        self._came_up = np.zeros(n, np.int64)  # when each port's link was last seen to come up
        self._was_up, self._falls = np.ones(n, bool), np.zeros(n, np.int64)
        self._bad: dict[str, Bool] = {m: np.zeros(n, bool) for m in METRICS}
        self._counts: dict[str, _Count] = {}
        self._first: dict[str, int] = {}  # when each cause was first seen as such

    def _count(self, metric: str) -> _Count:
        """What is kept of a metric, made when it is first heard of."""
        if metric not in self._counts:
            n, rules = len(self._was_up), self.rules
            short = Window(n, ns(rules.errors_short), 12)
            budgets: dict[str, tuple[tuple[Window, float], ...]] = {
                "symbol_errors": (
                    (short, rules.symbol_errors_short),
                    (Window(n, ns(rules.errors_long), 25), rules.symbol_errors_long),
                ),
                "rx_errors": ((short, rules.rx_errors_short),),
                "fec_uncorrected": ((short, rules.fec_uncorrected_short),),
            }
            zeros = [np.zeros(n, np.int64) for _ in range(3)]
            self._counts[metric] = _Count(Growth(n), budgets[metric], *zeros)
        return self._counts[metric]

    def findings(self, scene: Scene) -> list[Finding]:
        heard = [m for m in METRICS if scene.heard("port", m)]
        if not heard:
            return []
        steady = self._steady(scene)
        for metric in heard:
            self._note(metric, scene, steady)
        bad = np.any([self._bad[m] for m in heard], axis=0)
        if not bad.any():
            self._first.clear()
            return []
        return self._causes(scene, bad)

    def _steady(self, scene: Scene) -> Bool:
        """Ports whose link has been up for a while; one of which nobody ever told the state has. One that was read
        before and is not now (both switches of it may be dead) may train again unseen."""
        up, falls = (np.append(of, 0)[self.topo.ports.link] for of in (scene.links.up, scene.links.falls))
        unseen = falls > self._falls  # down and up again between two readings: only the port's own count tells
        self._came_up[(up == 1) & (~self._was_up | unseen)] = scene.now
        self._falls = falls
        silent = np.isnan(up) & (np.append(scene.links.sampled, 0)[self.topo.ports.link] > 0)
        self._was_up = np.where(np.isnan(up), self._was_up & ~silent, up == 1)
        training = scene.now - self._came_up < ns(self.rules.settle)
        return self._was_up & ~((self._came_up > 0) & training)

    def _note(self, metric: str, scene: Scene, steady: Bool) -> None:
        """Takes the newest readings of a metric and decides which ports are beyond their budget of it."""
        count = self._count(metric)
        series = scene.table("port").get(metric)
        assert series is not None
        step, seconds = count.growth.since_last(series)
        step[~steady | (step > self._most * np.maximum(seconds, 1.0))] = 0
        rows = np.flatnonzero(step > 0)
        scale = self._scale if metric == "symbol_errors" else np.ones_like(self._scale)
        beyond = np.zeros(len(step), bool)
        burst = np.zeros(len(step), bool)
        for window, budget in count.windows:
            window.add(scene.now, rows, step[rows])
            beyond |= window.total > budget * scale
            burst |= window.total > _BURST * budget * scale
        new = rows[count.readings[rows] == 0]
        count.first[new] = series.time[new]
        count.last[rows] = series.time[rows]
        count.readings[rows] += 1
        bad = self._bad[metric]
        bad |= beyond & ((count.readings > 1) | burst)
        over = np.flatnonzero((count.readings > 0) & self._quiet(count, bad))
        if len(over):
            count.readings[over] = 0
            for window, _ in count.windows:
                window.forget(over[bad[over]])
            bad[over] = False

    def _quiet(self, count: _Count, bad: Bool) -> Bool:
        """No error for a while, as long as readings came; errors that were not told wait for the window to pass."""
        gap = (count.last - count.first) / np.maximum(count.readings - 1, 1)
        told = np.maximum(_GAPS * gap, ns(self.rules.errors_quiet))
        return count.growth.known - count.last > np.where(bad, told, count.windows[-1][0].span)

    # --- findings ---

    def _causes(self, scene: Scene, bad: Bool) -> list[Finding]:
        links = self.topo.links
        erring = bad[links.a] | bad[links.b]
        first = np.full(len(bad), np.iinfo(np.int64).max)
        for metric, count in self._counts.items():
            first = np.where(self._bad[metric], np.minimum(first, count.first), first)
        since = np.where(erring, np.minimum(first[links.a], first[links.b]), 0)
        known = ~np.isnan(scene.links.up) | erring
        causes = {self._address(c): c for c in self._finder.group(erring, known, since)}
        self._first = {address: self._first.get(address, scene.now) for address in causes}
        return [self._finding(address, cause, scene) for address, cause in causes.items()]

    def _finding(self, address: str, cause: Cause, scene: Scene) -> Finding:
        """One cause; ready when no more links can be seen to join it, or it was the same until all were read."""
        links = self.topo.links
        ends = np.concatenate([links.a[cause.links], links.b[cause.links]])
        found = []
        for metric, count in self._counts.items():
            mine = ends[self._bad[metric][ends]]
            if len(mine):
                worst = int(mine[np.argmax(count.total()[mine])])
                seconds = max(scene.now - int(count.first[worst]), NS) / NS
                found.append(Quality(metric, worst, float(count.total()[worst]), seconds, tuple(mine.tolist())))
        # anew when another counter or port joins in, and with each power of ten
        signature = tuple((q.metric, q.ports, int(np.log10(max(q.errors, 1)))) for q in found)
        tell = partial(self._teller.tell, cause, address, tuple(found))
        ready = not self._may_grow(cause) or scene.now - self._first[address] >= ns(one_report(scene.sources))
        ports = self.topo.port_names
        scope = frozenset((address, *(ports[p] for p in ends.tolist())))
        return Finding(
            "link_errors", address, cause.since, ready, NO_LINKS, signature, tell,
            covers=self._smaller(cause), scope=scope,
        )  # fmt: skip

    def _may_grow(self, cause: Cause) -> bool:
        """Whether other links of its devices have errors too, though within their budget so far."""
        some = np.any([c.readings > 0 for c in self._counts.values()], axis=0)
        links = self.topo.links
        suspect = some[links.a] | some[links.b]
        suspect[cause.links] = False
        ends = self.topo.link_ends
        mine = np.concatenate([end[cause.links] for end in ends])
        return any(bool(np.isin(end[suspect], mine).any()) for end in ends)

    def _smaller(self, cause: Cause) -> frozenset[str]:
        """Links, and devices at their other ends, that it stands for when they were told before."""
        if len(cause.links) == 1:
            return frozenset()
        out = {self._address(cause._replace(what="link", row=row)) for row in cause.links.tolist()}
        return frozenset(out | {name.split("/")[0] for name in out} | {name.rpartition("/")[0] for name in out})

    def _address(self, cause: Cause) -> str:
        topo, row = self.topo, cause.row
        if cause.what == "link":
            host = topo.links.tier[row] == HOST_LEAF
            return topo.port_names[topo.links.a[row]] if host else topo.link_name(row)
        if cause.what in ("plane", "part"):
            return f"plane:{topo.planes[row]}"
        names = {"switch": topo.switches.name, "node": topo.nodes.name, "nic": topo.nic_names}
        return names[cause.what][row]
