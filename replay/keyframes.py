"""Keyframes: copies of the twin along a trace, so that a jump replays seconds and not hours."""

from __future__ import annotations

from threading import Lock
from typing import NamedTuple

from replay.records import Mark
from replay.trace import Trace, remind
from twin.frames import NS, Frame
from twin.twin import Twin

_FIRST_SPACING = 10 * NS
_NEAR_SPACING = 2 * NS
_NEAR_COUNT = 12


class Keyframe(NamedTuple):
    """A twin that has seen everything before `mark`. clock: the latest event time it has seen, ns. Never changed."""

    clock: int
    mark: Mark
    twin: Twin


class Keyframes:
    """A bounded number of keyframes: some spread over the trace, some close to where it was read last.

    When there are more than `limit`, every second one is dropped and the spacing doubles; the ones nearby make
    stepping back cheap whatever the spacing. May be used from several threads.
    """

    def __init__(self, limit: int) -> None:
        self._limit = max(2, limit)
        self._spacing = _FIRST_SPACING
        self._far: dict[int, Keyframe] = {}  # clock // spacing -> the earliest there
        self._near: list[Keyframe] = []  # latest last
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._far) + len(self._near)

    def best(self, time: int) -> Keyframe | None:
        """The latest keyframe that is not after `time`."""
        with self._lock:
            fit = [k for k in (*self._far.values(), *self._near) if k.clock <= time]
        return max(fit, key=lambda k: (k.clock, k.mark), default=None)

    def wants(self, clock: int) -> bool:
        """Whether a keyframe at `clock` would be kept among those spread over the trace."""
        return clock // self._spacing not in self._far

    def wants_near(self, clock: int, target: int) -> bool:
        """Whether a keyframe at `clock` would help to step back from `target`."""
        if not target - _NEAR_COUNT * _NEAR_SPACING <= clock <= target:
            return False
        return all(abs(clock - k.clock) >= _NEAR_SPACING for k in self._near)

    def keep(self, keyframe: Keyframe, *, near: bool = False) -> None:
        """Takes a keyframe that was wanted."""
        with self._lock:
            if near:
                self._near.append(keyframe)
                del self._near[:-_NEAR_COUNT]
                return
            self._far.setdefault(keyframe.clock // self._spacing, keyframe)
            while len(self._far) > self._limit:
                self._thin()

    def _thin(self) -> None:
        self._spacing *= 2
        kept: dict[int, Keyframe] = {}
        for keyframe in sorted(self._far.values(), key=lambda k: k.clock):
            kept.setdefault(keyframe.clock // self._spacing, keyframe)
        self._far = kept


class Cursor:
    """A twin on its way through a trace. clock: the latest event time it has seen, None before the first frame."""

    def __init__(self, trace: Trace, twin: Twin, clock: int | None = None, mark: Mark | None = None) -> None:
        self.twin, self.clock = twin, clock
        self._places = trace.read(mark)
        self._mark: Mark | None = None
        self._frame: Frame | None = None
        self._look_ahead()

    @classmethod
    def at(cls, trace: Trace, keyframe: Keyframe) -> Cursor:
        """A cursor that goes on where `keyframe` was taken."""
        return cls(trace, keyframe.twin.fork(), keyframe.clock, keyframe.mark)

    @property
    def due(self) -> int | None:
        """The clock once the next frame is in; None at the end of the trace."""
        if self._frame is None:
            return None
        return self._frame.time if self.clock is None else max(self.clock, self._frame.time)

    def step(self) -> None:
        """Takes in the next frame."""
        assert self._frame is not None
        self.clock = self.due
        self.twin.ingest(self._frame)
        self._look_ahead()

    def keyframe(self) -> Keyframe | None:
        """The twin as it is now; None at either end of the trace."""
        if self._mark is None or self.clock is None:
            return None
        return Keyframe(self.clock, self._mark, self.twin.fork())

    def _look_ahead(self) -> None:
        self._mark = self._frame = None
        for mark, record in self._places:
            if isinstance(record, Frame):
                self._mark, self._frame = mark, record
                return
            remind(self.twin, record)
