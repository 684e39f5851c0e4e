"""The header line of every view."""

from __future__ import annotations

from tui.rows.header import header_line
from tui.shown import Shown
from tui.text import Line
from tui.widgets.panel import Panel


class Header(Panel):
    DEFAULT_CSS = """
    Header { height: 1; }
    """
    base = "head"

    def key(self, shown: Shown) -> object:
        return (shown.key, shown.now, shown.paused, shown.waiting, shown.speed, shown.state, shown.failed)

    def lines(self, shown: Shown, width: int, height: int) -> list[Line]:
        return [header_line(shown, width)]
