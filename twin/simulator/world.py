"""What the parts of a simulation share: the moment, the faults under way, and the readings they give."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from twin.simulator.scenario import Fault, Phase
from twin.simulator.traffic import Flow
from twin.topology.model import Topology
from twin.topology.resolve import Target

F64 = npt.NDArray[np.float64]
Rows = npt.NDArray[np.intp]


@dataclass(slots=True)
class Active:
    """A fault under way. age: seconds since it began."""

    fault: Fault
    target: Target
    age: float


@dataclass(slots=True)
class World:
    """One interval of simulated time, from `t` seconds on. Arrays are over all entities of a kind, in row order.

    up, speed: of each port (NaN without a cable; speed also while down). flow: load of the ports, pace of the GPUs.
    dead: nodes and switches without power. restarted: those that came back now, with their counters at zero.
    """

    topo: Topology
    noise: dict[str, float]
    t: float
    interval: float
    phase: Phase
    active: list[Active]
    link_speed: F64
    up: F64
    speed: F64
    flow: Flow
    dead: set[str]
    restarted: set[str]
    restarted_ports: Rows
    fell: Rows  # ports whose link went down now
    signals: Signals

    def faults(self, *actions: str) -> Iterator[Active]:
        """Those under way with one of these actions."""
        return (a for a in self.active if a.fault.action in actions)


@dataclass(slots=True)
class Signals:
    """Readings by kind and metric: a gauge, or a counter at the begin of the interval with its rate a second."""

    gauges: dict[str, dict[str, F64]] = field(default_factory=dict)
    counters: dict[str, dict[str, tuple[F64, F64]]] = field(default_factory=dict)

    def gauge(self, kind: str, metric: str, value: F64) -> None:
        self.gauges.setdefault(kind, {})[metric] = value

    def counter(self, kind: str, metric: str, value: F64, rate: F64) -> None:
        self.counters.setdefault(kind, {})[metric] = (value, rate)


class Channel(Protocol):
    """A part of the simulation: what it breaks and which readings it gives. `step` comes once an interval."""

    def step(self, world: World) -> None: ...


class Counter:
    """A counter of every entity of a kind: what it stands at, and how it goes on."""

    def __init__(self, kind: str, metric: str, start: F64) -> None:
        self.kind, self.metric, self.value = kind, metric, start

    def go(self, world: World, rate: F64) -> None:
        """Gives this interval's readings and moves on."""
        world.signals.counter(self.kind, self.metric, self.value.copy(), rate)
        self.value += rate * world.interval
