"""What detectors judge: the state of one evaluation, and how they look at it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from twin.capacity import Capacity
from twin.detectors.finding import Finding
from twin.linkstate import LinkState
from twin.sources import Sources
from twin.state import KindState
from twin.topology.model import Topology

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Scene:
    """One evaluation at event time `now` (ns). Arrays are over all entities of a kind, in row order."""

    now: int
    topo: Topology
    links: LinkState
    capacity: Capacity
    sources: Sources
    table: Callable[[str], KindState]

    def fresh(self, kind: str, metric: str) -> F64:
        """A gauge, or the rate a second of a counter; NaN where unknown, and where its source has fallen silent."""
        table = self.table(kind)
        series = table.get(metric)
        if series is None:
            return np.full(table.n, np.nan)
        return np.where(self.now - series.time <= self.sources.patience()[series.owner], series.value, np.nan)

    def time(self, kind: str, metric: str) -> I64:
        """Event time of the last reading, 0 for none."""
        table = self.table(kind)
        series = table.get(metric)
        return np.zeros(table.n, np.int64) if series is None else series.time

    def heard(self, kind: str, metric: str) -> bool:
        """Whether anybody reports this metric at all."""
        return self.table(kind).get(metric) is not None


class Detector(Protocol):
    """One question asked of every scene. It may remember what it saw; a fork of the twin copies it."""

    def findings(self, scene: Scene) -> list[Finding]: ...


class Lasting:
    """How long a condition has held for each entity: event time of the first reading that showed it, 0 while not.

    Unknown (NaN) neither starts nor ends it.
    """

    def __init__(self, n: int) -> None:
        self.since = np.zeros(n, np.int64)

    def note(self, holds: F64, time: I64) -> I64:
        """holds: 1, 0 or NaN of each entity; time: of its reading. Returns int64[n], since when."""
        begins = (holds == 1) & (self.since == 0)
        self.since[begins] = np.maximum(time[begins], 1)
        self.since[holds == 0] = 0
        return self.since.copy()
