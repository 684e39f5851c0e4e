"""The ports of this host, where there is no fabric to show."""

from __future__ import annotations

from tui.rows.interfaces import interface_lines
from tui.shown import Shown
from tui.text import Line
from tui.widgets.panel import Panel


class Interfaces(Panel):
    def key(self, shown: Shown) -> object:
        return (shown.key, shown.about)

    def lines(self, shown: Shown, width: int, height: int) -> list[Line]:
        return interface_lines(shown.snapshot, shown.about, width, height)
