"""What the jobs that the wiring names should put on each link, for the evidence of what is told."""

from __future__ import annotations

import numpy as np

from twin.calibration import F64, calibrate
from twin.errors import InputError
from twin.topology.model import Topology

_MOST_GPUS = 4096  # of more the flows of an all-to-all take longer than a sample has


def foretold(topo: Topology, load: F64) -> F64:
    """float64[2, links], share of each link's designed speed, up and down; NaN where nothing is said.

    load: float64[ports], what each sends as a share of its designed speed, NaN unknown. What the jobs send in all is
    taken from there, the model says where it should go.
    """
    nothing = np.full((2, len(topo.links.a)), np.nan)
    if not topo.jobs or len(topo.gpus.node) > _MOST_GPUS:
        return nothing
    speed = topo.links.speed
    sent = np.full(len(load), np.nan)
    for ends in (topo.links.a, topo.links.b):
        sent[ends] = load[ends] * speed / 8
    try:
        found = calibrate(topo, speed, topo.jobs, sent, np.full(len(load), np.nan))
    except InputError:  # a job without GPUs
        return nothing
    shares: F64 = found.predicted / speed
    shares[:, ~(found.predicted > 0).any(axis=0)] = np.nan  # no job comes by there, as far as the model knows
    return shares
