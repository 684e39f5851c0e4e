"""Shown: all that the screen shows at one beat, immutable; and the marks on its timeline."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from twin.incident import Incident
    from twin.snapshot import Snapshot


NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Mark:
    """An incident on the timeline. end is None while it is open. Times in nanoseconds."""

    start: int
    end: int | None
    severity: str
    id: str


def marks_of(incidents: Iterable[Incident]) -> tuple[Mark, ...]:
    return tuple(Mark(i.started, i.resolved, i.severity, i.id) for i in incidents if i.superseded_by is None)


@dataclass(frozen=True, slots=True)
class Shown:
    """What the panels draw from.

    now: wall clock, ns. arrived: wall clock when the snapshot came, ns. waiting: snapshots that came
    while the view was paused. span: the times of a whole recording, None where there is no end.
    speed: how fast event time runs, None where nobody can set it. state: a word from the session
    (`seeking`, `ended`), or why it failed. selected: the incident under the cursor. about: what the session says of
    itself in words. reasons: (source, why it fails or what of it cannot be had).
    """

    title: str
    mode: str
    snapshot: Snapshot | None = None
    now: int = 0
    arrived: int = 0
    paused: bool = False
    waiting: int = 0
    speed: float | None = None
    span: tuple[int, int] | None = None
    marks: tuple[Mark, ...] = ()
    state: str = ""
    failed: str = ""
    selected: str = ""
    about: tuple[str, ...] = ()
    reasons: tuple[tuple[str, str], ...] = ()

    @property
    def key(self) -> tuple[int, int]:
        """Changes when the snapshot does."""
        return (-1, 0) if self.snapshot is None else (self.snapshot.version, self.snapshot.time)

    @property
    def data_age(self) -> float:
        """Seconds since the data was true (live) or since it came (demo, where event time is made up)."""
        if self.snapshot is None:
            return float("nan")
        since = self.snapshot.time if self.mode == "live" else self.arrived
        return max(0.0, (self.now - since) / NS)
