"""The site's power in a line, and racks, feeds, nodes and supplies as a table."""

from __future__ import annotations

from tui.ring import Ring
from tui.rows.powertable import PowerIndex, PowerReadings, power_table, site_lines
from tui.rows.table import Table
from tui.shown import Shown
from tui.text import Line
from tui.widgets.panel import Panel
from tui.widgets.table import TablePanel
from twin.snapshot import Snapshot


class PowerTable(TablePanel):
    """Keeps the loads that it has seen, for the swing of each."""

    def __init__(self) -> None:
        super().__init__()
        self.readings: PowerReadings | None = None
        self._index: PowerIndex | None = None
        self._ring = Ring()

    def table(self, snapshot: Snapshot) -> Table:
        if self._index is None or self._index.topo is not snapshot.topology:
            self._index = PowerIndex(snapshot.topology)
        self.readings = PowerReadings(snapshot, self._index, self._ring)
        return power_table(self.readings)


class SiteLine(Panel):
    def __init__(self, table: PowerTable) -> None:
        super().__init__()
        self._table = table

    def lines(self, shown: Shown, width: int, height: int) -> list[Line]:
        self._table.renew(shown)
        return site_lines(self._table.readings, width, height) if self._table.readings is not None else []
