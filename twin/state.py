"""Latest values of every entity: gauges as read, counters as rates, each with its time and its source.

Unknown is NaN. A counter that fell has wrapped (at 32 or 64 bits) or restarted; one that stands at the
limit of its hardware width is saturated; a rate above what the link can carry is a broken reading. Only
a wrap gives a rate. Late and repeated readings change nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from twin.frames import NS, UNKNOWN_U64, Column, as_float
from twin.metrics import REGISTRY, Metric

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
I32 = npt.NDArray[np.int32]
Rows = npt.NDArray[np.intp]

_HALF32, _FULL32 = np.uint64(1 << 31), np.uint64(1 << 32)
_HALF64 = np.uint64(1 << 63)
_FRACTIONAL = {"s", "J"}  # counters of these units are not whole numbers
HEADROOM = 1.25  # a measured rate may exceed the nominal one by jitter of the sampling time, not by more


@dataclass(slots=True)
class Series:
    """One metric of all entities of a kind. value: gauge or rate a second, NaN unknown; time: 0 never read."""

    metric: Metric
    value: F64
    time: I64  # event time of the last reading, known or not
    stamp: I64  # the same by its source's own clock
    owner: I32  # source that gives this metric of this entity, -1 none
    raw: npt.NDArray[np.uint64] | F64 | None  # last counter reading
    limits: npt.NDArray[np.uint64]
    saturated: npt.NDArray[np.bool_] | None
    since: I64 | None  # for `up`: time of the first reading of the present value
    falls: I32 | None  # how often it went down: `up` from 1 to 0, `link_downed` by its increase


def _series(metric: Metric, n: int) -> Series:
    raw: npt.NDArray[np.uint64] | F64 | None = None
    if metric.counter:
        raw = np.full(n, np.nan) if metric.unit in _FRACTIONAL else np.full(n, UNKNOWN_U64, np.uint64)
    switch = metric.name == "up"
    return Series(
        metric=metric,
        value=np.full(n, np.nan),
        time=np.zeros(n, np.int64),
        stamp=np.zeros(n, np.int64),
        owner=np.full(n, -1, np.int32),
        raw=raw,
        limits=np.array(metric.limits, dtype=np.uint64),
        saturated=np.zeros(n, bool) if metric.limits else None,
        since=np.zeros(n, np.int64) if switch else None,
        falls=np.zeros(n, np.int32) if switch or metric.name == "link_downed" else None,
    )


@dataclass(slots=True)
class KindState:
    """Every metric of one kind of entity, made when it is first heard of.

    ceilings: for a counter, the rate a second that an entity cannot exceed (float64[n]).
    """

    kind: str
    n: int
    ceilings: dict[str, F64] = field(default_factory=dict)
    series: dict[str, Series] = field(default_factory=dict)
    late: int = 0  # readings older than what was known
    restarts: int = 0
    unknown_metrics: set[str] = field(default_factory=set)

    def get(self, metric: str) -> Series | None:
        return self.series.get(metric)

    def value(self, metric: str) -> F64:
        """float64[n], NaN where unknown or never read."""
        found = self.series.get(metric)
        return found.value if found is not None else np.full(self.n, np.nan)

    def last_time(self) -> I64:
        """int64[n]: when each entity was last heard of, 0 never."""
        out = np.zeros(self.n, np.int64)
        for s in self.series.values():
            np.maximum(out, s.time, out=out)
        return out

    def update(
        self, metric: str, rows: Rows, values: Column, times: I64, stamps: I64, sources: I32, patience: I64
    ) -> None:
        """Takes one column of readings, each with its row (-1 for names that are not ours).

        times: event time. stamps: time by the source's own clock, which rates are made with. sources: who read it.
        patience: int64[sources], how long (ns) a source may be silent before another may speak for its entities.
        """
        known = REGISTRY.get((self.kind, metric))
        if known is None:
            self.unknown_metrics.add(metric)
            return
        s = self.series.get(metric)
        if s is None:
            s = self.series[metric] = _series(known, self.n)
        if not self.n:
            return
        owner = s.owner[rows]
        same = owner == sources
        ours = (rows >= 0) & (same | (owner < 0) | (times - s.time[rows] > patience[owner]))
        take = ours & np.where(same, stamps > s.stamp[rows], times > s.time[rows])
        if not take.all():
            self.late += int(np.count_nonzero(ours & ~take))
            rows, values, sources, same = rows[take], values[take], sources[take], same[take]
            times, stamps = times[take], stamps[take]
        if s.raw is None:
            self._gauge(s, rows, as_float(values), times)
        else:
            self._counter(s, rows, values, (stamps - s.stamp[rows]) / NS, same)
        s.time[rows] = times
        s.stamp[rows] = stamps
        s.owner[rows] = sources

    def _gauge(self, s: Series, rows: Rows, values: F64, times: I64) -> None:
        if s.since is not None and s.falls is not None:
            before = s.value[rows]
            changed = (before != values) & ~np.isnan(values)
            s.since[rows[changed]] = times[changed]
            s.falls[rows[changed & (before == 1) & (values == 0)]] += 1
        s.value[rows] = values

    def _counter(self, s: Series, rows: Rows, values: Column, seconds: F64, same: npt.NDArray[np.bool_]) -> None:
        """Counter readings to rates. same: the reading before came from the same source."""
        assert s.raw is not None
        if s.metric.unit in _FRACTIONAL:
            now = as_float(values)
            delta = now - s.raw[rows].astype(np.float64)
            fell = delta < 0
            delta[fell] = np.nan
            s.raw[rows] = now
        else:
            whole = _whole(values)
            before = s.raw[rows].astype(np.uint64)
            delta, fell = _delta(before, whole, wraps=not len(s.limits) or s.metric.name.endswith("_bytes"))
            delta[(before == UNKNOWN_U64) | (whole == UNKNOWN_U64)] = np.nan
            if s.saturated is not None:
                full = np.zeros(len(whole), bool)
                for limit in s.limits:
                    full |= whole == limit
                delta[full] = np.nan
                s.saturated[rows] = full
            s.raw[rows] = whole
        delta[~same] = np.nan
        if s.falls is not None:
            s.falls[rows] += np.nan_to_num(delta).astype(np.int32)
        rate = delta / seconds
        self.restarts += int(np.count_nonzero(fell & same))
        ceiling = self.ceilings.get(s.metric.name)
        if ceiling is not None:
            wild = rate > ceiling[rows] * HEADROOM
            rate[wild] = np.nan
        s.value[rows] = rate


def _whole(values: Column) -> npt.NDArray[np.uint64]:
    """A counter column as uint64, all ones where unknown, negative or too large."""
    if values.dtype == np.uint64:
        return values.astype(np.uint64, copy=False)
    ok = (values >= 0) & (values < 2.0**64)
    out = np.full(values.shape, UNKNOWN_U64, np.uint64)
    out[ok] = values[ok].astype(np.uint64)
    return out


def _delta(
    before: npt.NDArray[np.uint64], now: npt.NDArray[np.uint64], *, wraps: bool
) -> tuple[F64, npt.NDArray[np.bool_]]:
    """Increase of each counter, NaN where it restarted, and where it did restart.

    A fall is a wrap only where the counter stood in the upper half of its width and moved on by less than
    half of it; otherwise it began anew and what it counted in between is unknown.
    """
    up = now >= before
    step = now - before  # modulo 2**64
    wrap64 = ~up & (before >= _HALF64) & (step < _HALF64)
    step32 = step + _FULL32
    wrap32 = ~up & (before < _FULL32) & (before >= _HALF32) & (step32 < _HALF32)
    if not wraps:
        wrap32 &= False
        wrap64 &= False
    known = (before != UNKNOWN_U64) & (now != UNKNOWN_U64)
    restarted = ~(up | wrap32 | wrap64) & known
    delta = np.where(wrap32, step32, step).astype(np.float64)
    delta[restarted] = np.nan
    return delta, restarted
