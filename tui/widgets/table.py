"""A table that makes only the rows in sight. Its cursor holds on to an entity, not to a place."""

from __future__ import annotations

import numpy as np
from textual import events

from tui.filter import FilterError, Term, parse, select
from tui.rows.incidents import window
from tui.rows.table import HEAD, Column, Rows, Table, ordered, table_lines
from tui.shown import Shown
from tui.text import Line
from tui.widgets.panel import Panel
from twin.snapshot import Snapshot


class TablePanel(Panel):
    """Subclasses say what the table is of a snapshot, in `table`."""

    DEFAULT_CSS = """
    TablePanel { height: 1fr; }
    """

    def __init__(self) -> None:
        super().__init__()
        self.filter = ""
        self.problem = ""  # why what was typed is no filter; the last good one holds
        self.reverse = False
        self._terms: tuple[Term, ...] = ()
        self._by = 0  # a place among the columns
        self._table: Table | None = None
        self._rows: Rows = np.zeros(0, np.intp)
        self._order: object = None  # of what the rows were made
        self._turn: object = None  # of what the table was made
        self._chosen = ""  # the address under the cursor
        self._cursor = self._first = 0

    def table(self, snapshot: Snapshot) -> Table:
        raise NotImplementedError

    def key(self, shown: Shown) -> object:
        return (shown.key, self.filter, self._by, self.reverse, self._cursor, self._chosen)

    def lines(self, shown: Shown, width: int, height: int) -> list[Line]:
        table = self.renew(shown)
        if table is None:
            return []
        room = max(1, height - HEAD)
        self._first = window(self._cursor, self._first, room, len(self._rows))
        return table_lines(
            table, self._rows, width, height, cursor=self._cursor, first=self._first, sort=self._column(table),
            reverse=self.reverse, text=self.filter,
        )  # fmt: skip

    def _column(self, table: Table) -> Column:
        return table.columns[self._by % len(table.columns)]

    def renew(self, shown: Shown) -> Table | None:
        """The table of what is shown, its rows filtered and in order; both are made where something changed."""
        if shown.snapshot is None:
            return None
        turn = shown.key, id(shown.snapshot.topology)
        if self._table is None or turn != self._turn:
            self._table, self._turn = self.table(shown.snapshot), turn
        order = turn, self.filter, self._by, self.reverse
        if order != self._order:
            self._order = order
            self._rows = self._sorted(self._table)
        self._hold(self._table)
        return self._table

    def _sorted(self, table: Table) -> Rows:
        rows = ordered(self._column(table), reverse=self.reverse)
        if not self._terms:
            return rows
        try:
            return rows[select(self._terms, table.asks())[rows]]
        except FilterError as problem:  # another wiring may lack what was asked for
            self.problem = str(problem)
            return rows

    def _hold(self, table: Table) -> None:
        """Keeps the cursor on its entity; where that is gone, at its place."""
        row = table.find(self._chosen) if self._chosen else None
        at = np.flatnonzero(self._rows == row) if row is not None else self._rows[:0]
        self._cursor = int(at[0]) if len(at) else max(0, min(self._cursor, len(self._rows) - 1))
        if len(self._rows) and self._chosen:
            self._chosen = table.name(int(self._rows[self._cursor]))

    # --- what the screen asks and sets ---

    def chosen(self) -> str:
        """The address under the cursor, nothing where there are no rows."""
        table = self.renew(self.fabric.shown)
        return table.name(int(self._rows[self._cursor])) if table is not None and len(self._rows) else ""

    def move(self, by: int) -> None:
        self._go(self._cursor + by)

    def _go(self, place: int) -> None:
        """Puts the cursor on a row; from then on it stays with its entity."""
        table = self.renew(self.fabric.shown)
        if table is not None and len(self._rows):
            self._cursor = max(0, min(len(self._rows) - 1, place))
            self._chosen = table.name(int(self._rows[self._cursor]))
            self.remake()

    def page(self) -> int:
        return max(1, self.size.height - HEAD)

    def sort(self, by: int) -> None:
        """Sorts by the next column, the worst first."""
        if self._table is not None:
            self._by = (self._by + by) % len(self._table.columns)
            self.reverse = False
            self.remake()

    def turn(self) -> None:
        """Sorts the other way round."""
        self.reverse = not self.reverse
        self.remake()

    def narrow(self, text: str) -> str:
        """Filters by `text` (see tui.filter); returns why not where it makes no sense, and keeps the last."""
        self.problem = ""
        table = self.renew(self.fabric.shown)
        try:
            terms = parse(text)
            if table is not None:
                select(terms, table.asks())
        except FilterError as problem:
            self.problem = str(problem)
            return self.problem
        self.filter, self._terms = " ".join(text.split()), terms
        self.remake()
        return ""

    def hint(self) -> str:
        table = self.renew(self.fabric.shown)
        return table.asks().help() if table is not None else ""

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self.move(3)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self.move(-3)

    def on_click(self, event: events.Click) -> None:
        if event.y >= HEAD and self._first + event.y - HEAD < len(self._rows):
            self._go(self._first + event.y - HEAD)
            if event.chain == 2:
                self.fabric.open_entity(self.chosen())
