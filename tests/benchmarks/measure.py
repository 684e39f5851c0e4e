"""Medians of repeated runs."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable


def median_seconds(work: Callable[[], object], runs: int = 7) -> float:
    """Median wall time of `work`, after one run that is not counted."""
    work()
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def compare(name: str, ours: float, peer_name: str, peer: float) -> str:
    return f"{name}: {ours * 1e3:8.2f} ms   {peer_name}: {peer * 1e3:8.2f} ms   ratio {ours / peer:.3f}"
