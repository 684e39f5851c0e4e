"""What is known of each source of frames: when it last spoke, how often it does, whether it fails."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from twin.detectors.rules import Rules, ns
from twin.frames import NS

SUPERVISOR = "fabrictwin"  # the source of frames in which our own supervisor says how collectors do
ONE_REPORT = NS // 5  # frames closer together than this belong to one report
_GAPS = 5  # the last gaps between reports, whose median is the interval
_ENOUGH = 2  # gaps before an interval is believed
_GUESS = 10 * NS  # interval until then
_FIRST_PATIENCE = 60 * NS  # and how long silence is borne until then


def device_of(source: str, devices: Container[str]) -> str | None:
    """The node or switch that a source reads: it is named after it, `n012` or `n012:nvml`. None for another."""
    if source in devices:
        return source
    head, colon, _ = source.rpartition(":")
    return head if colon and head in devices else None


@dataclass(slots=True)
class Sources:
    """Parallel lists, one entry a source; what is declared and measured comes from the supervisor's frames."""

    rules: Rules
    index: dict[str, int] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)
    last: list[int] = field(default_factory=list)  # event time when each was last heard, whatever its frame said
    newest: list[int] = field(default_factory=list)  # event time of its newest reading
    delay: list[int] = field(default_factory=list)  # how old that was when it came, ns
    excused: list[int] = field(default_factory=list)  # until when its silence had another reason
    frames: list[int] = field(default_factory=list)
    entities: list[int] = field(default_factory=list)
    declared: dict[str, int] = field(default_factory=dict)  # ns
    durations: dict[str, float] = field(default_factory=dict)  # seconds
    offsets: dict[str, float] = field(default_factory=dict)  # seconds that its clock is ahead, as measured
    failures: dict[str, int] = field(default_factory=dict)
    failed_since: dict[str, int] = field(default_factory=dict)
    dark: frozenset[str] = frozenset()  # devices that are unreachable or dead now
    _slow: set[str] = field(default_factory=set)  # take longer than their interval
    _times: list[int] = field(default_factory=list)
    _gaps: list[list[int]] = field(default_factory=list)
    _known: list[int] = field(default_factory=list)  # interval of each, 0 while not known
    _usual: int = _GUESS  # interval of most sources, as of the last evaluation

    def heard(self, name: str, time: int, now: int, entities: int) -> int:
        """Notes a frame of event time `time` that came in at `now`, and returns the number of its source."""
        i = self.index.get(name)
        if i is None:
            i = self.index[name] = len(self.names)
            self.names.append(name)
            self.last.append(now)
            self.newest.append(time)
            self.delay.append(0)
            self._times.append(time)
            self.excused.append(0)
            self.frames.append(0)
            self.entities.append(0)
            self._gaps.append([])
            self._known.append(self.declared.get(name, 0))
        elif time - self._times[i] > ONE_REPORT:
            if name not in self.declared:
                gaps = self._gaps[i] = [*self._gaps[i][1 - _GAPS :], time - self._times[i]]
                self._known[i] = sorted(gaps)[len(gaps) // 2] if len(gaps) >= _ENOUGH else 0
            self._times[i] = time
        self.last[i] = max(self.last[i], now)
        self.newest[i] = max(self.newest[i], time)
        self.delay[i] = max(0, now - self.newest[i])
        self.frames[i] += 1
        self.entities[i] = max(self.entities[i], entities)
        return i

    def declare(self, name: str, seconds: float) -> None:
        """A collector's own word on how often it reports."""
        interval = ns(seconds)
        if self.declared.get(name) != interval:
            self.declared[name] = interval
            if name in self.index:
                self._known[self.index[name]] = interval

    def measured(self, name: str, duration: float, late: float, offset: float) -> None:
        """What the supervisor measured of a source: seconds, collections, seconds; NaN where it does not know."""
        if duration == duration:
            self.durations[name] = duration
        if late == late:
            (self._slow.add if late > 0 else self._slow.discard)(name)
        if offset == offset:
            self.offsets[name] = offset

    def late(self) -> list[int]:
        """Numbers of the sources that answer, but slowly or with old readings: late, not wrong."""
        limits = self.expected() + ns(self.rules.late)
        return [i for i, name in enumerate(self.names) if name in self._slow or self.delay[i] > limits[i]]

    def interval(self) -> npt.NDArray[np.int64]:
        """int64[sources]: how often each reports, ns; 0 where that is not known yet. Never empty."""
        known = np.array(self._known or [0], dtype=np.int64)
        heard = known[known > 0]
        self._usual = int(np.median(heard)) if len(heard) else _GUESS
        return known

    def expected(self) -> npt.NDArray[np.int64]:
        """int64[sources]: the interval, with a guess where it is not known yet, ns."""
        known = self.interval()
        return np.where(known > 0, known, _GUESS)

    def typical(self, name: str) -> int:
        """How often a source reports, ns; for one not known yet, how often most of the others do."""
        i = self.index.get(name)
        return (self._known[i] if i is not None else 0) or self._usual

    def patience(self) -> npt.NDArray[np.int64]:
        """int64[sources]: how long each may be silent before what it said is unknown, ns."""
        known = self.interval()
        floor = ns(self.rules.stale_floor)
        usual = np.maximum(floor, (known * self.rules.stale_intervals).astype(np.int64))
        return np.where(known > 0, usual, _FIRST_PATIENCE)

    def quiet(self, now: int) -> npt.NDArray[np.int64]:
        """int64[sources]: for how long each has said nothing without another reason, ns."""
        return now - np.maximum(np.array(self.last, np.int64), np.array(self.excused, np.int64))

    def stale(self, now: int) -> list[int]:
        """Numbers of the sources that have been silent for too long."""
        return np.flatnonzero(self.quiet(now) > self.patience()).tolist() if self.names else []

    def excuse(self, now: int, devices: list[str]) -> None:
        """These are known to be unreachable or dead: the silence of what reads them says nothing."""
        self.dark = frozenset(devices)
        if self.dark:
            for name, i in self.index.items():
                if device_of(name, self.dark) is not None:
                    self.excused[i] = now

    def failed(self, name: str, time: int, up: float, failures: float) -> None:
        """A collector's own word on whether it works."""
        if up == 0:
            self.failed_since.setdefault(name, time)
            self.failures[name] = int(failures) if failures == failures else 1
        elif up == 1:
            self.failed_since.pop(name, None)
            self.failures.pop(name, None)
