"""One NVLink domain's page: every GPU by switch chip, and its incidents."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.widget import Widget

from tui import layout
from tui.screens.base import ViewScreen, set_height
from tui.screens.moves import moves
from tui.shown import Shown
from tui.widgets.entity import EntityPage
from tui.widgets.nvlink import DomainMatrix


class DomainScreen(ViewScreen):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "back", key_display="esc", tooltip="go back"),
        Binding("enter", "open", "GPU", tooltip="open the GPU under the cursor"),
        *moves("a row up", "a row down"),
    ]

    def __init__(self, address: str) -> None:
        super().__init__()
        self.address = address
        self.matrix = DomainMatrix(marks=True)
        self.incidents = EntityPage(address, marks=False)

    def body(self) -> Iterable[Widget]:
        yield from (self.matrix, self.incidents)

    def arrange_body(self, shown: Shown) -> None:
        width, height = self.app.size
        of = layout.frame(height)
        if shown.snapshot is not None:
            self.matrix.domain = shown.snapshot.topology.rows("domain").get(self.address.removeprefix("domain:"))
        rows = min(self.matrix.wanted(shown, width), max(3, of.body - of.gap - min(4, of.body // 4)))
        set_height(self.matrix, rows)
        set_height(self.incidents, max(0, of.body - rows - of.gap), of.gap)

    def entity(self) -> str:
        return self.address

    def action_open(self) -> None:
        snapshot, gpu = self.fabric.shown.snapshot, self.matrix.gpu()
        if snapshot is not None and gpu is not None:
            self.fabric.open_entity(snapshot.topology.gpu_names[gpu])

    def action_move(self, by: int) -> None:
        self.matrix.move(by)

    def action_page(self, way: int) -> None:
        self.matrix.move(way * self.matrix.page())
