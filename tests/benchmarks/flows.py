"""Rates and completion times of flows."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial

import numpy as np

from tests.benchmarks.measure import median_seconds
from tests.rigs import simgrid_rig
from tests.twin.random_fabric import random_fabric
from twin.flows import completion_times, max_min


def run() -> Iterator[str]:
    """One solve on two and three tiers, and all completions at 8,192 hosts beside SimGrid (minutes)."""
    two = random_fabric(8192, leaf=64, pod=8192, spines=32, seed=1)
    three = random_fabric(102_400, leaf=32, pod=1024, spines=32, cores=32, seed=1)
    for name, traffic in (("8,192 flows, two tiers", two), ("102,400 flows, three tiers", three)):
        routes, capacity = traffic.routes, np.array(traffic.capacity)
        seconds = median_seconds(partial(max_min, routes, capacity), 15)
        yield f"max-min rates, {name}: {seconds * 1e3:.2f} ms"
    start = time.perf_counter()
    ours = completion_times(two.routes, np.array(two.capacity), np.array(two.size, np.float64))
    seconds = time.perf_counter() - start
    if not simgrid_rig.installed():
        yield f"8,192 completions: {seconds:.2f} s (no SimGrid here: apt-get install python3-simgrid)"
        return
    theirs = simgrid_rig.transfers(two.paths, two.capacity, two.size)
    apart = np.abs(ours / np.array(theirs.times) - 1).max()
    yield (
        f"8,192 completions: {seconds:.2f} s   SimGrid: {theirs.seconds:.2f} s   "
        f"ratio {theirs.seconds / seconds:.0f}   furthest apart {apart:.1e}"
    )
