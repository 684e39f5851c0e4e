"""GPUs that are slower than their peers while these are busy: gpu_straggler.

Peers are the GPUs of the same job, else of the same NVLink domain, else of the same node; a job in lockstep goes at
the pace of its slowest. Compared are clock, power and utilization with the median of the peers, by robust statistics
(median absolute deviation, never less than what is usual in the fabric). A GPU that does nothing takes no part, and
where the peers themselves differ widely they do not work in lockstep, and nothing is said.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import numpy.typing as npt

from twin.detectors.finding import NO_LINKS, Finding, Story
from twin.detectors.gpu_tell import by_node
from twin.detectors.over_time import Steady
from twin.detectors.rules import Rules
from twin.detectors.scene import F64, Scene
from twin.detectors.tell import affected
from twin.incident import Evidence
from twin.topology.model import Topology

Rows = npt.NDArray[np.intp]

# metric -> how many times `straggler_fraction` below the median counts, and what an operator calls it. Clocks of one
# load are close together; power and utilization follow the work, which differs more
METRICS = {
    "sm_clock_hertz": (1.0, "clock"),
    "power_watts": (2.0, "power"),
    "utilization_ratio": (2.0, "utilization"),
}
_FEWEST = 4  # peers, for a median to mean anything
_BUSY, _TAKES_PART = 0.5, 0.1  # utilization (or share of the power limit) of peers at work; of a GPU at work at all
_SIGMAS = 6.0  # below the median, in robust standard deviations
_LEAST_SPREAD, _LOCKSTEP_SPREAD = (
    0.01,
    0.05,
)  # relative robust standard deviation: at least taken; at most in lockstep
_MAD = 1.4826  # median absolute deviation to standard deviation


class StragglerDetector:
    """Remembers for how long each GPU has been slow by each metric."""

    def __init__(self, topo: Topology, rules: Rules) -> None:
        self.topo, self.rules = topo, rules
        n = len(topo.gpus.node)
        self._steady = {m: Steady(n, rules.straggler_lasting) for m in METRICS}
        self._peers, self._kind = _peers(topo)

    def findings(self, scene: Scene) -> list[Finding]:
        slow: dict[int, tuple[str, F64, F64]] = {}
        since = np.zeros(len(self._peers), np.int64)
        works = self._at_work(scene)
        if works is None:
            return []
        for metric, (times, _) in METRICS.items():
            if not scene.heard("gpu", metric):
                continue
            value = np.where(works == 1, scene.fresh("gpu", metric), np.nan)
            steady = self._steady[metric]
            usual, far = self._far_below(value, times * self.rules.straggler_fraction)
            holds = np.where(np.isnan(works) | ((works == 1) & np.isnan(value)), np.nan, far)
            on = steady.note(holds, scene.time("gpu", metric))
            for g in np.flatnonzero(on).tolist():
                if g not in slow:
                    slow[g], since[g] = (metric, value, usual), steady.since[g]
        out = []
        for cause, gpus in by_node(self.topo, np.array(sorted(slow), np.intp)) if slow else ():
            metric, value, usual = slow[int(gpus[0])]
            tell = partial(self._tell, cause, gpus, metric, value[gpus], usual[gpus])
            begin = int(since[gpus].min())
            out.append(
                Finding(
                    "gpu_straggler", cause, begin, True, NO_LINKS, (metric, gpus.tobytes()), tell,
                    covers=frozenset(self.topo.gpu_names[g] for g in gpus.tolist()),
                )
            )  # fmt: skip
        return out

    def _at_work(self, scene: Scene) -> F64 | None:
        """float64[gpus]: 1 at work among peers that are, 0 not, NaN unknown; None where nothing tells."""
        if scene.heard("gpu", "utilization_ratio"):
            load = scene.fresh("gpu", "utilization_ratio")
        elif scene.heard("gpu", "power_watts") and scene.heard("gpu", "power_limit_watts"):
            load = scene.fresh("gpu", "power_watts") / np.maximum(scene.fresh("gpu", "power_limit_watts"), 1.0)
        else:
            return None
        usual, count = _medians(load, self._peers)
        busy = (usual >= _BUSY) & (load >= _TAKES_PART) & (count >= _FEWEST)
        return np.where(np.isnan(load) | np.isnan(usual), np.nan, busy)

    def _far_below(self, value: F64, fraction: float) -> tuple[F64, npt.NDArray[np.bool_]]:
        """The median of each GPU's peers, and which GPUs are so far below it that it is no chance."""
        usual, count = _medians(value, self._peers)
        below = 1 - value / usual
        far = (below >= fraction) & (count >= _FEWEST)
        if far.any():
            spread = _MAD * _medians(np.abs(below), self._peers)[0]
            known = spread[~np.isnan(spread)]
            least = max(_LEAST_SPREAD, float(np.median(known)) if len(known) else 0.0)
            far &= (below >= _SIGMAS * np.maximum(spread, least)) & (spread <= _LOCKSTEP_SPREAD)
        return usual, far

    def _tell(self, cause: str, gpus: Rows, metric: str, value: F64, usual: F64) -> Story:
        worst = int(np.argmin(value / usual))
        share = float(value[worst] / usual[worst])
        name, word = self.topo.gpu_names[gpus[worst]], METRICS[metric][1]
        many = int(np.count_nonzero(self._peers == self._peers[gpus[worst]]))
        peers = f"the {many} GPUs of its {self._kind[gpus[worst]]}"
        what = f"GPU {cause} is" if len(gpus) == 1 else f"{len(gpus)} GPUs of {cause} are"
        if metric == "sm_clock_hertz":
            advice = (
                f"No throttle reason is told. Compare power limit and application clocks of {name} with a peer's, "
                "then take it out of the job and measure it alone."
            )
        else:
            advice = (
                f"It waits for something: look at its host process, PCIe width and network first. Take {name} out of "
                "the job and measure it alone to tell the GPU from its input."
            )
        return Story(
            "warning", affected(self.topo, gpus), {"pace_fraction": share},
            (Evidence(name, metric, round(float(value[worst]), 3), round(float(usual[worst]), 3)),),
            f"{what} slower than {peers}: {word} is {share:.0%} of theirs; a job in lockstep goes at that pace",
            advice,
        )  # fmt: skip


def _peers(topo: Topology) -> tuple[npt.NDArray[np.int64], list[str]]:
    """The group of peers of each GPU, and what kind of group it is."""
    nodes = len(topo.nodes.name)
    node, domain = topo.gpus.node.astype(np.int64), topo.gpus.domain.astype(np.int64)
    group = np.where(domain >= 0, nodes + domain, node)
    kind = ["NVLink domain" if d >= 0 else "node" for d in domain.tolist()]
    for j, (name, rows, _) in enumerate(topo.jobs):
        mine = np.isin(node, rows)
        group[mine] = nodes + len(topo.domains.name) + j
        for g in np.flatnonzero(mine).tolist():
            kind[g] = f"job {name}"
    return np.unique(group, return_inverse=True)[1].astype(np.int64).ravel(), kind


def _medians(values: F64, group: npt.NDArray[np.int64]) -> tuple[F64, npt.NDArray[np.int64]]:
    """The median of the known values in each entity's group, and how many these are: float64[n], int64[n]."""
    if not len(values):
        return values, np.zeros(0, np.int64)
    known = ~np.isnan(values)
    count = np.bincount(group[known], minlength=int(group.max()) + 1)
    order = np.lexsort((values[known], group[known]))
    ranked = np.append(values[known][order], np.nan)
    start = np.cumsum(count) - count
    low, high = start + (count - 1) // 2, start + count // 2
    none = len(ranked) - 1
    middle = (ranked[np.where(count > 0, low, none)] + ranked[np.where(count > 0, high, none)]) / 2
    return middle[group], count[group]
