"""Readings over time: of which entities and metrics a report shows something, and what they were."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from twin.address import kind_of
from twin.frames import NS, Frame, as_float
from twin.incident import Incident
from twin.metrics import REGISTRY
from twin.topology.model import Topology

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]

_MOST_LINES = 6  # of one incident
_ALIKE = 2  # of them, of one metric: the tenth port that is down shows nothing new
_LEAST_AROUND, _MOST_AROUND = 30 * NS, 300 * NS  # shown before and after
_HOLE = 5  # intervals without a reading, which are shown as a hole
# what is worth seeing of an entity whatever its incident is about
_COMPANIONS = {
    "port": ("up", "tx_bytes"), "gpu": ("utilization_ratio", "power_watts"), "nvlink": ("tx_bytes",),
    "psu": ("output_watts", "up"), "feed": ("power_watts",), "node": ("power_watts",),
}  # fmt: skip
_STATES = ("bool", "state", "bits", "code")  # units whose values are no quantities: drawn as steps


@dataclass(frozen=True, slots=True)
class Wanted:
    """Readings of one metric of one entity between two times, ns. expected: what the design says."""

    entity: str
    kind: str
    metric: str
    start: int
    end: int
    expected: float | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """times: int64[n], ns, rising; values: float64[n], NaN where unknown; counters are rates a second by now."""

    entity: str
    metric: str
    unit: str
    times: I64
    values: F64
    expected: float | None = None

    @property
    def is_state(self) -> bool:
        return self.unit in _STATES

    def between(self, start: int, end: int) -> Line:
        """The part of it from `start` to `end`."""
        inside = (self.times >= start) & (self.times <= end)
        return replace(self, times=self.times[inside], values=self.values[inside])

    def mean(self, start: int, end: int) -> float:
        """The mean of what is known from `start` up to `end`; NaN where nothing is."""
        values = self.values[(self.times >= start) & (self.times < end)]
        values = values[np.isfinite(values)]
        return float(values.mean()) if len(values) else float("nan")


def wanted(incident: Incident, topology: Topology, end: int) -> tuple[Wanted, ...]:
    """What to show around an incident: its evidence, then what is usual for the entities that it names."""
    ended = end if incident.resolved is None else incident.resolved
    around = min(max(ended - incident.started, _LEAST_AROUND), _MOST_AROUND)
    first, last = incident.started - around, ended + around
    expected = {(e.entity, e.metric): e.expected for e in incident.evidence}
    entities = [e.entity for e in incident.evidence] + incident.cause.split("--")
    asked = list(expected)
    for entity in dict.fromkeys(entities):
        asked.extend((entity, metric) for metric in _COMPANIONS.get(kind_of(entity), ()))
    out: list[Wanted] = []
    alike: Counter[tuple[str, str]] = Counter()
    for entity, metric in dict.fromkeys(asked):
        kind = kind_of(entity)
        alike[kind, metric] += 1
        if (
            alike[kind, metric] <= _ALIKE
            and (kind, metric) in REGISTRY
            and kind not in ("source", "link")
            and entity in topology.rows(kind)
        ):
            value = expected.get((entity, metric))
            known = float(value) if isinstance(value, int | float) else None
            out.append(Wanted(entity, kind, metric, first, last, known))
    return tuple(out[:_MOST_LINES]) or (Wanted("", "", "", first, last),)


def read_lines(frames: Iterable[Frame], asked: Iterable[Wanted]) -> dict[Wanted, Line]:
    """One pass over frames for all that is asked for."""
    of_kind: dict[str, dict[str, list[Wanted]]] = {}
    for want in asked:
        if want.kind:
            of_kind.setdefault(want.kind, {}).setdefault(want.entity, []).append(want)
    found: dict[Wanted, list[tuple[int, float]]] = {}
    where: dict[tuple[str, tuple[str, ...]], list[tuple[int, Wanted]]] = {}
    if of_kind:
        for frame in frames:
            key = (frame.kind, frame.names)
            places = where.get(key)
            if places is None:
                entities = of_kind.get(frame.kind, {})
                places = where[key] = [(i, w) for i, n in enumerate(frame.names) for w in entities.get(n, ())]
            for place, want in places:
                column = frame.columns.get(want.metric)
                if column is not None and want.start <= frame.time <= want.end:
                    value = float(as_float(column[place : place + 1])[0])
                    found.setdefault(want, []).append((frame.time, value))
    return {want: _line(want, readings) for want, readings in found.items()}


def _line(want: Wanted, readings: list[tuple[int, float]]) -> Line:
    metric = REGISTRY[want.kind, want.metric]
    readings.sort()
    times = np.array([time for time, _ in readings], np.int64)
    values = np.array([value for _, value in readings])
    if metric.counter:
        times, values = _rates(times, values)
    unit = f"{metric.unit}/s" if metric.counter else metric.unit
    return Line(want.entity, want.metric, unit, *_with_holes(times, values), want.expected)


def _rates(times: I64, values: F64) -> tuple[I64, F64]:
    """Increases a second; unknown where a counter began anew."""
    new = np.append(True, np.diff(times) > 0)
    times, values = times[new], values[new]
    if len(times) < 2:
        return times[:0], values[:0]
    grown = np.diff(values)
    return times[1:], np.where(grown >= 0, grown, np.nan) / (np.diff(times) / NS)


def _with_holes(times: I64, values: F64) -> tuple[I64, F64]:
    """An unknown value in the middle of each long silence."""
    if len(times) < 3:
        return times, values
    steps = np.diff(times)
    holes = np.flatnonzero(steps > _HOLE * np.median(steps))
    return (
        np.insert(times, holes + 1, times[holes] + steps[holes] // 2),
        np.insert(values, holes + 1, np.nan),
    )


def runs(line: Line, most: int) -> Iterator[tuple[I64, F64]]:
    """The stretches in which a line is known, each of at most `most` points that keep its ups and downs."""
    known = np.isfinite(line.values)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], known, [False]]).astype(np.int8)))
    for first, last in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        times, values = line.times[first:last], line.values[first:last]
        if len(times) > most:
            parts = np.array_split(np.arange(len(times)), most // 2)
            kept = sorted({int(p[f(values[p])]) for p in parts for f in (np.argmin, np.argmax)} | {0, len(times) - 1})
            times, values = times[kept], values[kept]
        yield times, values
