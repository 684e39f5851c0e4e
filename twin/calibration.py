"""Where traffic goes, against where the model says that it should: predicted and observed load of every link.

What each job sends is taken from the counters of its own NICs; the flows of its collective, routed over the fabric as
it is, say how that is spread over planes and uplinks. So the total agrees and only the places differ: a plane that is
left out shows as less there and more elsewhere. Links of nodes without a job are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from twin.collectives import traffic
from twin.flows import Router
from twin.topology.model import HOST_LEAF, Topology

F64 = npt.NDArray[np.float64]
Job = tuple[str, tuple[int, ...], str]  # as in Topology.jobs: name, node rows, collective


@dataclass(frozen=True, slots=True)
class Calibration:
    """observed, predicted: float64[2, links], bits/s from end a of each link to b, and back; NaN where unknown.

    jobs: float64[jobs], bits/s that each sends, NaN where none of its NICs is read. host, uplink: float64[planes, 2],
    bits/s observed and predicted over all links of a plane that are read: what hosts send, what goes up from leaves.
    """

    observed: F64
    predicted: F64
    jobs: F64
    host: F64
    uplink: F64

    @property
    def residual(self) -> F64:
        """float64[2, links], bits/s more than predicted."""
        return self.observed - self.predicted

    @property
    def error(self) -> float:
        """How much of the traffic that hosts send goes elsewhere than predicted, 0 to 1; NaN without any."""
        moved, total = float(np.abs(self.host[:, 0] - self.host[:, 1]).sum()) / 2, float(self.host[:, 0].sum())
        return moved / total if total else float("nan")


def calibrate(topo: Topology, speed: F64, jobs: Sequence[Job], tx: F64, rx: F64) -> Calibration:
    """Compares what ports count with what the jobs' collectives would put on them.

    speed: float64[links], bits/s now, 0 down, NaN as designed. tx, rx: float64[ports], bytes/s, NaN unknown; what
    one end sends the other receives, so either will do. Raises InputError for a job without GPUs.
    """
    links, n = topo.links, len(topo.links.a)
    observed = 8 * np.array([_either(tx[links.a], rx[links.b]), _either(tx[links.b], rx[links.a])])
    observed[:, speed == 0] = 0.0  # whatever was counted last
    router = Router(topo, speed)
    predicted, sent = np.zeros((2, n)), np.full(len(jobs), np.nan)
    node = topo.port_node[links.a]
    host = (links.tier == HOST_LEAF) & topo.compute_links
    for j, job in enumerate(jobs):
        unit = router.load(*traffic(topo, job))[: 2 * n].reshape(2, n)
        read = host & np.isin(node, job[1]) & ~np.isnan(observed[0])
        if unit[0][read].any():
            sent[j] = observed[0][read].sum()
            predicted += sent[j] / unit[0][read].sum() * unit
    idle = np.ones(len(topo.nodes.name) + 1, bool)  # the last is for ports of switches
    for job in jobs:
        idle[list(job[1])] = False
    left_out = np.where(host, idle[node], False)
    predicted[:, left_out] = np.nan
    up = (links.tier != HOST_LEAF) & topo.compute_links
    planes = len(topo.planes)
    return Calibration(
        observed,
        predicted,
        sent,
        _by_plane(links.plane, host, observed[0], predicted[0], planes),
        _by_plane(links.plane, up, observed[0], predicted[0], planes),
    )


def worst(found: Calibration, count: int) -> list[tuple[int, int]]:
    """(direction, link) of those whose load differs most from what is predicted, the largest difference first."""
    off = np.abs(np.nan_to_num(found.residual)).ravel()
    rows = np.argsort(-off, kind="stable")[:count]
    n = found.observed.shape[1]
    return [(int(row) // n, int(row) % n) for row in rows.tolist() if off[row] > 0]


def _either(one: F64, other: F64) -> F64:
    return np.where(np.isnan(one), other, one)


def _by_plane(plane: npt.NDArray[np.int32], mine: npt.NDArray[np.bool_], seen: F64, said: F64, planes: int) -> F64:
    """float64[planes, 2], sums over the links of which both are known."""
    rows = np.flatnonzero(mine & (plane >= 0) & ~np.isnan(seen) & ~np.isnan(said))
    sums = [np.bincount(plane[rows], values[rows], planes) for values in (seen, said)]
    return np.stack(sums, axis=1).astype(np.float64)
