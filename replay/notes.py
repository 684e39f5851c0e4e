"""Notes that are added to a finished trace: one JSON object a line in `TRACE.notes.jsonl` beside it.

A recording is evidence and is never rewritten.
"""

from __future__ import annotations

from pathlib import Path

from replay.records import Note
from twin.errors import FabrictwinError, InputError


def path_for(trace: Path) -> Path:
    """The file that holds the notes added to `trace`."""
    return trace.with_name(trace.name + ".notes.jsonl")


def read(trace: Path) -> tuple[list[Note], list[str]]:
    """The notes added to `trace`, and what in their file cannot be read."""
    path = path_for(trace)
    try:
        lines = path.read_bytes().splitlines()
    except FileNotFoundError:
        return [], []
    except OSError as problem:
        return [], [f"{path}: cannot be read: {problem.strerror}"]
    notes: list[Note] = []
    problems: list[str] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            notes.append(Note.from_json(line))
        except InputError as problem:
            problems.append(f"{path}:{number}: {problem}")
    return notes, problems


def append(trace: Path, note: Note) -> None:
    """Adds a note. Raises FabrictwinError where it cannot be written."""
    path = path_for(trace)
    try:
        with path.open("ab") as stream:
            stream.write(note.to_json() + b"\n")
    except OSError as problem:
        raise FabrictwinError(f"{path}: the note was not kept: {problem.strerror}") from problem
