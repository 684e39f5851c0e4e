"""A share of time that is more than tolerated, summed up until it has cost too much (Page's cumulative sum, 1954).

A short burst costs little and is forgotten; a lasting excess is told the sooner the larger it is.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from twin.frames import NS

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
Bool = npt.NDArray[np.bool_]

_LEAST_READINGS = 2  # above it in a row: one may be an average over a single stall


class Excess:
    """tolerated: share; limit: seconds of excess. Arrays over entities; an unknown share changes nothing.

    over: the last known share is above the tolerated one. on: the excess has reached the limit, until the share is
    below half of what is tolerated. since: event time of the first reading of the present excess, 0 for none.
    steady: the smaller of the last two shares, NaN where one of them is unknown.
    """

    def __init__(self, n: int, tolerated: float, limit: float) -> None:
        self._tolerated, self._limit = tolerated, limit
        self.sum = np.zeros(n)
        self.over, self.on = np.zeros(n, bool), np.zeros(n, bool)
        self.since = np.zeros(n, np.int64)
        self.share, self.steady = np.full(n, np.nan), np.full(n, np.nan)
        self._time, self._run = np.zeros(n, np.int64), np.zeros(n, np.int64)

    def note(self, share: F64, time: I64) -> None:
        """share: of each entity now, NaN unknown. time: event time of its reading."""
        fresh = (time > self._time) & ~np.isnan(share)
        seconds = np.where(self._time > 0, (time - self._time) / NS, 0.0)
        above = np.nan_to_num(share) >= self._tolerated
        gain = np.where(fresh, (np.nan_to_num(share) - self._tolerated) * seconds, 0.0)
        self.sum = np.clip(self.sum + gain, 0, 2 * self._limit)
        self.steady = np.where(fresh, np.minimum(share, self.share), np.where(np.isnan(share), np.nan, self.steady))
        self.share = np.where(fresh | np.isnan(share), share, self.share)
        self._run = np.where(fresh, np.where(above, self._run + 1, 0), self._run)
        self.over = np.where(fresh, above, self.over)
        begins = fresh & above & (self.since == 0)
        self.since[begins] = time[begins]
        self.since[~self.over & (self.sum <= 0)] = 0
        self.on |= self.over & (self.sum >= self._limit) & (self._run >= _LEAST_READINGS)
        ended = self.on & fresh & (np.nan_to_num(share) < self._tolerated / 2)
        self.on &= ~ended
        self.sum[ended] = self.since[ended] = 0
        self._time = np.maximum(self._time, time)

    def brewing(self) -> bool:
        """Whether anything is half way to being told, or has been."""
        return bool(self.on.any() or (self.sum[self.over] >= self._limit / 2).any())
