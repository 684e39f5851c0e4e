"""Records into a trace file of any form: `.mcap`, `.jsonl` or `.jsonl.zst`, as the name of the file says."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import zstandard

from replay import notes as sidecar
from replay.layout import SUFFIXES
from replay.recorder import Recorder, RecordingError
from replay.records import Note, Record, Said
from replay.trace import Trace
from twin.errors import FabrictwinError, InputError
from twin.frames import Frame, to_line
from twin.metrics import REGISTRY
from twin.topology.model import Topology

Progress = Callable[[int], None]
"""Called now and then with the number of frames so far."""

_PROGRESS_FRAMES = 1000
_CHUNK_SECONDS = 10.0  # of event time: nothing is lost in a crash, and larger chunks pack better
_ZSTD_LEVEL = 9


@dataclass(slots=True)
class Written:
    """What was written. truncated: the input was; problems: what could not be read or kept."""

    frames: int = 0
    notes: int = 0
    bytes: int = 0
    truncated: bool = False
    problems: list[str] = field(default_factory=list)


def write_trace(
    target: str | os.PathLike[str], records: Iterable[Record], wiring: Callable[[], Topology],
    site: dict[str, Any] | None = None, *, progress: Progress | None = None,
) -> Written:  # fmt: skip
    """Writes `records` to `target`. A file that is there is replaced, and only by a finished one.

    wiring: asked for only where the form holds it. Notes of a text trace go to the file beside it. Raises
    InputError, and FabrictwinError where the target cannot be written.
    """
    path = Path(target)
    suffix = format_of(path)
    done = Written()
    notes: list[Note] = []
    with _replacing(path) as new:
        if suffix == ".mcap":
            _to_mcap(records, new, wiring(), site, done, progress)
        else:
            _to_text(records, new, suffix == ".jsonl.zst", done, notes, progress)
    if notes:
        _keep_notes(notes, path)
    done.bytes = path.stat().st_size
    return done


def rewrite(
    sources: Iterable[Trace], target: str | os.PathLike[str], records: Iterable[Record],
    wiring: Callable[[], Topology], site: dict[str, Any] | None = None, *, progress: Progress | None = None,
) -> Written:  # fmt: skip
    """`write_trace` of what was read of other traces, with what could not be read of them. Never over one of them."""
    traces, path = list(sources), Path(target)
    format_of(path)
    if path.exists() and any(path.samefile(trace.path) for trace in traces):
        raise InputError(f"{path}: would be written over itself; choose another name")
    done = write_trace(path, records, wiring, site, progress=progress)
    done.truncated = any(trace.truncated for trace in traces)
    done.problems = [problem for trace in traces for problem in trace.problems] + done.problems
    return done


def everything(trace: Trace) -> Iterator[Record]:
    """The records of a trace in the order of arrival, then the notes that were added since."""
    yield from trace.records()
    yield from trace.added_notes


def format_of(path: Path) -> str:
    """The form that a file name asks for. Raises InputError where it says none."""
    for suffix in sorted(SUFFIXES, key=len, reverse=True):
        if path.name.endswith(suffix) and path.name != suffix:
            return suffix
    raise InputError(f"{path}: cannot tell what to write; expected a name ending in {', '.join(SUFFIXES)}")


@contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    """A name beside `path` that takes its place when all went well, and is gone when not."""
    new = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        new.touch()
        yield new
        new.replace(path)
    except (OSError, RecordingError) as problem:
        reason = problem.reason if isinstance(problem, RecordingError) else problem.strerror
        raise FabrictwinError(f"{path}: cannot be written: {reason}") from problem
    finally:
        with suppress(OSError):
            new.unlink(missing_ok=True)


def _to_mcap(
    records: Iterable[Record], path: Path, topology: Topology, site: dict[str, Any] | None, done: Written,
    progress: Progress | None,
) -> None:  # fmt: skip
    with Recorder(path, topology, site, chunk_seconds=_CHUNK_SECONDS, live=False) as recorder:
        for record in records:
            recorder.add(record)
            done.notes += isinstance(record, Note)
            if isinstance(record, Frame):
                _count(done, progress)


def _to_text(
    records: Iterable[Record], path: Path, packed: bool, done: Written, notes: list[Note], progress: Progress | None
) -> None:
    said = 0
    unknown: set[str] = set()
    with path.open("wb") as stream, _packer(stream, packed) as out:
        for record in records:
            if isinstance(record, Frame):
                out.write(to_line(_registered(record, unknown)).encode() + b"\n")
                _count(done, progress)
            elif isinstance(record, Note):
                notes.append(record)
            said += isinstance(record, Said)
    done.notes = len(notes)
    if unknown:
        done.problems.append(f"metrics that this program does not know are left out: {', '.join(sorted(unknown))}")
    if said:
        done.problems.append(f"{said} records of incidents are left out: text holds frames; analyze finds them again")


def _keep_notes(notes: list[Note], path: Path) -> None:
    """Puts notes beside a text trace, those that are not there yet."""
    there = set(sidecar.read(path)[0])
    for note in sorted(notes, key=lambda note: note.time):
        if note not in there:
            sidecar.append(path, note)


@contextmanager
def _packer(stream: BinaryIO, packed: bool) -> Iterator[BinaryIO]:
    if not packed:
        yield stream
        return
    packer = zstandard.ZstdCompressor(level=_ZSTD_LEVEL, write_checksum=True)
    with packer.stream_writer(stream, closefd=False) as out:
        yield out


def _registered(frame: Frame, unknown: set[str]) -> Frame:
    """`frame` without the metrics that reading the text again would refuse."""
    strange = [metric for metric in frame.columns if (frame.kind, metric) not in REGISTRY]
    if not strange:
        return frame
    unknown.update(f"{frame.kind} {metric}" for metric in strange)
    columns = {metric: values for metric, values in frame.columns.items() if metric not in strange}
    return Frame(frame.time, frame.source, frame.kind, frame.names, columns)


def _count(done: Written, progress: Progress | None) -> None:
    done.frames += 1
    if progress is not None and done.frames % _PROGRESS_FRAMES == 0:
        progress(done.frames)
