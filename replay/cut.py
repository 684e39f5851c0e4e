"""A part of a trace, by time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from replay.analyze import show_span
from replay.records import Record
from replay.trace import Trace, open_trace
from replay.when import bound
from replay.writing import Progress, Written, everything, rewrite
from twin.errors import InputError
from twin.frames import Frame
from twin.topology.model import Topology


def cut(
    source: str | os.PathLike[str], target: str | os.PathLike[str], start: str | None, end: str | None, *,
    topology: Topology | None = None, site: dict[str, Any] | None = None, progress: Progress | None = None,
) -> Written:  # fmt: skip
    """Writes what lies at or after `start` and before `end` (as `replay.when` reads them) to `target`.

    Each record by its own time, in the order of arrival: two cuts at one moment hold together what the whole held.
    Raises InputError where no frame lies there.
    """
    trace = open_trace(source, topology=topology)
    first, last = span(trace, start, end)
    site = trace.site if site is None else site
    return rewrite([trace], target, _within(trace, first, last), lambda: trace.topology, site, progress=progress)


def span(trace: Trace, start: str | None, end: str | None) -> tuple[int, int]:
    """The times that are meant, ns, the second one excluded. Raises InputError where nothing can lie there."""
    if trace.start is None or trace.end is None:
        raise InputError(f"{trace.path}: holds no frames")
    first = trace.start if start is None else bound("--from", start, trace.start, trace.end)
    last = trace.end + 1 if end is None else bound("--to", end, trace.start, trace.end)
    held = f"{trace.path} goes from {show_span(trace.start, trace.end)}"
    if first > trace.end or last <= trace.start:
        raise InputError(f"nothing was recorded then; {held}")
    if last <= first:
        raise InputError(f"--to: {end or 'the end'} is not after --from {start or 'the beginning'}; {held}")
    return first, last


def _within(trace: Trace, first: int, last: int) -> Iterator[Record]:
    frames = 0
    for record in everything(trace):
        if first <= record.time < last:
            frames += isinstance(record, Frame)
            yield record
    if not frames:
        raise InputError(f"{trace.path}: no frame from {show_span(first, last)}")
