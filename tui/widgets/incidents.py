"""The list of incidents. The cursor holds on to an incident, not to a row."""

from __future__ import annotations

from textual import events

from tui.rows.incidents import cursor_of, incidents_lines, matching, visible_rows, window
from tui.shown import Shown
from tui.text import Line
from tui.widgets.panel import Panel
from twin.incident import Incident


class IncidentList(Panel):
    def __init__(self, *, preview: bool = False) -> None:
        super().__init__()
        self.preview = preview  # the chosen incident is told in the rows that are left
        self.filter = ""
        self.two_lines = False
        self._cursor = 0
        self._first = 0

    def key(self, shown: Shown) -> object:
        return (shown.key, shown.selected, self.filter, self.two_lines, self.preview)

    def listed(self) -> list[Incident]:
        snapshot = self.fabric.shown.snapshot
        return [] if snapshot is None else matching(snapshot.incidents, self.filter)

    def chosen(self) -> Incident | None:
        """The incident under the cursor."""
        listed = self.listed()
        return listed[cursor_of(listed, self.fabric.shown.selected, self._cursor)] if listed else None

    def lines(self, shown: Shown, width: int, height: int) -> list[Line]:
        listed = self.listed()
        rows = visible_rows(height, self.two_lines)
        self._cursor = cursor_of(listed, shown.selected, self._cursor)
        self._first = window(self._cursor, self._first, rows, len(listed))
        return incidents_lines(
            shown.snapshot, listed, width, height,
            cursor=self._cursor, first=self._first, text=self.filter, two_lines=self.two_lines,
            preview=self.preview,
        )  # fmt: skip

    def move(self, by: int) -> None:
        """Moves the cursor by rows, staying within the list."""
        listed = self.listed()
        if listed:
            row = cursor_of(listed, self.fabric.shown.selected, self._cursor)
            self.fabric.select(listed[max(0, min(len(listed) - 1, row + by))].id)

    def page(self) -> int:
        return visible_rows(self.size.height, self.two_lines)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self.move(1)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self.move(-1)

    def on_click(self, event: events.Click) -> None:
        listed = self.listed()
        row = self._first + (event.y - 1) // (2 if self.two_lines else 1)
        if event.y >= 1 and 0 <= row < len(listed):
            self.fabric.select(listed[row].id)
            if event.chain == 2:
                self.fabric.open_incident()
