"""What stands for an open incident by the word of people: acknowledged, silenced, or within announced work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from twin.address import inside
from twin.incident import Incident, Word
from twin.maintenance import Window

Rows = npt.NDArray[np.intp]

# field of an incident -> what is said when it begins, and when it ends before the incident does
SAID = {
    "acknowledged": ("acknowledged", "unacknowledged"),
    "silenced": ("silenced", "unsilenced"),
    "maintenance": ("maintenance", "work over"),
}


@dataclass(slots=True)
class Silence:
    """what: an address with all below it, or a kind of incident."""

    what: str
    word: Word

    def covers(self, incident: Incident) -> bool:
        return self.what == incident.kind or inside(incident.cause, frozenset((self.what,)))


@dataclass(slots=True)
class Desk:
    """Where words are kept. They stand in event time, and so end at the same moment in every run over the frames."""

    windows: Sequence[Window] = ()
    silences: list[Silence] = field(default_factory=list)

    def silence(self, what: str, word: Word) -> None:
        """From now on, also for incidents that are yet to come; the newest word on an address counts."""
        self.silences = [*(s for s in self.silences if s.what != what), Silence(what, word)]

    def judge(self, now: int, incident: Incident, links: Rows) -> Incident:
        """The incident with the words that stand at `now`; the same object where nothing changed."""
        self.silences = [s for s in self.silences if s.word.until > now]
        at_work = next((w.word for w in self.windows if w.holds(now, incident, links)), None)
        silenced = next((s.word for s in reversed(self.silences) if s.covers(incident)), None)
        words = {
            "acknowledged": _standing(incident.acknowledged, now),
            "silenced": silenced or _standing(incident.silenced, now),
            "maintenance": at_work,
        }
        changed: dict[str, Any] = {k: word for k, word in words.items() if word != getattr(incident, k)}
        return replace(incident, **changed) if changed else incident


def news(before: Incident, after: Incident) -> list[str]:
    """What there is to say of words that came or ended."""
    out = []
    for name, (begins, ends) in SAID.items():
        old, new = getattr(before, name), getattr(after, name)
        if old != new:
            out.append(ends if new is None else begins)
    return out


def _standing(word: Word | None, now: int) -> Word | None:
    return word if word is not None and word.until > now else None
