"""A short memory of readings, which a screen keeps while it is open: the twin keeps no history of its parts."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

F64 = npt.NDArray[np.float64]
KEPT = 120  # readings


class Ring:
    """The last readings of some columns, one a snapshot."""

    def __init__(self, kept: int = KEPT) -> None:
        self._kept = kept
        self._times: list[int] = []
        self._values: list[F64] = []
        self._of: object = None

    def note(self, of: object, time: int, values: F64) -> None:
        """Takes the readings of a time, ns. It begins anew where they are of something else, or time went back."""
        if of != self._of or (self._times and (time < self._times[-1] or values.shape != self._shape())):
            self._of, self._times, self._values = of, [], []
        if self._times and time == self._times[-1]:
            self._values[-1] = values
            return
        self._times.append(time)
        self._values.append(values)
        if len(self._times) > self._kept:
            del self._times[0], self._values[0]

    def _shape(self) -> tuple[int, ...]:
        return self._values[-1].shape if self._values else ()

    @property
    def seconds(self) -> float:
        """How long it reaches back."""
        return (self._times[-1] - self._times[0]) / 1e9 if self._times else 0.0

    @property
    def rows(self) -> F64:
        """float64[readings, columns], oldest first."""
        return np.array(self._values, dtype=np.float64).reshape(len(self._values), *self._shape())

    def swing(self) -> F64:
        """float64[columns]: the highest less the lowest reading, NaN where fewer than two are known."""
        rows = self.rows
        known = np.count_nonzero(~np.isnan(rows), axis=0)
        high = np.where(np.isnan(rows), -np.inf, rows).max(0, initial=-np.inf)
        low = np.where(np.isnan(rows), np.inf, rows).min(0, initial=np.inf)
        with np.errstate(invalid="ignore"):
            return np.where(known > 1, high - low, np.nan)
