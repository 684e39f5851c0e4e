"""Recorder: one MCAP file, written so that a crash at any moment costs at most two seconds.

    with Recorder("incident.mcap", topology, site) as recorder:
        recorder.write(frame)

What is handed over is on its way to disk as whole chunks: a chunk is closed by its age, by the event time
it spans, or by its size. A thread closes the last one where no frame comes to do so.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from threading import Event as Signal
from threading import RLock, Thread
from time import monotonic
from types import TracebackType
from typing import Any, Self

import msgspec
from mcap.writer import IndexType, Writer

from replay.layout import (
    FORMAT_VERSION,
    FRAME_ENCODING,
    FRAMES_TOPIC,
    INCIDENTS_TOPIC,
    JSON_ENCODING,
    METADATA,
    NOTES_TOPIC,
    PACKED_ENCODING,
    PROFILE,
    SITE,
    TOPOLOGY,
    TOTALS,
)
from replay.output import Output
from replay.packing import Packer
from replay.records import Note, Record, Said, Tally
from twin.errors import FabrictwinError
from twin.frames import NS, Frame, encode
from twin.snapshot import Event
from twin.topology.explicit import to_wiring
from twin.topology.model import Topology

ROUND_SECONDS = 20.0  # of event time: so far back reading must begin to give any frame
CHUNK_SECONDS = 1.5  # with the tick and the time to compress, below the two seconds that are promised
_TICK_SECONDS = 0.25
_CHUNK_BYTES = 4 << 20
_MAX_CHANNELS = 60_000  # their numbers are 16 bits; sources beyond share a channel a kind
_INDEXES = IndexType.ATTACHMENT | IndexType.CHUNK | IndexType.METADATA


class RecordingError(FabrictwinError):
    """The recording cannot go on. `reason`: what the system says; the `frames` before stay readable."""

    def __init__(self, path: Path, reason: str, frames: int) -> None:
        self.reason = reason
        super().__init__(f"{path}: the recording has stopped: {reason}; the {frames} frames before stay readable")


class Recording:
    """What is closed at the end of a `with`."""

    def close(self) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        if problem is None:
            self.close()
            return
        with suppress(RecordingError):  # what went wrong first is what matters
            self.close()


class Recorder(Recording):
    """Writes one trace. Not kept on disk yet: what came in the last `chunk_seconds`.

    site: the site file as plain values, kept beside the wiring. live: close chunks by wall time also, in a
    thread; a conversion needs none. Raises InputError where `path` holds something already, unless `overwrite`.
    """

    def __init__(
        self, path: str | os.PathLike[str], topology: Topology, site: dict[str, Any] | None = None, *,
        overwrite: bool = False, chunk_seconds: float = CHUNK_SECONDS, live: bool = True,
    ) -> None:  # fmt: skip
        self.path = Path(path)
        self.error: RecordingError | None = None
        self._chunk_seconds = chunk_seconds
        self._tally = Tally()
        self._safe_frames = 0
        self._lock = RLock()
        self._stop = Signal()
        self._unsaid = False  # the error has not been raised yet
        self._pending = False
        self._born, self._first, self._clock = (
            0.0,
            0,
            0,
        )  # of the open chunk: wall time, event time; latest event time
        self._sequence = 0
        self._channels: dict[tuple[str, str], int] = {}
        self._packer, self._round = Packer(), 0  # event time at which the round began
        self._output = Output(self.path, overwrite)
        with self._guarded():
            self._writer = self._begin(topology, site)
        self._thread = Thread(target=self._close_old_chunks, name="recorder", daemon=True) if live else None
        if self._thread is not None:
            self._thread.start()

    def _begin(self, topology: Topology, site: dict[str, Any] | None) -> Writer:
        writer = Writer(
            self._output,  # type: ignore[arg-type]
            chunk_size=_CHUNK_BYTES,
            index_types=_INDEXES,
            enable_data_crcs=True,
        )
        program = f"fabrictwin {_program_version()}"
        writer.start(PROFILE, program)
        writer.add_metadata(
            METADATA, {"format_version": str(FORMAT_VERSION), "program": program, "topology": topology.name}
        )
        wiring = msgspec.json.encode(to_wiring(topology))
        writer.add_attachment(0, 0, TOPOLOGY, "application/json", wiring)
        if site is not None:
            writer.add_attachment(0, 0, SITE, "application/json", msgspec.json.encode(site, enc_hook=str))
        writer.flush()  # type: ignore[no-untyped-call]
        self._output.keep()
        return writer

    # --- what goes in ---

    def write(self, frame: Frame) -> None:
        """Records a frame. Raises RecordingError once, where the disk is full; later frames are let go."""
        self.add(frame)

    def event(self, event: Event) -> None:
        """Records what the twin says of an incident."""
        self.add(Said.of(event))

    def note(self, note: Note) -> None:
        """Records a remark of an operator."""
        self.add(note)

    def add(self, record: Record) -> None:
        """Records a record of any type. Raises RecordingError as `write` does."""
        with self._lock, self._guarded():
            if self.error is not None or self._output.closed:
                return
            time = max(0, record.time)
            if isinstance(record, Frame):
                self._clock = max(self._clock, time)
                self._tally.add(record)
            if not self._pending:
                self._pending, self._born, self._first = True, monotonic(), self._clock
                self._begin_round()
            if isinstance(record, Frame):
                channel, data = self._frame(record)
            else:
                topic = NOTES_TOPIC if isinstance(record, Note) else INCIDENTS_TOPIC
                channel, data = self._channel(topic, JSON_ENCODING, {}), record.to_json()
            self._sequence = (self._sequence + 1) & 0xFFFFFFFF
            self._writer.add_message(channel, time, data, time, self._sequence)
            if self._clock - self._first >= self._chunk_seconds * NS or (self._thread is not None and self._old()):
                self._flush()

    def _begin_round(self) -> None:
        if self._round == 0 or self._clock - self._round >= ROUND_SECONDS * NS:
            self._packer.begin_round()
            self._round = self._clock

    def _frame(self, frame: Frame) -> tuple[int, bytes]:
        """The channel of a frame, and what is written of it: packed where it has a channel of its own."""
        key = frame.source, frame.kind
        known = self._channels.get(key)
        if known is None:
            if len(self._channels) >= _MAX_CHANNELS:
                shared = self._channel(f"{FRAMES_TOPIC}/*/{frame.kind}", FRAME_ENCODING, {"kind": frame.kind})
                return shared, encode(frame)
            topic = f"{FRAMES_TOPIC}/{frame.source}/{frame.kind}"
            named = {"source": frame.source, "kind": frame.kind}
            known = self._channels[key] = self._channel(topic, PACKED_ENCODING, named)
        return known, self._packer.pack(frame)

    def _channel(self, topic: str, encoding: str, metadata: dict[str, str]) -> int:
        key = ("", topic)
        if key not in self._channels:
            self._channels[key] = self._writer.register_channel(topic, encoding, 0, metadata)
        return self._channels[key]

    # --- what goes out ---

    @property
    def frames(self) -> int:
        """Frames recorded; after an error, those that are on disk."""
        return self._tally.frames if self.error is None else self._safe_frames

    @property
    def bytes(self) -> int:
        """Bytes on disk."""
        return self._output.kept

    def flush(self) -> None:
        """Puts everything so far on disk. Raises RecordingError as `write` does."""
        with self._lock, self._guarded():
            if self.error is None and not self._output.closed:
                self._flush()

    def close(self) -> None:
        """Ends the recording with its index. Raises RecordingError where that cannot be written any more."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        with self._lock, self._guarded():
            if self.error is not None or self._output.closed:
                return
            self._flush()
            self._writer.add_metadata(TOTALS, self._totals())
            self._writer.finish()  # type: ignore[no-untyped-call]
            self._output.close()

    def _flush(self) -> None:
        self._writer.flush()  # type: ignore[no-untyped-call]
        self._output.keep()
        self._pending, self._safe_frames = False, self._tally.frames

    def _totals(self) -> dict[str, str]:
        tally = self._tally
        found = {"frames": tally.frames, "start": tally.start, "end": tally.end}
        return {key: str(value) for key, value in found.items() if value is not None}

    def _old(self) -> bool:
        return self._pending and monotonic() - self._born >= self._chunk_seconds

    def _close_old_chunks(self) -> None:
        while not self._stop.wait(_TICK_SECONDS):
            with self._lock:
                if self.error is not None:
                    return
                try:
                    if self._old():
                        self._flush()
                except OSError as problem:
                    self._fail(problem)

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """Turns a failing disk into one RecordingError, also where the thread met it."""
        try:
            yield
        except OSError as problem:
            self._fail(problem)
        if self._unsaid:
            self._unsaid = False
            assert self.error is not None
            raise self.error

    def _fail(self, problem: OSError) -> None:
        self._output.abandon()
        self._unsaid = True
        self.error = RecordingError(self.path, problem.strerror or str(problem), self._safe_frames)


def _program_version() -> str:
    try:
        return version("fabrictwin")
    except PackageNotFoundError:
        return "0"
