"""Known series as rows, and their readings as frames, in a few steps over arrays of all readings at once.

Each value has a cell: one metric of one entity. The cells of one frame lie one behind the other, metric by metric.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from collectors.prometheus.places import Meaning, Place
from twin.frames import UNKNOWN_U64, Column, Frame
from twin.metrics import REGISTRY, Metric

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
Rows = npt.NDArray[np.intp]

NOWHERE = -1
Naming = Callable[[str, str], str]  # device, profile -> source of its frames


@dataclass(slots=True, eq=False)
class _Group:
    """What goes into one frame, and where its part of all cells, columns and entities begins."""

    source: str
    kind: str
    metrics: dict[str, int] = field(default_factory=dict)  # -> number
    names: dict[str, int] = field(default_factory=dict)  # -> number
    addresses: tuple[str, ...] = ()
    whole: list[bool] = field(default_factory=list)  # of each metric: its column is of whole numbers
    cell: int = 0
    column: int = 0
    entity: int = 0


class Table:
    """Grows with every series that is met. A row is the number of a series, in the order in which they were added.

    Of several series for one value the one that comes first in its profile is believed. Counters of two series names
    are never mixed, since the difference between them is no increase.
    """

    def __init__(self, naming: Naming) -> None:
        self._naming = naming
        self._places: list[Place | None] = []
        self._seen: I64 = np.zeros(0, np.int64)  # time of the last reading of each row
        self._lay_out()

    def __len__(self) -> int:
        return len(self._places)

    def add(self, places: Iterable[Place | None]) -> None:
        """More series; None is one without a place."""
        self._places.extend(places)
        self._seen = np.concatenate([self._seen, np.zeros(len(self._places) - len(self._seen), np.int64)])
        self._lay_out()

    def fresh(self, rows: Rows, times: I64) -> npt.NDArray[np.bool_]:
        """bool[readings]: those with another time than the last reading of their row, which they become."""
        new: npt.NDArray[np.bool_] = self._seen[rows] != times
        self._seen[rows] = times
        return new

    def alive(self, span: int) -> int:
        """How many rows had a reading within `span` ns of the newest one."""
        return int(np.count_nonzero(self._seen > self._seen.max(initial=0) - span))

    def frames(self, rows: Rows, values: F64, times: I64) -> list[Frame]:
        """Frames of readings, one a group: its time is that of the newest reading, entities without one are left out.

        rows: intp[n]; values: float64[n], as the source has them; times: int64[n], ns.
        """
        cell = self._cell[rows]
        ours = cell >= 0
        if not ours.all():
            rows, values, times, cell = rows[ours], values[ours], times[ours], cell[ours]
        ours_now = np.where(values >= self._limit[rows], np.nan, values * self._scale[rows])
        meaning = self._meaning[rows]
        for number, pairs in enumerate(self._meanings):
            chosen = meaning == number
            ours_now[chosen] = _translated(values[chosen], pairs)
        newest = np.zeros(len(self._groups), np.int64)
        np.maximum.at(newest, self._group_of[cell], times)
        heard, given = np.zeros(self._n_entities, bool), np.zeros(self._n_columns, bool)
        heard[self._entity_of[cell]] = given[self._column_of[cell]] = True
        if self._twice:
            order = np.lexsort((times, -self._rank[rows]))  # what is believed most comes last, and stays
            ours_now, cell = ours_now[order], cell[order]
        known = ~np.isnan(ours_now)
        floats = np.full(len(self._group_of), np.nan)
        floats[cell[known]] = ours_now[known]
        wholes = np.full(len(floats), UNKNOWN_U64, np.uint64)
        fits = (floats >= 0) & (floats < 2.0**64)
        wholes[fits] = floats[fits].astype(np.uint64)
        return [
            self._frame(group, int(time), floats, wholes, heard, given)
            for group, time in zip(self._groups, newest.tolist(), strict=True)
            if time
        ]

    def _frame(
        self,
        group: _Group,
        time: int,
        floats: F64,
        wholes: npt.NDArray[np.uint64],
        heard: npt.NDArray[np.bool_],
        given: npt.NDArray[np.bool_],
    ) -> Frame:
        n, first = len(group.addresses), group.cell
        columns: dict[str, Column] = {}
        for metric, whole, there in zip(
            group.metrics, group.whole, given[group.column : group.column + len(group.whole)].tolist(), strict=True
        ):
            if there:
                columns[metric] = (wholes if whole else floats)[first : first + n]
            first += n
        if group.kind == "port" and "speed_bits_per_second" in columns:
            columns["speed_bits_per_second"] = _speed(columns["speed_bits_per_second"], columns.get("up"))
        names, said = group.addresses, heard[group.entity : group.entity + n]
        if not said.all():
            names = tuple(name for name, there in zip(names, said.tolist(), strict=True) if there)
            columns = {metric: values[said] for metric, values in columns.items()}
        return Frame(time, group.source, group.kind, names, columns)

    # --- which series lies where ---

    def _lay_out(self) -> None:
        groups: dict[tuple[str, str, str], _Group] = {}
        spots: list[tuple[int, Place, _Group, int, int]] = []  # row, place, group, number of metric and of name
        for row, place in enumerate(self._places):
            address = None if place is None else place.find()
            if place is None or address is None:
                continue
            rule = place.rule
            kind, source = rule.entity.kind, self._naming(address.partition("/")[0], rule.profile)
            group = groups.setdefault((source, rule.profile, kind), _Group(source, kind))
            metric = group.metrics.setdefault(rule.entry.to, len(group.metrics))
            spots.append((row, place, group, metric, group.names.setdefault(address, len(group.names))))
        self._groups = list(groups.values())
        self._number_cells()
        self._fill_rows(spots)

    def _number_cells(self) -> None:
        """Of each cell: its group, column and entity."""
        cells = columns = entities = 0
        of_group, of_column, of_entity = [np.zeros(0, np.intp)], [np.zeros(0, np.intp)], [np.zeros(0, np.intp)]
        for number, group in enumerate(self._groups):
            n, m = len(group.names), len(group.metrics)
            group.cell, group.column, group.entity = cells, columns, entities
            group.addresses = tuple(group.names)
            group.whole = [_is_whole(REGISTRY[group.kind, metric]) for metric in group.metrics]
            of_group.append(np.full(n * m, number, np.intp))
            of_column.append(np.repeat(np.arange(columns, columns + m), n))
            of_entity.append(np.tile(np.arange(entities, entities + n), m))
            cells, columns, entities = cells + n * m, columns + m, entities + n
        self._group_of, self._column_of, self._entity_of = map(np.concatenate, (of_group, of_column, of_entity))
        self._n_columns, self._n_entities = columns, entities

    def _fill_rows(self, spots: list[tuple[int, Place, _Group, int, int]]) -> None:
        """Of each row: its cell, and how its values become ours."""
        n = len(self._places)
        self._cell: Rows = np.full(n, NOWHERE, np.intp)
        self._scale, self._limit = np.ones(n), np.full(n, np.inf)
        self._rank, self._meaning = np.zeros(n, np.int64), np.full(n, NOWHERE, np.intp)
        meanings: dict[Meaning, int] = {}
        best: dict[int, int] = {}  # counter's cell -> lowest rank
        feeds: dict[int, int] = {}
        for row, place, group, metric, name in spots:
            rule = place.rule
            cell = group.cell + metric * len(group.addresses) + name
            self._cell[row], self._rank[row] = cell, rule.rank
            self._scale[row], self._limit[row] = rule.entry.scale, rule.unknown_from
            if place.meaning is not None:
                self._meaning[row] = meanings.setdefault(place.meaning, len(meanings))
            feeds[cell] = feeds.get(cell, 0) + 1
            if REGISTRY[group.kind, rule.entry.to].counter:
                best[cell] = min(best.get(cell, rule.rank), rule.rank)
        self._meanings = [pairs or () for pairs in meanings]
        self._twice = any(n > 1 for n in feeds.values())
        for row, place, *_ in spots if self._twice else ():
            if place.rule.rank > best.get(int(self._cell[row]), place.rule.rank):
                self._cell[row] = NOWHERE


def _is_whole(metric: Metric) -> bool:
    """False for gauges, and for counters of seconds and joules."""
    return metric.counter and metric.unit not in ("s", "J")


def _translated(values: F64, pairs: tuple[tuple[float, float], ...]) -> F64:
    out = np.full(len(values), np.nan)
    for said, meant in pairs:
        out[values == said] = meant
    return out


def _speed(speed: Column, up: Column | None) -> Column:
    """A port that is down has no speed, whatever it says; what is not above zero is no speed either."""
    known = speed > 0
    if up is not None:
        known &= up != 0
    return np.where(known, speed, np.nan)
