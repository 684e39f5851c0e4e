"""What an incident costs each job: a collective in lockstep goes at the pace of its slowest GPU."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from twin.incident import JobEffect
from twin.topology.model import Topology

F64 = npt.NDArray[np.float64]

_NAMED = 2  # jobs named in a sentence


class JobCost:
    """The GPUs of each job, one behind the other; made once for a topology."""

    def __init__(self, topo: Topology) -> None:
        self._names = [name for name, _, _ in topo.jobs]
        starts, counts = topo.nodes.gpu0, topo.nodes.n_gpus
        gpus = [[np.arange(starts[n], starts[n] + counts[n]) for n in nodes] for _, nodes, _ in topo.jobs]
        rows = [np.concatenate(mine) if mine else np.zeros(0, np.intp) for mine in gpus]
        self._gpus = np.concatenate(rows) if rows else np.zeros(0, np.intp)
        self._job = np.repeat(np.arange(len(rows)), [len(r) for r in rows])

    def of(self, gpu_share: F64) -> tuple[JobEffect, ...]:
        """The jobs that lose bandwidth, worst first. gpu_share: float64[gpus], what each has left, NaN unknown."""
        if not self._names:
            return ()
        share = np.ones(len(self._names))
        mine = gpu_share[self._gpus]
        known = ~np.isnan(mine)
        np.minimum.at(share, self._job[known], mine[known])
        hit = np.flatnonzero(share < 1 - 1e-9)
        order = hit[np.argsort(share[hit], kind="stable")]
        return tuple(JobEffect(self._names[j], float(share[j])) for j in order.tolist())


def job_words(jobs: tuple[JobEffect, ...]) -> str:
    """`; job train-7 runs at 50 %`, or nothing."""
    if not jobs:
        return ""
    told = [
        f"job {j.name} runs at {j.bandwidth_fraction:.0%}"
        if j.bandwidth_fraction > 0
        else f"job {j.name} stands still"
        for j in jobs[:_NAMED]
    ]
    more = f" and {len(jobs) - _NAMED} more jobs are slower" if len(jobs) > _NAMED else ""
    return f"; {', '.join(told)}{more}"
