"""History of a store into a trace: in stretches of bounded size, and resumable after whatever interrupts it.

While it goes on, `.T.mcap.import` holds what is there already and `.T.mcap.import.json` what was asked for and up to
which moment it is complete. The same import again goes on from there; the trace has its name when it is whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

import msgspec

from collectors.base import CollectorError
from collectors.prometheus.history import Stretch
from replay.analyze import show_span
from replay.recorder import Recorder, RecordingError
from replay.records import Record
from replay.trace import open_trace
from twin.errors import FabrictwinError, InputError
from twin.frames import NS, Frame
from twin.topology.model import Topology

FIRST_STRETCH = 300 * NS
_SHORTEST = 15 * NS
_CHUNK_SECONDS = 10.0  # of event time in a chunk of the file
_MOST_FRAMES = 20_000  # in one stretch; fewer and longer ones are asked for where there is little
_TOO_MUCH = ("too many samples", "larger than", "no answer within", "timeout", "timed out", "memory", "broke off")


class Past(Protocol):
    """What gives frames of the past (collectors.prometheus.history)."""

    name: str

    async def between(self, start: int, end: int) -> Stretch: ...

    def learn(self, frames: Sequence[Frame]) -> None: ...


class Progressed(msgspec.Struct):
    """What is kept beside an unfinished import."""

    asked: dict[str, Any]
    start: int
    end: int
    until: int


class Import:
    """One import. start, end: ns, the first excluded. asked: what the frames depend on, as plain values, with start
    and end as they were asked for: `-2h` goes on from where it was, not from two hours before the second try."""

    def __init__(
        self, past: Past, target: Path, topology: Topology, site: dict[str, Any] | None, start: int, end: int,
        asked: dict[str, Any],
    ) -> None:  # fmt: skip
        if target.suffix != ".mcap":
            raise InputError(
                f"{target}: an import is an .mcap; `fabrictwin trace convert` makes text of it afterwards"
            )
        if target.exists():
            raise InputError(f"{target}: is there already; choose another name, or remove it first")
        if end <= start:
            raise InputError(f"--end is not after --start: {show_span(end, start)}")
        self._past, self._target, self._topology, self._site = past, target, topology, site
        self._start, self._end = start, end
        self._asked = asked
        self._part = target.with_name(f".{target.name}.import")
        self._state = target.with_name(f".{target.name}.import.json")
        self.frames = 0
        self.resumed_at: int | None = None
        self.warnings: list[str] = []

    async def run(self, progress: Callable[[float], None] | None = None) -> int:
        """Imports and returns how many frames there are. progress: told how much of it is there, 0 to 1.

        Raises CollectorError where the store gives no more, RecordingError where the disk is full; what is there
        by then is kept for the next try, as it is when it is cancelled.
        """
        recorder, until = self._begin()
        stretch = FIRST_STRETCH
        try:
            while until < self._end:
                if progress is not None:
                    progress(self.share(until))
                end = min(until + stretch, self._end)
                try:
                    found = await self._past.between(until, end)
                except CollectorError as problem:
                    if stretch > _SHORTEST and any(word in str(problem) for word in _TOO_MUCH):
                        stretch = max(_SHORTEST, stretch // 4)
                        continue
                    raise CollectorError(f"{problem}; {self._next_time(until)}") from problem
                for frame in found.frames:
                    recorder.write(frame)
                recorder.flush()
                until = end
                self._note(until)
                self.warnings.extend(w for w in found.warnings if w not in self.warnings)
                if len(found.frames) < _MOST_FRAMES // 4:
                    stretch *= 2
                elif len(found.frames) > _MOST_FRAMES:
                    stretch = max(_SHORTEST, stretch // 2)
            if progress is not None:
                progress(1.0)
            recorder.close()
        finally:
            self.frames = recorder.frames
            with suppress(RecordingError):  # what went wrong first is what matters
                recorder.close()
        return self._finish()

    def share(self, until: int) -> float:
        """How much lies before `until`, 0 to 1."""
        return (until - self._start) / (self._end - self._start)

    def _begin(self) -> tuple[Recorder, int]:
        """A recorder that has what an earlier try left, and the moment from which to go on."""
        before = self._left()
        if before is None:
            return self._recorder(self._part), self._start
        fresh = self._part.with_name(self._part.name + ".new")
        recorder = self._recorder(fresh)
        for record in self._kept(before):
            recorder.add(record)
            if isinstance(record, Frame) and record.kind != "source":
                self._past.learn([record])
        recorder.flush()
        fresh.replace(self._part)
        self.resumed_at = before
        return recorder, before

    def _recorder(self, path: Path) -> Recorder:
        return Recorder(path, self._topology, self._site, overwrite=True, chunk_seconds=_CHUNK_SECONDS, live=False)

    def _kept(self, until: int) -> Iterator[Record]:
        return (record for record in open_trace(self._part).records() if record.time <= until)

    def _left(self) -> int | None:
        try:
            left = msgspec.json.decode(self._state.read_bytes(), type=Progressed)
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
            return None
        if not self._part.exists():
            return None
        if left.asked != msgspec.json.decode(msgspec.json.encode(self._asked)):
            raise InputError(
                f"{self._target}: another import to it was interrupted; finish that one, choose another name, or "
                f"remove {self._state}"
            )
        self._start, self._end = left.start, left.end
        return left.until

    def _note(self, until: int) -> None:
        new = self._state.with_name(self._state.name + ".new")
        try:
            new.write_bytes(msgspec.json.encode(Progressed(self._asked, self._start, self._end, until)))
            new.replace(self._state)
        except OSError as problem:
            raise FabrictwinError(f"{self._state}: cannot be written: {problem.strerror}") from problem

    def _finish(self) -> int:
        try:
            self._part.replace(self._target)
            self._state.unlink(missing_ok=True)
        except OSError as problem:
            raise FabrictwinError(f"{self._target}: cannot be written: {problem.strerror}") from problem
        return self.frames

    def _next_time(self, until: int) -> str:
        return f"{self.share(until):.0%} are there, the same command goes on from that"
