"""The scoreboard of detection: random faults over presets and workloads, and healthy hours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from replay.drills.lottery import LINKS, Lot, Ticket, draw
from replay.drills.lottery_gpus import GPUS
from replay.drills.lottery_power import POWER
from replay.drills.lottery_traffic import TRAFFIC
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
FABRICS: tuple[str, ...] = tuple(PRESETS)
LONG = {"meta-24k-roce"}  # its smallest has 3,072 GPUs: faults, but no hours of health
WORKLOADS: tuple[tuple[Phase, ...], ...] = (
    (Phase("allreduce", 0.8),),
    (Phase("allreduce", 0.5),),
    (Phase("alltoall", 0.6),),
    (Phase("inference", 0.4),),
    (Phase("idle"),),
)
HEALTHY_S = 1800.0  # of a healthy run
HEALTHY_WORK: tuple[Phase, ...] = (
    Phase("allreduce", 0.7), Phase("checkpoint", 0.7, at=540), Phase("allreduce", 0.7, at=600), Phase("idle", at=900),
    Phase("alltoall", 0.7, at=1080), Phase("inference", 0.7, at=1440),
)  # fmt: skip
LOTS: tuple[Lot, ...] = (*LINKS, *GPUS, *TRAFFIC, *POWER)
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
    seconds: dict[str, list[float]] = field(default_factory=dict)
    put_in: Counter[str] = field(default_factory=Counter)  # by kind
    got: Counter[str] = field(default_factory=Counter)
    healthy_seconds: float = 0.0
    false_alarms: int = 0
    wrong: list[str] = field(default_factory=list)  # what went wrong, one line each

    def add(self, other: Score) -> None:
        for name in ("faults", "found", "noticed", "raised", "right", "healthy_seconds", "false_alarms"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for kind, times in other.seconds.items():
            self.seconds.setdefault(kind, []).extend(times)
        self.put_in += other.put_in
        self.got += other.got
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
                kind: {
                    "faults": n,
                    "found": self.got[kind],
                    "seconds_to_detect": _times(sorted(self.seconds.get(kind, []))),
                }
                for kind, n in sorted(self.put_in.items())
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


Job = tuple[str, str, int, float, int, float]  # what, preset, seed, faults or seconds, at once, noise


def jobs(
    faults: int, seed: int, *, double: int = 0, healthy_seconds: float = 0.0, noise: float = 1.0,
    fabrics: Sequence[str] = FABRICS,
) -> list[Job]:  # fmt: skip
    """All that a score takes, in pieces that may run side by side."""
    out: list[Job] = [("faults", n, s, k, 1, noise) for n, s, k in runs(faults, seed, fabrics=fabrics)]
    out += [("double", n, s, k, 2, noise) for n, s, k in runs(double, seed + 7, at_once=2, fabrics=fabrics)]
    pieces = max(1, round(healthy_seconds / HEALTHY_S)) if healthy_seconds else 0
    share = healthy_seconds / pieces if pieces else 0.0
    quick: Sequence[str] = [name for name in fabrics if name not in LONG] or fabrics
    out += [("healthy", quick[i % len(quick)], seed * 100_003 + i, share, 0, noise) for i in range(pieces)]
    return out


def work(job: Job) -> tuple[str, Score]:
    """Does one piece; says which of `faults`, `double` and `healthy` it belongs to."""
    what, name, seed, amount, at_once, noise = job
    if what == "healthy":
        return what, healthy(name, seed, amount, noise=noise)
    return what, run(name, seed, int(amount), at_once=at_once, noise=noise)


def run(
    name: str, seed: int, faults: int, *, at_once: int = 1, noise: float = 1.0, lots: tuple[Lot, ...] = LOTS
) -> Score:
    """One simulated fabric with so many faults, `at_once` together, one group after the other."""
    rng = np.random.default_rng(seed)
    topo = preset(name, **SIZES.get(name, {}))
    work = WORKLOADS[int(rng.integers(len(WORKLOADS)))]
    fitting = tuple(lot for lot in lots if not (lot.busy and work[0].kind == "idle"))
    planned, t = _plan(topo, rng, faults, at_once, fitting)
    scenario = Scenario(
        name, name, SIZES.get(name, {}), work, duration=t, seed=seed,
        faults=tuple(replace(p.ticket.fault, at=p.at, until=p.until) for p in planned),
    )  # fmt: skip
    return judge(topo, planned, _incidents(scenario, topo, noise), f"{name} seed {seed}")


def healthy(name: str, seed: int, seconds: float, *, noise: float = 1.0) -> Score:
    """So long without any fault: every incident is a false alarm."""
    topo = preset(name, **SIZES.get(name, {}))
    scenario = Scenario(name, name, SIZES.get(name, {}), HEALTHY_WORK, duration=seconds, seed=seed)
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
            at = t + (float(rng.uniform(0, 8)) if group else int(rng.integers(10)))
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
        kind, form = p.ticket.kind, p.ticket.form
        put_in = f"{kind} {form}".rstrip()
        in_time = [x for x in left if x[0].kind == kind and p.at <= x[1] <= min(p.until + 5, p.at + p.ticket.within)]
        score.noticed += bool(in_time)
        score.put_in[put_in] += 1
        hit = next(
            (x for x in in_time if same_place(topo, x[0].cause, p.ticket.cause) and form in ("", x[0].class_)), None
        )
        if hit is None:
            seen = ", ".join(_named(i) for i, at, _ in told if p.at <= at <= p.until + 5) or "nothing"
            score.wrong.append(f"{what}: {put_in} {p.ticket.cause} at {p.at:.0f} s: told was {seen}")
            continue
        left.remove(hit)
        score.found += 1
        score.right += 1
        score.got[put_in] += 1
        score.seconds.setdefault(put_in, []).append(hit[1] - p.at)
    score.wrong += [f"{what}: {i.kind} {i.cause} at {at:.0f} s belongs to no fault: {i.summary}" for i, at, _ in left]
    return score


def _named(incident: Incident) -> str:
    return " ".join(filter(None, (incident.kind, incident.class_, incident.cause)))


def text(found: dict[str, Score]) -> str:
    """The scoreboard for a person: what was put in and found by kind, and every thing that went wrong."""
    lines: list[str] = []
    for what, score in found.items():
        j = score.to_json()
        if what == "healthy":
            hours = j["healthy_hours"]
            lines.append(f"healthy: {score.false_alarms} false incidents in {hours:.1f} simulated hours")
        else:
            lines.append(
                f"{what}: {score.faults} put in, precision {_share(j['precision'])}, recall {_share(j['recall'])}, "
                f"F1 {_share(j['f1'])}, cause {_share(j['cause_accuracy'])}"
            )
            if all_ := j["seconds_to_detect"]:
                lines.append(f"  time to detect: median {all_['median']:.1f} s, p99 {all_['p99']:.1f} s")
            lines.append(f"  {'kind':<28}{'faults':>8}{'found':>8}{'median':>9}{'p99':>8}")
            for kind, k in j["by_kind"].items():
                times = k["seconds_to_detect"]
                shown = f"{times['median']:>7.1f} s{times['p99']:>6.1f} s" if times else ""
                lines.append(f"  {kind:<28}{k['faults']:>8}{k['found']:>8}{shown}")
        lines += [f"  wrong: {w}" for w in score.wrong]
    return "\n".join(lines)


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
