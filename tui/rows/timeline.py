"""The timeline at the foot: when incidents began and ended, and where on it the screen is."""

from __future__ import annotations

from collections.abc import Sequence

from tui.shown import NS, Mark, Shown
from tui.text import Line, clock, plural, section, span_clock, stretch
from tui.theme import GLYPH, STYLE

LEAST_SECONDS = 300  # a live timeline is never shorter
_RANK = {"critical": 3, "warning": 2, "info": 1}
_RUN = {"critical": "━", "warning": "─", "info": "┄"}
_STEPS = (10, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 21_600, 43_200, 86_400, 604_800)


def extent(shown: Shown) -> tuple[int, int]:
    """The times at the two ends: a whole recording, or the last minutes."""
    if shown.span is not None:
        return shown.span[0], max(shown.span[1], shown.span[0] + 1)
    if shown.snapshot is None:
        return 0, 1
    now = shown.snapshot.time
    times = shown.snapshot.history.time
    first = int(times[0]) if len(times) else now
    return min(first, now - LEAST_SECONDS * NS), now


def column_of(time: int, start: int, end: int, cells: int) -> int:
    return min(cells - 1, max(0, int((time - start) * (cells - 1) / max(1, end - start))))


def time_at(column: int, start: int, end: int, cells: int) -> int:
    """The time under a cell, for a click."""
    return start + int(max(0, min(cells - 1, column)) * (end - start) / max(1, cells - 1))


def lane(marks: Sequence[Mark], start: int, end: int, now: int, cells: int, *, replay: bool) -> Line:
    """One row: a glyph where an incident begins, a line while it lasts, the worst on top.

    What lies after `now` is dim: a recording knows it already, the screen has not come to it.
    """
    worst = [0] * cells
    glyphs = ["·"] * cells
    styles = ["faint"] * cells
    for mark in sorted(marks, key=lambda m: (_RANK.get(m.severity, 0), m.start)):
        until = mark.end if mark.end is not None else (end if replay else now)
        if until < start or mark.start > end:
            continue
        a, b = column_of(mark.start, start, end, cells), column_of(until, start, end, cells)
        rank = _RANK.get(mark.severity, 0)
        for x in range(a, b + 1):
            if rank >= worst[x]:
                worst[x], glyphs[x], styles[x] = rank, _RUN.get(mark.severity, "─"), STYLE.get(mark.severity, "dim")
    for mark in sorted(marks, key=lambda m: _RANK.get(m.severity, 0)):
        x = column_of(mark.start, start, end, cells)
        if start <= mark.start <= end and _RANK.get(mark.severity, 0) >= worst[x]:
            glyphs[x] = GLYPH.get(mark.severity, "○")
            styles[x] = STYLE.get(mark.severity, "dim")
    here = column_of(now, start, end, cells)
    line: Line = []
    for x in range(cells):
        style = styles[x] if x <= here else "dim" if worst[x] else "faint"
        if x == here and replay:
            line.append((glyphs[x] if worst[x] else "┃", style + " on" if worst[x] else "accent bold"))
        else:
            line.append((glyphs[x], style))
    return line


def _overlap(a: Mark, b: Mark, until: int) -> bool:
    a_end, b_end = (until if m.end is None else m.end for m in (a, b))
    return a.start <= b_end and b.start <= a_end


def pack(marks: Sequence[Mark], lanes: int, until: int) -> list[list[Mark]]:
    """Marks spread over lanes so that none hides another, the worst first; the last lane takes what is left."""
    rows: list[list[Mark]] = [[] for _ in range(lanes)]
    for mark in sorted(marks, key=lambda m: (-_RANK.get(m.severity, 0), m.start)):
        free = (row for row in rows if not any(_overlap(mark, other, until) for other in row))
        next(free, rows[-1]).append(mark)
    return rows


def axis(start: int, end: int, now: int, cells: int) -> Line:
    """Times of day at round steps, and an arrow with the time under where the screen is."""
    length = (end - start) / NS
    step = next((s for s in _STEPS if length / s * 11 <= cells), _STEPS[-1])
    row = [" "] * cells
    first = -(-start // (step * NS)) * step
    seconds = step < 60 or length < 120
    for moment in range(first, int(end / NS) + 1, step):
        label = clock(moment * NS) if seconds else clock(moment * NS)[:5]
        x = column_of(moment * NS, start, end, cells)
        if x + len(label) + 1 <= cells:
            row[x : x + len(label) + 1] = "╵" + label
    here = column_of(now, start, end, cells)
    text = f"↑ {clock(now)}" if here + 10 <= cells else f"{clock(now)} ↑"
    at = here if here + 10 <= cells else max(0, here - len(text) + 1)
    for x in range(max(0, at - 1), min(cells, at + len(text) + 1)):
        row[x] = " "
    left, right = "".join(row[:at]), "".join(row[at + len(text) :])
    return [(_whole(left, True), "dim"), (text, "accent bold"), (_whole(right, False), "dim")]


def _whole(text: str, left: bool) -> str:
    """Labels that the marker cut through are taken away: half a time misleads."""
    if left:
        at = text.rfind("╵")
        tail = text[at + 1 :].rstrip() if at >= 0 else ""
        return text if len(tail) in (0, 5, 8) else text[:at] + " " * (len(text) - at)
    at = text.find("╵")
    head = text[: at if at >= 0 else len(text)]
    return " " * len(head) + text[len(head) :]


LEGEND: Line = [("■━", "crit"), (" critical  ", "dim"), ("▲─", "warn"), (" warning  ", "dim"), ("○┄", "info"),
                (" info", "dim")]  # fmt: skip


def timeline_title(shown: Shown, start: int, end: int, width: int) -> Line:
    right: Line = list(LEGEND)
    if shown.mode == "replay":
        known = plural(len(shown.marks), "incident")
        return section(f"RECORDING {span_clock((end - start) / NS)}", [(f"{known}   ", "dim"), *right], width)
    return section(f"LAST {stretch((end - start) / NS)}", right, width)


def timeline_lines(shown: Shown, width: int, height: int) -> list[Line]:
    """A lane and the axis, then the title, then more lanes, as there are rows."""
    if shown.snapshot is None or height < 1 or width < 12:
        return []
    start, end = extent(shown)
    now = shown.snapshot.time
    cells = width - 2
    replay = shown.mode == "replay"
    known = [m for m in shown.marks if m.start <= end and (m.end is None or m.end >= start)]
    lines: list[Line] = [
        [(" ", "text"), *lane(row, start, end, now, cells, replay=replay)] if row or not i else []
        for i, row in enumerate(pack(known, max(1, height - 2), end if replay else now))
    ]
    if height >= 2:
        lines.append([(" ", "text"), *axis(start, end, now, cells)])
    if height >= 3:
        lines.insert(0, timeline_title(shown, start, end, width))
    return lines
