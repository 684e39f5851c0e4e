"""One leaf, link by link: a cell a host link and a cell an uplink."""

from __future__ import annotations

import numpy as np

from tui.rows.heatmap import ALL_DOWN, GOOD, I64, NOT_KNOWN, PART, SLOW, PlaneIndex
from tui.rows.leaves import cell
from tui.text import Line, fit, plural, section
from twin.snapshot import DOWN, UP, Snapshot


def link_cells(snapshot: Snapshot, links: I64, *, states: bool) -> Line:
    """A cell of two columns a link: tenths of load, or `■` down, `▲` slow, `?` unknown."""
    line: Line = []
    designed = snapshot.topology.links.speed[links].tolist()
    rows = zip(
        snapshot.link_state[links].tolist(), snapshot.link_speed[links].tolist(), snapshot.link_load[links].tolist(),
        designed, strict=True,
    )  # fmt: skip
    for state, speed, load, design in rows:
        kind = ALL_DOWN if state == DOWN else NOT_KNOWN if state != UP else PART if speed < SLOW * design else GOOD
        line.append(cell(kind, load, 0, 2, states=states))
    return line


def _host_rows(snapshot: Snapshot, index: PlaneIndex, leaf: int, across: int) -> list[tuple[str, I64]]:
    topology = snapshot.topology
    links = index.host_links[index.host_leaf == leaf]
    node = topology.port_node[topology.links.a[links]]
    return [(topology.nodes.name[node[i]], links[i : i + across]) for i in range(0, len(links), across)]


def _uplink_rows(snapshot: Snapshot, index: PlaneIndex, leaf: int, across: int) -> list[tuple[str, I64]]:
    """A row a spine where many links go to each, else links in a row from spine to spine."""
    names = snapshot.topology.switches.name
    mine = index.up_leaf == leaf
    links, spine = index.up_links[mine], index.up_spine[mine]
    order = np.argsort(spine, kind="stable")
    links, spine = links[order], spine[order]
    parallel = np.bincount(spine) if len(spine) else np.zeros(0, np.int64)
    if len(parallel) and parallel.max() >= 4:
        parts = [(s, links[spine == s]) for s in np.flatnonzero(parallel).tolist()]
    else:
        parts = [(int(spine[i]), links[i : i + across]) for i in range(0, len(links), across)]
    return [(names[index.spines[s]], part[i : i + across]) for s, part in parts for i in range(0, len(part), across)]


def leaf_grid(
    snapshot: Snapshot | None, index: PlaneIndex | None, leaf: int, width: int, height: int, *, states: bool
) -> list[Line]:
    """The links of one leaf, hosts first, then uplinks. leaf: its row among the leaves of the plane."""
    if snapshot is None or index is None or height < 2 or leaf >= len(index.leaves):
        return []
    name = snapshot.topology.switches.name[index.leaves[leaf]]
    label = 14 if width < 100 else 18
    most = max(1, (width - label - 2) // 2)
    across = next((n for n in (64, 32, 16, 8) if n <= most), most)
    hosts = _host_rows(snapshot, index, leaf, across)
    ups = _uplink_rows(snapshot, index, leaf, across)
    n_hosts, n_ups = sum(len(p) for _, p in hosts), sum(len(p) for _, p in ups)
    right: Line = [(f"{plural(n_hosts, 'host link')} · {plural(n_ups, 'uplink')}", "dim")]
    lines = [section(f"{name} · {'state' if states else 'load'} of each link", right, width)]
    for title, rows in (("to hosts (the first of each row)", hosts), ("to spines", ups)):
        if rows:
            lines.append([(f" {title}", "dim")])
            lines += [
                [(" " + fit(first, label), "text"), *link_cells(snapshot, part, states=states)]
                for first, part in rows
            ]
    return lines[:height]


def leaf_grid_rows(index: PlaneIndex, width: int) -> int:
    """About how many lines the grid of a leaf takes."""
    leaves = max(1, len(index.leaves))
    across = 64 if width >= 150 else 32 if width >= 84 else 16
    hosts = -(-len(index.host_links) // leaves // across) if len(index.host_links) else 0
    ups = -(-len(index.up_links) // leaves // across) if len(index.up_links) else 0
    parallel = len(index.up_links) // max(1, leaves * len(index.spines))
    if parallel >= 4:
        ups = len(index.spines) * -(-parallel // across)
    return 3 + hosts + ups
