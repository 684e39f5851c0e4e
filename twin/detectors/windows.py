"""Sums over a sliding window of event time, of many entities at a constant cost."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.intp]
F64 = npt.NDArray[np.float64]


class Window:
    """A ring of parts. total: float64[n], the sum of at least the last `span` ns less one part."""

    def __init__(self, n: int, span: int, parts: int) -> None:
        self.span = span
        self._part = span // parts
        self._ring = np.zeros((parts, n), np.float32)
        self._at = 0  # number of the present part since the epoch
        self.total = np.zeros(n)

    def add(self, now: int, rows: Rows, amount: F64) -> None:
        """Adds to the part of `now`, which never goes back."""
        part, parts = now // self._part, len(self._ring)
        for old in range(max(self._at + 1, part - parts + 1), part + 1):
            self.total -= self._ring[old % parts]
            self._ring[old % parts] = 0
        self._at = max(self._at, part)
        self._ring[self._at % parts][rows] += amount
        self.total[rows] += amount

    def forget(self, rows: Rows) -> None:
        """Begins anew for these."""
        self._ring[:, rows] = 0
        self.total[rows] = 0
