"""Verification: whether a trace is whole, in order, about its own wiring, and without gaps."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from replay.checksum import checksum
from replay.gaps import Gap, Silence
from replay.trace import Trace
from twin.errors import InputError
from twin.frames import NS, Frame
from twin.topology.model import Topology

OK, WARNING, FAILED, UNKNOWN = "ok", "warning", "failed", "unknown"
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Check:
    """One question. state: ok, warning, failed, or unknown where the trace cannot answer it."""

    name: str
    state: str
    said: str


@dataclass(slots=True)
class Verdict:
    """All answers about one trace."""

    path: str
    format: str
    bytes: int
    sha256: str
    frames: int = 0
    sources: int = 0
    truncated: bool = False
    checks: list[Check] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)

    @property
    def status(self) -> str:
        """The worst answer: ok, warning or failed; what cannot be answered counts as nothing."""
        states = {check.state for check in self.checks}
        return FAILED if FAILED in states else WARNING if WARNING in states else OK

    @property
    def exit_code(self) -> int:
        return {OK: 0, WARNING: 1, FAILED: 2}[self.status]

    def to_json(self) -> dict[str, Any]:
        """Times in seconds since the epoch."""
        return {
            "path": self.path, "format": self.format, "bytes": self.bytes, "sha256": self.sha256,
            "status": self.status, "frames": self.frames, "sources": self.sources, "truncated": self.truncated,
            "checks": [{"check": c.name, "state": c.state, "said": c.said} for c in self.checks],
            "gaps": [gap.to_json() for gap in self.gaps],
        }  # fmt: skip

    def text(self) -> str:
        """The same for a person."""
        head = f"{self.path}: {self.status.upper()}, {self.frames:,} frames from {self.sources:,} sources"
        rows = [f"  {c.state:<8} {c.name:<9} {c.said}" for c in self.checks]
        return "\n".join([head, *rows, f"  sha256   {self.sha256}"])


def verify(trace: Trace) -> Verdict:
    """Reads all of a trace. Raises InputError where it cannot be read at all."""
    out = Verdict(str(trace.path), trace.format.removeprefix("."), trace.size, _digest(trace))
    try:
        topology, wiring = trace.topology, ""
    except InputError as problem:
        topology, wiring = None, str(problem)
    order, names, silence = _Order(), _Names(topology, wiring), Silence()
    broken = ""
    try:
        for frame in trace.frames():
            out.frames += 1
            order.add(frame)
            names.add(frame)
            silence.add(frame)
    except InputError as problem:
        broken = str(problem)
    out.sources = len(silence.last)
    out.truncated = bool(broken) or trace.truncated
    out.checks = [_whole(trace, broken, out.frames), _checksum(trace), order.check(), names.check(trace)]
    out.gaps = silence.gaps()
    out.checks.append(_gaps(out.gaps, silence.count))
    return out


def _digest(trace: Trace) -> str:
    digest = hashlib.sha256()
    with trace.open() as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _whole(trace: Trace, broken: str, frames: int) -> Check:
    if broken:
        return Check("whole", FAILED, broken)
    problems = trace.problems
    said = "; ".join(problems[:_SHOWN])
    if trace.tally.damaged:
        return Check("whole", FAILED, said)
    if trace.truncated or problems:
        return Check("whole", WARNING, said)
    return Check("whole", OK, "it ends where it should") if frames else Check("whole", WARNING, "it holds no frames")


def _checksum(trace: Trace) -> Check:
    with trace.open() as stream:
        found = checksum(trace.format, stream, trace.size)
    if found is None:
        why = "text carries none; compress it, or keep its sha256" if trace.format == ".jsonl" else "it carries none"
        return Check("checksum", UNKNOWN, why)
    wrong = [part for part, right in found.items() if not right]
    if wrong:
        return Check("checksum", FAILED, f"{' and '.join(wrong)}: not what was written")
    return Check("checksum", OK, f"{' and '.join(found)}: as written")


class _Order:
    """Times of one source and kind that go backward."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, str], int] = {}
        self._back: Counter[str] = Counter()

    def add(self, frame: Frame) -> None:
        key = (frame.source, frame.kind)
        before = self._last.get(key, frame.time)
        if frame.time < before:
            self._back[frame.source] += 1
        self._last[key] = max(before, frame.time)

    def check(self) -> Check:
        if not self._back:
            return Check("order", OK, "the times of each source go forward")
        worst = ", ".join(f"{source} ({count})" for source, count in self._back.most_common(_SHOWN))
        return Check("order", WARNING, f"times go backward in {sum(self._back.values())} frames, most of {worst}")


class _Names:
    """Names that the wiring does not have."""

    def __init__(self, topology: Topology | None, why: str) -> None:
        self._topology, self._why = topology, why
        self._judged: set[tuple[str, ...]] = set()
        self._strange: dict[str, None] = {}

    def add(self, frame: Frame) -> None:
        if self._topology is None or frame.kind == "source" or frame.names in self._judged:
            return
        self._judged.add(frame.names)
        rows = self._topology.rows("port" if frame.kind == "link" else frame.kind)
        for name in frame.names:
            ends = name.split("--") if frame.kind == "link" else (name,)
            if not all(end in rows for end in ends):
                self._strange.setdefault(name)

    def check(self, trace: Trace) -> Check:
        if self._topology is None:
            damaged = trace.format == ".mcap"  # a recording has one, unless it was lost
            return Check("names", FAILED if damaged else UNKNOWN, self._why)
        if not self._strange:
            return Check("names", OK, f"all are in the wiring {self._topology.name}")
        shown = ", ".join(list(self._strange)[:_SHOWN])
        return Check("names", WARNING, f"{len(self._strange):,} are not in the wiring, such as {shown}")


def _gaps(gaps: list[Gap], count: int) -> Check:
    if not gaps:
        return Check("gaps", OK, "no source was silent for longer than it may be")
    longest = max(gaps, key=lambda gap: gap.end - gap.start)
    seconds = (longest.end - longest.start) / NS
    return Check("gaps", WARNING, f"{count}, the longest {seconds:.1f} s of {longest.source}")
