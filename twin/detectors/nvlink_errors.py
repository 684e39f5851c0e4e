"""NVLinks with errors: nvlink_errors. Two judges, both beside what the siblings do.

The rate of an error counter against its budget, in two readings in a row. And its growth over half an hour to an
hour: three recoveries in twenty minutes are no rate, but where no other link recovers they come before a failure.
What a counter stood at when it was first read is history and says nothing. Where most links do the same it is no
link's fault.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from twin.detectors.finding import NO_LINKS, Finding, Story
from twin.detectors.over_time import Growth, Steady
from twin.detectors.rules import Rules
from twin.detectors.scene import F64, Scene
from twin.detectors.tell import affected
from twin.frames import NS
from twin.incident import Evidence
from twin.topology.model import Topology

Rows = npt.NDArray[np.intp]
# metric -> (rule of its rate, rule of its growth, what an operator calls it)
COUNTERS = {
    "crc_errors": ("nvlink_crc_rate", "nvlink_error_growth", "CRC errors"),
    "replay_errors": ("nvlink_error_rate", "nvlink_error_growth", "replays"),
    "recovery_errors": ("nvlink_error_rate", "nvlink_recovery_growth", "recoveries"),
    "symbol_errors": ("nvlink_symbol_rate", "nvlink_error_growth", "symbol errors"),
}
_TIMES = 3  # different minutes in which a counter grew: one burst, as when a link is trained, is no growth
_FEW = 2.5  # errors between two readings make no rate, though they may come faster than the budget
_ABOVE = 10.0  # times what half of the links do: no link's own trouble below that


@dataclass(frozen=True, slots=True)
class _Bad:
    """One link with errors. value: errors a second, or, where `seconds` is not 0, as many within these.

    limit: what was expected at most. ready: in two readings in a row."""

    metric: str
    value: float
    limit: float
    since: int
    ready: bool = True
    seconds: float = 0.0


class NvlinkErrorDetector:
    """Remembers how each counter of each link grew."""

    def __init__(self, topo: Topology, rules: Rules) -> None:
        self.topo, self.rules = topo, rules
        self._growth: dict[str, Growth] = {}
        self._over: dict[str, Steady] = {}

    def findings(self, scene: Scene) -> list[Finding]:
        bad: dict[int, _Bad] = {}
        read = 0
        for metric in COUNTERS:
            if len(self.topo.nvlink_gpu) and scene.heard("nvlink", metric):
                now, known = self._judge(scene, metric)
                read = max(read, known)
                bad.update({row: b for row, b in now.items() if row not in bad or b.ready > bad[row].ready})
        return [self._finding(cause, links, bad, read) for cause, links in self._grouped(np.array(sorted(bad), int))]

    def _judge(self, scene: Scene, metric: str) -> tuple[dict[int, _Bad], int]:
        """Bad links by row, and how many were read."""
        series = scene.table("nvlink").get(metric)
        assert series is not None
        if metric not in self._growth:
            self._growth[metric] = Growth(len(series.value), self.rules.nvlink_growth_window)
            self._over[metric] = Steady(len(series.value), self.rules.error_lasting)
        growth, over = self._growth[metric], self._over[metric]
        seconds = (series.time - growth.read) / NS
        growth.note(series)
        budget, floor = (float(getattr(self.rules, rule)) for rule in COUNTERS[metric][:2])
        rate, heard = series.value, series.time > 0
        limit = _limit(rate, budget)
        bad: dict[int, _Bad] = {}
        if (rate > limit).any() or over.since.any():
            holds = (rate > limit) & (rate * seconds > _FEW)
            steady = over.note(np.where(np.isnan(rate), np.nan, holds), series.time)
            for row in np.flatnonzero(over.since).tolist():
                bad[row] = _Bad(metric, float(rate[row]), limit, int(over.since[row]), bool(steady[row]))
        if not (growth.total >= floor).any():
            return bad, int(np.count_nonzero(heard))
        most = _limit(np.where(heard, growth.total, np.nan), floor)
        for row in np.flatnonzero((growth.total >= most) & (growth.times >= _TIMES)).tolist():
            first, begun, last = int(growth.first[row]), int(growth.begun[row]), int(growth.last[row])
            if row not in bad or not bad[row].ready:
                bad[row] = _Bad(metric, float(growth.total[row]), most, first, seconds=(last - begun) / NS)
        return bad, int(np.count_nonzero(heard))

    # --- what is said ---

    def _grouped(self, rows: Rows) -> list[tuple[str, Rows]]:
        """Causes: a domain, switch chip or GPU of which most links are bad, else the links themselves."""
        topo, left, out = self.topo, rows, []
        if not len(rows):
            return []
        gpu = topo.nvlink_gpu
        domain = topo.gpus.domain[gpu]
        domains = tuple(f"domain:{name}" for name in topo.domains.name)
        for member, names in ((domain, domains), (topo.nvlink_switch, topo.nvswitch_names), (gpu, topo.gpu_names)):
            total = np.bincount(member[member >= 0])
            found, counts = np.unique(member[left], return_counts=True)
            for i in found[(found >= 0) & (counts > total[found] / 2) & (counts > 1)].tolist():
                out.append((names[i], left[member[left] == i]))
                left = left[member[left] != i]
        return out + [(topo.nvlink_names[r], np.array([r])) for r in left.tolist()]

    def _finding(self, cause: str, links: Rows, bad: dict[int, _Bad], read: int) -> Finding:
        mine = [bad[r] for r in links.tolist()]
        rates = [b for b in mine if b.ready and not b.seconds] or mine
        worst = max(rates, key=lambda b: b.value / b.limit)
        since = min(b.since for b in mine)
        size = int(np.log2(max(worst.value / worst.limit, 1.0)))  # told anew when it has doubled
        signature = (worst.metric, bool(worst.seconds), size, links.tobytes())
        tell = partial(self._tell, cause, links, worst, read)
        ready = any(b.ready for b in mine)
        covers = frozenset(self.topo.nvlink_names[r] for r in links.tolist())
        return Finding("nvlink_errors", cause, since, ready, NO_LINKS, signature, tell, covers=covers)

    def _tell(self, cause: str, links: Rows, worst: _Bad, read: int) -> Story:
        who = affected(self.topo, np.unique(self.topo.nvlink_gpu[links]))
        what = COUNTERS[worst.metric][2]
        name = self.topo.nvlink_names[links[0]]
        evidence = (Evidence(name, worst.metric, round(worst.value, 3), worst.limit),)
        one = len(links) == 1
        where = f"NVLink {cause}" if one else f"{len(links)} NVLinks of {cause}"
        if worst.seconds:
            alone = f"; of {read} links no others do so" if one else ""
            return Story(
                "warning", who, {"errors": worst.value}, evidence,
                f"{where} counted {worst.value:.0f} {what} in {worst.seconds / 60:.0f} min{alone}: likely to fail",
                "A prediction, not a failure: one such link failed five days later and took its job along. Move jobs "
                f"away at the next checkpoint, reset {cause.partition('/nvlink')[0]}, and see whether it comes back.",
            )  # fmt: skip
        return Story(
            "warning", who, {"errors_per_second": worst.value}, evidence,
            f"{where}: {worst.value:.3g} {what} a second, {worst.limit:.3g} is the budget",
            "Every repeat stalls the link and the job with it. Drain and reset the GPU; "
            + ("if it is the same link again, have it replaced." if one else f"so many at once: look at {cause}."),
        )  # fmt: skip


def _limit(values: F64, floor: float) -> float:
    """`floor`, or more where half of all links are near it: then it is not the link."""
    return max(floor, _ABOVE * float(np.nanmedian(values))) if (values >= floor).any() else floor
