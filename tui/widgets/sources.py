"""The sources of data: one line, or a table where there is room; and why one fails."""

from __future__ import annotations

from tui.rows.sources import sources_lines
from tui.shown import Shown
from tui.text import Line
from tui.widgets.panel import Panel


class Sources(Panel):
    def key(self, shown: Shown) -> object:
        return (shown.key, shown.reasons)

    def lines(self, shown: Shown, width: int, height: int) -> list[Line]:
        return sources_lines(shown.snapshot, width, height, dict(shown.reasons))
