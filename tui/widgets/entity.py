"""The page of one part of a fabric; it scrolls, and its cursor goes from one thing that opens to the next."""

from __future__ import annotations

from textual import events

from tui.ring import Ring
from tui.rows.entity import entity_page
from tui.rows.incidents import window
from tui.rows.page import PageLine
from tui.shown import Shown
from tui.text import Line, fit, plain
from tui.widgets.panel import Panel


class EntityPage(Panel):
    DEFAULT_CSS = """
    EntityPage { height: 1fr; }
    """

    def __init__(self, address: str, *, marks: bool = True) -> None:
        super().__init__()
        self.address = address
        self._marks = marks  # whether it has a cursor
        self._ring = Ring()
        self._page: list[PageLine] = []
        self._turn: object = None  # of what the page was made
        self._cursor = 0  # a place among the lines that open something
        self._first = 0

    def key(self, shown: Shown) -> object:
        return (shown.key, self._cursor, self._first)

    def lines(self, shown: Shown, width: int, height: int) -> list[Line]:
        if shown.snapshot is None:
            return []
        turn = shown.key, width, id(shown.snapshot.topology)
        if turn != self._turn:  # the cursor moves more often than the page changes
            self._turn = turn
            self._page = entity_page(shown.snapshot, self.address, self._ring, width)
        opens = self._opens()
        self._cursor = max(0, min(self._cursor, len(opens) - 1))
        at = opens[self._cursor] if opens else -1
        self._first = max(0, min(self._first, len(self._page) - height))
        last = self._first + height
        made = [self._line(i, at, width) for i in range(self._first, min(last, len(self._page)))]
        if last < len(self._page) and height > 3:
            made[-1] = [(f" ▼ {len(self._page) - last + 1} more lines", "accent")]
        return made

    def _line(self, place: int, at: int, width: int) -> Line:
        line = self._page[place]
        if place != at:
            return [("" if line.head else " ", "text"), *line.line]
        shown: Line = [("►", "accent cursor"), *((text, f"{style} cursor") for text, style in line.line)]
        return [*shown, (fit("", width - len(plain(shown))), "text cursor")]

    def _opens(self) -> list[int]:
        return [place for place, line in enumerate(self._page) if self._marks and (line.entity or line.incident)]

    def chosen(self) -> PageLine | None:
        """What is under the cursor; where that is out of sight it comes into sight, and is not chosen yet."""
        opens, room = self._opens(), self.size.height - 1
        if not opens:
            return None
        place = opens[self._cursor]
        if self._first <= place < self._first + room:
            return self._page[place]
        self._first = window(place, self._first, room, len(self._page))
        self.remake()
        return None

    def move(self, by: int) -> None:
        """Moves the cursor; scrolls by lines where it is out of sight, or has nowhere to go."""
        opens, room = self._opens(), self.size.height - 1
        last = max(0, len(self._page) - self.size.height)
        place = opens[self._cursor] if opens else -1
        there = max(0, min(len(opens) - 1, self._cursor + by)) if opens else 0
        if not self._first <= place < self._first + room or there == self._cursor:
            self._first = max(0, min(last, self._first + by))
        else:
            self._cursor = there
            self._first = min(last, window(opens[there], self._first, room, len(self._page)))
        self.remake()

    def page(self) -> int:
        return max(1, self.size.height - 2)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self.move(1)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self.move(-1)
