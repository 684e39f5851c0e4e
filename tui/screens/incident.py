"""One incident's page."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.widget import Widget

from tui.screens.handling import HandlingScreen
from tui.screens.moves import moves
from tui.widgets.detail import IncidentDetail
from twin.incident import Incident


class IncidentScreen(HandlingScreen):
    DEFAULT_CSS = """
    IncidentScreen IncidentDetail { height: 1fr; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "back", key_display="esc", tooltip="go back to the list"),
        Binding("y", "copy", "copy", tooltip="copy the incident as plain text for a ticket"),
        Binding("n", "neighbour(1)", "next", tooltip="the next incident"),
        Binding("p", "neighbour(-1)", "previous", tooltip="the previous incident"),
        *moves("a line up", "a line down", "the start of the page", "the end of the page"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.detail = IncidentDetail()

    def body(self) -> Iterable[Widget]:
        yield self.detail

    def action_move(self, by: int) -> None:
        self.detail.move(by)

    def action_page(self, way: int) -> None:
        self.detail.move(way * self.detail.page())

    def action_neighbour(self, way: int) -> None:
        self.fabric.select_neighbour(way)

    def handled(self) -> Incident | None:
        return self.detail.incident(self.fabric.shown)

    def action_copy(self) -> None:
        self.fabric.copy(self.detail.incident(self.fabric.shown))
