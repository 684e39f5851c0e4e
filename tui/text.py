"""Text for the screen: numbers, ages and times as people read them, and lines made of styled spans.

A `Line` is a list of (text, style) spans. A style is a few words (`crit bold`) that the palette knows,
so that rows are made, tested and compared without a terminal.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from math import isfinite

from rich.cells import cell_len, set_cell_size

from twin.units import show_speed

NS = 1_000_000_000
Span = tuple[str, str]
Line = list[Span]


def width_of(text: str) -> int:
    """Terminal cells that `text` takes."""
    return len(text) if text.isascii() else cell_len(text)


def fit(text: str, width: int, align: str = "<") -> str:
    """`text` in exactly `width` cells: padded, or cut with an ellipsis. align: `<`, `>` or `^`."""
    if width <= 0:
        return ""
    size = width_of(text)
    if size > width:
        return set_cell_size(text, width - 1) + "…"
    gap = width - size
    if align == ">":
        return " " * gap + text
    if align == "^":
        return " " * (gap // 2) + text + " " * (gap - gap // 2)
    return text + " " * gap


def fit_middle(text: str, width: int) -> str:
    """`text` in `width` cells, cut in the middle: both ends of a link's name tell something."""
    size = width_of(text)
    if size <= width or width < 8:
        return fit(text, width)
    head = (width - 1) // 2
    tail = width - 1 - head
    return set_cell_size(text, head) + "…" + text[len(text) - tail :]


def line_width(line: Line) -> int:
    return sum(width_of(text) for text, _ in line)


def plain(line: Line) -> str:
    """The characters of a line without their styles."""
    return "".join(text for text, _ in line)


def plain_lines(lines: Iterable[Line]) -> str:
    return "\n".join(plain(line).rstrip() for line in lines)


def spread(left: Line, right: Line, width: int, fill: str = "text") -> Line:
    """`left` and `right` at the two ends of `width` cells; `right` goes where both don't fit."""
    gap = width - line_width(left) - line_width(right)
    if gap < 1:
        return cut(left, width)
    return [*left, (" " * gap, fill), *right]


def cut(line: Line, width: int) -> Line:
    """At most `width` cells of `line`; an ellipsis says that something is missing."""
    if line_width(line) <= width:
        return line
    out: Line = []
    left = width
    for text, style in line:
        size = width_of(text)
        if size > left:
            out.append((fit(text + " ", left) if left > 0 else "", style))
            break
        out.append((text, style))
        left -= size
        if left == 0:
            text, style = out[-1]
            out[-1] = (fit(text + " ", size), style)
            break
    return out


def section(title: str, right: Line, width: int, *, rule: str = "─") -> Line:
    """A section's title in a thin rule, with what sums it up at the right end."""
    head: Line = [(rule * 2 + " ", "faint"), (title, "title"), (" ", "text")]
    tail: Line = [(" ", "text"), *right, (" " + rule * 2, "faint")] if right else []
    gap = width - line_width(head) - line_width(tail)
    if gap < 1:
        return section(title, [], width) if right else cut(head, width)
    return [*head, (rule * gap, "faint"), *tail]


def percent(fraction: float, digits: int = 0) -> str:
    """A share as people say it; `? %` where unknown. Never `100 %` nor `0 %` where it is not quite that."""
    if fraction != fraction:
        return "? %"
    value = 100.0 * fraction
    if digits == 0 and 0 < value < 1:
        return "<1 %"
    if digits == 0 and 99 < value < 100:
        return "99 %"
    return f"{value:.{digits}f} %"


def count(number: float) -> str:
    """A whole number with thousands apart; `?` where unknown."""
    return "?" if number != number else f"{int(number):,}"


def rate_of(bits: float) -> str:
    """Bits/s in three figures: `86 Tb/s`."""
    shown = show_speed(bits if bits != bits else float(f"{bits:.3g}"))
    return f"{shown[:-1]} {shown[-1]}b/s" if shown[-1:].isalpha() else f"{shown} b/s"


def plural(number: int, word: str) -> str:
    suffix = "" if number == 1 else "es" if word.endswith(("s", "x", "ch")) else "s"
    return f"{count(number)} {word}{suffix}"


def age(seconds: float) -> str:
    """A duration in at most seven characters: `0.4 s`, `45 s`, `2m 14s`, `1h 03m`, `2d 04h`; `?` where unknown."""
    if not isfinite(seconds):
        return "?"
    seconds = max(0.0, seconds)
    if seconds < 0.95 and seconds > 0.05:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60}m {whole % 60:02d}s"
    if whole < 86_400:
        return f"{whole // 3600}h {whole % 3600 // 60:02d}m"
    return f"{whole // 86_400}d {whole % 86_400 // 3600:02d}h"


def stretch(seconds: float) -> str:
    """A round stretch of time for a title: `5 min`, `45 s`, `1 h 20 min`."""
    if not isfinite(seconds):
        return "?"
    minutes = round(seconds / 60)
    if seconds < 90:
        return f"{max(0, round(seconds))} s"
    if minutes < 60:
        return f"{minutes} min"
    if minutes < 1440:
        return f"{minutes // 60} h" + (f" {minutes % 60} min" if minutes % 60 else "")
    return f"{minutes // 1440} d" + (f" {minutes % 1440 // 60} h" if minutes % 1440 >= 60 else "")


def _moment(time: int) -> datetime | None:
    try:
        return datetime.fromtimestamp(time / NS, UTC)
    except (OverflowError, ValueError, OSError):
        return None


def clock(time: int) -> str:
    """Nanoseconds since the epoch as UTC time of day."""
    moment = _moment(time)
    return "??:??:??" if moment is None else moment.strftime("%H:%M:%S")


def date_clock(time: int) -> str:
    """Nanoseconds since the epoch as UTC date and time."""
    moment = _moment(time)
    return "????-??-?? ??:??:??" if moment is None else moment.strftime("%Y-%m-%d %H:%M:%S")


def span_clock(seconds: float) -> str:
    """A position in a recording: `02:13`, `1:02:13`."""
    whole = max(0, int(seconds))
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes:02d}:{rest:02d}"


def wrap(text: str, width: int) -> list[str]:
    """`text` in lines of at most `width` cells, broken at spaces; a word that is too long is broken anywhere."""
    width = max(2, width)
    lines: list[str] = []
    for paragraph in text.splitlines() or [""]:
        current = ""
        for word in paragraph.split():
            while width_of(word) > width:
                if current:
                    lines.append(current)
                    current = ""
                head = set_cell_size(word, width).rstrip()
                lines.append(head)
                word = word[len(head) :]
            if not word:
                continue
            joined = f"{current} {word}" if current else word
            if width_of(joined) > width:
                lines.append(current)
                current = word
            else:
                current = joined
        lines.append(current)
    return lines


# --- bars and sparklines -------------------------------------------------------------------------

_LEVELS = "▁▂▃▄▅▆▇█"


def bar(fraction: float, width: int, style: str) -> Line:
    """A bar of `width` cells, filled to `fraction`; `?` where unknown. Empty at zero only, full at one only."""
    if width <= 0:
        return []
    if fraction != fraction:
        return [(fit("?" * min(width, 3), width), "unknown")]
    cells = round(min(1.0, max(0.0, fraction)) * width)
    if 0 < fraction < 1:
        cells = min(max(1, cells), max(1, width - 1))
    return [("━" * cells, style), ("─" * (width - cells), "track")]


def spark(values: Iterable[float], width: int, style: str, top: float = 1.0) -> Line:
    """A sparkline at the right end of `width` cells; `·` where unknown. values: one a cell, oldest first."""
    shown = list(values)[-width:] if width > 0 else []
    line: Line = [(" " * (width - len(shown)), "text")]
    for value in shown:
        if value != value:
            glyph, kind = "·", "unknown"
        else:
            glyph, kind = _LEVELS[min(6, max(0, int(value / top * 7)))], style
        if line[-1][1] == kind:
            line[-1] = (line[-1][0] + glyph, kind)
        else:
            line.append((glyph, kind))
    return line


def chart(values: list[float], width: int, height: int, style: str, top: float = 1.0) -> list[Line]:
    """A filled chart, `height` rows of `width` cells, top row first; unknown columns hold a `·` at the foot."""
    shown = values[-width:]
    pad = width - len(shown)
    rows: list[Line] = []
    for row in range(height - 1, -1, -1):
        cells = [" "] * pad
        for value in shown:
            if value != value:
                cells.append("·" if row == 0 else " ")
                continue
            level = min(float(height), max(0.0, value / top * height)) - row
            if row == 0:
                level = max(level, 0.125)
            cells.append(" " if level <= 0 else _LEVELS[min(7, max(0, int(level * 8) - 1))])
        rows.append([("".join(cells), style)])
    return rows
