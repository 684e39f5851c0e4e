"""A table of any length, of which only the rows in sight are made: columns, order, lines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from tui.filter import Filterable
from tui.rows.header import OLD_SECONDS
from tui.text import Line, Span, count, fit, fit_middle, section
from twin.snapshot import Snapshot

F64 = npt.NDArray[np.float64]
Bool = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.intp]
HEAD = 2  # lines above the rows: the title and the names of the columns


@dataclass(frozen=True, slots=True)
class Column:
    """One column. cell: the text and style of a row. order: what it is sorted by, the worst first, NaN last.

    rank: 0 is always shown, the highest goes first where there is no room. least: the least is the worst.
    """

    name: str
    title: str
    width: int
    cell: Callable[[int], Span]
    order: Callable[[], F64]
    least: bool = False
    rank: int = 0
    align: str = ">"


@dataclass(frozen=True, slots=True)
class Table:
    """What a table shows at one moment. name: the address of a row, find: the row of an address.

    asks: what its filter may ask, made when it is needed. glyph: what stands before a row.
    """

    title: str
    what: str  # one row of it, in a word
    n: int
    name: Callable[[int], str]
    find: Callable[[str], int | None]
    glyph: Callable[[int], Span]
    columns: tuple[Column, ...]
    asks: Callable[[], Filterable]
    longest: int  # cells of the longest address
    summary: Line = field(default_factory=list)
    empty: str = ""  # why there are no rows


def ordered(column: Column, *, reverse: bool) -> Rows:
    """Rows in the order of a column: the worst first, or last; rows of which it is unknown always last."""
    keys = column.order()
    down = column.least == reverse
    return np.argsort(np.where(np.isnan(keys), np.inf, -keys if down else keys), kind="stable")


def chosen_columns(columns: tuple[Column, ...], width: int, least_name: int) -> tuple[Column, ...]:
    """Those that fit beside an address of `least_name` cells."""
    shown = list(columns)
    while shown and sum(c.width + 1 for c in shown) + least_name + 4 > width:
        worst = max(c.rank for c in shown)
        if worst == 0:
            break
        shown.pop(max(i for i, c in enumerate(shown) if c.rank == worst))
    return tuple(shown)


def table_lines(
    table: Table, rows: Rows, width: int, height: int,
    *, cursor: int, first: int, sort: Column, reverse: bool, text: str = "",
) -> list[Line]:  # fmt: skip
    """The title, the names of the columns, and the rows from `first` on. cursor: a place in `rows`."""
    if height < 1:
        return []
    lines = [_title(table, rows, width, first, max(0, height - HEAD), sort, reverse, text)]
    if not len(rows):
        says = f"nothing matches “{text}”" if table.n else table.empty
        return [*lines, [(f" {says}", "dim")]][:height]
    name = min(table.longest, 28)
    columns = chosen_columns(table.columns, width, name)
    room = width - 4 - sum(c.width + 1 for c in columns)
    name = max(8, min(room, max(name, table.longest)))
    head: Line = [(fit(f"   {table.what}", name + 4), "dim")]
    for column in columns:
        mine = column.name == sort.name
        title = column.title + (("↓" if column.least == reverse else "↑") if mine else "")
        head.append((" " + fit(title, column.width, column.align), "accent" if mine else "dim"))
    lines.append(head)
    for place, row in enumerate(rows[first : first + height - HEAD].tolist(), first):
        lines.append(_row(table, columns, row, name, chosen=place == cursor, width=width))
    return lines[:height]


def _row(table: Table, columns: tuple[Column, ...], row: int, name: int, *, chosen: bool, width: int) -> Line:
    tone = " cursor" if chosen else ""
    glyph, style = table.glyph(row)
    line: Line = [("►" if chosen else " ", "accent" + tone), (f"{glyph} ", f"{style} bold{tone}")]
    line.append((fit_middle(table.name(row), name) + " ", "text" + tone))
    for column in columns:
        said, style = column.cell(row)
        line.append((" " + fit(said, column.width, column.align), style + tone))
    rest = width - (name + 4) - sum(c.width + 1 for c in columns)
    return [*line, (" " * rest, "text" + tone)] if rest > 0 else line


def _title(
    table: Table, rows: Rows, width: int, first: int, room: int, sort: Column, reverse: bool, text: str
) -> Line:
    right: Line = []
    if text:
        right.append((f"filter “{text}”: {count(len(rows))} of {count(table.n)}", "accent"))
    else:
        right += table.summary
    if len(rows) > room:
        right.append((f"  {count(first + 1)}–{count(min(len(rows), first + room))} of {count(len(rows))}", "dim"))
    by = f"by {sort.title}{', the worst last' if reverse else ''}"
    return section(f"{table.title} {by}", right, width)


def share(value: float, none: bool = False) -> str:
    """A share in at most five cells: `97%`, `?` where unknown, `–` where there is none."""
    if none:
        return "–"
    if value != value:
        return "?"
    if 0 < value < 0.01:
        return "<1%"
    return f"{100 * value:.0f}%" if not 0.99 < value < 1 else "99%"


def unknown(value: float, style: str) -> str:
    return "unknown" if value != value else style


def stale_after(snapshot: Snapshot) -> float:
    """Seconds from which a reading is older than the slowest source explains: three of its intervals."""
    slowest = max((s.interval_seconds for s in snapshot.sources if s.interval_seconds > 0), default=0.0)
    return max(OLD_SECONDS, 3 * slowest)


def state_counts(states: npt.NDArray[np.integer], words: tuple[tuple[str, str, str], ...]) -> Line:
    """`■ 1 lost  ▲ 3 throttled  ● 508 ok`: how many rows have which state. words: (word, glyph, style) by state."""
    numbers = np.bincount(states, minlength=len(words)).tolist()
    line: Line = []
    for state in range(len(words) - 1, -1, -1):
        word, glyph, style = words[state]
        if numbers[state]:
            line.append((f"{'  ' if line else ''}{glyph} {count(numbers[state])} {word}", style))
    return line
