"""One leaf's page: every link of it, and those in trouble."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.widget import Widget

from tui import layout
from tui.rows.leaf import leaf_grid_rows
from tui.screens.base import ViewScreen, set_height
from tui.shown import Shown
from tui.widgets.leafmap import LeafGrid, LeafMap, LinkList


class LeafScreen(ViewScreen):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "back", key_display="esc", tooltip="go back to the plane"),
        Binding("n,down,j", "neighbour(1)", "next leaf", tooltip="the next leaf"),
        Binding("p,up,k", "neighbour(-1)", "previous", tooltip="the leaf before"),
        Binding("s", "states", "load/state", tooltip="the cells show load, or state"),
    ]

    def __init__(self, leaf_map: LeafMap) -> None:
        super().__init__()
        self._map = leaf_map
        self.grid = LeafGrid(leaf_map)
        self.links = LinkList(leaf_map)

    def body(self) -> Iterable[Widget]:
        yield from (self.grid, self.links)

    def arrange_body(self, shown: Shown) -> None:
        width, height = self.app.size
        of = layout.frame(height)
        index = self._map.index
        rows = min(leaf_grid_rows(index, width) if index is not None else 4, max(2, of.body - 4))
        set_height(self.grid, rows)
        set_height(self.links, max(0, of.body - rows - of.gap), of.gap)

    def entity(self) -> str:
        return self._map.address()

    def action_neighbour(self, by: int) -> None:
        self._map.move(by)
        self.show(self.fabric.shown)

    def action_states(self) -> None:
        self._map.states = not self._map.states
        self.show(self.fabric.shown)
