"""View 3: the NVLink domains, the worst first, and the one under the cursor as a matrix where there is room."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.widget import Widget

from tui import layout
from tui.screens.base import ViewScreen, set_height
from tui.screens.moves import moves
from tui.shown import Shown
from tui.widgets.nvlink import DomainMap, DomainMatrix

_LEAST = 8  # rows below which a matrix is not worth its place


class NvlinkScreen(ViewScreen):
    view = "nvlink"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open", "open", tooltip="open the domain under the cursor, GPU by switch chip"),
        Binding("right,l", "beside(1)", "next", show=False, tooltip="the next domain"),
        Binding("left,h", "beside(-1)", "previous", show=False, tooltip="the domain before"),
        *moves("a row up", "a row down"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.domains = DomainMap()
        self.matrix = DomainMatrix()

    def body(self) -> Iterable[Widget]:
        yield from (self.domains, self.matrix)

    def arrange_body(self, shown: Shown) -> None:
        width, height = self.app.size
        of = layout.frame(height)
        self.matrix.domain = self.domains.row(shown)
        wanted = self.domains.wanted(shown, width, of.body)
        matrix = self.matrix.wanted(shown, width)
        rest = of.body - wanted - of.gap
        if rest < min(matrix, _LEAST):  # the matrix gets half where the domains need more
            rest = of.body // 2 if of.body >= 2 * _LEAST + 4 else 0
        rows = of.body - min(rest, matrix) - (of.gap if rest else 0)
        set_height(self.domains, min(rows, max(wanted, 2)) if rest else rows)
        set_height(self.matrix, of.body - min(rows, max(wanted, 2)) - of.gap if rest else 0, of.gap)

    def entity(self) -> str:
        snapshot, row = self.fabric.shown.snapshot, self.domains.row(self.fabric.shown)
        return "" if snapshot is None or row is None else f"domain:{snapshot.topology.domains.name[row]}"

    def action_open(self) -> None:
        if address := self.entity():
            self.fabric.open_entity(address)

    def action_beside(self, by: int) -> None:
        self.domains.move(by)

    def action_move(self, by: int) -> None:
        if abs(by) > 1:
            self.domains.move(by)
        else:
            self.domains.move_lines(by)

    def action_page(self, way: int) -> None:
        self.domains.move_lines(way * self.domains.page())
