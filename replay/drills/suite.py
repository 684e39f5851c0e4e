"""Drills written in Python, for anyone's test suite: put faults in, say what must be found.

    drill("b300-superpod-ethernet").fail("plane:B", at=30).expect("plane_down", within=3)

Every expectation is checked where it is written, against the one run of the faults before it.
"""

from __future__ import annotations

import tempfile
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from replay.drills.runner import Result
    from twin.incident import Incident

AFTER_S = 30.0  # that a run goes on after its last fault began or ended


class DrillFailed(AssertionError):
    """A drill that did not go as expected; its text says what was expected and what was seen."""


class FluentDrill:
    """One simulated fabric. Sizes are those of the preset; times are seconds, or texts such as `2m`."""

    def __init__(
        self, preset: str, *, seed: int = 7, workload: str = "allreduce", utilization: float = 0.8,
        interval: float = 1.0, duration: float | str | None = None, **sizes: int,
    ) -> None:  # fmt: skip
        """Raises InputError for a preset or a size that there is not."""
        from twin.errors import InputError
        from twin.simulator.scenario import WORKLOADS, Phase, Scenario
        from twin.topology.presets import PRESETS, check_parameters, unknown_preset
        from twin.topology.presets import preset as preset_

        if preset not in PRESETS:
            raise InputError(unknown_preset(preset))
        if problems := check_parameters(preset, sizes):
            raise InputError(problems)
        if workload not in WORKLOADS:
            raise InputError(f"{workload!r} is not a workload; expected one of {', '.join(WORKLOADS)}")
        self._duration = None if duration is None else _seconds(duration)
        self._scenario = Scenario(
            f"{preset} drill", preset, sizes, (Phase(workload, utilization),), interval, seed=seed
        )
        self._expected: list[dict[str, Any]] = []
        self._result: Result | None = None
        self._topology = preset_(preset, **sizes)

    def fault(
        self, action: str, target: str, *, at: float | str, until: float | str | None = None, **options: Any
    ) -> Self:
        """A fault by its action, as in a drill file; options as there (`speed_fraction`, `rate`, `kind` …)."""
        from twin.simulator.scenario import Fault

        end = None if until is None else _seconds(until)
        added = Fault(action, target, _seconds(at), end, **options)  # type: ignore[arg-type]
        self._scenario = replace(self._scenario, faults=(*self._scenario.faults, added))
        self._result = None
        return self

    def fail(self, target: str, *, at: float | str, until: float | str | None = None) -> Self:
        """It is gone: a plane, switch, node, NIC, port, link, GPU, supply, feed."""
        return self.fault("fail", target, at=at, until=until)

    def degrade(self, target: str, *, at: float | str, until: float | str | None = None, **options: float) -> Self:
        """speed_fraction makes links slow, capacity_fraction takes a part of a plane or switch away."""
        return self.fault("degrade", target, at=at, until=until, **options)

    def flap(self, target: str, *, at: float | str, until: float | str | None = None, **options: float) -> Self:
        """Down for `down` seconds of every `period`."""
        return self.fault("flap", target, at=at, until=until, **options)

    def silence(self, target: str, *, at: float | str, until: float | str | None = None) -> Self:
        """Its telemetry stops, nothing else."""
        return self.fault("silence", target, at=at, until=until)

    def expect(
        self, incident: str, *, cause: str | None = None, within: float | str | None = None, **more: Any
    ) -> Self:
        """This incident must have been told. more: gpus, nodes, bandwidth_fraction, severity, resolved_within.

        Without a cause it is the target of the last fault. Raises DrillFailed, with a timeline.
        """
        if cause is None and self._scenario.faults:
            cause = self._scenario.faults[-1].target
        wanted = {"incident": incident, "cause": cause, **more}
        if within is not None:
            wanted["within"] = _seconds(within)
        if "resolved_within" in wanted:
            wanted["resolved_within"] = _seconds(wanted["resolved_within"])
        self._expected.append(wanted)
        result = self.run()
        if not result.outcomes[-1].met:
            raise DrillFailed(self.report(result))
        return self

    def nothing_else(self) -> Self:
        """No incident but the expected ones may have been told. Raises DrillFailed."""
        result = self.run()
        if result.unexpected:
            raise DrillFailed(self.report(result))
        return self

    def run(self) -> Result:
        """The verdict on what is expected so far. Simulates once, until another fault is added."""
        from replay.drills.file import Drill, Expectation
        from replay.drills.runner import judge, run_drill

        wanted = tuple(Expectation(**w) for w in self._expected)
        drill = Drill(self._scenario.name, self.scenario, wanted, False)
        if self._result is None:
            self._result = run_drill(drill)
        return judge(drill, self._result.incidents, self._result.start, self._topology)

    @property
    def scenario(self) -> Any:
        """What is simulated; it goes on for a while after the last fault unless a duration was given."""
        ends = [t for f in self._scenario.faults for t in (f.at, f.until) if t is not None]
        return replace(self._scenario, duration=self._duration or max(ends, default=0.0) + AFTER_S)

    @property
    def incidents(self) -> tuple[Incident, ...]:
        """All that was told, in order."""
        return self.run().incidents

    def report(self, result: Result) -> str:
        """Expected against seen, the timeline, and how to look at it."""
        from twin.frames import NS

        lines = [result.to_text(), "timeline:"]
        moments: list[tuple[float, str]] = []
        for f in self._scenario.faults:
            moments.append((f.at, f"put in    {f.action} {f.target}"))
            if f.until is not None:
                moments.append((f.until, f"mended    {f.action} {f.target}"))
        for i in result.incidents:
            moments.append(((i.detected - result.start) / NS, f"told      {i.kind} {i.cause}: {i.summary}"))
            if i.resolved is not None:
                moments.append(((i.resolved - result.start) / NS, f"resolved  {i.kind} {i.cause}"))
        lines += [f"  {t:7.1f} s  {text}" for t, text in sorted(moments)]
        lines.append(f"open it in the screen: fabrictwin demo --scenario {self._saved()}")
        return "\n".join(lines)

    def _saved(self) -> Path:
        """The faults and expectations as a drill file."""
        import yaml

        scenario = self.scenario
        data = {
            "name": scenario.name,
            "topology": {"preset": scenario.preset, **scenario.parameters},
            "workload": [asdict(phase) for phase in scenario.workload],
            "interval": scenario.interval,
            "duration": scenario.duration,
            "seed": scenario.seed,
            "faults": [_fault(asdict(f)) for f in scenario.faults],
            "expect": self._expected,
        }
        path = Path(tempfile.mkdtemp(prefix="fabrictwin-drill-")) / "drill.yaml"
        path.write_text(yaml.safe_dump(data, sort_keys=False), encoding="utf-8")
        return path


def _fault(fields: dict[str, Any]) -> dict[str, Any]:
    """A fault as a drill file has it, without what is left at its default."""
    from twin.simulator.scenario import Fault

    usual = asdict(Fault("fail", "", 0))
    other = fields.pop("other")
    out = {fields.pop("action"): [fields["target"], other] if other else fields["target"], "at": fields.pop("at")}
    return out | {k: v for k, v in fields.items() if k != "target" and v != usual[k]}


def _seconds(value: float | str) -> float:
    from twin.units import seconds

    return seconds(value)
