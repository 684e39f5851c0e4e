"""XID errors: what each means (xid.toml), and which ones happened since we listen.

The last XID stays readable until the driver is loaded again. So a code is an event when it is new; one that was there
when we first looked is one only if it still keeps the GPU from working.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np
import numpy.typing as npt

from twin.state import F64, I64

Bool = npt.NDArray[np.bool_]
LASTING = ("lost", "fatal")  # classes that hold until the GPU was reset
CLASSES = (*LASTING, "nvlink", "contained", "unlisted", "application", "cleanup", "note")  # worst first


@dataclass(frozen=True, slots=True)
class Xid:
    """One code. what: its class (xid.toml). means: in our words. do: advice beyond that of its class."""

    code: int
    what: str
    means: str
    do: str = ""


@cache
def catalog() -> dict[int, Xid]:
    text = files(__package__).joinpath("xid.toml").read_text("utf-8")
    entries = tomllib.loads(text)["xid"].items()
    return {int(code): Xid(int(code), e["class"], e["means"], e.get("do", "")) for code, e in entries}


def xid(code: int) -> Xid:
    """What the code means; one that the catalog lacks is of class `unlisted`."""
    return catalog().get(code) or Xid(code, "unlisted", "not in our list")


@dataclass(frozen=True, slots=True)
class XidEvent:
    """since: event time of the reading that showed it. new: it was another code before."""

    xid: Xid
    since: int
    new: bool


class XidWatch:
    """The present XID event of each GPU that has one."""

    def __init__(self, n: int, hold: int) -> None:
        """hold: ns for which an event is told that needs no repair."""
        self.hold = hold
        self.events: dict[int, XidEvent] = {}
        self._last = np.full(n, np.nan)
        self._away = np.zeros(n, bool)

    def note(self, now: int, code: F64, time: I64, away: Bool) -> dict[int, XidEvent]:
        """code: last XID of each GPU, NaN unknown. time: of the reading. away: GPUs of which nothing else is read."""
        first = ~np.isnan(code) & np.isnan(self._last)
        changed = ~np.isnan(code) & ~np.isnan(self._last) & (code != self._last)
        for gpu in np.flatnonzero(changed | (first & (code > 0))).tolist():
            self._take(gpu, xid(int(code[gpu])), int(time[gpu]), new=bool(changed[gpu]))
        self._last = np.where(np.isnan(code), self._last, code)
        for gpu, event in list(self.events.items()):
            was_reset = bool(self._away[gpu]) and not away[gpu]
            over = event.xid.what not in LASTING and now - event.since >= self.hold
            if over or was_reset:
                del self.events[gpu]
        self._away = away.copy()
        return self.events

    def _take(self, gpu: int, xid: Xid, time: int, *, new: bool) -> None:
        before = self.events.get(gpu)
        if not xid.code:  # the driver was loaded again
            self.events.pop(gpu, None)
        elif xid.what == "note" or (not new and xid.what not in LASTING):
            return
        elif before is None or CLASSES.index(xid.what) <= CLASSES.index(before.xid.what):
            self.events[gpu] = XidEvent(xid, time, new)
