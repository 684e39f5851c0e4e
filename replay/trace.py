"""Traces: what was recorded, read back in the order in which it arrived.

trace = open_trace("incident.mcap")
for frame in trace.frames():
    twin.ingest(frame)
"""

from __future__ import annotations

import os
import stat
from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from replay import notes as sidecar
from replay.layout import MCAP_MAGIC, SUFFIXES, ZSTD_MAGIC
from replay.records import Mark, Note, Record, Said, Tally
from twin.errors import InputError
from twin.frames import Frame

if TYPE_CHECKING:
    from twin.detectors.rules import Rules
    from twin.topology.model import Topology
    from twin.twin import Twin

_PEEK = 4096


class Trace(ABC):
    """A recorded trace. What needs a pass over the whole file is known after one, and takes one where asked before.

    path: where it lies. format: one of SUFFIXES, told by the content. size: bytes in the file when it was opened.
    """

    format: str

    def __init__(self, path: Path, size: int, topology: Topology | None) -> None:
        self.path, self.size = path, size
        self._given = topology
        self.rules: Rules | None = None  # set to judge by other thresholds than the recorded ones
        self._tally: Tally | None = None
        self._sidecar: tuple[list[Note], list[str]] | None = None

    # --- the wiring ---

    @property
    def topology(self) -> Topology:
        """The wiring that was given, else the recorded one. Raises InputError where there is neither."""
        found = self._given or self._recorded_topology
        if found is None:
            raise InputError(f"{self.path}: {self._why_no_topology()}; give the fabric's wiring with --site SITE")
        return found

    @property
    def site(self) -> dict[str, Any] | None:
        """The site file that was recorded with it."""
        return None

    def twin(self) -> Twin:
        """A fresh Twin of this trace's wiring, with the thresholds given, else with those of the recorded site, and
        with the work that was announced there."""
        from twin.detectors.rules import Rules
        from twin.maintenance import windows
        from twin.twin import Twin

        site = self.site or {}
        recorded = site.get("rules") if self.rules is None else None
        rules = self.rules or Rules.load(recorded)
        return Twin(self.topology, rules, windows(self.topology, site.get("maintenance")))

    @property
    def metadata(self) -> dict[str, str]:
        """What the recorder said of itself."""
        return {}

    @cached_property
    def _recorded_topology(self) -> Topology | None:
        return None

    def _why_no_topology(self) -> str:
        return "a text trace does not say how its fabric is wired"

    # --- what is in it ---

    def frames(self) -> Iterator[Frame]:
        """The frames in the order of their arrival. Raises InputError, FILE:LINE, at a broken line of text."""
        return (record for _, record in self.read() if isinstance(record, Frame))

    def frames_for(self, twin: Twin) -> Iterator[Frame]:
        """The frames for a twin, which is told on the way what people said of its incidents while it was recorded."""
        for record in self.records():
            if isinstance(record, Frame):
                yield record
            else:
                remind(twin, record)

    def records(self) -> Iterator[Record]:
        """Frames, notes and what was said of incidents, in the order of their arrival."""
        return (record for _, record in self.read())

    def read(self, mark: Mark | None = None) -> Iterator[tuple[Mark, Record]]:
        """The records from `mark` on, each with its own mark. A mark comes from an earlier `read` of this Trace."""
        tally = Tally()
        try:
            for place in self._read(mark, tally):
                tally.add(place[1])
                yield place
        except OSError as problem:
            raise self._unreadable(problem) from problem
        if mark is None:
            self._tally = tally

    @abstractmethod
    def _read(self, mark: Mark | None, tally: Tally) -> Iterator[tuple[Mark, Record]]:
        """The records from `mark` on; what cannot be read is told to `tally`."""

    @property
    def tally(self) -> Tally:
        """Counts and problems of the whole trace."""
        if self._tally is None:
            for _ in self.read():
                pass
        assert self._tally is not None
        return self._tally

    @property
    def scanned(self) -> bool:
        """Whether the whole trace has been read once."""
        return self._tally is not None

    @property
    def start(self) -> int | None:
        """The earliest time of a frame, nanoseconds; None where there is no frame."""
        return self.tally.start

    @property
    def end(self) -> int | None:
        """The latest time of a frame, nanoseconds; None where there is no frame."""
        return self.tally.end

    @property
    def truncated(self) -> bool:
        """Whether part of what was recorded is missing: the file was cut, or part of it is damaged."""
        return self.tally.truncated

    @property
    def problems(self) -> list[str]:
        """What could not be read, one line each."""
        return self.tally.problems + self._notes_beside()[1]

    @property
    def notes(self) -> list[Note]:
        """The notes that were recorded and those added since, by time."""
        return sorted(self.tally.notes + self.added_notes, key=lambda note: note.time)

    @property
    def added_notes(self) -> list[Note]:
        """The notes that were added after the recording, in the file beside it."""
        return self._notes_beside()[0]

    def add_note(self, note: Note) -> None:
        """Keeps a note beside the trace. Raises FabrictwinError where it cannot be written."""
        sidecar.append(self.path, note)
        self._sidecar = None

    def info(self) -> dict[str, Any]:
        """What `trace info --json` prints."""
        from replay.info import info

        return info(self)

    def _notes_beside(self) -> tuple[list[Note], list[str]]:
        if self._sidecar is None:
            self._sidecar = sidecar.read(self.path)
        return self._sidecar

    def open(self) -> BinaryIO:
        """The file, at its beginning."""
        try:
            return self.path.open("rb")
        except OSError as problem:
            raise self._unreadable(problem) from problem

    def _unreadable(self, problem: OSError) -> InputError:
        return InputError(f"{self.path}: cannot be read: {problem.strerror}")


def remind(twin: Twin, record: Record) -> None:
    """Tells a twin what people said of an incident, where the record holds that."""
    if isinstance(record, Said):
        twin.recall(record.incident)


def open_trace(path: str | os.PathLike[str], *, topology: Topology | None = None) -> Trace:
    """The trace in the file at `path`, told apart by content: `.mcap`, `.jsonl` or `.jsonl.zst`.

    topology: the wiring to use instead of the recorded one; a text trace has none of its own, and asking for
    it then raises InputError. Raises InputError where the file is not a trace; a cut file is opened.
    """
    where = Path(path)
    beginning, size = _peek(where)
    if MCAP_MAGIC.startswith(beginning[: len(MCAP_MAGIC)]):
        from replay.mcaptrace import McapTrace

        return McapTrace(where, size, topology)
    if ZSTD_MAGIC.startswith(beginning[: len(ZSTD_MAGIC)]):
        return _compressed(where, size, topology)
    if b"\0" in beginning or not _is_utf8(beginning):
        raise InputError(f"{where}: not a trace; expected {', '.join(SUFFIXES)}, found other binary data")
    from replay.texttrace import TextTrace

    return TextTrace(where, size, topology, ".jsonl")


def _peek(path: Path) -> tuple[bytes, int]:
    """The first bytes of a file and its size. Raises InputError where there is nothing to read."""
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            raise InputError(f"{path}: a directory; expected a trace ({', '.join(SUFFIXES)})")
        if not stat.S_ISREG(status.st_mode):
            raise InputError(f"{path}: not a file; a trace is read more than once, so write it to a file first")
        if status.st_size == 0:
            raise InputError(f"{path}: empty; expected a trace ({', '.join(SUFFIXES)})")
        with path.open("rb") as stream:
            return stream.read(_PEEK), status.st_size
    except FileNotFoundError as problem:
        raise InputError(f"{path}: no such file") from problem
    except OSError as problem:
        raise InputError(f"{path}: cannot be read: {problem.strerror}") from problem


def _compressed(path: Path, size: int, topology: Topology | None) -> Trace:
    from replay.texttrace import TextTrace, decompressed

    with path.open("rb") as stream:
        text = next(decompressed(stream, Tally()), b"")[:_PEEK]
    if text.startswith(MCAP_MAGIC):
        raise InputError(f"{path}: a compressed recording; decompress it first (zstd -d)")
    if b"\0" in text or not _is_utf8(text):
        raise InputError(f"{path}: not a trace; expected JSON lines in it, found other binary data")
    return TextTrace(path, size, topology, ".jsonl.zst")


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError as problem:
        return problem.reason == "unexpected end of data"  # the last character is cut
    return True
