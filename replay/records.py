"""What a trace is made of: frames, operator notes, and what was said about incidents while it was recorded."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import msgspec

from twin.errors import InputError
from twin.frames import NS, Frame, time_ns
from twin.snapshot import Event

T = TypeVar("T")


class _NoteLine(msgspec.Struct):
    time: float
    text: str
    author: str = ""


class _SaidLine(msgspec.Struct):
    time: float
    what: str
    incident: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Note:
    """A remark of an operator. time: event time it speaks of, nanoseconds."""

    time: int
    text: str
    author: str = ""

    def to_json(self) -> bytes:
        return msgspec.json.encode({"time": self.time / NS, "text": self.text, "author": self.author})

    @classmethod
    def from_json(cls, data: bytes | memoryview) -> Note:
        """Raises InputError where `data` is not a note."""
        line = _decode(data, _NoteLine, "note")
        return cls(time_ns(line.time), line.text, line.author)


@dataclass(frozen=True, slots=True)
class Said:
    """What the twin said of an incident while the trace was recorded; `incident` in the form of the design."""

    time: int
    what: str
    incident: dict[str, Any]

    @classmethod
    def of(cls, event: Event) -> Said:
        return cls(event.time, event.what, event.incident.to_json())

    def to_json(self) -> bytes:
        return msgspec.json.encode({"time": self.time / NS, "what": self.what, "incident": self.incident})

    @classmethod
    def from_json(cls, data: bytes | memoryview) -> Said:
        """Raises InputError where `data` is not such a record."""
        line = _decode(data, _SaidLine, "incident record")
        return cls(time_ns(line.time), line.what, line.incident)


def _decode(data: bytes | memoryview, kind: type[T], what: str) -> T:
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError) as problem:
        raise InputError(f"not a {what}: {problem}") from problem


Record = Frame | Note | Said


class Mark(NamedTuple):
    """Where a record lies, so that reading can go on there. skip: records before it at the same offset."""

    offset: int
    skip: int = 0
    line: int = 1


@dataclass(slots=True)
class Tally:
    """What one pass over a trace has found. start, end: nanoseconds, None where there is no frame."""

    frames: int = 0
    start: int | None = None
    end: int | None = None
    sources: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    notes: list[Note] = field(default_factory=list)
    said: list[Said] = field(default_factory=list)
    truncated: bool = False
    problems: list[str] = field(default_factory=list)

    def add(self, record: Record) -> None:
        if isinstance(record, Frame):
            time = record.time
            self.frames += 1
            self.start = time if self.start is None else min(self.start, time)
            self.end = time if self.end is None else max(self.end, time)
            self.sources[record.source] += 1
            self.kinds[record.kind] += 1
        elif isinstance(record, Note):
            self.notes.append(record)
        else:
            self.said.append(record)

    def lost(self, problem: str) -> None:
        """Notes that part of the trace cannot be read, and why."""
        self.truncated = True
        self.problems.append(problem)

    @property
    def damaged(self) -> bool:
        """Whether something that is there is not what was written; what is only cut off is not."""
        return any(problem.startswith(("damaged", "more damage")) for problem in self.problems)
