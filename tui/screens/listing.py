"""What the screens with a list of incidents share: cursor keys, open, copy."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType

from tui.screens.handling import HandlingScreen
from tui.screens.moves import moves
from tui.widgets.incidents import IncidentList
from twin.incident import Incident


class ListingScreen(HandlingScreen):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open", "open", tooltip="open the incident under the cursor"),
        Binding("slash", "filter", "filter", key_display="/", tooltip="filter the incidents by any words"),
        Binding("y", "copy", "copy", tooltip="copy the incident as plain text for a ticket"),
        *moves("the incident above", "the incident below"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.incidents = IncidentList()

    def action_move(self, by: int) -> None:
        self.incidents.move(by)

    def action_page(self, way: int) -> None:
        self.incidents.move(way * self.incidents.page())

    def action_open(self) -> None:
        chosen = self.incidents.chosen()
        if chosen is not None:
            self.fabric.select(chosen.id)
            self.fabric.open_incident()

    def handled(self) -> Incident | None:
        return self.incidents.chosen()

    def action_copy(self) -> None:
        self.fabric.copy(self.incidents.chosen())

    def action_filter(self) -> None:
        self.fabric.filter_incidents()
