"""The drill file: fabric, workload, faults, expectations (design, section 9)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, field_validator, model_validator

from twin.errors import InputError
from twin.simulator.scenario import ACTIONS, Fault, Job, Phase, Scenario, Workload
from twin.site import PowerSpec
from twin.topology.presets import PRESETS, check_parameters, unknown_preset
from twin.topology.short.pattern import Walk, parse, texts
from twin.units import seconds
from twin.yamlfile import Document, Strict, load

KINDS = (
    "plane_down", "plane_degraded", "plane_silent", "switch_down", "link_down", "link_flapping", "link_slow",
    "link_errors", "miscabled", "congestion", "nvlink_down", "nvlink_errors", "nvswitch_down",
    "nvlink_domain_split", "gpu_lost", "gpu_error", "gpu_throttled", "gpu_straggler", "power_headroom", "psu_down",
    "feed_down", "redundancy_lost", "power_swing", "telemetry_stale", "collector_failed",
)  # fmt: skip

Time = Annotated[float, BeforeValidator(seconds)]
Share = Annotated[float, Field(ge=0, le=1)]


def node_names(value: Any) -> Any:
    """Names and patterns of names, one or a list, written out. Raises ValueError for a pattern that is none."""
    if not isinstance(value, str | list) or not all(isinstance(v, str) for v in value):
        return value
    out: list[str] = []
    for text in [value] if isinstance(value, str) else value:
        pattern = parse(text)
        walk = Walk(pattern)
        out.extend(texts(pattern, walk.picks(pattern), walk.count))
    return out


class PhaseSpec(Strict):
    kind: Workload
    utilization: Share = 0.8
    at: Time = 0.0


class JobSpec(Strict):
    """nodes: names, or patterns of them: `n[000-015]`."""

    name: Annotated[str, Field(min_length=1, pattern=r"^[^/\s]+$")]
    nodes: Annotated[list[str], BeforeValidator(node_names), Field(min_length=1)]
    kind: Workload = "allreduce"
    utilization: Share = 0.8

    def job(self) -> Job:
        return Job(self.name, tuple(self.nodes), self.kind, self.utilization)


class FaultSpec(Strict):
    at: Time
    until: Time | None = None
    fail: str | None = None
    degrade: str | None = None
    flap: str | None = None
    silence: str | None = None
    swap: Annotated[list[str], Field(min_length=2, max_length=2)] | None = None
    mute: str | None = None
    corrupt: str | None = None
    congest: str | None = None
    hurt: str | None = None
    draw: str | None = None
    abandon: Annotated[list[str], Field(min_length=2, max_length=2)] | None = None  # a job (or `job`), a plane
    restart: str | None = None
    lag: str | None = None
    kind: str = ""
    rate: Annotated[float, Field(gt=0)] | None = None
    level: Annotated[float, Field(ge=0)] | None = None
    code: int | None = None
    late: Annotated[Time, Field(gt=0)] | None = None
    watts: Annotated[float, Field(ge=0)] | None = None
    speed_fraction: Annotated[float, Field(gt=0, lt=1)] | None = None
    capacity_fraction: Annotated[float, Field(ge=0, lt=1)] | None = None
    period: Time = 5.0
    down: Time = 1.0

    @model_validator(mode="after")
    def _sound(self) -> FaultSpec:
        chosen = [a for a in ACTIONS if getattr(self, a) is not None]
        if len(chosen) != 1:
            raise ValueError(f"expected one of {', '.join(ACTIONS)}, found {' and '.join(chosen) or 'none'}")
        if self.until is not None and self.until <= self.at:
            raise ValueError(f"until ({self.until:g} s) must come after at ({self.at:g} s)")
        if chosen == ["degrade"] and (self.speed_fraction is None) == (self.capacity_fraction is None):
            raise ValueError("degrade takes either speed_fraction or capacity_fraction")
        if (chosen == ["lag"]) != (self.late is not None):
            raise ValueError("lag takes late: by how much, as in `late: 4s`; nothing else does")
        return self

    def fault(self) -> Fault:
        action = next(a for a in ACTIONS if getattr(self, a) is not None)
        named = getattr(self, action)
        target, other = named if isinstance(named, list) else (named, "")
        return Fault(
            action, target, self.at, self.until,
            self.speed_fraction, self.capacity_fraction, self.period, self.down, other,
            self.kind, self.rate, self.level, self.code, self.late, self.watts,
        )  # fmt: skip


class ExpectSpec(Strict):
    """One expected incident, or `nothing_else: true`. Unset fields are not checked."""

    incident: str | None = None
    cause: str | None = None
    class_: Annotated[str | None, Field(alias="class")] = None
    within: Time | None = None  # of the fault that starts last before it
    severity: str | None = None
    gpus: int | None = None
    nodes: int | None = None
    bandwidth_fraction: float | None = None
    resolved_within: Time | None = None  # of the end of that fault
    nothing_else: bool | None = None

    @field_validator("incident")
    @classmethod
    def _known(cls, value: str | None) -> str | None:
        if value is not None and value not in KINDS:
            raise ValueError(f"{value!r} is not a kind of incident; expected one of {', '.join(KINDS)}")
        return value

    @model_validator(mode="after")
    def _sound(self) -> ExpectSpec:
        if (self.incident is None) == (self.nothing_else is None):
            raise ValueError("expected either incident: KIND or nothing_else: true")
        return self


class DrillSpec(Strict):
    name: str
    about: str = ""
    topology: dict[str, Any]
    power: PowerSpec = PowerSpec()
    workload: PhaseSpec | list[PhaseSpec] = PhaseSpec(kind="allreduce")
    jobs: list[JobSpec] = []
    interval: Annotated[Time, Field(gt=0)] = 1.0
    duration: Annotated[Time, Field(gt=0)] = 90.0
    seed: int = 7
    faults: list[FaultSpec] = []
    expect: list[ExpectSpec] = []


@dataclass(frozen=True)
class Expectation:
    """One incident that must be found. Times in seconds, None where it is not checked."""

    incident: str
    cause: str | None = None
    within: float | None = None
    severity: str | None = None
    gpus: int | None = None
    nodes: int | None = None
    bandwidth_fraction: float | None = None
    resolved_within: float | None = None
    class_: str | None = None


@dataclass(frozen=True)
class Drill:
    name: str
    scenario: Scenario
    expect: tuple[Expectation, ...]
    nothing_else: bool
    path: str = ""


def load_drill(path: str | Path) -> Drill:
    """A drill from its file. Raises InputError with every mistake in it."""
    document = load(path)
    spec, wrong = document.validate(DrillSpec)
    problems = [text for _, text in wrong]
    data = document.data if isinstance(document.data, dict) else {}
    topology = data.get("topology")
    if isinstance(topology, dict):
        problems.extend(_topology_problems(document, topology))
    if spec is None or problems:
        raise InputError(problems)
    phases = spec.workload if isinstance(spec.workload, list) else [spec.workload]
    if min(p.at for p in phases) > 0:
        raise InputError(document.problem(("workload",), "expected one phase that begins at 0s"))
    parameters = {k: v for k, v in spec.topology.items() if k != "preset"}
    scenario = Scenario(
        name=spec.name,
        preset=spec.topology["preset"],
        parameters=parameters,
        workload=tuple(sorted((Phase(p.kind, p.utilization, p.at) for p in phases), key=lambda p: p.at)),
        interval=spec.interval,
        duration=spec.duration,
        seed=spec.seed,
        faults=tuple(f.fault() for f in spec.faults),
        about=spec.about,
        power=spec.power.power(),
        jobs=tuple(j.job() for j in spec.jobs),
    )
    wanted = tuple(
        Expectation(**e.model_dump(exclude={"nothing_else"})) for e in spec.expect if e.incident is not None
    )
    return Drill(spec.name, scenario, wanted, any(e.nothing_else for e in spec.expect), str(path))


def _topology_problems(document: Document, topology: Mapping[str, Any]) -> list[str]:
    name = topology.get("preset")
    if name is None:
        return [document.problem(("topology",), "'preset' is missing")]
    if name not in PRESETS:
        return [document.problem(("topology", "preset"), unknown_preset(str(name)))]
    given = {k: v for k, v in topology.items() if k != "preset"}
    return [document.problem(("topology",), p) for p in check_parameters(name, given)]


def library() -> dict[str, Path]:
    """The shipped drills by name, in order."""
    folder = Path(str(files(__package__).joinpath("library")))
    return {p.stem: p for p in sorted(folder.glob("*.yaml"))}


def find_drill(name: str) -> Path:
    """A file, or the shipped drill of that name."""
    shipped = library()
    if Path(name).exists():
        return Path(name)
    if name in shipped:
        return shipped[name]
    raise InputError(f"{name}: no such file, nor a shipped drill; shipped are {', '.join(shipped)}")
