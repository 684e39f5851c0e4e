"""Completion times against SimGrid, an event simulator of thirty years' standing."""

from __future__ import annotations

import numpy as np
import pytest

from tests.rigs import simgrid_rig
from tests.twin.random_fabric import random_fabric
from twin.flows import completion_times


@pytest.mark.service("python3-simgrid")
@pytest.mark.parametrize(
    ("hosts", "leaf", "spines", "flows"), [(64, 8, 4, 64), (512, 32, 16, 512), (8192, 64, 32, 4096)]
)
def test_transfers_on_random_two_tier_fabrics_end_when_simgrid_says(
    hosts: int, leaf: int, spines: int, flows: int
) -> None:
    """At 8,192 hosts half of them send, as SimGrid takes minutes for all; the benchmark compares all."""
    traffic = random_fabric(hosts, leaf=leaf, pod=hosts, spines=spines, seed=hosts, flows=flows)
    theirs = simgrid_rig.transfers(traffic.paths, traffic.capacity, traffic.size)
    ours = completion_times(traffic.routes, np.array(traffic.capacity), np.array(traffic.size, np.float64))
    assert ours == pytest.approx(np.array(theirs.times), rel=1e-6)
    assert len(np.unique(ours)) > flows / 2, "transfers end at many different times"
