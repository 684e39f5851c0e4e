"""Conversion between the forms of a trace: `.mcap`, `.jsonl` and `.jsonl.zst`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import zstandard

from replay import notes as sidecar
from replay.layout import SUFFIXES
from replay.recorder import Recorder, RecordingError
from replay.records import Note, Said
from replay.trace import Trace, open_trace
from twin.errors import FabrictwinError, InputError
from twin.frames import Frame, to_line
from twin.metrics import REGISTRY
from twin.topology.model import Topology

Progress = Callable[[int], None]

_PROGRESS_FRAMES = 1000
_CHUNK_SECONDS = 10.0  # of event time: nothing is lost in a crash, and larger chunks pack better
_ZSTD_LEVEL = 9


@dataclass(slots=True)
class Converted:
    """What a conversion did. truncated: the input was; problems: what could not be read or kept."""

    frames: int = 0
    notes: int = 0
    bytes: int = 0
    truncated: bool = False
    problems: list[str] = field(default_factory=list)


def convert(
    source: str | os.PathLike[str], target: str | os.PathLike[str], *,
    topology: Topology | None = None, site: dict[str, Any] | None = None, progress: Progress | None = None,
) -> Converted:  # fmt: skip
    """Writes the trace at `source` to `target`, in the form that the name of `target` says.

    A file that is there is replaced, and only by a finished one. topology, site: for a text trace that
    becomes an `.mcap`. A cut trace gives what is left of it. Raises InputError, and FabrictwinError where the
    target cannot be written.
    """
    trace, path = open_trace(source, topology=topology), Path(target)
    suffix = format_of(path)
    if path.exists() and path.samefile(trace.path):
        raise InputError(f"{path}: would be written over itself; choose another name")
    done = Converted()
    with _replacing(path) as new:
        if suffix == ".mcap":
            _to_mcap(trace, new, trace.site if site is None else site, done, progress)
        else:
            _to_text(trace, new, suffix == ".jsonl.zst", done, progress)
    if suffix != ".mcap":
        done.notes = _keep_notes(trace, path)
    done.bytes = path.stat().st_size
    done.truncated, done.problems = trace.truncated, trace.problems + done.problems
    return done


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
    trace: Trace, path: Path, site: dict[str, Any] | None, done: Converted, progress: Progress | None
) -> None:
    with Recorder(path, trace.topology, site, chunk_seconds=_CHUNK_SECONDS, live=False) as recorder:
        for record in trace.records():
            recorder.add(record)
            done.notes += isinstance(record, Note)
            if isinstance(record, Frame):
                _count(done, progress)
        for note in trace.added_notes:
            recorder.add(note)
            done.notes += 1


def _to_text(trace: Trace, path: Path, packed: bool, done: Converted, progress: Progress | None) -> None:
    said = 0
    unknown: set[str] = set()
    with path.open("wb") as stream, _packer(stream, packed) as out:
        for record in trace.records():
            if isinstance(record, Frame):
                out.write(to_line(_registered(record, unknown)).encode() + b"\n")
                _count(done, progress)
            said += isinstance(record, Said)
    if unknown:
        done.problems.append(f"metrics that this program does not know are left out: {', '.join(sorted(unknown))}")
    if said:
        done.problems.append(f"{said} records of incidents are left out: text holds frames; analyze finds them again")


def _keep_notes(trace: Trace, path: Path) -> int:
    """Puts the notes of `trace` beside a text trace, those that are not there yet."""
    there = set(sidecar.read(path)[0])
    for note in trace.notes:
        if note not in there:
            sidecar.append(path, note)
    return len(trace.notes)


@contextmanager
def _packer(stream: BinaryIO, packed: bool) -> Iterator[BinaryIO]:
    if not packed:
        yield stream
        return
    with zstandard.ZstdCompressor(level=_ZSTD_LEVEL).stream_writer(stream, closefd=False) as out:
        yield out


def _registered(frame: Frame, unknown: set[str]) -> Frame:
    """`frame` without the metrics that reading the text again would refuse."""
    strange = [metric for metric in frame.columns if (frame.kind, metric) not in REGISTRY]
    if not strange:
        return frame
    unknown.update(f"{frame.kind} {metric}" for metric in strange)
    columns = {metric: values for metric, values in frame.columns.items() if metric not in strange}
    return Frame(frame.time, frame.source, frame.kind, frame.names, columns)


def _count(done: Converted, progress: Progress | None) -> None:
    done.frames += 1
    if progress is not None and done.frames % _PROGRESS_FRAMES == 0:
        progress(done.frames)
