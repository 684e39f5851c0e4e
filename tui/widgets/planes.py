"""A strip a plane; on the planes view one of them is chosen."""

from __future__ import annotations

from tui.rows.planes import planes_lines
from tui.shown import Shown
from tui.text import Line
from tui.widgets.panel import Panel


class PlaneStrips(Panel):
    def __init__(self, *, choose: bool = False) -> None:
        super().__init__()
        self.choose = choose
        self.charts = 0  # rows of the chart under each strip

    def key(self, shown: Shown) -> object:
        return (shown.key, self.charts, self.fabric.plane if self.choose else None)

    def lines(self, shown: Shown, width: int, height: int) -> list[Line]:
        selected = self.fabric.plane if self.choose else None
        return planes_lines(shown.snapshot, width, height, selected=selected, charts=self.charts)
