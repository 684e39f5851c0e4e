"""Frames into the twin."""

from __future__ import annotations

import time
from collections.abc import Iterator

from tests.benchmarks.measure import compare
from twin.frames import Frame
from twin.simulator.scenario import Scenario
from twin.simulator.simulation import Simulation
from twin.twin import Twin

SECONDS = 8


def by_hand(frames: list[Frame]) -> dict[str, dict[str, tuple[int, float, float]]]:
    """The peer: every value of every entity kept in dictionaries, counters to rates, one by one."""
    state: dict[str, dict[str, tuple[int, float, float]]] = {}
    for frame in frames:
        for metric, column in frame.columns.items():
            table = state.setdefault(metric, {})
            for name, value in zip(frame.names, column.tolist(), strict=True):
                time_before, before, _ = table.get(name, (0, 0.0, 0.0))
                table[name] = (frame.time, value, (value - before) / max(frame.time - time_before, 1))
    return state


def run() -> Iterator[str]:
    """One second of a fabric at 1 Hz through state and detectors, beside plain dictionaries without detectors."""
    for units in (1, 16):
        scenario = Scenario("bench", "b300-superpod-ethernet", {"scalable_units": units}, duration=float(SECONDS))
        simulation = Simulation(scenario)
        frames = list(simulation.frames())
        twin = Twin(simulation.topology)
        first = len(frames) // SECONDS
        twin.ingest_all(frames[:first])
        start = time.perf_counter()
        twin.ingest_all(frames[first:])
        twin.finish()
        ours = (time.perf_counter() - start) / (SECONDS - 1)
        start = time.perf_counter()
        by_hand(frames[first:])
        peer = (time.perf_counter() - start) / (SECONDS - 1)
        gpus = len(simulation.topology.gpus.node)
        yield compare(f"{gpus} GPUs, {first} frames a second", ours, "dictionaries", peer)
        start = time.perf_counter()
        twin.snapshot()
        yield f"   snapshot {1e3 * (time.perf_counter() - start):.2f} ms"
