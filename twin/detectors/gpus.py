"""GPUs that are lost, report errors, or are throttled: gpu_lost, gpu_error, gpu_throttled.

Lost: its node goes on reporting the other GPUs and nothing more of this one. Errors: a new XID, or uncorrected memory
errors that increase. Programs that end, or that fail by their own fault, leave XIDs on many GPUs at once: that is one
note and no fault of these GPUs. Throttled: by heat, by power brake or by the board, not by the power limit, at which
busy GPUs always work.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import numpy.typing as npt

from twin.detectors.finding import NO_LINKS, Finding
from twin.detectors.gpu_tell import GpuTeller, by_node
from twin.detectors.over_time import Growth, Steady
from twin.detectors.rules import Rules, ns
from twin.detectors.scene import I64, Scene
from twin.detectors.xids import XidEvent, XidWatch
from twin.topology.model import Topology

Bool = npt.NDArray[np.bool_]

# read of a GPU that works; an XID is told by the driver even of one that does not
VITAL = ("power_watts", "temperature_celsius", "utilization_ratio", "memory_used_bytes", "sm_clock_hertz")
BAD_REASONS = 0x8 | 0x20 | 0x40 | 0x80  # NVML clocks event reasons: hardware slowdown, both thermal ones, power brake
_SOLO = ("application", "cleanup")  # classes that follow a program


class GpuDetector:
    """Remembers when each GPU was last read, its last XID, its memory errors and since when it is throttled."""

    def __init__(self, topo: Topology, rules: Rules) -> None:
        self.topo, self.rules = topo, rules
        n = len(topo.gpus.node)
        self.teller = GpuTeller(topo)
        self._seen = np.zeros(n, np.int64)
        self._by = np.full(n, -1, np.int64)
        self._xids = XidWatch(n, ns(rules.xid_hold))
        self._ecc = Growth(n, rules.xid_hold)
        self._throttled = Steady(n, rules.throttle_lasting)

    def findings(self, scene: Scene) -> list[Finding]:
        lag = self._lag(scene)
        interval = scene.sources.expected()[self._by]
        missing = lag > self.rules.gpu_lost_intervals * interval
        code, time = scene.table("gpu").value("xid"), scene.time("gpu", "xid")
        events = self._xids.note(scene.now, code, time, lag > interval // 2)
        lost = missing.copy()
        for gpu, event in events.items():
            lost[gpu] |= event.xid.what == "lost" and (lag[gpu] > 0 or not self._seen[gpu])
        first = self._seen + interval  # the reading that should have been
        out = [self._lost(g, int(first[g]), events.get(g)) for g in np.flatnonzero(lost).tolist()]
        # one that answers although its last XID says lost: only news can be meant
        told = {g: e for g, e in events.items() if not lost[g] and (e.new or e.xid.what != "lost")}
        return out + self._errors(scene, told) + self._throttling(scene)

    # --- lost ---

    def _lag(self, scene: Scene) -> I64:
        """int64[gpus], ns by which the last known reading is older than that of other GPUs of the same node from the
        same source; 0 for a GPU that was never read."""
        table = scene.table("gpu")
        for metric in VITAL:
            series = table.get(metric)
            if series is not None:
                newer = ~np.isnan(series.value) & (series.time > self._seen)
                np.copyto(self._seen, series.time, where=newer)
                np.copyto(self._by, series.owner, where=newer)
        if not self._seen.any():
            return np.zeros(len(self._seen), np.int64)
        sources = int(self._by.max()) + 1
        group = self.topo.gpus.node.astype(np.int64) * sources + np.maximum(self._by, 0)
        newest = np.zeros(int(group.max()) + 1, np.int64)
        np.maximum.at(newest, group, self._seen)
        return np.where(self._seen > 0, newest[group] - self._seen, 0)

    def _lost(self, gpu: int, first: int, event: XidEvent | None) -> Finding:
        name = self.topo.gpu_names[gpu]
        known = event.xid if event else None
        tell = partial(self.teller.lost, gpu, known)
        since = event.since if event and event.xid.what == "lost" else first
        return Finding("gpu_lost", name, since, True, NO_LINKS, known, tell, scope=frozenset({name}))

    # --- errors ---

    def _errors(self, scene: Scene, events: dict[int, XidEvent]) -> list[Finding]:
        ecc = self._memory_errors(scene)
        programs = {g: e for g, e in events.items() if e.xid.what in _SOLO and g not in ecc}
        hardware = {g: e for g, e in events.items() if g not in programs}
        nvlink = {g: e for g, e in hardware.items() if e.xid.what == "nvlink" and g not in ecc}
        out = [
            self._error(g, hardware.get(g), ecc.get(g, 0))
            for g in sorted((hardware.keys() | ecc.keys()) - nvlink.keys())
        ]
        out += self._nvlink_errors(scene, nvlink)
        return out + self._programs(programs, [e.since for e in hardware.values()])

    def _memory_errors(self, scene: Scene) -> dict[int, int]:
        """GPU -> uncorrected errors counted lately."""
        series = scene.table("gpu").get("ecc_uncorrected")
        if series is None:
            return {}
        self._ecc.note(series)
        lately = (self._ecc.last > 0) & (series.time - self._ecc.last < ns(self.rules.xid_hold))
        return {g: int(self._ecc.total[g]) for g in np.flatnonzero(lately).tolist()}

    def _error(self, gpu: int, event: XidEvent | None, ecc: int) -> Finding:
        name = self.topo.gpu_names[gpu]
        since = min(t for t in (event.since if event else 0, int(self._ecc.first[gpu]) if ecc else 0) if t)
        known = event.xid if event else None
        tell = partial(self.teller.error, gpu, known, ecc)
        return Finding("gpu_error", name, since, True, NO_LINKS, (known, ecc), tell, scope=frozenset({name}))

    def _nvlink_errors(self, scene: Scene, events: dict[int, XidEvent]) -> list[Finding]:
        """NVLink XIDs of one domain are one trouble: of the GPU whose code differs from that of its peers, else of
        the domain. Where links are down the links tell it."""
        if not events:
            return []
        down = np.zeros(len(self.topo.domains.name) + 1, bool)
        if scene.heard("nvlink", "up"):
            links = np.flatnonzero(scene.table("nvlink").value("up") == 0)
            down[self.topo.gpus.domain[self.topo.nvlink_gpu[links]]] = True
        out = []
        for d in sorted({int(self.topo.gpus.domain[g]) for g in events}):
            mine = {g: e for g, e in events.items() if self.topo.gpus.domain[g] == d}
            if d >= 0 and down[d]:
                continue
            codes = [e.xid.code for e in mine.values()]
            odd = [g for g, e in mine.items() if codes.count(e.xid.code) == 1]
            if d < 0 or len(mine) == 1 or len(odd) == 1:
                out += [self._nvlink_error(self.topo.gpu_names[g], g, mine) for g in (odd or mine)]
            else:
                out.append(self._nvlink_error(f"domain:{self.topo.domains.name[d]}", min(mine), mine))
        return out

    def _nvlink_error(self, cause: str, gpu: int, events: dict[int, XidEvent]) -> Finding:
        tell = partial(self.teller.nvlink_error, cause, gpu, {g: e.xid for g, e in events.items()})
        since = min(e.since for e in events.values())
        return Finding("gpu_error", cause, since, True, NO_LINKS, tuple(sorted(events)), tell)

    def _programs(self, events: dict[int, XidEvent], worse: list[int]) -> list[Finding]:
        """Programs that ended on many GPUs at once are one note. Nothing, when something worse came just before."""
        out = []
        left = sorted(events, key=lambda g: (events[g].since, g))
        while left:
            start = events[left[0]].since
            together = [g for g in left if events[g].since - start <= ns(self.rules.burst)]
            left = left[len(together) :]
            if any(abs(start - t) <= ns(self.rules.burst) for t in worse):
                continue
            gpus = np.array(sorted(together))
            cause = self.teller.place(gpus)
            tell = partial(self.teller.program, cause, gpus, [events[g].xid for g in gpus.tolist()])
            out.append(Finding("gpu_error", cause, start, True, NO_LINKS, gpus.tobytes(), tell))
        return out

    # --- throttled ---

    def _throttling(self, scene: Scene) -> list[Finding]:
        series = scene.table("gpu").get("throttle_reasons")
        if series is None:
            return []
        bits = np.nan_to_num(series.value).astype(np.int64) & BAD_REASONS
        holds = np.where(np.isnan(series.value), np.nan, bits != 0)
        slow = self._throttled.note(holds, series.time)
        since = self._throttled.since
        out = []
        for cause, gpus in by_node(self.topo, np.flatnonzero(since)):
            ready = bool(slow[gpus].any())
            said = int(np.bitwise_or.reduce(bits[gpus]))
            names = frozenset({cause, *(self.topo.gpu_names[g] for g in gpus.tolist())})
            tell = partial(self.teller.throttled, cause, gpus, said, scene)
            begin = int(since[gpus].min())
            # what it says flickers; who is slowed does not
            out.append(
                Finding(
                    "gpu_throttled", cause, begin, ready, NO_LINKS, gpus.tobytes(), tell, covers=names, scope=names
                )
            )
        return out
