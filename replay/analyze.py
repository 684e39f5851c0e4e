"""Analysis: today's detectors over a trace, from its first frame to its last."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from replay.records import Tally
from replay.trace import Trace
from twin.frames import NS, Frame
from twin.incident import SEVERITIES, Incident
from twin.topology.model import Topology
from twin.twin import Twin

Progress = Callable[[int, int], None]
"""Called now and then with the number of frames so far and the event time of the last, nanoseconds."""

_PROGRESS_FRAMES = 1000
_WIDTH = 80


@dataclass(frozen=True, slots=True)
class Analysis:
    """What a trace holds and what the detectors find in it. start, end: nanoseconds, None without frames."""

    start: int | None
    end: int | None
    frames: int
    sources: tuple[str, ...]  # names, sorted
    incidents: tuple[Incident, ...]
    truncated: bool = False
    problems: tuple[str, ...] = ()  # what could not be read or placed, one line each

    @property
    def summary(self) -> dict[str, int]:
        """How many incidents there are of each severity; those within announced work are left out."""
        return {s: sum(i.severity == s and not i.is_muted for i in self.incidents) for s in SEVERITIES}

    @property
    def exit_code(self) -> int:
        """0 nothing found (or notes only), 1 warnings, 2 critical."""
        found = self.summary
        return 2 if found["critical"] else 1 if found["warning"] else 0

    def to_json(self) -> dict[str, Any]:
        """The form of the design; times in seconds since the epoch, `sources` a sorted list of names."""
        return {
            "trace": {
                "start": None if self.start is None else self.start / NS,
                "end": None if self.end is None else self.end / NS,
                "frames": self.frames,
                "sources": list(self.sources),
                "truncated": self.truncated,
            },
            "incidents": [incident.to_json() for incident in self.incidents],
            "summary": self.summary,
        }

    def text(self, width: int = _WIDTH) -> str:
        """The same for a person: plain lines of at most `width` columns where words allow it."""
        lines = [self._headline()]
        if self.truncated:
            lines.append("TRUNCATED: part of the recording is missing; this is what the rest shows")
        lines.extend(f"  {problem}" for problem in self.problems)
        lines.append(", ".join(f"{n} {severity}" for severity, n in self.summary.items()))
        for incident in self.incidents:
            lines.extend(["", *incident_lines(incident, width)])
        return "\n".join(lines)

    def _headline(self) -> str:
        if self.start is None or self.end is None:
            return "no frames"
        held = f"{_count(self.frames, 'frame')} from {_count(len(self.sources), 'source')}"
        return f"{show_span(self.start, self.end)}, {held}"


def analyze(
    frames: Iterable[Frame], topology: Topology, progress: Progress | None = None, *, twin: Twin | None = None
) -> Analysis:
    """Runs `frames`, in the order given, through a Twin of `topology` (or `twin`, a fresh one with other rules).

    Deterministic: the same frames in the same order give the same Analysis.
    """
    judge = Twin(topology) if twin is None else twin
    tally = Tally()
    for frame in frames:
        judge.ingest(frame)
        tally.add(frame)
        if progress is not None and tally.frames % _PROGRESS_FRAMES == 0:
            progress(tally.frames, frame.time)
    judge.finish()
    return Analysis(
        tally.start,
        tally.end,
        tally.frames,
        tuple(sorted(tally.sources)),
        tuple(judge.incidents),
        problems=tuple(_strangers(judge)),
    )


def analyze_trace(trace: Trace, progress: Progress | None = None, *, twin: Twin | None = None) -> Analysis:
    """`analyze` of a whole trace, with what could not be read of it. Raises InputError as Trace.frames does."""
    found = analyze(trace.frames(), trace.topology, progress, twin=twin or trace.twin())
    return replace(found, truncated=trace.truncated, problems=(*trace.problems, *found.problems))


def _strangers(twin: Twin) -> list[str]:
    """What the trace speaks of and the wiring does not know: most of it, and it is the wrong wiring."""
    names = twin.unknown_names
    return [f"names that the wiring does not have: {len(names):,}, such as {next(iter(names))}"] if names else []


def incident_lines(incident: Incident, width: int = _WIDTH) -> list[str]:
    """One incident as lines for a terminal or a ticket."""
    ended = "open" if incident.resolved is None else f"to {show_time(incident.resolved)}"
    head = f"{incident.severity.upper():<9} {show_time(incident.started)} {ended}  {incident.kind}  {incident.cause}"
    cost = f"{_count(incident.affected.gpus, 'GPU')} on {_count(incident.affected.nodes, 'node')}"
    cost += "".join(f", {name.replace('_', ' ')} {value:.3g}" for name, value in incident.effect.items())
    rest = [incident.summary, f"affected: {cost}"]
    if incident.count > 1:
        rest.append(f"came and went {incident.count} times")
    if (work := incident.maintenance) is not None:
        rest.append(f"within announced work: {work.why}")
    if incident.superseded_by is not None:
        rest.append(f"taken over by {incident.superseded_by}")
    if incident.advice:
        rest.append(f"advice: {incident.advice}")
    indent = " " * 10
    body = (textwrap.wrap(t, width, initial_indent=indent, subsequent_indent=indent) for t in rest if t)
    return [head, *(line for lines in body for line in lines)]


def show_span(start: int, end: int) -> str:
    """Two times in UTC and how far they are apart, as in `2025-12-01 00:00:00 to 00:30:00 UTC (30m00s)`."""
    first, last = _utc(start), _utc(end)
    until = f"{last:%H:%M:%S}" if first.date() == last.date() else f"{last:%Y-%m-%d %H:%M:%S}"
    minutes, seconds = divmod(round((end - start) / NS), 60)
    hours, minutes = divmod(minutes, 60)
    length = f"{hours}h{minutes:02d}m{seconds:02d}s" if hours else f"{minutes}m{seconds:02d}s"
    return f"{first:%Y-%m-%d %H:%M:%S} to {until} UTC ({length})"


def _count(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def _utc(time: int) -> datetime:
    return datetime.fromtimestamp(time // NS, UTC)


def show_time(time: int) -> str:
    """A time of day in UTC, as in `04:20:31`."""
    return f"{_utc(time):%H:%M:%S}"
