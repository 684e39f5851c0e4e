"""From what both ends of every link report to the state of the link: up, down, slow, flapping."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from twin.detectors.rules import Rules, ns
from twin.sources import Sources
from twin.state import KindState
from twin.topology.model import Topology

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
Bool = npt.NDArray[np.bool_]


@dataclass(slots=True)
class LinkState:
    """Arrays over links, as of one evaluation.

    up: 1, 0 or NaN where neither end is known now. down: down now, or when last known. since: time of the
    first reading of the present down state. sampled: newest reading of either end, 0 never.
    speed: bits/s now, 0 where down, NaN unknown.
    """

    up: F64
    down: Bool
    since: I64
    sampled: I64
    speed: F64
    slow: Bool
    slow_since: I64
    flapping: Bool
    falls: npt.NDArray[np.int64]  # downs within the flap window
    first_fall: I64


class LinkTracker:
    """Keeps what a single evaluation cannot know: last states, when links became slow, past falls."""

    def __init__(self, topo: Topology, rules: Rules) -> None:
        n = len(topo.links.a)
        self.topo, self.rules = topo, rules
        self._down = np.zeros(n, bool)
        self._since = np.zeros(n, np.int64)
        self._slow_since = np.zeros(n, np.int64)
        self._seen_falls = np.zeros(n, np.int64)
        self._falls = np.zeros((n, max(rules.flap_count, 8)), np.int64)  # times of the last downs
        self._flapping = np.zeros(n, bool)

    def at(self, now: int, ports: KindState, sources: Sources) -> LinkState:
        """The state of every link at event time `now`."""
        n = len(self.topo.links.a)
        up, since, sampled = self._updown(now, ports, sources)
        known = ~np.isnan(up)
        self._since = np.where(up == 0, np.where(self._down, np.minimum(self._since, since), since), self._since)
        self._down = np.where(known, up == 0, self._down)
        speed = self._speed(now, ports, sources, up)
        slow = (up == 1) & (speed < self.topo.links.speed * self.rules.link_slow_fraction)
        slow |= np.isnan(up) & (self._slow_since > 0)
        seen = np.maximum(sampled, 1)
        self._slow_since = np.where(slow, np.where(self._slow_since > 0, self._slow_since, seen), 0)
        falls = self._flaps(now, ports, up)
        first = np.where(self._falls > now - ns(self.rules.flap_window), self._falls, np.iinfo(np.int64).max)
        return LinkState(
            up=up,
            down=self._down.copy(),
            since=self._since.copy(),
            sampled=sampled,
            speed=speed,
            slow=slow,
            slow_since=self._slow_since.copy(),
            flapping=self._flapping.copy(),
            falls=falls,
            first_fall=first.min(axis=1) if n else np.zeros(0, np.int64),
        )

    def _updown(self, now: int, ports: KindState, sources: Sources) -> tuple[F64, I64, I64]:
        links, series = self.topo.links, ports.get("up")
        n = len(links.a)
        if series is None or series.since is None:
            return np.full(n, np.nan), np.zeros(n, np.int64), np.zeros(n, np.int64)
        fresh = (series.time > 0) & (now - series.time <= sources.patience()[series.owner])
        state = np.where(fresh, series.value, np.nan)
        slack = sources.interval()[series.owner] * 3 // 2
        ends = []
        for me, other in ((links.a, links.b), (links.b, links.a)):
            # an old "down" does not outweigh a newer "up" of the other end
            outdated = (state[other] == 1) & (series.time[other] - series.time[me] > slack[me])
            ends.append((state[me] == 0) & ~outdated)
        down = ends[0] | ends[1]
        is_up = ~down & ((state[links.a] == 1) | (state[links.b] == 1))
        since_a = np.where(ends[0], series.since[links.a], np.iinfo(np.int64).max)
        since_b = np.where(ends[1], series.since[links.b], np.iinfo(np.int64).max)
        since = np.where(down, np.minimum(since_a, since_b), 0)
        sampled = np.maximum(series.time[links.a], series.time[links.b])
        return np.where(down, 0.0, np.where(is_up, 1.0, np.nan)), since, sampled

    def _speed(self, now: int, ports: KindState, sources: Sources, up: F64) -> F64:
        links, series = self.topo.links, ports.get("speed_bits_per_second")
        if series is None:
            return np.where(up == 0, 0.0, np.nan)
        fresh = (series.time > 0) & (now - series.time <= sources.patience()[series.owner])
        value = np.where(fresh, series.value, np.nan)
        return np.where(up == 0, 0.0, np.where(np.isnan(up), np.nan, np.fmin(value[links.a], value[links.b])))

    def _flaps(self, now: int, ports: KindState, up: F64) -> npt.NDArray[np.int64]:
        """Notes new falls, decides which links flap, and returns the downs within the window."""
        links, series = self.topo.links, ports.get("up")
        if series is None or series.falls is None:
            return np.zeros(len(links.a), np.int64)
        total = np.maximum(series.falls[links.a], series.falls[links.b]).astype(np.int64)
        fresh = np.minimum(total - self._seen_falls, self._falls.shape[1])
        for row in np.flatnonzero(fresh > 0):  # only links that went down since the last evaluation
            count = int(fresh[row])
            self._falls[row] = np.concatenate([self._falls[row, count:], np.full(count, now)])
        self._seen_falls = total
        recent: npt.NDArray[np.int64] = (self._falls > now - ns(self.rules.flap_window)).sum(axis=1)
        stable_for = now - self._falls[:, -1]
        calm = (up == 1) & (stable_for >= ns(self.rules.flap_clear))
        self._flapping = ((recent >= self.rules.flap_count) | self._flapping) & ~calm
        return recent
