"""NVLink: the domains of the fabric, and the matrix of one of them."""

from __future__ import annotations

from textual import events

from tui.rows.gputable import gpu_index
from tui.rows.incidents import window
from tui.rows.nvlink import Cells, DomainTally, cells_of, domain_line, domain_lines, domain_tally, line_count
from tui.rows.nvmatrix import (
    LEGEND,
    Matrix,
    assumed,
    domain_matrix,
    label_of,
    matrix_height,
    matrix_lines,
    matrix_summary,
    sight,
)
from tui.shown import Shown
from tui.text import Line
from tui.widgets.panel import Panel
from twin.snapshot import Snapshot


class DomainMap(Panel):
    """All domains, the worst first; the cursor stays on its domain."""

    def __init__(self) -> None:
        super().__init__()
        self.chosen_row: int | None = None  # of domains; none until somebody moves: then the worst is chosen
        self._tally: DomainTally | None = None
        self._cells: Cells | None = None
        self._turn: object = None
        self._first = 0

    def key(self, shown: Shown) -> object:
        return (shown.key, self.chosen_row)

    def tally(self, shown: Shown) -> DomainTally | None:
        """The domains counted, once a snapshot."""
        if shown.snapshot is None:
            return None
        turn = shown.key, id(shown.snapshot.topology)
        if self._tally is None or self._turn != turn:
            self._tally, self._turn = domain_tally(shown.snapshot, gpu_index(shown.snapshot.topology)), turn
        return self._tally

    def place(self, tally: DomainTally) -> int:
        """The place of the chosen domain in the order of `tally`."""
        if self.chosen_row is None or self.chosen_row >= len(tally.order):
            return 0
        return int((tally.order == self.chosen_row).argmax())

    def row(self, shown: Shown) -> int | None:
        """The domain under the cursor, a row of domains."""
        tally = self.tally(shown)
        return int(tally.order[self.place(tally)]) if tally is not None and len(tally.order) else None

    def layout_of(self, snapshot: Snapshot, tally: DomainTally, width: int, height: int) -> Cells:
        longest = max(map(len, snapshot.topology.domains.name), default=0)
        return cells_of(longest, len(tally.order) - tally.sick, width, height - 2 - tally.sick)

    def wanted(self, shown: Shown, width: int, height: int) -> int:
        """Rows that all of it takes in a screen of this size."""
        tally = self.tally(shown)
        if shown.snapshot is None or tally is None or not len(tally.order):
            return 2
        return 1 + line_count(tally, self.layout_of(shown.snapshot, tally, width, height))

    def lines(self, shown: Shown, width: int, height: int) -> list[Line]:
        tally = self.tally(shown)
        if shown.snapshot is None or tally is None:
            return []
        self._cells = self.layout_of(shown.snapshot, tally, width, height)
        cursor = self.place(tally)
        at = domain_line(tally, self._cells, cursor)
        self._first = window(at, self._first, height - 1, line_count(tally, self._cells))
        return domain_lines(
            shown.snapshot, tally, self._cells, width, height, cursor=cursor, first=self._first
        )  # fmt: skip

    def move(self, by: int) -> None:
        """Moves by places in the order."""
        tally = self.tally(self.fabric.shown)
        if tally is not None and len(tally.order):
            self.chosen_row = int(tally.order[max(0, min(len(tally.order) - 1, self.place(tally) + by))])
            self.fabric.redraw()

    def move_lines(self, by: int) -> None:
        """Moves by lines: a domain in trouble each, then a row of cells each."""
        tally, cells = self.tally(self.fabric.shown), self._cells
        if tally is None or cells is None or not len(tally.order):
            return
        at = self.place(tally)
        for _ in range(min(abs(by), len(tally.order))):
            if by > 0:
                at = at + 1 if at < tally.sick else at + cells.across
            else:
                at = at - 1 if at <= tally.sick else max(tally.sick, at - cells.across)
        self.move(at - self.place(tally))

    def page(self) -> int:
        return max(1, self.size.height - 2)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self.move_lines(1)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self.move_lines(-1)


class DomainMatrix(Panel):
    """One domain, GPU by switch chip or link. marks: whether it has a cursor, which stays on its GPU."""

    DEFAULT_CSS = """
    DomainMatrix { height: 1fr; }
    """

    def __init__(self, *, marks: bool = False) -> None:
        super().__init__()
        self.domain: int | None = None
        self._marks = marks
        self._chosen: int | None = None  # a row of GPUs; none until somebody moves: then the worst is chosen
        self._first = 0
        self._matrix: Matrix | None = None

    def key(self, shown: Shown) -> object:
        return (shown.key, self.domain, self._chosen)

    def matrix(self, snapshot: Snapshot) -> Matrix | None:
        if self.domain is None or self.domain >= len(snapshot.topology.domains.name):
            return None
        return domain_matrix(snapshot, gpu_index(snapshot.topology), self.domain)

    def wanted(self, shown: Shown, width: int) -> int:
        """Rows that all of it takes."""
        made = None if shown.snapshot is None else self.matrix(shown.snapshot)
        if made is None or shown.snapshot is None:
            return 0
        return matrix_height(made, width, label_of(shown.snapshot, made)) + 2

    def lines(self, shown: Shown, width: int, height: int) -> list[Line]:
        matrix = self._matrix = None if shown.snapshot is None else self.matrix(shown.snapshot)
        if matrix is None or shown.snapshot is None:
            return []
        name = f"domain:{shown.snapshot.topology.domains.name[self.domain or 0]}"
        notes: list[Line] = [[(" ", "text"), *LEGEND]] if width < 84 + len(name) + 20 else []
        if assumed(matrix) and height >= 14:
            notes.append([(" which link goes to which chip is not published: how many do is", "dim")])
        room = max(3, height - 1 - len(notes))
        place = self._place(matrix)
        seen = sight(matrix, width, room, label_of(shown.snapshot, matrix))
        self._first = window(place or 0, self._first, seen, len(matrix.gpus))
        made = matrix_lines(shown.snapshot, matrix, width, room, name=name, cursor=place, first=self._first)
        return [made[0], matrix_summary(matrix, width), *made[1:], *notes]

    def _place(self, matrix: Matrix) -> int | None:
        """The place of the chosen GPU among those of the domain, None where nothing is marked."""
        if not self._marks or not len(matrix.gpus):
            return None
        return int((matrix.gpus == self._chosen).argmax()) if self._chosen is not None else 0

    def gpu(self) -> int | None:
        """The row of the GPU under the cursor."""
        place = None if self._matrix is None else self._place(self._matrix)
        return int(self._matrix.gpus[place]) if self._matrix is not None and place is not None else None

    def move(self, by: int) -> None:
        place = None if self._matrix is None else self._place(self._matrix)
        if self._matrix is not None and place is not None:
            self._chosen = int(self._matrix.gpus[max(0, min(len(self._matrix.gpus) - 1, place + by))])
            self.remake()

    def page(self) -> int:
        return max(1, self.size.height - 6)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self.move(2)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self.move(-2)
