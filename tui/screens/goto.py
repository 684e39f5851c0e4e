"""Go to a time of a recording."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from tui.text import NS, clock

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}
_STEP = re.compile(r"([+-])\s*(\d+(?:\.\d+)?)\s*([smh]?)")
_TIME = re.compile(r"(?:(\d{4})-(\d\d)-(\d\d)[ T])?(\d{1,2}):(\d\d)(?::(\d\d(?:\.\d+)?))?")
_SHARE = re.compile(r"(\d+(?:\.\d+)?)\s*%")
EXAMPLES = "12:34:56   12:34   2025-12-01 12:34   +90s   -5m   50%"


def parse_when(text: str, now: int, start: int, end: int) -> int | None:
    """The time that `text` means, ns: a UTC time of day or date, a step from `now`, or a share of the recording.

    A time of day without a date is the first such moment of the recording, else the nearest to it.
    None where the text is none of these.
    """
    text = text.strip()
    if match := _STEP.fullmatch(text):
        seconds = float(match[2]) * _UNITS[match[3] or "s"]
        return now + round(seconds * NS) * (1 if match[1] == "+" else -1)
    if match := _SHARE.fullmatch(text):
        return start + round(min(100.0, float(match[1])) / 100 * (end - start))
    if match := _TIME.fullmatch(text):
        return _moment(match, start, end)
    return None


def _moment(match: re.Match[str], start: int, end: int) -> int | None:
    day = datetime.fromtimestamp(start / NS, UTC)
    try:
        date = [int(match[i]) for i in (1, 2, 3)] if match[1] else [day.year, day.month, day.day]
        moment = datetime(date[0], date[1], date[2], int(match[4]), int(match[5]), tzinfo=UTC)
    except ValueError:
        return None
    time = round(moment.timestamp()) * NS + round(float(match[6] or 0) * NS)
    if not match[1] and time < start and time + 86_400 * NS <= end:
        time += 86_400 * NS  # the recording goes past midnight
    return time


class GotoScreen(ModalScreen[int | None]):
    DEFAULT_CSS = """
    GotoScreen { align: center bottom; }
    GotoScreen > Vertical { width: 100%; max-width: 80; height: 4; background: $panel; padding: 0 1; }
    GotoScreen > Vertical { margin-bottom: 4; }
    GotoScreen Input { background: $panel; }
    GotoScreen Static { color: $text-muted; }
    """
    BINDINGS = [Binding("escape", "dismiss", "close")]

    def __init__(self, now: int, start: int, end: int) -> None:
        super().__init__()
        self._now, self._start, self._end = now, start, end

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(f"Go to a time (UTC), from {clock(self._start)} to {clock(self._end)}", id="says")
            yield Input(compact=True)
            yield Static(EXAMPLES, markup=False)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        when = parse_when(event.value, self._now, self._start, self._end)
        if when is None:
            self.query_one("#says", Static).update(f"not a time: {event.value[:40]!r}; for example:")
        else:
            self.dismiss(when)
