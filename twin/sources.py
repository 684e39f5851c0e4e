"""What is known of each source of frames: when it last spoke, how often it does, whether it fails."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from twin.detectors.rules import Rules, ns

_LEARN = 0.25  # weight of a new gap against what was learnt so far
_FIRST_GUESS = 1_000_000_000  # until a second report tells, ns


@dataclass(slots=True)
class Sources:
    """Parallel lists, one entry a source; `declared` intervals come from the collectors' own frames."""

    rules: Rules
    index: dict[str, int] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)
    last: list[int] = field(default_factory=list)
    gap: list[int] = field(default_factory=list)  # learnt interval, ns
    declared: dict[str, int] = field(default_factory=dict)  # ns
    failures: dict[str, int] = field(default_factory=dict)
    failed_since: dict[str, int] = field(default_factory=dict)
    frames: list[int] = field(default_factory=list)
    entities: list[int] = field(default_factory=list)
    excused: list[int] = field(default_factory=list)  # until when its silence had another reason
    _patience: npt.NDArray[np.int64] | None = None

    def heard(self, name: str, time: int, entities: int) -> int:
        """Notes a frame and returns the number of its source."""
        i = self.index.get(name)
        if i is None:
            i = self.index[name] = len(self.names)
            self.names.append(name)
            self.last.append(time)
            self.excused.append(0)
            self.gap.append(self.declared.get(name, 0))
            self.frames.append(0)
            self.entities.append(0)
            self._patience = None
        elif time > self.last[i]:
            self._learn(i, time - self.last[i])
            self.last[i] = time
        self.frames[i] += 1
        self.entities[i] = max(self.entities[i], entities)
        return i

    def _learn(self, i: int, gap: int) -> None:
        before = self.gap[i]
        if self.names[i] in self.declared:
            return
        if not before:
            self.gap[i] = gap
        elif gap < 4 * before:  # a long gap is an outage, not a slower source
            self.gap[i] = round(before + _LEARN * (gap - before))
        self._patience = None

    def declare(self, name: str, seconds: float) -> None:
        """A collector's own word on how often it reports."""
        interval = ns(seconds)
        if self.declared.get(name) != interval:
            self.declared[name] = interval
            if name in self.index:
                self.gap[self.index[name]] = interval
            self._patience = None

    def interval(self) -> npt.NDArray[np.int64]:
        """int64[sources]: how often each reports, ns."""
        return np.array([g or _FIRST_GUESS for g in self.gap] or [_FIRST_GUESS], dtype=np.int64)

    def patience(self) -> npt.NDArray[np.int64]:
        """int64[sources]: how long each may be silent before what it said is unknown, ns."""
        if self._patience is None:
            floor = ns(self.rules.stale_floor)
            self._patience = np.maximum(floor, (self.interval() * self.rules.stale_intervals).astype(np.int64))
        return self._patience

    def stale(self, now: int) -> list[int]:
        """Numbers of the sources that have been silent for too long."""
        if not self.names:
            return []
        silent = now - np.maximum(self.last, self.excused) > self.patience()
        return [int(i) for i in np.flatnonzero(silent)]

    def excuse(self, now: int, names: list[str]) -> None:
        """These are known to be unreachable or dead: their silence says nothing."""
        for name in names:
            if name in self.index:
                self.excused[self.index[name]] = now

    def failed(self, name: str, time: int, up: float, failures: float) -> None:
        """A collector's own word on whether it works."""
        if up == 0:
            self.failed_since.setdefault(name, time)
            self.failures[name] = int(failures) if failures == failures else 1
        elif up == 1:
            self.failed_since.pop(name, None)
            self.failures.pop(name, None)
