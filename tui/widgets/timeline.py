"""The timeline at the foot of every view; in a replay a click goes to that time."""

from __future__ import annotations

from textual import events

from tui.rows.timeline import extent, time_at, timeline_lines
from tui.shown import Shown
from tui.text import Line
from tui.widgets.panel import Panel


class Timeline(Panel):
    def key(self, shown: Shown) -> object:
        return (shown.key, shown.marks, shown.span)

    def lines(self, shown: Shown, width: int, height: int) -> list[Line]:
        return timeline_lines(shown, width, height)

    def on_click(self, event: events.Click) -> None:
        shown = self.fabric.shown
        if shown.mode == "replay" and shown.snapshot is not None:
            self.fabric.seek(time_at(event.x - 1, *extent(shown), self.size.width - 2))
