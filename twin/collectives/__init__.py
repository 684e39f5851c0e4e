"""Collectives: how long they take and what bus bandwidth they reach, for a machine on paper or a job on a fabric."""

from twin.collectives.formulas import (
    ALGORITHMS,
    COLLECTIVES,
    Machine,
    best,
    bus_bandwidth,
    bus_factor,
    collective_of,
    seconds,
)
from twin.collectives.job import Effect, Prediction, effect, predict, traffic
from twin.collectives.technology import Technology, nvlink, technologies

__all__ = [
    "ALGORITHMS",
    "COLLECTIVES",
    "Effect",
    "Machine",
    "Prediction",
    "Technology",
    "best",
    "bus_bandwidth",
    "bus_factor",
    "collective_of",
    "effect",
    "nvlink",
    "predict",
    "seconds",
    "technologies",
    "traffic",
]
