"""Scenario: which fabric, which work, which faults, for how long."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from twin.topology.sitepower import SitePower

# allreduce, alltoall: a collective in lockstep. inference: each node serves requests of its own. checkpoint: all
# store what they have and wait for it.
Workload = Literal["allreduce", "alltoall", "inference", "checkpoint", "idle"]
WORKLOADS: tuple[Workload, ...] = get_args(Workload)
Action = Literal[
    "fail", "degrade", "flap", "silence", "swap", "mute", "corrupt", "congest", "hurt", "draw", "abandon", "restart",
    "lag",
]  # fmt: skip
ACTIONS: tuple[Action, ...] = get_args(Action)


@dataclass(frozen=True, slots=True)
class Phase:
    """Work from `at` seconds on. utilization: share of a GPU's network bandwidth that it asks for, 0 to 1."""

    kind: Workload
    utilization: float = 0.8
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class Job:
    """Work on some nodes only, by their names, at all times but those of idle phases."""

    name: str
    nodes: tuple[str, ...]
    kind: Workload = "allreduce"
    utilization: float = 0.8


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that breaks at `at` seconds and, unless `until` is None, is mended then.

    degrade: speed_fraction makes links slow, capacity_fraction takes part of a plane's or switch's links away.
    flap: down for `down` seconds of every `period`. silence: its telemetry stops, nothing else; of kind `failed` its
    collector says so itself. swap: the cables of `target` and `other` change places at their upper ends. mute: links
    are up and carry nothing. corrupt: `rate` errors a second. congest: congestion of class `kind` at `target`,
    `level` 0 to 1. hurt: what `kind` says happens to a GPU (`code`: its XID). draw: power of nodes times `level`, by
    `kind` at once, as a ramp or a swing. abandon: a job leaves plane `other`. restart: counters begin anew, of a node
    at once, of a switch when it comes back at `until`. lag: readings come `late` seconds after they were taken.
    """

    action: Action
    target: str
    at: float
    until: float | None = None
    speed_fraction: float | None = None
    capacity_fraction: float | None = None
    period: float = 5.0
    down: float = 1.0
    other: str = ""
    kind: str = ""
    rate: float | None = None
    level: float | None = None
    code: int | None = None
    late: float | None = None
    watts: float | None = None


@dataclass(frozen=True)
class Scenario:
    """preset and parameters name the fabric; times are seconds from the start. jobs: nodes without one are idle;
    where none is named the workload is one job over everything."""

    name: str
    preset: str
    parameters: Mapping[str, int] = field(default_factory=dict)
    workload: tuple[Phase, ...] = (Phase("allreduce"),)
    interval: float = 1.0
    duration: float = 90.0
    seed: int = 7
    faults: tuple[Fault, ...] = ()
    about: str = ""
    jobs: tuple[Job, ...] = ()
    power: SitePower | None = None  # what a site says of power that the preset does not


DEMO = Scenario(
    name="demo",
    about="a plane fails and recovers, a leaf dies, a link runs slow, a spine link drops",
    preset="b300-superpod-ethernet",
    workload=(Phase("allreduce", 0.8),),
    duration=75.0,
    faults=(
        Fault("fail", "plane:B", at=10, until=26),
        Fault("fail", "A-leaf-03", at=36, until=52),
        Fault("degrade", "n012/nic5/p0", at=44, until=66, speed_fraction=0.5),
        Fault("fail", "A-leaf-06/p70", at=56, until=66),
    ),
)
