"""The page of a GPU, a node or a rack."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.widget import Widget

from tui.screens.base import ViewScreen
from tui.screens.moves import moves
from tui.widgets.entity import EntityPage


class EntityScreen(ViewScreen):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "back", key_display="esc", tooltip="go back"),
        Binding("enter", "open", "open", tooltip="open the neighbour or the incident under the cursor"),
        *moves("a row up", "a row down"),
    ]

    def __init__(self, address: str) -> None:
        super().__init__()
        self.address = address
        self.page = EntityPage(address)

    def body(self) -> Iterable[Widget]:
        yield self.page

    def entity(self) -> str:
        """The part whose page it is: it is what one reads about here."""
        return self.address

    def action_open(self) -> None:
        chosen = self.page.chosen()
        if chosen is not None and chosen.incident:
            self.fabric.select(chosen.incident)
            self.fabric.open_incident()
        elif chosen is not None:
            self.fabric.open_entity(chosen.entity)

    def action_move(self, by: int) -> None:
        self.page.move(by)

    def action_page(self, way: int) -> None:
        self.page.move(way * self.page.page())
