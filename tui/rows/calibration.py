"""Traffic as measured against traffic as the model predicts it, as lines."""

from __future__ import annotations

from tui.text import Line, fit_middle, percent, rate_of, section
from twin.calibration import Calibration, worst
from twin.topology.model import Topology

_LINKS = 8  # that differ most
_OFF = 0.1  # of a plane's traffic, more or less than predicted, that is worth a colour


def calibration_lines(topo: Topology, found: Calibration, width: int) -> list[Line]:
    """Planes, then the links that differ most."""
    known = found.error == found.error
    told = f"{percent(found.error)} goes by another plane than predicted" if known else "no traffic of jobs is read"
    style = "warn" if known and found.error > _OFF else "dim"
    lines: list[Line] = [section("TRAFFIC OF JOBS BY PLANE", [(told, style)], width)]
    lines.append([(f" {'':<10}{'hosts send':>12}{'predicted':>12}  {'uplinks carry':>15}{'predicted':>12}", "dim")])
    for p, name in enumerate(topo.planes):
        (seen, said), (up, up_said) = found.host[p].tolist(), found.uplink[p].tolist()
        off = abs(seen - said) > _OFF * max(said, 1.0)
        line: Line = [(f" {fit_middle(name, 10)}", "text bold"), (f"{rate_of(seen):>12}", "warn" if off else "text")]
        lines.append([*line, (f"{rate_of(said):>12}", "dim"), (f"  {rate_of(up):>15}{rate_of(up_said):>12}", "text")])
    rows = worst(found, _LINKS)
    if rows:
        lines.append(section("LINKS THAT DIFFER MOST", [("carries · predicted", "dim")], width))
    for way, link in rows:
        one, other = topo.link_name(link).split("--") if not way else topo.link_name(link).split("--")[::-1]
        seen, said = float(found.observed[way, link]), float(found.predicted[way, link])
        name = fit_middle(f"{one} → {other}", width - 28)
        lines.append([(f" {name}", "text"), (f"{rate_of(seen):>12}", "text"), (f"{rate_of(said):>12}", "dim")])
    return lines
