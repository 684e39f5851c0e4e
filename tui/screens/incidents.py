"""View 6: all incidents, open first; the one under the cursor in full beside them where there is room."""

from __future__ import annotations

from collections.abc import Iterable

from textual.containers import Container
from textual.widget import Widget

from tui import layout
from tui.filter import FilterError
from tui.rows.incidents import matching
from tui.screens.listing import ListingScreen
from tui.shown import Shown
from tui.widgets.detail import IncidentDetail
from tui.widgets.filterline import FilterLine


class IncidentsScreen(ListingScreen):
    DEFAULT_CSS = """
    IncidentsScreen #pair { height: 1fr; layout: horizontal; overflow: hidden; }
    IncidentsScreen IncidentList { width: 1fr; height: 1fr; }
    IncidentsScreen IncidentDetail { width: 1fr; height: 1fr; margin-left: 2; }
    """
    view = "incidents"

    def __init__(self) -> None:
        super().__init__()
        self.filter_line = FilterLine(
            self._apply, "words of it, severity=critical, kind=link*, gpus>8, !open; esc clears"
        )
        self.detail = IncidentDetail()

    def body(self) -> Iterable[Widget]:
        yield self.filter_line
        yield Container(self.incidents, self.detail, id="pair")

    def arrange_body(self, shown: Shown) -> None:
        beside = self.app.size.width >= layout.BESIDE
        self.detail.display = beside
        self.incidents.preview = not beside

    def action_filter(self) -> None:
        self.filter_line.open(self.incidents.filter)

    def _apply(self, text: str) -> str:
        """Filters by `text`; where it makes no sense the last filter stays, and why not is returned."""
        try:
            matching((), text)
        except FilterError as problem:
            return str(problem)
        self.incidents.filter = text.strip()
        chosen = self.incidents.chosen()
        if chosen is not None:
            self.fabric.select(chosen.id)
        self.incidents.remake()
        return ""

    def action_back(self) -> None:
        """Clears the filter first, then goes back."""
        if self.filter_line.display or self.incidents.filter:
            self.filter_line.close()
            self._apply("")
        else:
            super().action_back()
