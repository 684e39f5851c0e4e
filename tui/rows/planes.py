"""A strip a plane: what is left of it, how much of that is used, what is broken, and the last minutes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tui.rows.verdict import open_incidents
from tui.text import NS, Line, bar, chart, count, cut, fit, percent, rate_of, section, spark, stretch
from tui.theme import GLYPH, STYLE
from twin.incident import Incident
from twin.snapshot import PlaneView, Snapshot


def plane_name(plane: str) -> str:
    """`B` for `plane:B` and for `B`."""
    return plane.removeprefix("plane:")


def plane_word(plane: PlaneView, incidents: Sequence[Incident]) -> tuple[str, str]:
    """(severity, word) of a plane: what the twin says of it, else what its numbers say."""
    cause = f"plane:{plane_name(plane.plane)}"
    for incident in open_incidents(incidents):
        if incident.cause == cause and incident.kind.startswith("plane_"):
            return incident.severity, incident.kind.removeprefix("plane_")
    if not plane.known_fraction > 0 or plane.capacity_fraction != plane.capacity_fraction:
        return "unknown", "unknown"
    if plane.capacity_fraction < 0.02:
        return "critical", "down"
    if plane.capacity_fraction < 0.995:
        return "warning", "reduced"
    return "ok", "up"


def resample(values: npt.NDArray[np.float64], cells: int) -> list[float]:
    """float64[t], oldest first, as at most `cells` means of equal runs; NaN only where all of a run is unknown."""
    if cells <= 0 or not len(values):
        return []
    if len(values) <= cells:
        return [float(v) for v in values]
    edges = np.linspace(0, len(values), cells + 1).astype(int)
    known = np.isfinite(values)
    sums = np.add.reduceat(np.where(known, values, 0.0), edges[:-1])
    counts = np.add.reduceat(known.astype(np.int64), edges[:-1])
    return [float(s / n) if n else float("nan") for s, n in zip(sums, counts, strict=True)]


def used_history(snapshot: Snapshot, row: int, cells: int) -> list[float]:
    used = snapshot.history.used
    if used.ndim != 2 or row >= used.shape[1]:
        return []
    return resample(used[:, row], cells)


def history_seconds(snapshot: Snapshot) -> float:
    times = snapshot.history.time
    return float(times[-1] - times[0]) / NS if len(times) > 1 else 0.0


def links_spans(plane: PlaneView, width: int) -> Line:
    """`1,024 down  3 slow`, or that all links are up; `width` cells."""
    if plane.links == 0:
        return [(fit("no links", width), "dim")]
    if not plane.known_fraction > 0:
        return [(fit("links unknown", width), "unknown")]
    parts: Line = []
    if plane.links_down:
        parts.append((f"■ {count(plane.links_down)} down", "crit bold"))
    if plane.links_slow:
        parts.append((f"▲ {count(plane.links_slow)} slow", "warn bold"))
    if not parts:
        parts.append(("links up", "dim"))
    missing = 1.0 - plane.known_fraction
    if missing > 0.005:
        parts.append((f"? {percent(missing)} unknown", "unknown"))
    line: Line = []
    left = width
    for text, style in parts:
        if left < len(text):
            break
        line.extend([(text, style), (" " * min(2, left - len(text)), "text")])
        left -= len(text) + min(2, left - len(text))
    return [*line, (" " * left, "text")]


def plane_line(
    snapshot: Snapshot, row: int, width: int, *, selected: bool | None = None, trends: bool = True
) -> Line:
    """One plane in one line. selected: None where planes can't be chosen. trends: with a sparkline."""
    plane = snapshot.planes[row]
    severity, word = plane_word(plane, snapshot.incidents)
    style = STYLE[severity]
    lead = " " if selected is None else "►" if selected else " "
    name_width = min(12, max(3, max(len(plane_name(p.plane)) for p in snapshot.planes) + 1))
    line: Line = [
        (lead, "accent bold"),
        (f"{GLYPH[severity]} ", style + " bold"),
        (fit(plane_name(plane.plane), name_width), "text bold"),
        (fit(word, 9), style),
    ]
    used = percent(plane.used_fraction)
    if width < 56:
        return [*line, (fit(percent(plane.capacity_fraction), 6, ">"), style), (fit(f" used {used}", 11), "text")]
    rest = width - 1 - 2 - name_width - 9 - 6 - 1 - 11 - 1
    links = 16 if width < 100 else 30
    rest -= links
    rate = 0 if width < 120 else 24
    rest -= rate
    trend = max(0, rest // 2) if width >= 70 and trends else 0
    size = max(4, min(rest - trend, 48))
    trend = max(0, rest - size - 1) if trends else 0
    line += bar(plane.capacity_fraction, size, style)
    line += [(fit(percent(plane.capacity_fraction), 6, ">"), style + " bold"), (fit(f" used {used}", 12), "text")]
    if rate:
        of = f"{rate_of(plane.tx_bits_per_second)} of {rate_of(plane.capacity_bits_per_second)}"
        line.append((fit(of if plane.capacity_bits_per_second > 0 else "–", rate), "dim"))
    line += links_spans(plane, links)
    if trend:
        line += [(" ", "text"), *spark(used_history(snapshot, row, trend), trend, "area")]
    return line


def planes_title(snapshot: Snapshot, width: int) -> Line:
    shown = history_seconds(snapshot)
    right: Line = [("capacity · used", "dim")]
    if width >= 70 and shown > 0:
        right = [(f"capacity left · used, last {stretch(shown)}", "dim")]
    return section("PLANES", right, width)


def planes_lines(
    snapshot: Snapshot | None, width: int, height: int, *, selected: int | None = None, charts: int = 0
) -> list[Line]:
    """The title and a strip a plane, with a chart of `charts` rows under each where there is room."""
    if snapshot is None or height < 1:
        return []
    lines = [planes_title(snapshot, width)]
    if not snapshot.planes:
        return [*lines, [(" no planes: no network was described for this fabric", "dim")]][:height]
    room = height - 1
    total = len(snapshot.planes)
    if room == 1 and total > 1 and selected is None:
        return [*lines, cut(all_planes_line(snapshot), width)]
    first = 0
    if selected is not None and total > room:
        first = min(max(0, selected - room // 2), total - room)
    for row in range(first, total):
        if len(lines) == height - 1 and row < total - 1 and selected is None:
            lines.append([(f"   +{total - row} more planes", "dim")])
            break
        chosen = None if selected is None else row == selected
        lines.append(plane_line(snapshot, row, width, selected=chosen, trends=charts == 0))
        lines += chart_lines(snapshot, row, width, charts)
    return lines[:height]


def all_planes_line(snapshot: Snapshot) -> Line:
    """All planes in one line, for a screen with no room for more."""
    line: Line = []
    for plane in snapshot.planes:
        severity, _ = plane_word(plane, snapshot.incidents)
        line.append((f" {GLYPH[severity]} {plane_name(plane.plane)} ", STYLE[severity] + " bold"))
        line.append((f"{percent(plane.capacity_fraction)} ", "text"))
    return line


def chart_lines(snapshot: Snapshot, row: int, width: int, height: int) -> list[Line]:
    """The used share over the last minutes, 0 to 100 %, with a scale at the left."""
    if height < 2:
        return []
    cells = width - 9
    values = used_history(snapshot, row, cells)
    rows = chart(values, cells, height, "area")
    out: list[Line] = []
    for i, line in enumerate(rows):
        middle = height >= 5 and i == height // 2
        scale = "100 %" if i == 0 else "0 %" if i == height - 1 else "50 %" if middle else ""
        out.append([(fit(scale, 7, ">"), "dim"), (" ┤" if scale else " │", "faint"), *line])
    return out
