"""View 4: every GPU, in any order, filtered by anything."""

from __future__ import annotations

from collections.abc import Iterable

from textual.widget import Widget

from tui.screens.table import TableScreen
from tui.widgets.gputable import GpuTable


class GpusScreen(TableScreen):
    view = "gpus"
    example = "power>90% rail=3 node=n01* plane:B down lost"

    def __init__(self) -> None:
        super().__init__(GpuTable())

    def body(self) -> Iterable[Widget]:
        yield self.filter_line
        yield self.panel
