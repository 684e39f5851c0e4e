"""Event time over sources whose clocks differ.

Time goes on with the frames, so one source with a wrong clock could carry it away and make all others look
silent. Each source therefore has an offset: what it is ahead when it first speaks, or when it alone jumps; what it
is behind when its clock runs as ours does all the same. A jump that a second source makes too is a gap in the stream
and is believed. Frames of our own supervisor are always believed.

Late is not wrong: an old reading keeps its time. Readings that come in a heap, or ever later, are late; so are those
of a collector that was seen to take that long (`measure`). Only a steady lag is a clock, and who is behind never
carries time on: when its lag ends its offset does too.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from twin.frames import NS
from twin.sources import ONE_REPORT

AHEAD = 3 * NS  # a newcomer further ahead than this, and than two intervals of the others, has a wrong clock
BEHIND = 3 * NS
REPORTS_BEHIND = 3
STEADY = 3 * NS // 2  # a lag that varies by less is a clock's: event time itself moves in steps of a second
JUMP = 30 * NS
ACTIVE = 60 * NS


@dataclass(slots=True)
class _Source:
    raw: int  # the latest of its own times
    last: int  # its own time of the last report
    corrected: int
    offset: int = 0
    lags: list[tuple[int, int]] = field(default_factory=list)  # own time and lag of its last reports, in a row
    jump: int = 0  # a step that no other source has made yet


class Clocks:
    """Corrects the times of frames. now: the latest corrected time, 0 before the first frame."""

    def __init__(self) -> None:
        self.now = 0
        self._sources: dict[str, _Source] = {}
        self._measured: dict[str, int] = {}

    def offset(self, source: str) -> int:
        """How far a source's clock is taken to be ahead, ns."""
        found = self._sources.get(source)
        return found.offset if found is not None else 0

    def measure(self, source: str, seconds: float) -> None:
        """How far the supervisor found a clock to be ahead: no lag beyond that is the clock's. NaN: unknown."""
        if seconds == seconds:
            self._measured[source] = round(seconds * NS)

    def correct(self, source: str, time: int, interval: int, *, trusted: bool) -> int:
        """The event time of a frame. interval: how often its source (or the others, for a newcomer) reports, ns."""
        known = self._sources.get(source)
        if known is None:
            known = self._sources[source] = _Source(time, time, time)
            if not trusted and self.now and self._others(source) and time > self.now + max(AHEAD, 2 * interval):
                known.offset = time - self.now
        elif not trusted:
            self._follow(source, known, time, interval)
            if known.offset < 0 and time - known.offset > self.now and self._others(source):
                known.offset = min(0, time - self.now)  # it was late and catches up, or its clock was set
        known.raw = max(known.raw, time)
        corrected = time - known.offset
        known.corrected = max(known.corrected, corrected)
        self.now = max(self.now, corrected)
        return corrected

    def _follow(self, source: str, known: _Source, time: int, interval: int) -> None:
        step = time - known.raw
        if step > max(JUMP, 4 * interval) and self._others(source):
            witness = next((s for s in self._sources.values() if s is not known and _alike(s.jump, step)), None)
            if witness is None:
                known.jump = step
                known.offset += step - interval
            else:  # a gap in the stream: it was no fault of the first one's clock
                witness.offset -= witness.jump
                witness.jump = 0
            return
        if abs(time - known.last) <= ONE_REPORT:
            return
        known.last = time
        lag = self.now - (time - known.offset)
        if lag > BEHIND + interval:
            self._fall_behind(source, known, time, lag)
        else:
            known.lags.clear()

    def _fall_behind(self, source: str, known: _Source, time: int, lag: int) -> None:
        lags = [(t, x) for t, x in known.lags if abs(x - lag) <= STEADY]
        known.lags = [*lags, (time, lag)]
        if len(known.lags) >= REPORTS_BEHIND and time - known.lags[0][0] > STEADY:
            offset = known.offset - min(x for _, x in known.lags)
            known.offset = max(offset, min(self._measured.get(source, offset), 0))
            known.lags.clear()

    def _others(self, source: str) -> bool:
        """Whether another source has spoken lately."""
        return any(n != source and self.now - s.corrected < ACTIVE for n, s in self._sources.items())


def _alike(jump: int, step: int) -> bool:
    return jump > 0 and abs(jump - step) < max(JUMP, step // 10)
