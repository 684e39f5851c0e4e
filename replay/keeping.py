"""Recordings that go on for weeks: in pieces, of which the old ones are let go, and never onto a disk that is full.

A piece is a recording of its own, `today-20251201T042000Z.mcap`: it can be opened, cut and merged like any other, and
`analyze today-*.mcap` judges all of them as one.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from re import escape, fullmatch
from typing import Any

from replay import notes
from replay.limits import Keeping
from replay.recorder import Recorder, Recording, RecordingError
from replay.records import Note, Record, Said
from twin.errors import InputError
from twin.frames import Frame
from twin.snapshot import Event
from twin.topology.model import Topology

Wall = Callable[[], float]
_LOOK_SECONDS = 1.0  # between looks at sizes, ages and the disk


class KeptRecorder(Recording):
    """A Recorder that keeps to a Keeping, and is used as one. `path`: of the piece that is being written.

    Raises InputError where `path` cannot be written, and RecordingError once, where it cannot go on.
    """

    def __init__(
        self, path: Path, topology: Topology, site: dict[str, Any] | None, keeping: Keeping, *,
        wall: Wall = time.time, live: bool = True,
    ) -> None:  # fmt: skip
        self._base, self._topology, self._site, self._keeping = path, topology, site, keeping
        self._wall, self._live = wall, live
        self._frames = 0  # of the pieces that are closed
        self._looked = 0.0
        self._recorder: Recorder | None = None
        self.error: RecordingError | None = None
        self._make_room()
        self._recorder = self._begin()

    @property
    def path(self) -> Path:
        return self._base if self._recorder is None else self._recorder.path

    @property
    def frames(self) -> int:
        """Frames recorded, in all pieces of this run."""
        return self._frames + (0 if self._recorder is None else self._recorder.frames)

    def pieces(self) -> list[Path]:
        """All pieces that are there, of earlier runs too, the oldest first."""
        if not self._keeping.in_pieces:
            return [self._base] if self._base.exists() else []
        pattern = rf"{escape(self._base.stem)}-\d{{8}}T\d{{6}}Z(-\d+)?{escape(self._base.suffix)}"
        with suppress(OSError):
            return sorted(p for p in self._base.parent.iterdir() if fullmatch(pattern, p.name))
        return []

    def write(self, frame: Frame) -> None:
        self.add(frame)

    def event(self, event: Event) -> None:
        self.add(Said.of(event))

    def note(self, note: Note) -> None:
        self.add(note)

    def add(self, record: Record) -> None:
        """Records it, in a new piece where the last one is large or old enough."""
        if self._recorder is None:
            return
        try:
            self._look()
            self._recorder.add(record)
        except RecordingError as problem:
            self.error, self._recorder = problem, None
            raise

    def close(self) -> None:
        """Ends the last piece."""
        recorder, self._recorder = self._recorder, None
        if recorder is not None:
            recorder.close()
            self._frames += recorder.frames

    # --- from piece to piece ---

    def _look(self) -> None:
        now, recorder = self._wall(), self._recorder
        assert recorder is not None
        if 0 <= now - self._looked < _LOOK_SECONDS:
            return
        self._looked = now
        size, age = self._keeping.rotate_bytes, self._keeping.rotate_seconds
        if (size is not None and recorder.bytes >= size) or (age is not None and now - self._born >= age):
            recorder.close()
            self._frames += recorder.frames
            self._recorder = self._begin()
        self._make_room()

    def _begin(self) -> Recorder:
        self._born = self._wall()
        path = self._base
        if self._keeping.in_pieces:
            stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(self._born))
            names = [
                f"{path.stem}-{stamp}{path.suffix}",
                *(f"{path.stem}-{stamp}-{n}{path.suffix}" for n in range(1, 99)),
            ]
            path = next((p for p in map(path.with_name, names) if not p.exists()), path)
        try:
            return Recorder(path, self._topology, self._site, live=self._live)
        except InputError as problem:
            if self._recorder is None:
                raise
            raise RecordingError(path, str(problem), self._frames) from problem

    def _make_room(self) -> None:
        """Lets the oldest pieces go. One that somebody has put notes on is kept: it is evidence of something."""
        keeping, now = self._keeping, self._wall()
        current = None if self._recorder is None else self._recorder.path
        old = (
            [p for p in self.pieces() if p != current and not notes.path_for(p).exists()] if keeping.in_pieces else []
        )
        if keeping.keep_seconds is not None:
            while old and now - _ended(old[0]) > keeping.keep_seconds:
                _remove(old.pop(0))
        if keeping.keep_bytes is not None:
            total = sum(map(_size, self.pieces()))
            while old and total > keeping.keep_bytes:
                total -= _remove(old.pop(0))
        if keeping.min_free is not None:
            while old and _free(self._base) < keeping.min_free:
                _remove(old.pop(0))
            if (free := _free(self._base)) < keeping.min_free:
                self._stop(free)

    def _stop(self, free: int) -> None:
        reason = (
            f"{show_bytes(free)} free on its disk, less than the {show_bytes(self._keeping.min_free or 0)} to be left"
        )
        if self._recorder is None:
            raise InputError(f"{self._base}: not recorded: {reason}")
        self._recorder.close()
        raise RecordingError(self._recorder.path, reason, self.frames)


def show_bytes(number: int) -> str:
    """Bytes as people write them: `1.5 GB`."""
    value, unit = float(number), "B"
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if value < 1000 or unit == "TB":
            break
        value /= 1000
    return f"{value:.3g} {unit}" if unit != "B" else f"{number} B"


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _ended(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _remove(path: Path) -> int:
    """Removes a piece and says how many bytes that gives; one that cannot be removed gives none."""
    size = _size(path)
    try:
        path.unlink(missing_ok=True)
    except OSError:
        return 0
    return size


def _free(path: Path) -> int:
    """Bytes that may yet be written beside `path`."""
    try:
        return shutil.disk_usage(path.parent or os.curdir).free
    except OSError:
        return 0
