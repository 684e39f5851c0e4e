"""Runs a drill: simulates it, lets the twin judge, and compares what it said with what was expected."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from replay.drills.file import Drill, Expectation
from twin.errors import InputError
from twin.frames import NS
from twin.incident import Incident
from twin.simulator.scenario import Fault
from twin.simulator.simulation import Simulation
from twin.topology.model import Topology
from twin.twin import Twin

_TOLERANCE = 1e-3  # of a bandwidth fraction


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one expectation. missed: what was not as expected, empty when it was met."""

    expectation: Expectation
    incident: Incident | None
    detected_after: float | None  # seconds after its fault
    resolved_after: float | None
    missed: tuple[str, ...]

    @property
    def met(self) -> bool:
        return not self.missed


@dataclass(frozen=True)
class Result:
    drill: Drill
    outcomes: tuple[Outcome, ...]
    unexpected: tuple[Incident, ...]
    incidents: tuple[Incident, ...]
    start: int  # ns, when the simulation began

    @property
    def passed(self) -> bool:
        return all(o.met for o in self.outcomes) and not (self.drill.nothing_else and self.unexpected)

    def to_json(self) -> dict[str, Any]:
        """The form of the design, section 8."""
        return {
            "name": self.drill.name,
            "passed": self.passed,
            "expectations": [
                {
                    "incident": o.expectation.incident,
                    "cause": o.expectation.cause,
                    "met": o.met,
                    "detected_after_seconds": o.detected_after,
                    "resolved_after_seconds": o.resolved_after,
                    "missed": list(o.missed),
                }
                for o in self.outcomes
            ],
            "unexpected": [i.to_json() for i in self.unexpected],
        }

    def to_text(self) -> str:
        """The result for a person: a line a drill, and for a failed one what was expected and what was seen."""
        lines = [f"{'PASS' if self.passed else 'FAIL'}  {self.drill.name}"]
        for o in self.outcomes:
            e = o.expectation
            took = "" if o.detected_after is None else f"  found after {o.detected_after:.1f} s"
            lines.append(f"  {'ok ' if o.met else 'NOT'} {e.incident} {e.cause or ''}{took}".rstrip())
            lines.extend(f"        {text}" for text in o.missed)
        for i in self.unexpected:
            at = (i.detected - self.start) / NS
            mark = "NOT" if self.drill.nothing_else else " · "
            lines.append(f"  {mark} unexpected {i.kind} {i.cause} at {at:.1f} s: {i.summary}")
        return "\n".join(lines)


def run_drill(drill: Drill, *, noise: float = 1.0) -> Result:
    """Runs a drill from start to end. Raises InputError where a fault names something that is not there."""
    try:
        simulation = Simulation(drill.scenario, noise=noise)
    except InputError as problem:
        raise InputError([f"{drill.path or drill.name}: {p}" for p in problem.problems]) from problem
    twin = Twin(simulation.topology)
    twin.ingest_all(simulation.frames())
    twin.finish()
    return judge(drill, twin.incidents, simulation.start, simulation.topology)


def judge(drill: Drill, incidents: tuple[Incident, ...], start: int, topo: Topology) -> Result:
    """Compares incidents with expectations; each incident meets one expectation at most."""
    left = list(incidents)
    outcomes = []
    for expectation in drill.expect:
        found = _pick(expectation, left, topo)
        if found is not None:
            left.remove(found)
        outcomes.append(_outcome(drill, expectation, found, start))
    expected = {o.incident.id for o in outcomes if o.incident is not None}
    unexpected = tuple(i for i in left if i.superseded_by not in expected)  # taken over: the same trouble
    return Result(drill, tuple(outcomes), unexpected, incidents, start)


def _pick(expectation: Expectation, incidents: list[Incident], topo: Topology) -> Incident | None:
    """The incident of that kind and cause, else the first of that kind when no cause was named."""
    same = [i for i in incidents if i.kind == expectation.incident]
    if expectation.cause is None:
        return same[0] if same else None
    return next((i for i in same if same_place(topo, i.cause, expectation.cause)), None)


def same_place(topo: Topology, cause: str, expected: str) -> bool:
    """Whether two addresses name the same thing: a link is also named by either of its ends."""
    if cause == expected:
        return True
    ports = topo.rows("port")

    def link(address: str) -> int:
        row = ports.get(address.split("--")[0])
        return -1 if row is None else int(topo.ports.link[row])

    return link(cause) >= 0 and link(cause) == link(expected)


def _outcome(drill: Drill, e: Expectation, found: Incident | None, start: int) -> Outcome:
    if found is None:
        return Outcome(e, None, None, None, (f"expected {e.incident} {e.cause or ''}, nothing was raised".rstrip(),))
    detected = (found.detected - start) / NS
    fault = _fault_of(drill.scenario.faults, e, detected)
    after = detected - fault.at if fault else detected
    resolved = None
    if found.resolved is not None and fault is not None and fault.until is not None:
        resolved = (found.resolved - start) / NS - fault.until
    missed = []
    if e.within is not None and after > e.within:
        missed.append(f"found after {after:.1f} s, expected within {e.within:g} s")
    if e.class_ is not None and found.class_ != e.class_:
        missed.append(f"class {found.class_ or 'none'}, expected {e.class_}")
    if e.severity is not None and found.severity != e.severity:
        missed.append(f"severity {found.severity}, expected {e.severity}")
    if e.gpus is not None and found.affected.gpus != e.gpus:
        missed.append(f"{found.affected.gpus} GPUs affected, expected {e.gpus}")
    if e.nodes is not None and found.affected.nodes != e.nodes:
        missed.append(f"{found.affected.nodes} nodes affected, expected {e.nodes}")
    share = found.effect.get("bandwidth_fraction")
    if e.bandwidth_fraction is not None and (share is None or abs(share - e.bandwidth_fraction) > _TOLERANCE):
        missed.append(f"bandwidth_fraction {share}, expected {e.bandwidth_fraction:g}")
    if e.resolved_within is not None:
        if resolved is None:
            missed.append(f"not resolved, expected within {e.resolved_within:g} s of the end of the fault")
        elif resolved > e.resolved_within:
            missed.append(f"resolved after {resolved:.1f} s, expected within {e.resolved_within:g} s")
    return Outcome(e, found, after, resolved, tuple(missed))


def _fault_of(faults: tuple[Fault, ...], e: Expectation, detected: float) -> Fault | None:
    """The fault an incident answers: of the same target where there is one, else the last to begin before it."""
    begun = [f for f in faults if f.at <= detected]
    same = [f for f in begun if e.cause is not None and (f.target == e.cause or f.target in e.cause.split("--"))]
    return max(same or begun, key=lambda f: f.at, default=None)
