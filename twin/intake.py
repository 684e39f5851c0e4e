"""Intake: frames wait here until the next evaluation, then each metric is taken in a few large steps.

The n-th frames of all sources since the last evaluation are taken together, so that a thousand small
frames cost what one large one does and the order within a source is kept.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from twin.frames import Column, Frame
from twin.sources import Sources
from twin.state import KindState, Rows
from twin.topology.model import Topology

_Part = tuple[Rows, Column, int, int, int]  # rows, values, event time, its source's own time, source


class Intake:
    """Collects frames of entities and hands them to the tables of their kind."""

    def __init__(self, topo: Topology, sources: Sources) -> None:
        self.topo, self.sources = topo, sources
        self.unknown_names: dict[str, int] = {}  # names the wiring does not have -> how often they came anew
        self._rows: dict[tuple[str, int], tuple[tuple[str, ...], Rows]] = {}
        self._rounds: list[dict[tuple[str, str, str], list[_Part]]] = []
        self._seen: dict[tuple[str, int], int] = {}

    def add(self, frame: Frame, time: int, now: int) -> None:
        """time: event time of the frame, which its source's clock may differ from. now: when it came in."""
        source = self.sources.heard(frame.source, time, now, len(frame.names))
        key = (frame.kind, source)
        place = self._seen.get(key, 0)
        self._seen[key] = place + 1
        if place == len(self._rounds):
            self._rounds.append({})
        rows, parts = self._resolve(frame, key), self._rounds[place]
        for metric, values in frame.columns.items():
            parts.setdefault((frame.kind, metric, values.dtype.char), []).append(
                (rows, values, time, frame.time, source)
            )

    def flush(self, table: Callable[[str], KindState]) -> None:
        """Hands over all that waits. table: the table of a kind."""
        patience = self.sources.patience()
        for parts in self._rounds:
            for (kind, metric, _), columns in parts.items():
                rows, values, times, stamps, sources = zip(*columns, strict=True)
                sizes = [len(r) for r in rows]
                table(kind).update(
                    metric,
                    np.concatenate(rows),
                    np.concatenate(values),
                    np.repeat(np.array(times, np.int64), sizes),
                    np.repeat(np.array(stamps, np.int64), sizes),
                    np.repeat(np.array(sources, np.int32), sizes),
                    patience,
                )
        self._rounds.clear()
        self._seen.clear()

    def _resolve(self, frame: Frame, key: tuple[str, int]) -> Rows:
        """Names to rows, -1 for names that are not in the wiring; remembered a source and kind."""
        cached = self._rows.get(key)
        if cached is not None and (cached[0] is frame.names or cached[0] == frame.names):
            return cached[1]
        index = self.topo.rows(frame.kind)
        rows: Rows = np.fromiter((index.get(n, -1) for n in frame.names), dtype=np.intp, count=len(frame.names))
        for i in np.flatnonzero(rows < 0).tolist():
            self.unknown_names[frame.names[i]] = self.unknown_names.get(frame.names[i], 0) + 1
        self._rows[key] = (frame.names, rows)
        return rows
