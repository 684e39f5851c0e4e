"""NVLink domains: what share of their links is up, the worst first; the healthy ones as a glyph each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from tui.filter import Bool
from tui.rows.gputable import GpuIndex, nvlink_age, nvlink_counts, part
from tui.rows.table import F64, Rows, share, stale_after
from tui.text import Line, age, count, fit, line_width, plural, section
from tui.theme import GLYPH
from twin.snapshot import Snapshot
from twin.topology.model import Topology

LITTLE = 0.5  # of its links: a domain with less is marked as badly off
_KINDS = ("nvlink_down", "nvlink_errors", "nvswitch_down", "nvlink_domain_split")
_NAME = 18  # cells that the name of a domain has in a list, at most


@dataclass(frozen=True, slots=True)
class DomainTally:
    """Links counted by domain, int[domains] each. share: of those that are known, NaN where none is.

    errors: of all its links, a second, NaN where nobody counts them. told: bool[domains], whether an open incident is
    about its NVLink: a few errors are noise, the twin knows which are more. order: rows of domains, the worst first:
    what is down, then what is told of, then what is stale or unknown. sick: how many of them are either of the first
    two. age: seconds since the newest reading of any of its GPUs. stale: whether that is too long ago.
    """

    total: Rows
    known: Rows
    up: Rows
    share: F64
    errors: F64
    order: Rows
    sick: int
    told: Bool
    age: F64
    stale: Bool

    @property
    def unknown(self) -> Bool:
        return self.known < self.total


def by_gpu(values: F64, index: GpuIndex) -> F64:
    """Sums over the NVLinks of each GPU, NaN where none is known."""
    known = ~np.isnan(values)
    total = index.over_nvlinks(values if known.all() else np.where(known, values, 0.0))
    return np.where(index.over_nvlinks(known) > 0, total, np.nan)


def domain_tally(snapshot: Snapshot, index: GpuIndex) -> DomainTally:
    topo = snapshot.topology
    n, domain = len(topo.domains.name), topo.gpus.domain
    mine = domain >= 0

    def summed(values: np.ndarray) -> np.ndarray:
        return np.bincount(domain[mine], values[mine], n)

    up, known = (summed(part).astype(np.intp) for part in nvlink_counts(snapshot, index))
    total = summed(topo.nvlinks_per_gpu).astype(np.intp)
    errors = np.full(n, np.nan)
    rates = snapshot.nvlink.get("errors")
    if rates is not None and len(rates):
        of_gpu = by_gpu(rates, index)
        counted = summed(~np.isnan(of_gpu)) > 0
        errors = np.where(counted, summed(np.nan_to_num(of_gpu)), np.nan)
    left = part(up, known)
    bad, told = known > up, told_of(snapshot)
    heard = newest(snapshot, index)
    stale = heard > stale_after(snapshot)
    kind = np.select([bad, told, stale | (known < total)], [0, 1, 2], 3)
    order = np.lexsort((np.arange(n), -np.nan_to_num(errors), np.where(bad, left, 1.0), kind))
    return DomainTally(total, known, up, left, errors, order, int(np.count_nonzero(bad | told)), told, heard, stale)


def newest(snapshot: Snapshot, index: GpuIndex) -> F64:
    """float64[domains], seconds since the newest reading of NVLinks of any of its GPUs, NaN where there is none."""
    domain = snapshot.topology.gpus.domain
    out = np.full(len(snapshot.topology.domains.name), np.nan)
    mine = np.flatnonzero(domain >= 0)
    np.fmin.at(out, domain[mine], nvlink_age(snapshot, index)[mine])
    return out


def told_of(snapshot: Snapshot) -> Bool:
    """bool[domains]: an open incident about NVLink has its cause there: a GPU, a link, a switch chip."""
    topo = snapshot.topology
    told = np.zeros(len(topo.domains.name), bool)
    for incident in snapshot.incidents:
        if incident.is_open and incident.kind in _KINDS:
            told[
                [
                    row
                    for row in map(partial(_domain_of, topo), (incident.cause, *incident.affected.names))
                    if row >= 0
                ]
            ] = True
    return told


def _domain_of(topo: Topology, address: str) -> int:
    """The row of the domain that an address is in, -1 where it is in none, or in several."""
    if address.startswith("domain:"):
        return topo.rows("domain").get(address[7:], -1)
    part = "/".join(address.partition("+")[0].split("/")[:2])
    gpu = topo.rows("gpu").get(part)
    if gpu is not None:
        return int(topo.gpus.domain[gpu])
    return next((row for row, chips in enumerate(topo.domains.switches) if part in chips), -1)


def domain_look(tally: DomainTally, row: int) -> tuple[str, str, str]:
    """(glyph, style, word) of one domain."""
    if tally.up[row] < tally.known[row]:
        bad = tally.share[row] < LITTLE
        return GLYPH["critical" if bad else "warning"], "crit" if bad else "warn", "links down"
    if tally.told[row]:
        return GLYPH["warning"], "warn", "errors"
    if tally.stale[row]:
        return GLYPH["unknown"], "warn", "stale"
    if tally.known[row] < tally.total[row]:
        return GLYPH["unknown"], "unknown", "unknown"
    return GLYPH["ok"], "ok", "healthy"


@dataclass(frozen=True, slots=True)
class Cells:
    """How the healthy domains are laid out: with names where all of them fit, else a glyph each and the name of the
    first of each row."""

    across: int
    rows: int
    named: bool
    pitch: int
    label: int


def cells_of(longest: int, healthy: int, width: int, room: int) -> Cells:
    label = min(_NAME, longest) + 1
    pitch = label + 3
    across = max(1, width // pitch)
    rows = -(-healthy // across)
    if rows <= room:
        return Cells(across, rows, True, pitch, label)
    most = max(1, (width - label - 1) // 2)
    across = next((n for n in (128, 64, 32, 16, 8) if n <= most), most)
    return Cells(across, -(-healthy // across), False, 2, label)


def domain_lines(
    snapshot: Snapshot, tally: DomainTally, cells: Cells, width: int, height: int, *, cursor: int, first: int
) -> list[Line]:
    """The title, then rows of domains in trouble, then cells of the rest. cursor: a place in the order of `tally`.

    first: the first line in sight of those below the title.
    """
    names = snapshot.topology.domains.name
    if not names:
        return [section("NVLINK DOMAINS", [], width), [(" no NVLink in this fabric", "dim")]][:height]
    lines = [_title(snapshot, tally, width)]
    at = domain_line(tally, cells, cursor)
    for line in range(first, min(first + height - 1, line_count(tally, cells))):
        if line < tally.sick:
            row = int(tally.order[line])
            lines.append(_sick(names[row], tally, row, cells.label, width, chosen=line == at))
        elif line == tally.sick:
            lines.append(_rest_title(tally, names, cursor, width))
        else:
            place = tally.sick + (line - tally.sick - 1) * cells.across
            lines.append(_cells(names, tally, cells, place, cursor, width))
    return lines[:height]


def line_count(tally: DomainTally, cells: Cells) -> int:
    """Lines below the title."""
    return tally.sick + (1 + cells.rows if tally.sick < len(tally.order) else 0)


def domain_line(tally: DomainTally, cells: Cells, cursor: int) -> int:
    """The line below the title that a domain stands in."""
    return cursor if cursor < tally.sick else tally.sick + 1 + (cursor - tally.sick) // cells.across


def _title(snapshot: Snapshot, tally: DomainTally, width: int) -> Line:
    topo = snapshot.topology
    number = len(topo.domains.name)
    right: Line = []
    if tally.sick:
        right.append((f"{GLYPH['warning']} {count(tally.sick)} in trouble  ", "warn"))
    trouble = (tally.up < tally.known) | tally.told
    if stale := int(np.count_nonzero(tally.stale & ~trouble)):
        right.append((f"? {count(stale)} stale  ", "warn"))
    unknown = int(np.count_nonzero(tally.unknown & ~tally.stale & ~trouble))
    if unknown:
        right.append((f"? {count(unknown)} unknown  ", "unknown"))
    well = number - int(np.count_nonzero(tally.unknown | tally.stale | trouble))
    right.append((f"{GLYPH['ok']} {count(well)} healthy", "ok"))
    return section(f"NVLINK DOMAINS: {count(number)}", right, width)


def _sick(name: str, tally: DomainTally, row: int, label: int, width: int, *, chosen: bool) -> Line:
    tone = " cursor" if chosen else ""
    glyph, style, _ = domain_look(tally, row)
    total, known, up = int(tally.total[row]), int(tally.known[row]), int(tally.up[row])
    line: Line = [
        ("►" if chosen else " ", "accent" + tone),
        (f"{glyph} ", f"{style} bold{tone}"),
        (fit(name, label), "text" + tone),
        (f" {share(float(tally.share[row])):>4} up ", style + tone),
        (f" {count(up)} of {plural(total, 'link')}", "text" + tone),
    ]
    more: Line = [(f"  heard {age(float(tally.age[row]))} ago", "warn" + tone)] if tally.stale[row] else []
    more += [(f"  {count(known - up)} down", style + tone)] if known > up else []
    if known < total:
        more.append((f"  ? {count(total - known)} unknown", "unknown" + tone))
    if tally.errors[row] > 0:
        more.append((f"  {tally.errors[row]:.3g} errors/s", "dim" + tone))
    for span in more:  # what does not fit is on the page of the domain
        if line_width([*line, span]) <= width:
            line.append(span)
    return [*line, (" " * max(0, width - line_width(line)), "text" + tone)]


def _rest_title(tally: DomainTally, names: tuple[str, ...], cursor: int, width: int) -> Line:
    if cursor < tally.sick:
        return section("THE OTHERS", [], width)
    row = int(tally.order[cursor])
    _, style, word = domain_look(tally, row)
    here: Line = [
        (f"► {names[row]}  ", "accent"),
        (word, style),
        (
            f"  {count(tally.up[row]) if tally.known[row] else '?'} of {plural(int(tally.total[row]), 'link')} up",
            "dim",
        ),
    ]
    if tally.age[row] == tally.age[row]:
        here.append((f", heard {age(float(tally.age[row]))} ago", "warn" if tally.stale[row] else "dim"))
    return section("THE OTHERS" if tally.sick else "ALL", here, width)


def _cells(names: tuple[str, ...], tally: DomainTally, cells: Cells, place: int, cursor: int, width: int) -> Line:
    rows = tally.order[place : place + cells.across].tolist()
    line: Line = []
    if not cells.named:
        line = [(" " + fit(names[rows[0]], cells.label), "dim")]
    for at, row in enumerate(rows, place):
        glyph, style, _ = domain_look(tally, row)
        here = at == cursor
        if cells.named:
            tone = " cursor" if here else ""
            line += [("►" if here else " ", "accent" + tone), (f"{glyph} ", style + tone)]
            line.append((fit(names[row], cells.pitch - 3), "text" + tone))
        else:
            line += [(glyph, style), ("◄" if here else " ", "accent")]
    return line
