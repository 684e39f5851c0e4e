"""The scoreboard of detection: random faults over presets and workloads, and healthy hours."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from replay.drills.lottery import LOTS, Lot, Ticket, draw
from replay.drills.runner import same_place
from twin.frames import NS
from twin.incident import Incident
from twin.simulator.scenario import Phase, Scenario
from twin.simulator.simulation import Simulation
from twin.topology.model import Topology
from twin.topology.presets import PRESETS, preset
from twin.twin import Twin

# Small fabrics of every shape, so that hundreds of faults take minutes: what is found does not depend on the size.
SIZES: dict[str, dict[str, int]] = {
    "hgx-b200": {"nodes": 16}, "hgx-h100": {"nodes": 16}, "vera-rubin-spectrum6": {"racks": 1},
    "mrc-8plane": {"racks": 1}, "deepseek-mpft": {"nodes": 32},
}  # fmt: skip
TOO_LARGE = {"meta-24k-roce"}  # its smallest has 3,072 GPUs
FABRICS: tuple[str, ...] = tuple(name for name in PRESETS if name not in TOO_LARGE)
WORKLOADS: tuple[tuple[Phase, ...], ...] = (
    (Phase("allreduce", 0.8),),
    (Phase("allreduce", 0.5),),
    (Phase("alltoall", 0.6),),
    (Phase("idle"),),
)
FIRST_S, REST_S = 15.0, 25.0  # before the first fault, and between two
EACH = 4  # faults of one run, one after the other


@dataclass(frozen=True, slots=True)
class Planned:
    """A fault that was put in, with its times in seconds."""

    ticket: Ticket
    at: float
    until: float


@dataclass(slots=True)
class Score:
    """What became of faults and of healthy time. seconds: to detection, by kind, of the faults that were found."""

    faults: int = 0
    found: int = 0  # kind and cause right, in time
    noticed: int = 0  # some incident of the right kind
    raised: int = 0  # incidents told while faults were about
    right: int = 0  # of those, belonging to a fault
    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    by_kind: dict[str, list[int]] = field(default_factory=lambda: defaultdict(lambda: [0, 0]))  # put in, found
    healthy_seconds: float = 0.0
    false_alarms: int = 0
    wrong: list[str] = field(default_factory=list)  # what went wrong, one line each

    def add(self, other: Score) -> None:
        for name in ("faults", "found", "noticed", "raised", "right", "healthy_seconds", "false_alarms"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for kind, times in other.seconds.items():
            self.seconds[kind] += times
        for kind, (put, got) in other.by_kind.items():
            self.by_kind[kind][0] += put
            self.by_kind[kind][1] += got
        self.wrong += other.wrong

    def to_json(self) -> dict[str, Any]:
        precision = self.right / self.raised if self.raised else None
        recall = self.found / self.faults if self.faults else None
        both = precision is not None and recall is not None and precision + recall > 0
        times = sorted(t for kind in self.seconds.values() for t in kind)
        return {
            "faults": self.faults,
            "precision": precision,
            "recall": recall,
            "f1": 2 * precision * recall / (precision + recall) if both else None,  # type: ignore[operator]
            "cause_accuracy": self.found / self.noticed if self.noticed else None,
            "seconds_to_detect": _times(times),
            "by_kind": {
                kind: {"faults": put, "found": got, "seconds_to_detect": _times(sorted(self.seconds.get(kind, [])))}
                for kind, (put, got) in sorted(self.by_kind.items())
            },
            "healthy_hours": self.healthy_seconds / 3600,
            "false_incidents": self.false_alarms,
            "wrong": self.wrong,
        }


def _times(times: Sequence[float]) -> dict[str, float] | None:
    if not times:
        return None
    return {"median": float(np.median(times)), "p99": float(np.percentile(times, 99)), "max": float(times[-1])}


def runs(
    faults: int, seed: int, *, at_once: int = 1, fabrics: Sequence[str] = FABRICS
) -> Iterator[tuple[str, int, int]]:
    """What to run for so many faults: (preset, seed of the run, faults in it), the fabrics in turn."""
    left, i = faults, 0
    while left > 0:
        count = min(left, EACH * at_once)
        yield fabrics[i % len(fabrics)], seed * 100_003 + i, count
        left, i = left - count, i + 1


def run(
    name: str, seed: int, faults: int, *, at_once: int = 1, noise: float = 1.0, lots: tuple[Lot, ...] = LOTS
) -> Score:
    """One simulated fabric with so many faults, `at_once` together, one group after the other."""
    rng = np.random.default_rng(seed)
    topo = preset(name, **SIZES.get(name, {}))
    planned, t = _plan(topo, rng, faults, at_once, lots)
    scenario = Scenario(
        name, name, SIZES.get(name, {}), WORKLOADS[int(rng.integers(len(WORKLOADS)))], duration=t,
        seed=seed, faults=tuple(replace(p.ticket.fault, at=p.at, until=p.until) for p in planned),
    )  # fmt: skip
    return judge(topo, planned, _incidents(scenario, topo, noise), f"{name} seed {seed}")


def healthy(name: str, seed: int, seconds: float, *, noise: float = 1.0) -> Score:
    """So long without any fault: every incident is a false alarm."""
    topo = preset(name, **SIZES.get(name, {}))
    work = (Phase("allreduce", 0.8), Phase("idle", at=seconds * 0.4), Phase("alltoall", 0.6, at=seconds * 0.6))
    scenario = Scenario(name, name, SIZES.get(name, {}), work, duration=seconds, seed=seed)
    told = _incidents(scenario, topo, noise)
    return Score(
        healthy_seconds=seconds,
        false_alarms=len(told),
        wrong=[f"{name} seed {seed}: false {i.kind} {i.cause}: {i.summary}" for i, _, _ in told],
    )


def _plan(
    topo: Topology, rng: np.random.Generator, faults: int, at_once: int, lots: tuple[Lot, ...]
) -> tuple[list[Planned], float]:
    planned: list[Planned] = []
    t = FIRST_S
    while len(planned) < faults:
        group: list[Planned] = []
        taken: frozenset[str] = frozenset()
        for _ in range(min(at_once, faults - len(planned))):
            ticket = draw(topo, rng, lots, taken)
            if ticket is None:
                break
            at = t + float(rng.uniform(0, 8)) * (len(group) > 0)
            group.append(Planned(ticket, at, at + ticket.lasts))
            taken |= ticket.place
        if not group:
            break
        planned += group
        t = max(p.until for p in group) + REST_S
    return planned, t


def _incidents(scenario: Scenario, topo: Topology, noise: float) -> list[tuple[Incident, float, float]]:
    """Incidents that no other took over, with their times of detection and end in seconds."""
    simulation = Simulation(scenario, topo, noise=noise)
    twin = Twin(topo)
    twin.ingest_all(simulation.frames())
    twin.finish()
    end = scenario.duration
    return [
        (i, (i.detected - simulation.start) / NS, (i.resolved - simulation.start) / NS if i.resolved else end)
        for i in twin.incidents
        if i.superseded_by is None
    ]


def judge(topo: Topology, planned: list[Planned], told: list[tuple[Incident, float, float]], what: str) -> Score:
    """Which incidents belong to which faults. Each tells one fault at most."""
    score = Score(faults=len(planned), raised=len(told))
    left = list(told)
    for p in planned:
        kind = p.ticket.kind
        in_time = [x for x in left if x[0].kind == kind and p.at <= x[1] <= min(p.until + 5, p.at + p.ticket.within)]
        score.noticed += bool(in_time)
        score.by_kind[kind][0] += 1
        hit = next((x for x in in_time if same_place(topo, x[0].cause, p.ticket.cause)), None)
        if hit is None:
            seen = ", ".join(f"{i.kind} {i.cause}" for i, at, _ in told if p.at <= at <= p.until + 5) or "nothing"
            score.wrong.append(f"{what}: {kind} {p.ticket.cause} at {p.at:.0f} s: told was {seen}")
            continue
        left.remove(hit)
        score.found += 1
        score.right += 1
        score.by_kind[kind][1] += 1
        score.seconds[kind].append(hit[1] - p.at)
    score.wrong += [f"{what}: {i.kind} {i.cause} at {at:.0f} s belongs to no fault: {i.summary}" for i, at, _ in left]
    return score
