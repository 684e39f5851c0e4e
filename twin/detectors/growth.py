"""How far counters have gone since they were last looked at: whole counts, however often they were read between."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from twin.frames import NS, UNKNOWN_U64
from twin.state import Series

F64 = npt.NDArray[np.float64]


class Growth:
    """Remembers the last reading of each entity. known: event time of the last one that said something."""

    def __init__(self, n: int) -> None:
        self._raw = np.full(n, UNKNOWN_U64, np.uint64)
        self._time = np.zeros(n, np.int64)
        self._owner = np.full(n, -1, np.int32)
        self.known = np.zeros(n, np.int64)

    def since_last(self, series: Series) -> tuple[F64, F64]:
        """Increase of each counter and seconds since the reading before, 0 where there is no new one.

        Nothing is added where a counter fell, is unknown, stands at its limit or is read by another source now.
        """
        assert series.raw is not None
        raw = series.raw.astype(np.uint64, copy=False)
        new = series.time > self._time
        known = new & (raw != UNKNOWN_U64) & (self._raw != UNKNOWN_U64) & (raw > self._raw)
        known &= series.owner == self._owner
        full = series.saturated if series.saturated is not None else np.zeros(len(raw), bool)
        known &= ~full
        self.known = np.where(new & ~full & (raw != UNKNOWN_U64), series.time, self.known)
        step = np.where(known, raw - np.where(known, self._raw, raw), 0).astype(np.float64)
        seconds = np.where(new & (self._time > 0), (series.time - self._time) / NS, 0.0)
        self._raw = np.where(new, raw, self._raw)
        self._owner = np.where(new, series.owner, self._owner)
        self._time = np.where(new, series.time, self._time)
        return step, seconds
