"""Counters that stand at the limit of their width: they say nothing any more, and that is said once."""

from __future__ import annotations

from functools import partial

import numpy as np
import numpy.typing as npt

from twin.detectors.finding import NO_LINKS, Finding, Story
from twin.detectors.rules import Rules, ns
from twin.detectors.scene import Lasting, Scene
from twin.incident import Affected, Evidence
from twin.metrics import metrics_of
from twin.topology.model import Topology

Bool = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.intp]

_METRICS = tuple(m for m in metrics_of("port") if m.limits)
_SHOWN = 4


class SaturatedDetector:
    """One finding for all counters of ports that are full, with the cause the port, its device, or `counters`."""

    def __init__(self, topo: Topology, rules: Rules) -> None:
        self.topo, self.rules = topo, rules
        self._full = Lasting(len(topo.ports.link))

    def findings(self, scene: Scene) -> list[Finding]:
        full: dict[str, Rows] = {}
        time = np.zeros(len(self.topo.ports.link), np.int64)
        for metric in _METRICS:
            series = scene.table("port").get(metric.name)
            if series is not None and series.saturated is not None and series.saturated.any():
                full[metric.name] = np.flatnonzero(series.saturated)
                np.maximum(time, np.where(series.saturated, series.time, 0), out=time)
        any_: Bool = time > 0
        since = self._full.note(any_.astype(np.float64), time)
        ports = np.flatnonzero(any_)
        if not len(ports):
            return []
        first = int(since[ports].min())
        ready = scene.now - first >= ns(self.rules.recovery)
        signature = tuple(sorted(full))
        tell = partial(self._tell, full, len(ports))
        return [Finding("telemetry_stale", self._cause(ports), first, ready, NO_LINKS, signature, tell)]

    def _cause(self, ports: Rows) -> str:
        names: list[str] = [self.topo.port_names[p] for p in ports.tolist()]
        devices = {n.split("/")[0] for n in names}
        if len(names) == 1:
            return names[0]
        return f"{devices.pop()}/counters" if len(devices) == 1 else "counters"

    def _tell(self, full: dict[str, Rows], ports: int) -> Story:
        names, limits = self.topo.port_names, {m.name: m.limits[0] for m in _METRICS}
        count = sum(len(rows) for rows in full.values())
        evidence = [Evidence(names[rows[0]], m, float(limits[m]), None) for m, rows in full.items()]
        return Story(
            "info",
            Affected(),
            {},
            tuple(evidence[:_SHOWN]),
            f"{count} counter{'s' * (count != 1)} of {ports} port{'s' * (ports != 1)} stand at the limit of their "
            f"width ({', '.join(full)}): what they count is unknown, not zero",
            "Reset them (perfquery -R on InfiniBand), or have the extended 64-bit counters read; until then no "
            "trouble that only they would show can be found.",
        )
