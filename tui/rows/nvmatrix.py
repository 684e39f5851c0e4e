"""One NVLink domain as a matrix: a row a GPU, a column a switch chip, or a link where the design names no chips."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tui.rows.gputable import GpuIndex, nvlink_age
from tui.rows.table import F64, Rows, share, stale_after
from tui.text import Line, age, count, cut, fit, line_width, plural, section
from tui.theme import GLYPH
from twin.snapshot import Snapshot

HEALTHY, DOWN, ERRORS = "·", GLYPH["critical"], GLYPH["warning"]
LEGEND: Line = [
    (HEALTHY, "ok"), (" up  ", "dim"), (DOWN, "crit"), (" down  ", "dim"), ("4", "warn"),
    (" links up of more  ", "dim"), (ERRORS, "warn"), (" errors  ", "dim"), ("?", "unknown"), (" unknown", "dim"),
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Matrix:
    """int[GPUs, columns] each: links in a cell, known, up. errors: float64[GPUs, columns] a second, NaN uncounted.

    gpus: rows of GPUs. columns: names of chips, or of the links of a GPU. chips: whether they are chips. age: seconds
    since the newest reading, NaN where there is none; stale: whether that is too long ago.
    """

    gpus: Rows
    columns: tuple[str, ...]
    chips: bool
    total: Rows
    known: Rows
    up: Rows
    errors: F64
    age: float
    stale: bool


def domain_matrix(snapshot: Snapshot, index: GpuIndex, domain: int) -> Matrix:
    """The links of one domain, GPUs in trouble first. domain: its row."""
    topo = snapshot.topology
    gpus = topo.domains.gpu_rows[domain].astype(np.intp)
    each = int(topo.domains.links_per_gpu[domain])
    links = index.nvlinks[0][gpus][:, None] + np.arange(each)
    chips = topo.domains.switches[domain]
    columns = chips if chips and each else tuple(f"nvlink{i}" for i in range(each))
    cell = np.broadcast_to(np.arange(each), links.shape)
    if chips and each:
        first = sum(len(names) for names in topo.domains.switches[:domain])
        cell = topo.nvlink_switch[links] - first
    place = (np.arange(len(gpus))[:, None] * len(columns) + cell).ravel()
    shape = len(gpus), len(columns)

    def read(name: str) -> F64:
        values = snapshot.nvlink.get(name)
        shown = np.full(links.shape, np.nan) if values is None or not len(values) else values[links]
        return np.where(old[:, None], np.nan, shown).ravel()

    def summed(values: np.ndarray) -> np.ndarray:
        return np.bincount(place, values, shape[0] * shape[1]).reshape(shape)

    ages = nvlink_age(snapshot, index)[gpus]
    old = ages > stale_after(snapshot)
    heard = float(np.nanmin(ages)) if not np.isnan(ages).all() else float("nan")
    up, errors = read("up"), read("errors")
    counted = summed(~np.isnan(errors))
    made = Matrix(
        gpus, columns, bool(chips), summed(np.ones(links.size)).astype(np.intp),
        summed(~np.isnan(up)).astype(np.intp), summed(up == 1).astype(np.intp),
        np.where(counted > 0, summed(np.nan_to_num(errors)), np.nan), heard, heard > stale_after(snapshot),
    )  # fmt: skip
    bad = np.select([made.up.sum(1) < made.known.sum(1), np.nansum(made.errors, 1) > 0, old], [0, 1, 2], 3)
    order = np.lexsort((np.arange(len(gpus)), made.up.sum(1), bad))
    return replace(
        made, gpus=gpus[order], total=made.total[order], known=made.known[order], up=made.up[order],
        errors=made.errors[order],
    )  # fmt: skip


def cell(total: int, known: int, up: int, errors: float) -> tuple[str, str]:
    """One cell: a glyph where all its links are alike, else how many are up."""
    if not total:
        return " ", "text"
    if not known:
        return "?", "unknown"
    if up == 0:
        return DOWN, "crit"
    if up < known:
        return (str(up) if up < 10 else "+"), "warn bold"
    if errors > 0:
        return ERRORS, "warn"
    return (HEALTHY, "ok") if known == total else ("?", "unknown")


def label_of(snapshot: Snapshot, matrix: Matrix) -> int:
    """Cells that the address of a GPU has."""
    names = snapshot.topology.gpu_names
    return min(24, max((len(names[g]) for g in matrix.gpus.tolist()), default=0) + 1)


def matrix_height(matrix: Matrix, width: int, label: int) -> int:
    """Lines of the matrix in full, with its title, names of columns and sums."""
    return 2 + len(_heads(matrix, width, label)) + -(-len(matrix.gpus) // blocks(matrix, width, label))


def _size(matrix: Matrix, width: int, label: int) -> int:
    """Cells across of a block: marker, GPU, links, share of them, gap."""
    return label + 3 + _pitch(len(matrix.columns), width, label) * len(matrix.columns) + 5 + 4


def blocks(matrix: Matrix, width: int, label: int) -> int:
    """How many blocks of GPUs stand side by side."""
    return max(1, min(4, (width + 3) // _size(matrix, width, label)))


def _pitch(columns: int, width: int, label: int) -> int:
    """Cells from column to column: three where they fit, for the sake of the eye."""
    return max(1, min(3, (width - label - 9) // max(1, columns)))


def _heads(matrix: Matrix, width: int, label: int) -> list[str]:
    """The numbers of the columns: in a row, or their digits one below the other where there is no room."""
    pitch = _pitch(len(matrix.columns), width, label)
    numbers = [name.rstrip("0123456789") and name[len(name.rstrip("0123456789")) :] for name in matrix.columns]
    numbers = [number or str(i) for i, number in enumerate(numbers)]
    digits = max((len(n) for n in numbers), default=1)
    if digits < pitch:
        return ["".join(fit(n, pitch) for n in numbers)]
    return ["".join(fit(n.rjust(digits)[line], pitch) for n in numbers) for line in range(digits)]


def matrix_lines(
    snapshot: Snapshot, matrix: Matrix, width: int, height: int, *, name: str, cursor: int | None, first: int
) -> list[Line]:
    """The title with the legend, the columns, the GPUs from `first` on, and the share that each chip has up."""
    if not len(matrix.gpus) or not matrix.columns:
        return [section(f"{name}", [], width), [(" no NVLink here", "dim")]][:height]
    names = snapshot.topology.gpu_names
    label = label_of(snapshot, matrix)
    pitch = _pitch(len(matrix.columns), width, label)
    what = "chip" if matrix.chips else "link"
    title = f"{name}: GPU by {'switch ' * matrix.chips}{what}"
    lines = [section(title, LEGEND if width >= 84 + len(title) else [], width)]
    across = blocks(matrix, width, label)
    size = _size(matrix, width, label) if across > 1 else width
    for number, head in enumerate(_heads(matrix, width, label)):
        says = "  " + fit(what if not number else "", label, ">") + " "
        lines.append([(fit(says + head + ("  up" if not number else ""), size), "dim")] * across)
    room = max(1, height - len(lines) - 1)
    for place in range(first, min(first + room, first + len(matrix.gpus))):
        line: Line = []
        for at in range(place, min(len(matrix.gpus), first + room * across), room):
            line += _gpu(matrix, at, names[matrix.gpus[at]], label, pitch, size, chosen=at == cursor)
        lines.append(line)
    lines.append(_sums(matrix, label, pitch))
    return [cut(line, width) for line in lines[:height]]


def sight(matrix: Matrix, width: int, height: int, label: int) -> int:
    """How many GPUs are in sight in so many lines."""
    return blocks(matrix, width, label) * max(1, height - 2 - len(_heads(matrix, width, label)))


def _gpu(matrix: Matrix, place: int, name: str, label: int, pitch: int, width: int, *, chosen: bool) -> Line:
    tone = " cursor" if chosen else ""
    line: Line = [("►" if chosen else " ", "accent" + tone), (f" {fit(name, label)} ", "text" + tone)]
    rows = (matrix.total[place], matrix.known[place], matrix.up[place], matrix.errors[place])
    for one in zip(*(row.tolist() for row in rows), strict=True):
        glyph, style = cell(*one)
        line.append((fit(glyph, pitch), style + tone))
    total, known, up = (int(row.sum()) for row in rows[:3])
    line.append((f"{share(up / known) if known else '?':>5}", ("dim" if up == known == total else "warn") + tone))
    rest = width - label - 3 - pitch * len(matrix.columns) - 5
    return [*line, (" " * rest, "text")] if rest > 0 else line


def _sums(matrix: Matrix, label: int, pitch: int) -> Line:
    """A cell a column: all of it up, or how it stands."""
    line: Line = [("  " + fit("all", label, ">") + " ", "dim")]
    columns = (matrix.known.sum(0), matrix.known.sum(0), matrix.up.sum(0), np.nansum(matrix.errors, 0))
    for total, known, up, errors in zip(*(column.tolist() for column in columns), strict=True):
        glyph, style = cell(total, known, up, errors) if known else ("?", "unknown")
        part = known and 0 < up < known
        line.append((fit(str(min(9, int(10 * up / known))) if part else glyph, pitch), style))
    return [*line, (" tenths", "dim")] if ((columns[2] < columns[1]) & (columns[2] > 0)).any() else line


def matrix_summary(matrix: Matrix, width: int) -> Line:
    """`1,287 of 1,296 links up, 9 down · heard 0.8 s ago · 1 of 18 chips dark · 3 errors/s`, as much as there is room
    for."""
    total, known, up = int(matrix.total.sum()), int(matrix.known.sum()), int(matrix.up.sum())
    down = known - up
    line: Line = [(f" {count(up) if known else '?'} of {plural(total, 'link')} up", "text bold")]
    if down:
        line.append((f", {count(down)} down", "crit"))
    if known < total:
        line.append((f", ? {count(total - known)} unknown", "unknown"))
    if matrix.age == matrix.age:
        line.append((f" · heard {age(matrix.age)} ago", "warn" if matrix.stale else "dim"))
    dark = int(np.count_nonzero((matrix.up.sum(0) == 0) & (matrix.known.sum(0) > 0)))
    if matrix.chips and dark:
        line.append((f" · {dark} of {plural(len(matrix.columns), 'chip')} dark", "crit"))
    if (errors := float(np.nansum(matrix.errors))) > 0:
        line.append((f" · {errors:.3g} errors/s", "warn"))
    while line_width(line) > width:
        line.pop()
    return line


def assumed(matrix: Matrix) -> bool:
    """Whether a GPU has several links to a chip: which goes to which is then not published, only how many."""
    return matrix.chips and bool((matrix.total > 1).any())
