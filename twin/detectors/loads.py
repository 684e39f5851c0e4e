"""What was drawn over the last minute: smoothed, growing, swinging."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from twin.frames import NS

F64 = npt.NDArray[np.float64]
KEPT = 60  # seconds
_SMOOTH = 3  # seconds: a spike of one sample heats no breaker
_SURE = 3.0  # standard errors that a slope must be above zero, in both halves of the minute


class Loads:
    """Load (W) of each of `n` things once a second, NaN unknown."""

    def __init__(self, n: int) -> None:
        self.rows = np.full((KEPT, n), np.nan)
        self._last = 0

    def note(self, now: int, load: F64) -> None:
        """Seconds without an evaluation stay unknown."""
        steps = min(KEPT, max(1, (now - self._last) // NS)) if self._last else KEPT
        self._last = now
        self.rows[:-steps] = self.rows[steps:]
        self.rows[-steps:] = np.nan
        self.rows[-1] = load

    def smooth(self) -> F64:
        """Mean of the last seconds, NaN where the last is unknown."""
        last = self.rows[-_SMOOTH:]
        known = ~np.isnan(last)
        mean = np.nansum(last, 0) / np.maximum(known.sum(0), 1)
        out: F64 = np.where(known[-1], mean, np.nan)
        return out

    def growth(self, column: int) -> float:
        """W a second, where it grew all through the last minute; 0 where not, or where too little is known.

        Both halves must rise: a job that started is a step, no trend.
        """
        y = self.rows[:, column]
        halves = [_slope(y[: KEPT // 2]), _slope(y[KEPT // 2 :])]
        if not all(slope > _SURE * error for slope, error in halves):
            return 0.0
        return _slope(y)[0]

    def swing(self, seconds: int) -> F64:
        """Peak to peak within the last seconds as a share of the peak; NaN where a reading is missing."""
        last = self.rows[-seconds:]
        peak = last.max(0)
        with np.errstate(invalid="ignore", divide="ignore"):
            share: F64 = np.where(peak > 0, (peak - last.min(0)) / peak, np.nan)
        return share

    def turns(self, column: int, seconds: int) -> tuple[int, int]:
        """How often it went from the lower third of its range to the upper one, or back, and how many seconds ago it
        did so first."""
        y = self.rows[-seconds:, column]
        low, high = y.min(), y.max()
        third = (high - low) / 3
        sides = np.where(y <= low + third, -1, np.where(y >= high - third, 1, 0))
        at = np.flatnonzero(sides)
        turned = np.flatnonzero(np.diff(sides[at]))
        return len(turned), len(y) - int(at[turned[0]]) - 1 if len(turned) else 0


def _slope(y: F64) -> tuple[float, float]:
    """Least squares: slope a second and its standard error; (0, inf) with fewer than half of the readings."""
    x = np.flatnonzero(~np.isnan(y)).astype(np.float64)
    if len(x) < max(3, len(y) // 2):
        return 0.0, np.inf
    y = y[~np.isnan(y)]
    dx, dy = x - x.mean(), y - y.mean()
    square = float(dx @ dx)
    slope = float(dx @ dy) / square
    rest = dy - slope * dx
    return slope, float(np.sqrt(rest @ rest / (len(x) - 2) / square))
