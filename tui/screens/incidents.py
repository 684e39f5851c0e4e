"""View 6: all incidents, open first; the one under the cursor in full beside them where there is room."""

from __future__ import annotations

from collections.abc import Iterable

from textual.containers import Container
from textual.widget import Widget
from textual.widgets import Input

from tui import layout
from tui.screens.listing import ListingScreen
from tui.shown import Shown
from tui.widgets.detail import IncidentDetail


class IncidentsScreen(ListingScreen):
    DEFAULT_CSS = """
    IncidentsScreen #pair { height: 1fr; layout: horizontal; overflow: hidden; }
    IncidentsScreen IncidentList { width: 1fr; height: 1fr; }
    IncidentsScreen IncidentDetail { width: 1fr; height: 1fr; margin-left: 2; }
    IncidentsScreen Input { margin: 0 1; background: $panel; }
    """
    view = "incidents"

    def __init__(self) -> None:
        super().__init__()
        self.line = Input(placeholder="words of kind, cause, severity, state or names; esc clears", compact=True)
        self.line.display = False
        self.detail = IncidentDetail()

    def body(self) -> Iterable[Widget]:
        yield self.line
        yield Container(self.incidents, self.detail, id="pair")

    def arrange_body(self, shown: Shown) -> None:
        beside = self.app.size.width >= layout.BESIDE
        self.detail.display = beside
        self.incidents.preview = not beside

    def action_filter(self) -> None:
        self.line.display = True
        self.line.value = self.incidents.filter
        self.line.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        self._apply(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self._close()

    def _apply(self, text: str) -> None:
        self.incidents.filter = text.strip()
        chosen = self.incidents.chosen()
        if chosen is not None:
            self.fabric.select(chosen.id)
        self.incidents.remake()

    def _close(self) -> None:
        self.line.display = False
        self.set_focus(None)

    def action_back(self) -> None:
        """Clears the filter first, then goes back."""
        if self.line.display or self.incidents.filter:
            self.line.value = ""
            self._apply("")
            self._close()
        else:
            super().action_back()
