"""One incident in full; scrolls where it is longer than the screen."""

from __future__ import annotations

from textual import events

from tui.rows.detail import detail_lines
from tui.shown import Shown
from tui.text import Line
from tui.widgets.panel import Panel
from twin.incident import Incident


class IncidentDetail(Panel):
    def __init__(self) -> None:
        super().__init__()
        self._first = 0
        self._id = ""
        self._longest = 0

    def key(self, shown: Shown) -> object:
        return (shown.key, shown.selected, self._first, shown.reasons)

    def incident(self, shown: Shown) -> Incident | None:
        return self.fabric.incident(shown.selected)

    def lines(self, shown: Shown, width: int, height: int) -> list[Line]:
        incident = self.incident(shown)
        if incident is not None and incident.id != self._id:
            self._id, self._first = incident.id, 0
        now = shown.snapshot.time if shown.snapshot is not None else 0
        reason = dict(shown.reasons).get(incident.cause, "") if incident is not None else ""
        made = detail_lines(incident, now, width, reason)
        self._longest = max(0, len(made) - height)
        self._first = min(self._first, self._longest)
        shown_lines = made[self._first : self._first + height]
        if self._first < self._longest and height > 3:
            shown_lines[-1] = [(f" ▼ {len(made) - self._first - height + 1} more lines", "accent")]
        return shown_lines

    def move(self, by: int) -> None:
        self._first = max(0, min(self._longest, self._first + by))
        self.remake()

    def page(self) -> int:
        return max(1, self.size.height - 2)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self.move(2)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self.move(-2)
