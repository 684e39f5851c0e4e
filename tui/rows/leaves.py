"""The rows of the plane map: a leaf, its host side, its uplinks, and a cell a spine."""

from __future__ import annotations

from tui.rows.heatmap import ALL_DOWN, GOOD, NO_LINK, NOT_KNOWN, PART, PlaneMap, Tally, merge_columns
from tui.rows.planes import plane_name
from tui.text import Line, bar, cut, fit, percent, plural, section
from twin.topology.model import Topology

_KIND_STYLE = {ALL_DOWN: "cell_down", PART: "cell_part", NOT_KNOWN: "cell_unknown", GOOD: "cell_ok"}


def ratio_span(tally: Tally, row: int, width: int) -> tuple[str, str]:
    """`60/64` links up of one leaf, with the glyph of the worst."""
    total, up = int(tally.total[row]), int(tally.up[row])
    if not total:
        return fit("–", width), "faint"
    unknown = int(tally.unknown[row])
    if unknown == total:
        return fit(f"?/{total}", width), "unknown"
    if up == 0 and not unknown:
        return fit(f"{up}/{total} ■", width), "crit bold"
    if tally.down[row] or tally.slow[row]:
        return fit(f"{up}/{total} ▲", width), "warn bold"
    return fit(f"{up}/{total}" + (" ?" if unknown else ""), width), "unknown" if unknown else "text"


def load_spans(tally: Tally, row: int, bar_width: int) -> Line:
    """The load of one leaf's side in percent, and a bar where there is room."""
    load = float(tally.load[row])
    if not tally.total[row]:
        return [(fit("–", 5, ">") + " " * (2 + bar_width), "faint")]
    line: Line = [(fit(percent(load), 5, ">") + (" " if bar_width else "  "), "text" if load == load else "unknown")]
    if bar_width:
        line += [*bar(load, bar_width - 1, "area"), ("  ", "text")]
    return line


def cell(kind: int, load: float, down: int, width: int, *, states: bool) -> tuple[str, str]:
    """One pair of leaf and spine: load in tenths (percent where there is room) or its state."""
    if kind == NO_LINK:
        return " " * width, "cell_none"
    if kind == ALL_DOWN:
        return fit("■", width, "^"), "cell_down"
    known = load == load
    if states:
        glyph = {PART: str(min(9, down)) if down else "▲", NOT_KNOWN: "?", GOOD: "·"}[kind]
        return fit(glyph, width, "^"), _KIND_STYLE[kind]
    level = min(9, max(0, int(load * 10 + 1e-9))) if known else 0
    number = "?" if not known else str(round(load * 100)) if width >= 4 else str(level)
    if kind == PART:
        return fit(number + "▲" if width >= 3 else "▲", width, "^"), "cell_part"
    if kind == NOT_KNOWN:
        return fit("?" if not known else number + "?" if width >= 3 else "?", width, "^"), "cell_unknown"
    return fit(number, width, "^"), f"heat{level}" if known else "cell_unknown"


def short_names(names: list[str]) -> list[str]:
    """Names without the start they share: `00`, `01` for the spines of a plane."""
    if len(names) < 2:
        return [n[-2:] for n in names]
    shared = next((i for i, letters in enumerate(zip(*names, strict=False)) if len(set(letters)) > 1), 0)
    while shared > 0 and names[0][shared - 1].isdigit():
        shared -= 1
    return [n[shared:] for n in names]


class Columns:
    """Where things stand in a row of the map, for a width: decided once a frame."""

    def __init__(self, topology: Topology, map_: PlaneMap, width: int) -> None:
        leaves = map_.index.leaves
        longest = max((len(topology.switches.name[s]) for s in leaves), default=4)
        self.spines = len(map_.index.spines)
        self.name = min(longest, 24 if width >= 100 else 14)
        self.ratio = 9 if width >= 64 else 0
        self.load = 7 if width >= 48 else 0
        self.bar = 16 if width >= 120 and self.spines * 3 < width - 90 else 0  # a bar beside a load
        self.host_load = 7 + self.bar if width >= 100 and self.spines < width - 70 else 0
        fixed = 2 + self.name + 1 + self.load + self.bar + self.host_load
        room = width - fixed - 2 * self.ratio - 1
        room, without = max(1, room), max(1, width - fixed - 1)
        if -(-self.spines // without) < -(-self.spines // room):  # rather without counts than spines merged
            self.ratio, room = 0, without
        self.each = max(1, -(-self.spines // room))
        self.columns = -(-self.spines // self.each) if self.spines else 0
        self.cell = max(1, min(8, room // self.columns)) if self.columns else 0


def map_title(topology: Topology, map_: PlaneMap, width: int, first: int, rows: int, *, states: bool) -> Line:
    index = map_.index
    name = f"PLANE {plane_name(topology.planes[index.plane])}" if index.plane >= 0 else "SWITCHES"
    size = plural(len(index.leaves), "leaf").replace("leafs", "leaves")
    if len(index.spines):
        size += f" × {plural(len(index.spines), 'spine')}"
    right: Line = [(size, "dim")]
    if len(index.leaves) > rows:
        right.append((f"  rows {first + 1}–{min(len(index.leaves), first + rows)}", "dim"))
    if not len(index.spines):
        return section(f"{name} · host links", right, width)
    what = "state" if states else "load"
    return section(f"{name} · {what} of each leaf to each spine" if width >= 90 else f"{name} · {what}", right, width)


def head_line(topology: Topology, map_: PlaneMap, columns: Columns) -> Line:
    """What the columns are, and the spines' numbers where they fit."""
    text = "  " + fit("leaf", columns.name + 1)
    if columns.ratio:
        text += fit("hosts", columns.ratio)
    if columns.host_load:
        text += fit("load", 5, ">") + " " * (columns.host_load - 5)
    if columns.ratio:
        text += fit("uplinks", columns.ratio)
    if columns.load:
        text += fit("load", 5, ">") + " " * (2 + columns.bar)
    line: Line = [(text, "dim")]
    if not columns.columns:
        return line
    names = short_names([topology.switches.name[s] for s in map_.index.spines])
    if columns.each == 1 and max(len(n) for n in names) < columns.cell:
        return [*line, ("".join(fit(n, columns.cell, "^") for n in names), "dim")]
    merged = f", {columns.each} a column" if columns.each > 1 else ""
    label = f"spines {names[0]} to {names[-1]}{merged} "
    size = columns.columns * columns.cell
    return [*line, (fit(label + "─" * max(0, size - len(label)), size) if size > 12 else fit("", size), "dim")]


def legend_line(width: int, *, states: bool, spines: bool) -> Line:
    if not spines:
        return []
    if states:
        line: Line = [(" · ", "cell_ok"), (" all up  ", "dim"), (" 3 ", "cell_part"), (" links down  ", "dim"),
                      (" ▲ ", "cell_part"), (" slow  ", "dim")]  # fmt: skip
    else:
        line = [("load ", "dim"), *((str(d), f"heat{d}") for d in range(10)), (" tenths  ", "dim"),
                (" ▲ ", "cell_part"), (" part down or slow  ", "dim")]  # fmt: skip
    line += [(" ■ ", "cell_down"), (" down  ", "dim"), (" ? ", "cell_unknown"), (" unknown", "dim")]
    return cut([(" ", "text"), *line], width)


def leaf_lines(
    topology: Topology, map_: PlaneMap, width: int, height: int, *, cursor: int, first: int, states: bool
) -> list[Line]:
    """Title, column heads, the rows from `first` on, and the legend."""
    rows = leaf_rows(height)
    lines = [map_title(topology, map_, width, first, rows, states=states)]
    index = map_.index
    if not len(index.leaves):
        return [*lines, [(" no switches: there is nothing to draw a map of", "dim")]][:height]
    columns = Columns(topology, map_, width)
    lines.append(head_line(topology, map_, columns))
    pairs, across = merge_columns(map_.pairs, len(index.leaves), len(index.spines), columns.each)
    kinds, loads, downs = pairs.kind.tolist(), pairs.load.tolist(), pairs.down.tolist()
    for row in range(first, min(len(index.leaves), first + rows)):
        chosen = row == cursor
        line: Line = [
            ("► " if chosen else "  ", "accent bold"),
            (fit(topology.switches.name[index.leaves[row]], columns.name) + " ", "accent bold" if chosen else "text"),
        ]
        if columns.ratio:
            line.append(ratio_span(map_.hosts, row, columns.ratio))
        if columns.host_load:
            line += load_spans(map_.hosts, row, columns.bar)
        if columns.ratio:
            line.append(ratio_span(map_.ups, row, columns.ratio))
        if columns.load:
            line += load_spans(map_.ups if map_.ups.total[row] else map_.hosts, row, columns.bar)
        for k in range(row * across, (row + 1) * across):
            line.append(cell(kinds[k], loads[k], downs[k], columns.cell, states=states))
        lines.append(line)
    if height >= 6:
        lines.append(legend_line(width, states=states, spines=bool(len(index.spines))))
    return lines[:height]


def leaf_rows(height: int) -> int:
    """How many leaves a map of `height` lines shows."""
    return max(1, height - (3 if height >= 6 else 2))
