"""What readings say over time: how much a counter grew lately, and whether a condition that comes and goes prevails.

Both go by the readings of each entity and their event times, so that what is not read neither adds nor fades.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from twin.detectors.rules import ns
from twin.frames import NS
from twin.state import F64, I64, Series

Bool = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.intp]
_MINUTE = 60 * NS


class Growth:
    """Increase of a whole-numbered counter within the last one to two `span` seconds, exact however slowly it grows.

    A restart forgets what was before it; a saturated counter and a change of source count as no growth. total:
    float64[n]. times: int64[n], in how many different minutes it may have grown, so that one burst is told from what
    goes on. first, last: int64[n], event time of the first and the last reading that showed it, 0 for none;
    begun: of the reading before the first. read: of the last reading taken.
    """

    def __init__(self, n: int, span: float) -> None:
        self.span = ns(span)
        self.total = np.zeros(n)
        self.times = np.zeros(n, np.int64)
        self.first = np.zeros(n, np.int64)
        self.last = np.zeros(n, np.int64)
        self.begun = np.zeros(n, np.int64)
        self._now, self._before = np.zeros((2, n)), np.zeros((2, n))  # of this span and the one before: total, times
        self._bucket = np.zeros(n, np.int64)
        self.read = np.zeros(n, np.int64)
        self._raw: npt.NDArray[np.uint64] | F64 | None = None

    def note(self, series: Series) -> None:
        """Takes the latest readings."""
        assert series.raw is not None
        if self._raw is None:
            self._raw, self.read = series.raw.copy(), series.time.copy()
            return
        new = series.time > self.read
        if not new.any():
            return
        moved = new & (series.raw != self._raw)
        rows = np.flatnonzero(moved | (new & (self.total > 0)))
        if len(rows):  # few: counters of errors mostly stand still
            bucket = series.time[rows] // self.span
            turned = bucket != self._bucket[rows]
            self._turn(rows[turned], bucket[turned])
            self._add(rows[moved[rows]], series)
        if new.all():
            self._raw[:], self.read[:] = series.raw, series.time
        else:
            self._raw[new], self.read[new] = series.raw[new], series.time[new]

    def _add(self, rows: Rows, series: Series) -> None:
        assert series.raw is not None and self._raw is not None
        now, before = series.raw[rows], self._raw[rows]
        fell = rows[now < before]
        self._now[:, fell] = self._before[:, fell] = 0.0
        rows = rows[(now > before) & ~np.isnan(series.value[rows])]
        grown = (series.raw[rows] - self._raw[rows]).astype(np.float64)
        time, read = series.time[rows], self.read[rows]
        same = self.last[rows] // _MINUTE == time // _MINUTE
        self._now[0, rows] += grown
        self._now[1, rows] += np.minimum(grown, np.where(same, 0, 1) + (time - read) // _MINUTE)
        begins = self.first[rows] == 0
        self.first[rows] = np.where(begins, time, self.first[rows])
        self.begun[rows] = np.where(begins, read, self.begun[rows])
        self.last[rows] = time
        self._sum(np.concatenate([rows, fell]))

    def _turn(self, rows: Rows, bucket: I64) -> None:
        """A new span begins: the one before it is kept, older ones are forgotten."""
        follows = bucket == self._bucket[rows] + 1
        self._before[:, rows] = np.where(follows, self._now[:, rows], 0.0)
        self._now[:, rows] = 0.0
        self._bucket[rows] = bucket
        self._sum(rows)

    def _sum(self, rows: Rows) -> None:
        total, times = self._now[:, rows] + self._before[:, rows]
        self.total[rows], self.times[rows] = total, times
        over = rows[total == 0]
        self.first[over] = self.last[over] = 0


class Steady:
    """Whether a condition that flickers prevails. The seconds in which it holds add up, those in which it does not
    are taken off: it is on from `lasting` seconds until nothing is left of them. since: int64[n], when it began.
    """

    def __init__(self, n: int, lasting: float) -> None:
        self.lasting = ns(lasting)
        self.since = np.zeros(n, np.int64)
        self.on = np.zeros(n, bool)
        self._held = np.zeros(n, np.int64)
        self._time = np.zeros(n, np.int64)

    def note(self, holds: F64, time: I64) -> Bool:
        """holds: 1, 0 or NaN of each entity; time: event time of its reading. Returns bool[n], where it prevails."""
        if not (self.since.any() or (holds == 1).any()):
            return self.on
        new = (time > self._time) & ~np.isnan(holds)
        yes, no = new & (holds == 1), new & (holds == 0)
        began = yes & (self.since == 0)
        passed = np.where(began | (self._time == 0), 0, time - self._time)
        self.since[began] = time[began]
        held = self._held + np.where(yes, passed, 0) - np.where(no, passed, 0)
        self._held = np.clip(held, 0, self.lasting)
        self.on = (self.on | (self._held >= self.lasting)) & ((self._held > 0) | yes)
        over = no & (self._held == 0)
        self.on[over] = False
        self.since[over] = 0
        np.copyto(self._time, time, where=new)
        return self.on
