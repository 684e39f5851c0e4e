"""One incident's page."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.widget import Widget

from tui.screens.handling import HandlingScreen
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
        Binding("up,k", "move(-1)", "up", show=False, tooltip="a line up"),
        Binding("down,j", "move(1)", "down", show=False, tooltip="a line down"),
        Binding("pageup", "page(-1)", "page up", show=False, tooltip="a page up"),
        Binding("pagedown", "page(1)", "page down", show=False, tooltip="a page down"),
        Binding("home", "move(-1000000)", "first", show=False, tooltip="the start of the page"),
        Binding("end", "move(1000000)", "last", show=False, tooltip="the end of the page"),
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
