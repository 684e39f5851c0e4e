"""Numbers, times and names as both kinds of report write them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from replay.analyze import show_time
from replay.report.series import Line
from twin.frames import NS
from twin.incident import Incident
from twin.topology.model import Topology

clock = show_time  # of day, in UTC
GLYPHS = {"critical": "■", "warning": "▲", "info": "●"}
_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_SHORT = {"bytes": "B", "bytes/s": "B/s", "bits/s": "b/s", "celsius": "°C", "joules/s": "W", "J/s": "W"}
_COUNTS = ("ratio", "celsius")


def date_clock(time: int) -> str:
    """`2025-12-01 04:20:31 UTC`."""
    return f"{datetime.fromtimestamp(time // NS, UTC):%Y-%m-%d %H:%M:%S} UTC"


def lasting(nanoseconds: int) -> str:
    """`1h02m05s`, `2m05s`, `5.3 s`."""
    seconds = nanoseconds / NS
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02d}m{rest:02d}s" if hours else f"{minutes}m{rest:02d}s"


def amount(value: float, unit: str) -> str:
    """`45.2 GB/s`, `50 %`, `up`; `unknown` for NaN."""
    if value != value:
        return "unknown"
    if unit == "bool":
        return "up" if value == 1 else "down" if value == 0 else f"{value:.0%} up"
    if unit == "ratio":
        return f"{100 * value:.3g} %"
    for size, prefix in _PREFIXES if unit not in _COUNTS else ():
        if abs(value) >= size:
            return f"{value / size:.3g} {prefix}{_SHORT.get(unit, unit)}"
    return f"{value:.3g} {_SHORT.get(unit, unit)}".rstrip()


def before_during_after(line: Line, incident: Incident, end: int) -> str:
    """The means of a line before, during and after an incident, as far as there is something to tell."""
    ended = end if incident.resolved is None else incident.resolved
    spans = {"before": (0, incident.started), "during": (incident.started, ended), "after": (ended, 1 << 62)}
    told = {word: line.mean(*span) for word, span in spans.items()}
    return " · ".join(f"{word} {amount(value, line.unit)}" for word, value in told.items() if value == value)


def cost(incident: Incident) -> str:
    """Who pays, and how much."""
    who = f"{count(incident.affected.gpus, 'GPU')} on {count(incident.affected.nodes, 'node')}"
    return who + "".join(f", {_effect(name, value)}" for name, value in incident.effect.items())


def _effect(name: str, value: float) -> str:
    """`bandwidth 50 %`, `load 82.4 kW`: the unit is the last part of the name."""
    what, _, unit = name.rpartition("_")
    if what and unit in ("fraction", "watts"):
        return f"{what.replace('_', ' ')} {amount(value, 'ratio' if unit == 'fraction' else 'W')}"
    return f"{name.replace('_', ' ')} {value:.3g}"


def count(number: int, thing: str) -> str:
    """`1 node`, `64 switches`."""
    plural = f"{thing}es" if thing.endswith("ch") else f"{thing}s"
    return f"{number:,} {thing if number == 1 else plural}"


def fabric(topology: Topology) -> str:
    """What there is of a fabric, in numbers."""
    there = ((topology.gpus.node, "GPU"), (topology.nodes.name, "node"), (topology.switches.name, "switch"))
    return ", ".join(count(len(rows), thing) for rows, thing in there)


def some(names: Sequence[str], most: int) -> str:
    """The first `most` names, and how many there are besides."""
    shown = ", ".join(names[:most])
    return f"{shown} and {len(names) - most:,} more" if len(names) > most else shown


def ended(incident: Incident) -> str:
    """When it ended, and after how long."""
    if incident.resolved is None:
        return "open at the end"
    return f"{clock(incident.resolved)}, after {lasting(incident.resolved - incident.started)}"
