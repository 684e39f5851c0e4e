"""View 5: what the site draws and has to spare, now and after one more loss; racks, feeds, nodes, supplies."""

from __future__ import annotations

from collections.abc import Iterable

from textual.widget import Widget

from tui import layout
from tui.screens.base import set_height
from tui.screens.table import TableScreen
from tui.shown import Shown
from tui.widgets.powertable import PowerTable, SiteLine


class PowerScreen(TableScreen):
    view = "power"
    example = "kind=rack left<10kW after<0 draws>90% no-spare"

    def __init__(self) -> None:
        table = PowerTable()
        super().__init__(table)
        self.site = SiteLine(table)

    def body(self) -> Iterable[Widget]:
        yield from (self.filter_line, self.site, self.panel)

    def arrange_body(self, shown: Shown) -> None:
        body = layout.frame(self.app.size.height).body
        heard = shown.snapshot is not None and bool(shown.snapshot.power.names)
        set_height(self.site, (3 if body >= 12 else 2 if body >= 7 else 0) if heard else 0)
