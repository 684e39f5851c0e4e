"""When transfers are done, one event after the other, under rates that stay max-min fair."""

from __future__ import annotations

import numpy as np

from twin.flows.repair import FairRates
from twin.flows.routes import F64, Routes

_SAME = 1e-12  # completions this close, relatively, are one event


def completion_times(routes: Routes, capacity: F64, size: F64) -> F64:
    """float64[flows], seconds until each transfer is done, all starting at 0; inf for one that never is.

    capacity: float64[directed links], in units a second. size: float64[flows], in the same units.
    Raises ValueError for a size that is negative or unknown.
    """
    if not (size >= 0).all():
        raise ValueError("sizes of transfers must be known and not negative")
    rates = FairRates(routes, capacity)
    rate = np.array(rates.rate)
    left, since = np.array(size, np.float64), np.zeros(len(size))
    finish, done = _finish(0.0, left, rate), np.full(len(size), np.inf)
    while len(size) and (now := float(finish.min())) < np.inf:
        ended = np.flatnonzero(finish <= now * (1 + _SAME))
        done[ended], finish[ended] = now, np.inf
        if not (flows := rates.leave(ended.tolist())):
            continue
        left[flows] = np.maximum(left[flows] - rate[flows] * (now - since[flows]), 0.0)
        since[flows] = now
        rate[flows] = [rates.rate[flow] for flow in flows]
        finish[flows] = _finish(now, left[flows], rate[flows])
    return done


def _finish(now: float, left: F64, rate: F64) -> F64:
    """When flows will be done at these rates; one that stands still never, unless it has nothing left to send."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return now + np.where(left > 0, left / rate, 0.0)
