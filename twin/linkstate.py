"""From what both ends of every link report to the state of the link: up, down, slow, flapping."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from twin.detectors.rules import Rules, ns
from twin.sharedfalls import SharedFalls
from twin.sources import Sources
from twin.state import KindState, Series
from twin.topology.model import Topology

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
Bool = npt.NDArray[np.bool_]

_NEVER = np.iinfo(np.int64).max
_OVERDUE = 2.5  # intervals after which a source that has said nothing is late


@dataclass(slots=True)
class LinkState:
    """Arrays over links, as of one evaluation.

    up: 1, 0 or NaN where neither end is known now. down: down now, or when last known. since: time of the first
    reading of the present down state. sampled: newest reading of either end, 0 never. awaited: an end of it is
    expected to be read again soon. speed: bits/s now, 0 where down, NaN unknown.
    """

    up: F64
    down: Bool
    ends_down: tuple[Bool, Bool]  # which end says so now
    since: I64
    sampled: I64
    awaited: Bool
    speed: F64
    slow: Bool
    slow_since: I64
    flapping: Bool
    falls: I64  # downs within the flap window
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
        self._shared = SharedFalls(topo)

    def at(self, now: int, ports: KindState, sources: Sources) -> LinkState:
        """The state of every link at event time `now`."""
        state = self._updown(now, ports.get("up"), sources)
        known = ~np.isnan(state.up)
        began = np.where(self._down, np.minimum(self._since, state.since), state.since)
        self._since = np.where(state.up == 0, began, self._since)
        self._down = np.where(known, state.up == 0, self._down)
        state.down, state.since = self._down.copy(), self._since.copy()
        state.speed = self._speed(now, ports.get("speed_bits_per_second"), sources, state.up)
        self._note_slow(state)
        self._note_falls(now, ports, state)
        return state

    def _updown(self, now: int, series: Series | None, sources: Sources) -> LinkState:
        links = self.topo.links
        n = len(links.a)
        zero, no = np.zeros(n, np.int64), np.zeros(n, bool)
        blank = np.full(n, np.nan)
        if series is None or series.since is None:
            return LinkState(blank, no, (no, no), zero, zero, no, blank, no, zero, no, zero, zero)
        fresh = (series.time > 0) & (now - series.time <= sources.patience()[series.owner])
        interval = sources.expected()[series.owner]
        late = now - series.time > _OVERDUE * interval
        state = np.where(fresh, series.value, np.nan)
        ends = []
        for me, other in ((links.a, links.b), (links.b, links.a)):
            # the "down" of an end that is no longer heard does not outweigh a later "up" of the other
            outdated = late[me] & (state[other] == 1) & (series.time[other] - series.time[me] > interval[me])
            ends.append((state[me] == 0) & ~outdated)
        down = ends[0] | ends[1]
        is_up = ~down & ((state[links.a] == 1) | (state[links.b] == 1))
        since = [
            np.where(end, series.since[port], _NEVER) for end, port in zip(ends, (links.a, links.b), strict=True)
        ]
        heard = fresh & ~late
        return LinkState(
            up=np.where(down, 0.0, np.where(is_up, 1.0, np.nan)),
            down=down,
            ends_down=(ends[0], ends[1]),
            since=np.where(down, np.minimum(*since), 0),
            sampled=np.maximum(series.time[links.a], series.time[links.b]),
            awaited=heard[links.a] | heard[links.b],
            speed=blank,
            slow=no,
            slow_since=zero,
            flapping=no,
            falls=zero,
            first_fall=zero,
        )

    def _speed(self, now: int, series: Series | None, sources: Sources, up: F64) -> F64:
        """The slower end's word; a speed that is not above zero is no reading."""
        if series is None:
            return np.where(up == 0, 0.0, np.nan)
        links = self.topo.links
        fresh = (series.time > 0) & (now - series.time <= sources.patience()[series.owner]) & (series.value > 0)
        value = np.where(fresh, series.value, np.nan)
        return np.where(up == 0, 0.0, np.where(np.isnan(up), np.nan, np.fmin(value[links.a], value[links.b])))

    def _note_slow(self, state: LinkState) -> None:
        slow = (state.up == 1) & (state.speed < self.topo.links.speed * self.rules.link_slow_fraction)
        slow |= (state.up != 0) & np.isnan(state.speed) & (self._slow_since > 0)  # unknown does not clear
        began = np.where(self._slow_since > 0, self._slow_since, np.maximum(state.sampled, 1))
        self._slow_since = np.where(slow, began, 0)
        state.slow, state.slow_since = slow, self._slow_since.copy()

    def _note_falls(self, now: int, ports: KindState, state: LinkState) -> None:
        """Notes new falls and decides which links flap: often down, and neither up nor down for long."""
        total = self._total_falls(ports)
        fresh = np.minimum(total - self._seen_falls, self._falls.shape[1])
        for row in np.flatnonzero(fresh > 0):  # only links that went down since the last evaluation
            count = int(fresh[row])
            self._falls[row] = np.concatenate([self._falls[row, count:], np.full(count, now)])
        self._seen_falls = total
        recent = self._falls > now - ns(self.rules.flap_window)
        clear = ns(self.rules.flap_clear)
        steady_up = (state.up == 1) & (now - self._falls[:, -1] >= clear)
        steady_down = state.down & (now - self._since >= clear)
        state.falls = recent.sum(axis=1)
        often = state.falls >= self.rules.flap_count
        fresh_rows = np.flatnonzero(often & ~self._flapping & ~steady_up & ~steady_down)
        if len(fresh_rows):
            window, burst = now - ns(self.rules.flap_window), ns(self.rules.burst)
            own, shared = self._shared.own(fresh_rows, self._falls, window, burst)
            often[fresh_rows] = np.maximum(own, shared) >= self.rules.flap_count
        flapping = (often | self._flapping) & ~steady_up & ~steady_down
        self._falls[self._flapping & ~flapping] = 0  # what is over is forgotten
        self._flapping = flapping
        state.flapping = flapping.copy()
        state.first_fall = np.where(recent, self._falls, _NEVER).min(axis=1, initial=_NEVER)

    def _total_falls(self, ports: KindState) -> I64:
        """Downs of each link since the start, as readings showed them or as the ports counted them."""
        links = self.topo.links
        total = np.zeros(len(links.a), np.int64)
        for metric in ("up", "link_downed"):
            series = ports.get(metric)
            if series is not None and series.falls is not None:
                falls = series.falls.astype(np.int64)
                total = np.maximum(total, np.maximum(falls[links.a], falls[links.b]))
        return total
