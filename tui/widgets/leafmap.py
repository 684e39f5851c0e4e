"""The map of the chosen plane, leaf by spine; the links of the leaf under its cursor; the links in trouble."""

from __future__ import annotations

from textual import events

from tui.rows.heatmap import PlaneIndex, PlaneMap, plane_index, plane_map
from tui.rows.incidents import window
from tui.rows.leaf import leaf_grid
from tui.rows.leaves import leaf_lines, leaf_rows
from tui.rows.links import link_lines
from tui.shown import Shown
from tui.text import Line
from tui.widgets.panel import Panel


class LeafMap(Panel):
    def __init__(self) -> None:
        super().__init__()
        self.states = False
        self.cursor = 0
        self._first = 0
        self.index: PlaneIndex | None = None

    def key(self, shown: Shown) -> object:
        return (shown.key, self.fabric.plane_row, self.states, self.cursor)

    def map(self, shown: Shown) -> PlaneMap | None:
        """The chosen plane, counted; the index is made once a plane."""
        if shown.snapshot is None:
            return None
        topology, plane = shown.snapshot.topology, self.fabric.plane_row
        if self.index is None or self.index.topology is not topology or self.index.plane != plane:
            self.index = plane_index(topology, plane)
        return plane_map(shown.snapshot, self.index)

    def lines(self, shown: Shown, width: int, height: int) -> list[Line]:
        made = self.map(shown)
        if made is None or shown.snapshot is None:
            return []
        total = len(made.index.leaves)
        self.cursor = max(0, min(self.cursor, total - 1))
        self._first = window(self.cursor, self._first, leaf_rows(height), total)
        return leaf_lines(
            shown.snapshot.topology, made, width, height, cursor=self.cursor, first=self._first, states=self.states
        )

    def leaf(self) -> int | None:
        """The row of switches of the leaf under the cursor."""
        made = self.index
        return int(made.leaves[self.cursor]) if made is not None and self.cursor < len(made.leaves) else None

    def address(self) -> str:
        """The address of the leaf under the cursor; of the plane where it has none."""
        leaf, made = self.leaf(), self.index
        if made is None:
            return ""
        return made.topology.switches.name[leaf] if leaf is not None else f"plane:{made.topology.planes[made.plane]}"

    def move(self, by: int) -> None:
        total = len(self.index.leaves) if self.index is not None else 0
        self.cursor = max(0, min(total - 1, self.cursor + by))
        self.remake()

    def page(self) -> int:
        return leaf_rows(self.size.height)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self.move(1)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self.move(-1)

    def on_click(self, event: events.Click) -> None:
        if event.y >= 2:
            self.move(self._first + event.y - 2 - self.cursor)


class LinkList(Panel):
    """The links in trouble of the chosen plane, of all planes, or of the leaf under the cursor of `leaf_map`."""

    def __init__(self, leaf_map: LeafMap | None = None, *, everywhere: bool = False) -> None:
        super().__init__()
        self._map = leaf_map
        self._everywhere = everywhere

    def key(self, shown: Shown) -> object:
        return (shown.key, self.fabric.plane_row, self._map.cursor if self._map else None)

    def lines(self, shown: Shown, width: int, height: int) -> list[Line]:
        switch = self._map.leaf() if self._map else None
        plane = None if self._everywhere else self.fabric.plane_row
        return link_lines(shown.snapshot, plane, width, height, switch)


class LeafGrid(Panel):
    """Every link of the leaf under the cursor of `leaf_map`."""

    def __init__(self, leaf_map: LeafMap) -> None:
        super().__init__()
        self._map = leaf_map

    def key(self, shown: Shown) -> object:
        return (shown.key, self.fabric.plane_row, self._map.cursor, self._map.states)

    def lines(self, shown: Shown, width: int, height: int) -> list[Line]:
        return leaf_grid(shown.snapshot, self._map.index, self._map.cursor, width, height, states=self._map.states)
