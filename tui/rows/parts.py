"""One part of a fabric in one line, as the pages of others show it: a GPU, a port, a supply, a node, a feed."""

from __future__ import annotations

import numpy as np

from tui.rows.gputable import STATES, GpuReadings
from tui.rows.heatmap import SLOW
from tui.rows.powertable import watts
from tui.rows.table import share, unknown
from tui.text import Line, Span, age, fit, fit_middle
from tui.theme import GLYPH
from twin.snapshot import DOWN, UP, Snapshot
from twin.units import show_speed

NAME = 16  # cells of an address in a list of parts


def value(values: np.ndarray | None, row: int) -> float:
    """One value of a column that may not be there, NaN unknown."""
    return float("nan") if values is None or not len(values) else float(values[row])


def number(of: float, text: str) -> str:
    return "?" if of != of else text.format(of)


def _age(snapshot: Snapshot, kind: str, row: int) -> Span:
    return f" {age(value(snapshot.age.get(kind), row)):>7}", "dim"


def gpu_line(r: GpuReadings, gpu: int) -> Line:
    word, glyph, style = STATES[r.states[gpu]]
    return [
        (f"{glyph} ", f"{style} bold"),
        (fit_middle(r.snapshot.topology.gpu_names[gpu], NAME), "text"),
        (f" {fit(word, 9)}", style),
        (f" {share(float(r.use[gpu])):>5} busy", unknown(float(r.use[gpu]), "text")),
        (f" {watts(float(r.watts[gpu])):>8}", unknown(float(r.watts[gpu]), "text")),
        (f" {number(float(r.heat[gpu]), '{:.0f}C'):>5}", unknown(float(r.heat[gpu]), "text")),
        (f"  net {share(float(r.network[gpu]), r.snapshot.topology.gpus.nic[gpu] < 0):>4}", "text"),
        (f"  nvlink {share(float(r.nvlink[gpu]), r.snapshot.topology.nvlinks_per_gpu[gpu] == 0):>4}", "text"),
    ]


def port_line(snapshot: Snapshot, port: int) -> Line:
    """A port of a NIC: its plane, whether it is up, how fast, how busy, and where its cable leads."""
    topo = snapshot.topology
    names, link = topo.port_names, int(topo.ports.link[port])
    plane = int(topo.ports.plane[port])
    line: Line = [("  ", "text"), (fit_middle(names[port], NAME), "text")]
    line.append((f" {'plane ' + topo.planes[plane] if plane >= 0 else '':<8}", "dim"))
    if link < 0:
        return [*line, (" no cable in the design", "dim")]
    state, speed, designed = int(snapshot.link_state[link]), snapshot.link_speed[link], topo.links.speed[link]
    load = float(snapshot.link_load[link])
    if state == DOWN:
        line[0] = (f"{GLYPH['critical']} ", "crit bold")
        said, style = "down", "crit bold"
    elif state != UP:
        line[0] = (f"{GLYPH['unknown']} ", "unknown")
        said, style = "unknown", "unknown"
    elif speed < SLOW * designed:
        line[0] = (f"{GLYPH['warning']} ", "warn bold")
        said, style = f"{show_speed(float(speed))} of {show_speed(float(designed))}", "warn"
    else:
        line[0] = (f"{GLYPH['ok']} ", "ok")
        said, style = f"up {show_speed(float(designed))}", "text"
    line.append((f" {said:<8}", style))
    line.append((f" {share(load, state == DOWN):>4} busy", unknown(load, "dim" if state == DOWN else "text")))
    line.append((f" {age(float(snapshot.port_age[port])):>7}", "dim"))
    return [*line, (f"  → {names[topo.ports.peer[port]]}", "dim")]


def psu_line(snapshot: Snapshot, psu: int) -> Line:
    topo = snapshot.topology
    up, out = value(snapshot.psu.get("up"), psu), value(snapshot.psu.get("output_watts"), psu)
    rating = value(snapshot.psu.get("capacity_watts"), psu)
    rating = float(topo.psus.watts[psu]) if rating != rating else rating
    word, glyph, style = ("down", "critical", "crit") if up == 0 else ("up", "ok", "ok") if up == 1 else (
        "?", "unknown", "unknown")  # fmt: skip
    return [
        (f"{GLYPH[glyph]} ", f"{style} bold"),
        (fit_middle(topo.psu_names[psu], NAME), "text"),
        (f" {fit(word, 6)}", style),
        (f" gives {watts(out):>8} of {watts(rating):>8}", unknown(out, "text")),
        _age(snapshot, "psu", psu),
    ]


def feed_line(snapshot: Snapshot, feed: int) -> Line:
    topo = snapshot.topology
    load, limit = value(snapshot.feed.get("power_watts"), feed), value(snapshot.feed.get("capacity_watts"), feed)
    limit = float(topo.feeds.watts[feed]) if limit != limit else limit
    name, power = topo.feeds.name[feed], snapshot.power
    dark = name in power.names and power.capacity[power.names.index(name)] == 0
    word, glyph, style = ("up", "ok", "ok") if load <= limit else ("?", "unknown", "unknown")
    if load > limit or dark:
        word, glyph, style = "down" if dark else "over", "critical", "crit"
    return [
        (f"{GLYPH[glyph]} ", f"{style} bold"),
        (fit_middle(name, NAME), "text"),
        (f" {fit(word, 6)}", style),
        (f" draws {watts(load):>8} of {watts(limit):>8}", unknown(load, "text")),
        _age(snapshot, "feed", feed),
    ]


def node_line(r: GpuReadings, node: int) -> Line:
    """A node, in the state of its worst GPU."""
    snapshot, nodes = r.snapshot, r.snapshot.topology.nodes
    first, count = int(nodes.gpu0[node]), int(nodes.n_gpus[node])
    states = r.states[first : first + count]
    drawn = value(snapshot.node.get("power_watts"), node)
    line: Line = [("  ", "text"), (fit_middle(nodes.name[node], NAME), "text")]
    if count:
        word, glyph, style = STATES[int(states.max())]
        alike = int(np.count_nonzero(states == states.max()))
        line[0] = (f"{glyph} ", f"{style} bold")
        line.append((f" {alike} of {count} GPUs {fit(word, 9)}", style))
        network = r.network[first : first + count]
        least = float(np.nan if np.isnan(network).all() else np.nanmin(network))
        line.append((f" net {'≥ ' if least < 1 else '  '}{share(least):>4}", unknown(least, "text")))
    return [*line, (f"  {watts(drawn):>8}", unknown(drawn, "text"))]
