"""What-ifs on 8,192 GPUs: one failure, every single switch, pairs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial

from tests.benchmarks.measure import median_seconds
from twin.topology.presets import preset
from twin.whatif import Change, WhatIf, pairs, singles


def run() -> Iterator[str]:
    """one failure at 8,192 GPUs, and sweeps of all 384 switches of 16 scalable units"""
    topo = preset("b300-superpod-ethernet", scalable_units=16)
    start = time.perf_counter()
    whatif = WhatIf(topo)
    yield f"made, with what holds before: {(time.perf_counter() - start) * 1e3:.0f} ms"
    for address in ("A-leaf-003", "A-spine-00", "plane:B", "n0012", "n0012/nic3/p0", "n0012/gpu3"):
        start = time.perf_counter()
        whatif.ask(Change(fail=(address,)))
        first = time.perf_counter() - start
        again = median_seconds(partial(whatif.ask, Change(fail=(address,))), 5)
        yield f"{address:<14} fails: {again * 1e3:6.1f} ms   asked for the first time {first * 1e3:6.1f} ms"
    for sweep, what in ((singles, "every switch"), (pairs, "pairs of switches")):
        start = time.perf_counter()
        found = sweep(whatif, "switches")
        yield f"{what}: {len(found.outcomes):,} in {time.perf_counter() - start:.2f} s"
