"""What a report tells, gathered in two passes over a trace: one that judges, one that reads around the incidents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from replay.analyze import Analysis, Progress, analyze
from replay.gaps import Gap, Silence
from replay.records import Note
from replay.report.series import Line, Wanted, read_lines, wanted
from replay.trace import Trace
from twin.frames import NS, Frame
from twin.incident import SEVERITIES, Incident
from twin.snapshot import Snapshot
from twin.topology.model import Topology
from twin.twin import Twin

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]

_SAMPLES = 240  # moments at which planes and power are looked at
_MOST_STORIES = 60  # incidents that get plots, the worst first
_MOST_POWER = 9  # racks and feeds shown, those with the least headroom, and the site


@dataclass(frozen=True, slots=True)
class Story:
    """One incident with what was measured around it."""

    incident: Incident
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class Findings:
    """All that a report shows. planes, power: how they went over the whole trace. gaps: of sources."""

    title: str
    program: str
    topology: Topology
    analysis: Analysis
    stories: tuple[Story, ...]
    planes: tuple[Line, ...]
    power: tuple[Line, ...]
    gaps: tuple[Gap, ...]
    notes: tuple[Note, ...]


def gather(trace: Trace, progress: Progress | None = None) -> Findings:
    """Reads a trace twice. Raises InputError as Trace.frames does."""
    watched = _Watch(trace)
    twin = trace.twin()
    analysis = analyze(watched.frames(twin), trace.topology, progress, twin=twin)
    watched.look(twin)
    analysis = replace(analysis, truncated=trace.truncated, problems=(*trace.problems, *analysis.problems))
    worst = sorted(analysis.incidents, key=_rank)[:_MOST_STORIES]
    last = analysis.end or 0
    asked = {incident.id: wanted(incident, trace.topology, last) for incident in worst}
    lines = read_lines(trace.frames(), [w for group in asked.values() for w in group])
    planes = watched.planes()
    stories = tuple(Story(i, _lines(asked.get(i.id, ()), lines, planes, i, last)) for i in analysis.incidents)
    return Findings(
        trace.path.name, trace.metadata.get("program", ""), trace.topology, analysis, stories, planes,
        watched.power(), tuple(watched.silence.gaps()), tuple(trace.notes),
    )  # fmt: skip


def _rank(incident: Incident) -> tuple[bool, int, int]:
    return incident.is_muted, SEVERITIES.index(incident.severity), incident.started


def _lines(
    asked: Sequence[Wanted], lines: dict[Wanted, Line], planes: Sequence[Line], incident: Incident, end: int
) -> tuple[Line, ...]:
    """The lines of one incident; of a plane its capacity and use, cut to the time around it."""
    out = [line for w in asked if (line := lines.get(w)) is not None and len(line.times)]
    about = {e.entity for e in incident.evidence} | {incident.cause}
    if asked:
        first, last = asked[0].start, asked[0].end
        out = [line.between(first, last) for line in planes if line.entity in about] + out
    return tuple(line for line in out if len(line.times) > 1)


class _Watch:
    """Looks at the twin now and then while it judges."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self.silence = Silence()
        self._topology = trace.topology
        start, end = trace.start or 0, trace.end or 0
        self._every = max(NS, (end - start) // _SAMPLES)
        self._due = 0
        self._seen = -1
        self._times: list[int] = []
        self._planes: list[F64] = []
        self._power: list[F64] = []
        self._power_names: tuple[str, ...] = ()
        self._power_kinds: tuple[str, ...] = ()

    def frames(self, twin: Twin) -> Iterator[Frame]:
        for frame in self._trace.frames_for(twin):
            if twin.time >= self._due and twin.time:
                self.look(twin)
                self._due = twin.time + self._every
            self.silence.add(frame)
            yield frame

    def look(self, twin: Twin) -> None:
        shown = twin.snapshot()
        if shown.version == self._seen or len(shown.planes) < len(self._topology.planes):
            return
        self._seen = shown.version
        self._times.append(shown.time)
        self._planes.append(_plane_figures(shown))
        power = shown.power
        if not self._power_names:
            self._power_names, self._power_kinds = power.names, power.kinds
        if power.names == self._power_names:
            self._power.append(np.stack([power.watts, power.capacity]))

    def planes(self) -> tuple[Line, ...]:
        """Capacity and use of each plane, as shares of what was designed."""
        times = np.array(self._times, np.int64)
        out = []
        for p, plane in enumerate(self._topology.planes):
            for row, metric in enumerate(("capacity_fraction", "used_fraction")):
                values = np.array([figures[row, p] for figures in self._planes])
                if np.isfinite(values).any():
                    out.append(Line(f"plane:{plane}", metric, "ratio", times, values, 1.0 if row == 0 else None))
        return tuple(out)

    def power(self) -> tuple[Line, ...]:
        """What the site, racks and feeds drew, the tightest first; `expected` is what they may when all is well."""
        if not self._power or len(self._power) != len(self._times):
            return ()
        times = np.array(self._times, np.int64)
        figures = np.stack(self._power)  # [t, 2, rows]
        room = np.array([_least(column) for column in np.moveaxis(figures[:, 1] - figures[:, 0], 1, 0)])
        rows = [
            r for r, kind in enumerate(self._power_kinds) if kind != "node" and np.isfinite(figures[:, 0, r]).any()
        ]
        rows.sort(key=lambda r: (self._power_kinds[r] != "site", room[r]))
        out = []
        for row in rows[:_MOST_POWER]:
            may = figures[:, 1, row]
            most = float(np.nanmax(may)) if np.isfinite(may).any() else None
            out.append(Line(self._power_names[row], "power_watts", "W", times, figures[:, 0, row], most))
        return tuple(out)


def _least(values: F64) -> float:
    known = values[np.isfinite(values)]
    return float(known.min()) if len(known) else float("inf")


def _plane_figures(shown: Snapshot) -> F64:
    """float64[2, planes]: capacity and use."""
    return np.array([[p.capacity_fraction for p in shown.planes], [p.used_fraction for p in shown.planes]])
