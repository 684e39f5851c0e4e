"""When sources were silent for longer than they may be, by the rule by which the twin calls them stale."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from twin.detectors.rules import Rules, ns
from twin.frames import NS, Frame

_FIRST_PATIENCE = 30 * NS  # before the interval of a source is known
_LAST = 5  # gaps whose median is its interval
_ONE_REPORT = NS // 5  # frames closer together belong to one report
_MOST = 1000


@dataclass(frozen=True, slots=True)
class Gap:
    """A source that was silent. Times in ns. resumed: it spoke again."""

    source: str
    start: int
    end: int
    resumed: bool

    def to_json(self) -> dict[str, Any]:
        return {
            "source": self.source, "start": self.start / NS, "end": self.end / NS,
            "seconds": (self.end - self.start) / NS, "resumed": self.resumed,
        }  # fmt: skip


class Silence:
    """Takes frames in order of arrival."""

    def __init__(self) -> None:
        rules = Rules.load()
        self._floor, self._intervals = ns(rules.stale_floor), rules.stale_intervals
        self.last: dict[str, int] = {}
        self._lately: dict[str, list[int]] = {}
        self._found: list[Gap] = []
        self._ended = 0  # gaps, of which the first thousand are kept
        self._end = 0

    def add(self, frame: Frame) -> None:
        self._end = max(self._end, frame.time)
        if frame.kind == "source":  # words about sources come when there is something to say
            return
        source, time = frame.source, frame.time
        before = self.last.setdefault(source, time)
        if time - before <= _ONE_REPORT:
            return
        if time - before > self._patience(source):
            self._note(Gap(source, before, time, True))
        self._lately[source] = [*self._lately.get(source, ())[1 - _LAST :], time - before]
        self.last[source] = time

    def gaps(self) -> list[Gap]:
        """The first thousand so far, and those that last until the end."""
        return self._found + self._open()

    @property
    def count(self) -> int:
        """Of all gaps so far."""
        return self._ended + len(self._open())

    def _open(self) -> list[Gap]:
        end = self._end
        return [Gap(s, last, end, False) for s, last in self.last.items() if end - last > self._patience(s)]

    def _patience(self, source: str) -> int:
        lately = sorted(self._lately.get(source, ()))
        if len(lately) < 2:
            return _FIRST_PATIENCE
        return max(self._floor, round(lately[len(lately) // 2] * self._intervals))

    def _note(self, gap: Gap) -> None:
        self._ended += 1
        if len(self._found) < _MOST:
            self._found.append(gap)
