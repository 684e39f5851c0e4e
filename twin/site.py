"""The site file: which fabric, which sources, which thresholds (design, section 5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from twin.detectors.rules import Rules
from twin.errors import InputError
from twin.maintenance import Window, event_time, window
from twin.power import CONTINUOUS, breaker_watts
from twin.sitespecs import AgentSpec, CollectorSpec, Spec
from twin.topology.model import Topology
from twin.topology.presets import PRESETS, check_parameters, preset, unknown_preset
from twin.topology.sitepower import SitePower, with_power
from twin.topology.wiring import Accept, read_wiring
from twin.units import bits_per_second
from twin.yamlfile import Document, Strict, load

if TYPE_CHECKING:
    from twin.topology.importers.combine import Request

Files = str | dict[str, str] | None
Speed = Annotated[float, BeforeValidator(bits_per_second)]


class DiscoverSpec(Strict):
    """Files to take the wiring from: one source of the fabric, and what single hosts say beside it.

    Several files have a name each: the plane for ibnetdiscover, the host or a pattern for others.
    """

    model_config = ConfigDict(extra="forbid", alias_generator=lambda name: name.replace("_", "-"))

    ibnetdiscover: Files = None
    lldp: Files = None
    air: str | None = None
    spectrum_x: str | None = None
    netq: str | None = None
    slurm: str | None = None
    topograph: str | None = None
    containerlab: str | None = None
    nvidia_smi: Files = None
    nccl: Files = None
    nvml: Files = None
    link_speed: Speed | None = None
    gpus_per_node: int | None = None
    gpu_model: str | None = None

    def request(self, here: Path) -> Request:
        """What to read, with file names relative to `here`."""
        from twin.topology.importers.combine import Request
        from twin.topology.importers.sketch import Sizes

        sources: dict[str, list[str]] = {}
        for name in type(self).model_fields:
            value = getattr(self, name)
            if name not in ("link_speed", "gpus_per_node", "gpu_model") and value is not None:
                named = value.items() if isinstance(value, dict) else [("", value)]
                files = [f"{who}={here / file}" if who else str(here / file) for who, file in named]
                sources[name.replace("_", "-")] = files
        return Request(sources, Sizes(self.link_speed, self.gpus_per_node, self.gpu_model))


class BreakerSpec(Strict):
    """What protects a feed: volts between lines where it has three phases, and how much of it may be used."""

    volts: Annotated[float, Field(gt=0)]
    amps: Annotated[float, Field(gt=0)]
    phases: Literal[1, 3] = 1
    continuous: Annotated[float, Field(gt=0, le=1)] = CONTINUOUS


class PowerSpec(Strict):
    """What racks get where the wiring says nothing: two feeds, of so many watts or behind such a breaker."""

    rack_feed_watts: Annotated[float, Field(gt=0)] | None = None
    breaker: BreakerSpec | None = None
    redundancy: Annotated[str, Field(pattern=r"^(none|N|[Nn]\+([0-9]+|[Nn]))$")] = "none"
    site_watts: Annotated[float, Field(gt=0)] | None = None

    @model_validator(mode="after")
    def _one(self) -> PowerSpec:
        if self.rack_feed_watts is not None and self.breaker is not None:
            raise ValueError("expected either rack_feed_watts or breaker")
        return self

    def power(self) -> SitePower:
        """In watts that may be drawn continuously."""
        watts, b = self.rack_feed_watts, self.breaker
        if b is not None:
            watts = breaker_watts(b.volts, b.amps, b.phases, b.continuous)
        return SitePower(watts, self.redundancy, self.site_watts)


class MaintenanceSpec(Strict):
    """Announced work: incidents that lie in `what` are kept apart from `from` until `until`."""

    what: str
    start: Annotated[int, BeforeValidator(event_time), Field(alias="from")]
    until: Annotated[int, BeforeValidator(event_time)]
    why: str = ""

    @model_validator(mode="after")
    def _sound(self) -> MaintenanceSpec:
        if self.until <= self.start:
            raise ValueError("until must come after from")
        return self


class SiteFile(Strict):
    name: str = ""
    topology: dict[str, Any]
    planes: dict[str, dict[str, Any] | None] = {}
    power: PowerSpec = PowerSpec()
    collectors: list[CollectorSpec] = []
    agent: AgentSpec = AgentSpec()
    alerts: dict[str, str] = {}
    rules: dict[str, float] = {}
    maintenance: list[MaintenanceSpec] = []
    accept: list[Accept] = []


@dataclass(frozen=True)
class Site:
    """A site ready to be watched."""

    name: str
    topology: Topology
    collectors: tuple[Spec, ...] = ()
    rules: Rules = field(default_factory=Rules.load)
    source: dict[str, Any] = field(default_factory=dict)  # the file as written, for the recording
    accept: tuple[str, ...] = ()  # findings of `topology validate` that are meant so
    agent: AgentSpec = field(default_factory=AgentSpec)
    directory: Path = Path()  # what file names in it are relative to
    maintenance: tuple[Window, ...] = ()


def load_site(argument: str | Path, parameters: Mapping[str, int] | None = None) -> Site:
    """A site from a preset's name, a site file or a wiring file. Raises InputError naming every mistake."""
    given = {k: v for k, v in (parameters or {}).items() if v is not None}
    name = str(argument)
    if name in PRESETS:
        return Site(name, preset(name, **given), source={"topology": {"preset": name, **given}})
    if not Path(argument).exists():
        if "/" not in name and not name.endswith((".yaml", ".yml", ".json")):
            raise InputError(f"{unknown_preset(name)}; nor is there a file of that name")
        raise InputError(f"{name}: no such file")
    if given:
        options = ", ".join("--" + k.replace("_", "-") for k in given)
        raise InputError(f"{options}: only a preset takes sizes, {name} is a file that says its own")
    document = load(argument)
    if isinstance(document.data, dict) and "nodes" in document.data and "topology" not in document.data:
        topo = read_wiring(document)
        return Site(topo.name, topo, source={"topology": {"file": name}}, accept=_accepted(document))
    return _read(document)


def _read(document: Document) -> Site:
    spec, wrong = document.validate(SiteFile)
    problems = [text for _, text in wrong]
    topo: Topology | None = None
    accepted: list[str] = []
    wiring = document.data.get("topology") if isinstance(document.data, dict) else None
    if isinstance(wiring, dict):
        try:
            topo = _topology(document, wiring, accepted)
        except InputError as problem:
            problems.extend(problem.problems)
    if spec is None:
        raise InputError(problems)
    rules = Rules.load()
    try:
        rules = Rules.load(spec.rules)
    except InputError as problem:
        problems.extend(document.problem(("rules",), p) for p in problem.problems)
    if topo is not None:
        problems.extend(
            document.problem(("planes", p), f"{p!r} is not a plane of this fabric; it has {', '.join(topo.planes)}")
            for p in spec.planes
            if p not in topo.planes
        )
    windows = [] if topo is None else _windows(document, spec, with_power(topo, spec.power.power()), problems)
    if problems or topo is None:
        raise InputError(problems)
    collectors = tuple(c.spec for c in spec.collectors)
    accept = (*spec.accept, *accepted)
    here = Path(document.path).parent
    topo = with_power(topo, spec.power.power())
    return Site(
        spec.name or topo.name, topo, collectors, rules, document.data, accept, spec.agent, here, tuple(windows)
    )


def _windows(document: Document, spec: SiteFile, topo: Topology, problems: list[str]) -> list[Window]:
    out = []
    for i, work in enumerate(spec.maintenance):
        try:
            out.append(window(topo, work.what, work.start, work.until, work.why))
        except InputError as problem:
            problems.extend(document.problem(("maintenance", i, "what"), p) for p in problem.problems)
    return out


def _accepted(wiring: Document) -> tuple[str, ...]:
    """The `accept` of a wiring that has been read without a mistake."""
    return tuple(wiring.data.get("accept", ()))


def _topology(document: Document, spec: dict[str, Any], accepted: list[str]) -> Topology:
    """The wiring that a site file names; what that wiring accepts goes to `accepted`."""
    here = Path(document.path).parent
    ways = [k for k in ("preset", "file", "discover") if k in spec]
    if len(ways) != 1 and "nodes" not in spec:
        raise InputError(
            document.problem(("topology",), f"expected one of preset, file or discover, found {', '.join(spec)}")
        )
    if "nodes" in spec:
        return _wiring(_Nested(document, ("topology",)), accepted)
    rest = {k: v for k, v in spec.items() if k != ways[0]}
    if ways == ["preset"]:
        return _preset(document, spec["preset"], rest)
    if rest:
        raise InputError([document.problem(("topology", k), "unknown key") for k in rest])
    if ways == ["file"] and not (here / str(spec["file"])).exists():
        raise InputError(document.problem(("topology", "file"), f"{spec['file']!r}: no such file beside this one"))
    if ways == ["file"]:
        return _wiring(load(here / str(spec["file"])), accepted)
    from twin.topology.importers.combine import discover

    return discover(_Nested(document, ("topology", "discover")).check(DiscoverSpec).request(here))


def _wiring(document: Document, accepted: list[str]) -> Topology:
    topo = read_wiring(document)
    accepted.extend(_accepted(document))
    return topo


def _preset(document: Document, name: Any, rest: dict[str, Any]) -> Topology:
    place = ("topology", "preset")
    if name not in PRESETS:
        raise InputError(document.problem(place, unknown_preset(str(name))))
    problems = [
        document.problem(("topology", k), f"{v!r}: expected a whole number")
        for k, v in rest.items()
        if not isinstance(v, int) or isinstance(v, bool)
    ]
    problems = problems or [document.problem(place, p) for p in check_parameters(name, rest)]
    if problems:
        raise InputError(problems)
    return preset(name, **rest)


class _Nested(Document):
    """A part of a document, read as if it were one; its lines are those of the whole."""

    def __init__(self, whole: Document, place: tuple[str | int, ...]) -> None:
        self.path, self.whole, self.place = whole.path, whole, place
        self.data = whole.data
        for step in place:
            self.data = self.data[step]

    def line(self, place: tuple[str | int, ...]) -> int:
        return self.whole.line((*self.place, *place))
