"""How many GPUs have how much of their network bandwidth, and which hosts they sit in."""

from __future__ import annotations

import numpy as np

from tui.text import Line, bar, count, fit, percent, plural, section
from tui.theme import GLYPH
from twin.snapshot import F64, Snapshot

LITTLE = 0.4  # a GPU with less of its bandwidth than this is marked as badly off: one plane of two is more
_BINS = ((0.995, 2.0, "100 %"), (0.75, 0.995, "75-99 %"), (0.5, 0.75, "50-74 %"), (0.25, 0.5, "25-49 %"),
         (0.005, 0.25, "1-24 %"), (-1.0, 0.005, "0 %"))  # fmt: skip


def share_style(share: float) -> str:
    if share != share:
        return "unknown"
    return "ok" if share >= 0.995 else "warn" if share >= LITTLE else "crit"


def share_glyph(share: float) -> str:
    if share != share:
        return GLYPH["unknown"]
    return GLYPH["ok"] if share >= 0.995 else GLYPH["warning"] if share >= LITTLE else GLYPH["critical"]


def gpu_classes(bandwidth: F64, most: int) -> list[tuple[str, int, float]]:
    """(label, GPUs, share) from full bandwidth down, unknown last; at most `most` classes, at least three.

    Exact shares where they are few, else the bins of a histogram.
    """
    known = bandwidth[np.isfinite(bandwidth)]
    unknown = len(bandwidth) - len(known)
    shares, counts = np.unique(np.round(np.clip(known, 0, 1), 2), return_counts=True)
    exact = [(percent(float(s)), int(n), float(s)) for s, n in zip(shares[::-1], counts[::-1], strict=True)]
    if not exact or exact[0][2] < 0.995:
        exact.insert(0, ("100 %", 0, 1.0))
    room = max(2, most - (unknown > 0))
    if len(exact) > room:
        exact = [(label, int(((known >= lo) & (known < hi)).sum()), lo) for lo, hi, label in _BINS]
        exact = [e for i, e in enumerate(exact) if e[1] or i == 0]
        while len(exact) > room:  # the two best of the impaired are told together
            (_, n1, _), (label2, n2, share2) = exact[1], exact[2]
            exact[1:3] = [(f"{label2.split('-')[0].removesuffix(' %')}-99 %", n1 + n2, share2)]
    if unknown:
        exact.append(("unknown", unknown, float("nan")))
    return exact


def gpu_lines(snapshot: Snapshot | None, width: int, height: int) -> list[Line]:
    """The title and a bar a class of bandwidth."""
    if snapshot is None or height < 1:
        return []
    total = len(snapshot.gpu_bandwidth)
    where = f"{plural(total, 'GPU')} on {plural(len(snapshot.topology.nodes.name), 'host')}"
    lines = [section("GPU BANDWIDTH", [(where, "dim")], width)]
    if not total:
        return [*lines, [(" no GPUs in this fabric", "dim")]][:height]
    for label, number, share in gpu_classes(snapshot.gpu_bandwidth, height - 1):
        style = share_style(share) if number else "dim"
        size = max(4, min(width - 3 - 9 - 8 - 8, 100))
        lines.append(
            [
                (f" {share_glyph(share)} ", style + " bold"),
                (fit(label, 9), style),
                *bar(number / total, size, style),
                (fit(count(number), 8, ">"), "text bold" if number else "dim"),
                (fit(percent(number / total), 7, ">"), "dim"),
            ]
        )
    return lines[:height]


def host_shares(snapshot: Snapshot) -> F64:
    """float64[hosts]: the least share of bandwidth of a host's GPUs, NaN where none is known."""
    node = snapshot.topology.gpus.node
    worst = np.full(len(snapshot.topology.nodes.name), np.inf)
    known = np.isfinite(snapshot.gpu_bandwidth)
    np.minimum.at(worst, node[known], snapshot.gpu_bandwidth[known])
    return np.where(np.isfinite(worst), worst, np.nan)


def share_cell(share: float) -> tuple[str, str]:
    """One cell of the host map: a digit for tenths, with the colour of its class."""
    if share != share:
        return "?", "cell_unknown"
    if share >= 0.995:
        return "·", "heat4"
    digit = str(min(9, int(share * 10 + 1e-9)))
    return digit, "cell_part" if share >= LITTLE else "cell_down"


def host_grid(hosts: int, width: int, rows: int, label: int) -> tuple[int, int]:
    """(cells a row, hosts a cell): a round number of cells a row, more hosts a cell only where they don't fit."""
    most = max(1, (width - label - 2) // 2)
    across = next((n for n in (128, 64, 32, 16, 8) if n <= most), most)
    return across, max(1, -(-hosts // (across * max(1, rows))))


def host_lines(snapshot: Snapshot | None, width: int, height: int) -> list[Line]:
    """A cell a host (the worst of several where they don't fit), in the order of the site's names."""
    if snapshot is None or height < 2 or not len(snapshot.topology.nodes.name):
        return []
    names = snapshot.topology.nodes.name
    label = min(16, max(len(n) for n in names) + 2)
    shares = host_shares(snapshot)
    across, each = host_grid(len(shares), width, height - 1, label)
    per = "least share of a host's GPUs" if each == 1 else f"worst of {each} hosts"
    legend: Line = [
        (f"{per}  ", "dim"), ("·", "heat4"), (" full  ", "dim"), ("5", "cell_part"), (" ", "text"),
        ("0", "cell_down"), (" tenths left  ", "dim"), ("?", "cell_unknown"), (" unknown", "dim"),
    ]  # fmt: skip
    lines = [section("HOSTS", legend, width)]
    padded = np.append(shares, np.full(-len(shares) % each, np.inf)).reshape(-1, each)
    worst = np.where(np.isnan(padded), np.inf, padded).min(1)
    values = np.where(np.isnan(padded).any(1) & ~(worst < 0.995), np.nan, worst).tolist()
    for start in range(0, len(values), across):
        line: Line = [(" " + fit(names[start * each], label), "dim")]
        for value in values[start : start + across]:
            glyph, style = share_cell(value)
            line.append((f"{glyph} ", style))
        lines.append(line)
    return lines[:height]
