"""What-if on the screen: a sweep of single failures with a cursor, an answer to a question, or where traffic goes."""

from __future__ import annotations

from textual import events

from tui.rows.calibration import calibration_lines
from tui.rows.incidents import window
from tui.rows.whatif import HEAD, answer_lines, asked, sweep_lines
from tui.shown import Shown
from tui.text import Line, clock, spread, wrap
from tui.widgets.panel import Panel
from twin.calibration import Calibration
from twin.whatif import Answer, Outcome, Sweep

Found = Answer | Sweep | Calibration


class WhatIfPanel(Panel):
    DEFAULT_CSS = """
    WhatIfPanel { height: 1fr; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._shown: Found | None = None
        self._says = ""  # why there is no answer, or that one is on its way
        self._time = 0  # event time of the state that was asked, ns
        self._cursor = self._first = self._longest = 0
        self._turn = 0  # changes with what is shown

    def key(self, shown: Shown) -> object:
        return (self._turn, self._cursor, self._first)

    def put(self, found: Found, time: int) -> None:
        """Shows what was found of the state at `time`."""
        self._shown, self._time, self._says = found, time, ""
        self._cursor = self._first = 0
        self._turn += 1
        self.remake()

    def wait(self, says: str) -> None:
        """Says something above what was shown last."""
        self._says = says
        self._turn += 1
        self.remake()

    def chosen(self) -> Outcome | None:
        """The failure under the cursor of a sweep."""
        groups = self._shown.groups if isinstance(self._shown, Sweep) else []
        return groups[min(self._cursor, len(groups) - 1)][0] if groups else None

    def lines(self, shown: Shown, width: int, height: int) -> list[Line]:
        said: list[Line] = [[(f" {part}", "warn")] for part in wrap(self._says, width - 2) if part]
        room = max(1, height - len(said))
        if isinstance(self._shown, Sweep):
            return [*said, *self._sweep(self._shown, width, room)]
        if isinstance(self._shown, Answer):
            title = f"what if {asked(self._shown.change)}"
            return [*said, *self._page(title, answer_lines(self._shown, width), width, room)]
        if self._shown is not None and shown.snapshot is not None:
            made = calibration_lines(shown.snapshot.topology, self._shown, width)
            return [*said, *self._page("does traffic go where it should?", made, width, room)]
        return said or [[(" no data yet: nothing to ask", "dim")]]

    def _sweep(self, sweep: Sweep, width: int, height: int) -> list[Line]:
        title: Line = [(" what would it cost if one of these failed now?", "title")]
        made = sweep_lines(sweep, width, cursor=self._cursor)
        head, rows = made[:HEAD], made[HEAD:]
        room = max(1, height - 1 - HEAD)
        self._first = window(self._cursor, self._first, room, len(rows))
        as_of: Line = [(f"as of {clock(self._time)} UTC ", "dim")]
        return [spread(title, as_of, width), *head, *rows[self._first : self._first + room]]

    def _page(self, title: str, made: list[Line], width: int, height: int) -> list[Line]:
        """Lines under a title, from where they are scrolled to."""
        head: list[Line] = [[(f" {part}", "title")] for part in wrap(title, width - 20)]
        head[0] = spread(head[0], [(f"as of {clock(self._time)} UTC ", "dim")], width)
        room = max(1, height - len(head))
        self._longest = max(0, len(made) - room)
        self._first = min(self._first, self._longest)
        rows = made[self._first : self._first + room]
        if self._first < self._longest and room > 3:
            rows[-1] = [(f" ▼ {len(made) - self._first - room + 1} more lines", "accent")]
        return [*head, *rows]

    def move(self, by: int) -> None:
        """Moves the cursor of a sweep, scrolls an answer."""
        if isinstance(self._shown, Sweep):
            self._cursor = max(0, min(len(self._shown.groups) - 1, self._cursor + by))
        else:
            self._first = max(0, min(self._longest, self._first + by))
        self.remake()

    def page(self) -> int:
        return max(1, self.size.height - 3)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self.move(2)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self.move(-2)
