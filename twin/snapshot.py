"""Snapshot: the twin at one moment, immutable, for screens and reports. Arrays are copies and never change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import nan

import numpy as np
import numpy.typing as npt

from twin.incident import Incident
from twin.topology.model import Topology

F64 = npt.NDArray[np.float64]
UP, DOWN, UNKNOWN = 1, 0, -1


@dataclass(frozen=True, slots=True)
class PlaneView:
    """One plane. capacity_fraction: what is left of the designed host bandwidth, 0 to 1.

    used_fraction: traffic sent by hosts as a share of the designed bandwidth, NaN where unknown.
    known_fraction: the share of its links whose state is known.
    """

    plane: str
    capacity_fraction: float
    used_fraction: float
    known_fraction: float
    links: int
    links_down: int
    links_slow: int
    tx_bits_per_second: float
    capacity_bits_per_second: float


@dataclass(frozen=True, slots=True)
class PowerView:
    """The site (last), racks, feeds and nodes with supplies, one row each, in W; NaN where unknown.

    kinds: `rack`, `feed`, `node` or `site`. capacity: what is in service. headroom: capacity less load, below zero it
    trips; after_loss: when one more unit (a feed, a supply) is lost. lost: how many of its units give nothing.
    """

    names: tuple[str, ...]
    kinds: tuple[str, ...]
    watts: F64
    capacity: F64
    headroom: F64
    after_loss: F64
    lost: npt.NDArray[np.intp]


_NONE = np.zeros(0)
NO_POWER = PowerView((), (), _NONE, _NONE, _NONE, _NONE, np.zeros(0, np.intp))


@dataclass(frozen=True, slots=True)
class SourceView:
    """One source of frames. state: `ok`, `late` (it answers, with old readings or slowly), `stale` or `failed`.

    age_seconds: since its newest reading was taken. delay_seconds: how old that was when it came. duration_seconds:
    of its last collection. clock_offset_seconds: how far its clock is ahead of ours, behind is below zero; skewed
    where that is more than the rule `clock_offset`. All are NaN where unknown.
    """

    name: str
    state: str
    age_seconds: float
    interval_seconds: float
    failures: int
    entities: int
    frames: int
    delay_seconds: float = nan
    duration_seconds: float = nan
    clock_offset_seconds: float = nan
    skewed: bool = False


@dataclass(frozen=True, slots=True)
class Event:
    """Something that was said at a time: `opened`, `changed`, `recovering`, `reopened`, `resolved`, `superseded`."""

    time: int
    what: str
    incident: Incident


@dataclass(frozen=True, slots=True)
class History:
    """The last minutes, one row an evaluation. time: int64[t]; used, capacity: float64[t, planes]."""

    time: npt.NDArray[np.int64]
    used: F64
    capacity: F64
    open_incidents: npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """time: event time of the evaluation it shows, nanoseconds; `version` grows by one with each."""

    topology: Topology
    time: int
    version: int
    planes: tuple[PlaneView, ...]
    gpu_bandwidth: F64  # [gpus], share of the designed network bandwidth that is left
    link_state: npt.NDArray[np.int8]  # [links], UP, DOWN or UNKNOWN
    link_speed: F64  # [links], bits/s now (0 down, NaN unknown)
    link_load: F64  # [links], busier direction as a share of the designed speed, NaN unknown
    port_age: F64  # [ports], seconds since the last reading, NaN never
    port: Mapping[str, F64]  # metric -> [ports]; counters as rates a second
    gpu: Mapping[str, F64]  # metric -> [gpus]; counters as rates a second
    gpu_age: F64  # [gpus], seconds
    incidents: tuple[Incident, ...]  # open first, by severity and age, then resolved, newest first
    sources: tuple[SourceView, ...]
    events: tuple[Event, ...]  # the last 200, oldest first
    history: History
    power: PowerView = NO_POWER
    node: Mapping[str, F64] = field(default_factory=dict)  # metric -> [nodes]
    psu: Mapping[str, F64] = field(default_factory=dict)  # metric -> [psus]
    feed: Mapping[str, F64] = field(default_factory=dict)  # metric -> [feeds]
    nvlink: Mapping[str, F64] = field(default_factory=dict)  # `up`, `errors` a second -> [nvlinks], where reported
    age: Mapping[str, F64] = field(default_factory=dict)  # kind (node, psu, feed, nvlink) -> seconds, NaN never
