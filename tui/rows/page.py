"""What a page is made of: its title, the last minutes as sparklines, everything that is read, in columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tui.ring import Ring
from tui.rows.detail import reading
from tui.rows.powertable import watts
from tui.rows.table import F64
from tui.rows.verdict import words
from tui.text import Line, age, fit, line_width, percent, section, spark, stretch
from twin.detectors.gpu_tell import REASONS
from twin.metrics import metrics_of
from twin.snapshot import Snapshot

_FABRIC = {1.0: "not started", 2.0: "in progress", 3.0: "completed"}
_LABEL = 18
_NAMES = {
    "energy_joules": "energy meter", "sm_clock_hertz": "SM clock", "xid": "last XID", "throttle_reasons": "slowed by",
    "ecc_uncorrected": "ECC errors", "pcie_tx_bytes": "PCIe sent", "pcie_rx_bytes": "PCIe received",
    "memory_used_bytes": "memory used",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class PageLine:
    """A line of a page. entity or incident: what opens where it is chosen, an address or an id. head: a title."""

    line: Line
    entity: str = ""
    incident: str = ""
    head: bool = False


def title_line(name: str, what: str, state: str, style: str, seconds: float, width: int) -> PageLine:
    """Its name, what it is, how it stands, and how old that is."""
    right: Line = [(state, style), ("  " if state else "", "text"), (what, "dim")]
    read = float(seconds)
    right.append((f"  heard {age(read)} ago" if read == read else "  never heard", "dim"))
    if name.startswith("RACK"):
        right.pop()  # nothing is read of a rack itself, but of its feeds and nodes
    return PageLine(section(name, right, width), head=True)


def head_line(title: str, width: int) -> PageLine:
    return PageLine(section(title, [], width), head=True)


def history_lines(
    address: str, past: Sequence[tuple[str, float, float, str]],
    snapshot: Snapshot, ring: Ring, width: int,
) -> list[PageLine]:  # fmt: skip
    """A sparkline each, with its scale. past: (what, now, what the top stands for, NaN for the highest; unit)."""
    ring.note(address, snapshot.time, np.array([now for _, now, _, _ in past]))
    rows, lines = ring.rows, []
    for column, (what, now, top, unit) in enumerate(past):
        seen = rows[:, column]
        highest = float(np.nanmax(seen)) if not np.isnan(seen).all() else np.nan
        top = top if top == top and not top < highest else highest
        head: Line = [(fit(what, _LABEL), "dim"), (f"{_in_unit(now, unit):>10}  ", "text bold")]
        scale = f" 0–{_in_unit(top, unit)}, {stretch(ring.seconds)}"
        room = min(120, width - 1 - line_width(head) - len(scale))
        line = [*head, *spark(seen, max(0, room), "area", top if top > 0 else 1.0), (scale, "dim")]
        lines.append(PageLine(line if now == now or highest == highest else [*head, ("not known", "unknown")]))
    return lines


def _in_unit(number: float, unit: str) -> str:
    if number != number:
        return "?"
    if unit == "ratio":
        return percent(number)
    return watts(number) if unit == "watts" else reading("bits_per_second", float(f"{number:.3g}"))


def reading_lines(
    kind: str, columns: Mapping[str, F64], row: int, width: int, extra: Mapping[str, str]
) -> list[PageLine]:
    """Everything that is read of it, in one, two or three columns."""
    pairs = list(extra.items())
    for metric in metrics_of(kind) if kind else ():
        if metric.name in columns:
            name = metric.name
            for suffix in ("_celsius", "_watts", "_hertz", "_ratio"):
                name = name.removesuffix(suffix)
            pairs.append(
                (
                    _NAMES.get(metric.name, words(name)),
                    _reading(metric.name, float(columns[metric.name][row]), metric.counter),
                )
            )
    if not pairs:
        return []
    across = max(1, min(3, width // 56))
    each = (width - 1) // across
    label = max(len(what) for what, _ in pairs) + 2
    lines = []
    down = -(-len(pairs) // across)
    for at in range(down):
        line: Line = []
        for what, said in pairs[at::down]:
            style = "unknown" if said == "?" else "text"
            line += [(fit(what, label), "dim"), (fit(said, each - label - 1), style), (" ", "text")]
        lines.append(PageLine(line))
    return [head_line("READINGS", width), *lines]


def _reading(metric: str, value: float, counter: bool) -> str:
    """A value with its unit; of a counter its rate."""
    if value != value:
        return "?"
    if metric == "throttle_reasons":
        reasons = [word for bit, word in REASONS if int(value) & bit]
        return ", ".join(reasons) if reasons else "none that harms"
    if metric == "fabric_state":
        return _FABRIC.get(value, f"{value:g}")
    if metric == "xid":
        return f"{value:.0f}" if value else "none"
    if metric == "energy_joules":
        return watts(value)
    if metric.endswith(("_watts", "_hertz", "_bytes")):
        value = float(f"{value:.4g}")
    return f"{reading(metric, value)}{'/s' if counter else ''}".replace(" °", " ")


def share_or_none(value: float, none: bool) -> str:
    return "none by design" if none else "?" if value != value else percent(value)
