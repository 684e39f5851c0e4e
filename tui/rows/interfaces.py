"""The ports of a host that is watched without a wiring: its network interfaces and RDMA devices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tui.text import Line, cut, fit, plural, rate_of, section, width_of, wrap
from twin.snapshot import F64, Snapshot


@dataclass(frozen=True, slots=True)
class Interface:
    """One port as its host calls it. up: None unknown. Speeds in bits/s, rates a second; NaN unknown."""

    name: str
    address: str
    up: bool | None
    speed: float
    rx: float
    tx: float
    errors: float
    drops: float


def interfaces(snapshot: Snapshot) -> list[Interface]:
    """Every port of the topology in its order."""
    names = snapshot.topology.port_names

    def values(metric: str, factor: float = 1.0) -> list[float]:
        column: F64 | None = snapshot.port.get(metric)
        return [float("nan")] * len(names) if column is None else (column * factor).tolist()

    columns = zip(
        names, values("up"), values("speed_bits_per_second"), values("rx_bytes", 8), values("tx_bytes", 8),
        values("rx_errors"), values("tx_discards"), strict=True,
    )  # fmt: skip
    labels = snapshot.topology.labels
    return [
        Interface(labels.get(name, name), name, None if up != up else up == 1, *rest) for name, up, *rest in columns
    ]


def state_of(up: bool | None) -> tuple[str, str, str]:
    """(glyph, word, style) of a port."""
    return ("?", "unknown", "unknown") if up is None else ("●", "up", "ok") if up else ("■", "down", "crit")


def a_second(rate: float) -> str:
    """Errors or packets a second: `0/s`, `0.2/s`, `1,250/s`; `?` where unknown."""
    return "?" if rate != rate else f"{rate:,.0f}/s" if rate >= 10 or rate == 0 else f"{rate:.2g}/s"


def interface_lines(snapshot: Snapshot | None, about: Sequence[str], width: int, height: int) -> list[Line]:
    """What was found here, in words, and a row a port: state, speed, rates, errors."""
    if snapshot is None or height < 1:
        return []
    listed = interfaces(snapshot)
    lines: list[Line] = [section("THIS HOST", [(plural(len(listed), "port"), "dim")], width)]
    for text in about:
        lines += [[(" " + part, "text")] for part in wrap(text, width - 2)]
    if not listed or height - len(lines) < 2:
        return lines[:height]
    name = min(max(width_of(i.name) for i in listed) + 2, max(12, width - 62))
    heads = fit("   name", name + 3) + fit("state", 9) + fit("speed", 10, ">") + fit("receives", 12, ">")
    lines.append([(heads + fit("sends", 12, ">") + fit("errors", 9, ">") + fit("drops", 9, ">"), "dim")])
    room = height - len(lines)
    for port in listed if len(listed) <= room else listed[: room - 1]:
        glyph, word, style = state_of(port.up)
        shown = [
            (f" {glyph} ", style + " bold"), (fit(port.name, name), "text"), (fit(word, 9), style),
            (fit("?" if port.speed != port.speed else rate_of(port.speed), 10, ">"), "text"),
            (fit("?" if port.rx != port.rx else rate_of(port.rx), 12, ">"), "text"),
            (fit("?" if port.tx != port.tx else rate_of(port.tx), 12, ">"), "text"),
            (fit(a_second(port.errors), 9, ">"), "warn" if port.errors > 0 else "dim"),
            (fit(a_second(port.drops), 9, ">"), "warn" if port.drops > 0 else "dim"),
        ]  # fmt: skip
        lines.append(cut(shown, width))
    if len(listed) > room:
        lines.append([(f"   +{len(listed) - room + 1} more", "dim")])
    return lines


def rows_wanted(snapshot: Snapshot, about: Sequence[str], width: int) -> int:
    """Rows that `interface_lines` would fill."""
    return 2 + len(snapshot.topology.port_names) + sum(len(wrap(text, width - 2)) for text in about)
