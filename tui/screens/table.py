"""What the views with a table share: a cursor, an order, a filter."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType

from tui.screens.base import ViewScreen
from tui.screens.moves import moves
from tui.widgets.filterline import FilterLine
from tui.widgets.table import TablePanel


class TableScreen(ViewScreen):
    """panel: the table; subclasses make it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "back", show=False, tooltip="go back: close or clear the filter, leave"),
        Binding("enter", "open", "open", tooltip="open what is under the cursor"),
        Binding("slash", "filter", "filter", key_display="/", tooltip="filter: power>90% rail=3 node=n01* lost !ok"),
        Binding("s", "sort(1)", "sort", key_display="s S", tooltip="sort by the next column"),
        Binding("S", "turn", "other way", show=False, tooltip="sort the other way round"),
        *moves("a row up", "a row down"),
    ]
    example = "power>90%"  # of a filter, for the line that is still empty

    def __init__(self, panel: TablePanel) -> None:
        super().__init__()
        self.panel = panel
        self.filter_line = FilterLine(panel.narrow, f"{self.example}; esc clears")

    def entity(self) -> str:
        return self.panel.chosen()

    def action_open(self) -> None:
        if address := self.panel.chosen():
            self.fabric.open_entity(address)

    def action_filter(self) -> None:
        self.filter_line.open(self.panel.filter, self.panel.hint())

    def action_sort(self, by: int) -> None:
        self.panel.sort(by)

    def action_turn(self) -> None:
        self.panel.turn()

    def action_move(self, by: int) -> None:
        self.panel.move(by)

    def action_page(self, way: int) -> None:
        self.panel.move(way * self.panel.page())

    def action_back(self) -> None:
        """Clears the filter first, then goes back."""
        if self.filter_line.display or self.panel.filter:
            self.filter_line.close()
            self.panel.narrow("")
        else:
            super().action_back()
