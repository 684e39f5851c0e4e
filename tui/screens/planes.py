"""View 2: one plane in depth: leaf by spine, host side, and the links in trouble."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

import numpy as np
from textual.binding import Binding, BindingType
from textual.widget import Widget

from tui import layout
from tui.rows.leaf import leaf_grid_rows
from tui.rows.links import troubled_links
from tui.screens.base import ViewScreen, set_height
from tui.screens.moves import moves
from tui.shown import Shown
from tui.widgets.leafmap import LeafGrid, LeafMap, LinkList
from tui.widgets.planes import PlaneStrips


class PlanesScreen(ViewScreen):
    view = "planes"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right,tab,l", "plane(1)", "plane", key_display="←→", tooltip="the next plane"),
        Binding("left,shift+tab,h", "plane(-1)", "previous plane", show=False, tooltip="the previous plane"),
        Binding("enter", "open", "leaf", tooltip="open the leaf under the cursor, link by link"),
        Binding("s", "states", "load/state", tooltip="the map shows load, or state"),
        *moves("the leaf above", "the leaf below", "the first leaf", "the last leaf"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.strips = PlaneStrips(choose=True)
        self.leaf_map = LeafMap()
        self.grid = LeafGrid(self.leaf_map)
        self.links = LinkList()

    def body(self) -> Iterable[Widget]:
        yield from (self.strips, self.leaf_map, self.grid, self.links)

    def arrange_body(self, shown: Shown) -> None:
        width, height = self.app.size
        snapshot = shown.snapshot
        planes, leaves, troubles = 1, 1, 0
        if snapshot is not None:
            plane = self.fabric.plane_row
            switches = snapshot.topology.switches
            planes = len(snapshot.planes)
            leaves = int(np.count_nonzero((switches.plane == plane) & (switches.tier == 0)))
            troubles = troubled_links(snapshot, plane, 0).entries
        index = self.leaf_map.index
        grid = leaf_grid_rows(index, width) if index is not None and leaves else 0
        plan = layout.planes(width, height, planes, leaves, troubles, grid)
        set_height(self.grid, plan.grid, plan.gap)
        self.strips.charts = plan.charts
        set_height(self.strips, plan.strips)
        set_height(self.leaf_map, plan.map, plan.gap if plan.strips else 0)
        set_height(self.links, plan.links, plan.gap)

    def entity(self) -> str:
        return self.leaf_map.address()

    def action_open(self) -> None:
        from tui.screens.leaf import LeafScreen

        leaf_map = self.leaf_map
        if leaf_map.leaf() is not None:
            self.fabric.push_screen(LeafScreen(leaf_map))

    def action_plane(self, by: int) -> None:
        self.fabric.choose_plane(by)

    def action_states(self) -> None:
        leaf_map = self.leaf_map
        leaf_map.states = not leaf_map.states
        leaf_map.remake()

    def action_move(self, by: int) -> None:
        self.leaf_map.move(by)

    def action_page(self, way: int) -> None:
        leaf_map = self.leaf_map
        leaf_map.move(way * leaf_map.page())
