"""A fabric as Slurm's `topology.conf`: a tree, in which every node has one place.

A node of a GPU fabric hangs on many leaves, a leaf a rail and a plane; Slurm's tree takes one. Nodes with the same
leaves are one leaf switch here, named after the first of them, and switches that share a switch above are below one.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from twin.address import natural
from twin.errors import InputError
from twin.topology.hostnames import compress
from twin.topology.model import HOST_LEAF, TIERS, Topology

Below = dict[int, list[str]]  # a switch -> what stands for it at this level

_UNFIT = set("[],=#\"'\\")


def to_slurm(topo: Topology, plane: str | None = None) -> str:
    """`topology.conf` of the GPU hosts, of all planes or of the one named. Raises InputError without switches."""
    if plane is not None and plane not in topo.planes:
        raise InputError(f"{topo.name} has no plane {plane!r}; it has {', '.join(topo.planes) or 'none'}")
    links = topo.links
    inside = links.plane == topo.planes.index(plane) if plane is not None else np.ones(len(links.a), bool)
    leaves = _leaves(topo, inside)
    if not leaves:
        raise InputError(f"{topo.name}: no GPU host is cabled to a switch, so there is no tree for Slurm")
    lines = [f"# {topo.name}: nodes with the same leaves are one leaf switch, named after the first of them"]
    names: Below = {}
    taken: set[str] = set()
    for switches, nodes in leaves:
        name = _unused(topo.switches.name[switches[0]], taken)
        if len(switches) > 1:
            lines.append(f"# {name} stands for {_list(topo.switches.name[s] for s in switches)}")
        lines.append(f"SwitchName={_fit(name)} Nodes={_list(topo.nodes.name[n] for n in nodes)}")
        for switch in switches:
            names.setdefault(switch, []).append(name)
    for _ in TIERS[1:]:
        if len(_all(names)) > 1:
            names, rows = _above(topo, inside, names, taken)
            lines += rows
    if len(_all(names)) != 1 and len(leaves) > 1:
        lines.append("# not all of these have a way to each other: a job cannot span them")
    return "\n".join(lines) + "\n"


def _leaves(topo: Topology, inside: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> list[tuple[list[int], list[int]]]:
    """(switches, nodes) of nodes that hang on the same leaves, in the order of nodes.

    Nodes that miss some of the leaves of others are with those.
    """
    host = np.flatnonzero(inside & (topo.links.tier == HOST_LEAF) & topo.compute_links)
    pairs = np.unique(
        np.stack([topo.port_node[topo.links.a[host]], topo.ports.switch[topo.links.b[host]]], axis=1), axis=0
    )
    of: dict[int, list[int]] = {}
    for node, switch in pairs.tolist():
        of.setdefault(node, []).append(switch)
    sets: dict[tuple[int, ...], list[int]] = {}
    for node, switches in of.items():
        sets.setdefault(tuple(switches), []).append(node)
    whole: dict[frozenset[int], list[int]] = {}
    for some in sorted(sets, key=lambda s: -len(s)):
        mine = frozenset(some)
        home = mine if mine in whole else next((w for w in whole if mine < w), mine)
        whole.setdefault(home, []).extend(sets[some])
    name = topo.switches.name
    out = [(sorted(mine, key=lambda s: natural(name[s])), sorted(nodes)) for mine, nodes in whole.items()]
    return sorted(out, key=lambda pair: pair[1])


def _above(
    topo: Topology, inside: np.ndarray[tuple[int], np.dtype[np.bool_]], below: Below, taken: set[str]
) -> tuple[Below, list[str]]:
    """The next level: switches that share something below are one. Returns them as `below`, and their lines."""
    a, b = topo.ports.switch[topo.links.a[inside]], topo.ports.switch[topo.links.b[inside]]
    up = (a >= 0) & (b >= 0) & np.isin(a, list(below))
    group: dict[str, str] = {}  # a name below -> one that stands for all joined with it

    def root(name: str) -> str:
        while group.setdefault(name, name) != name:
            name = group[name]
        return name

    parents: dict[int, str] = {}
    for low, high in np.unique(np.stack([a[up], b[up]], axis=1), axis=0).tolist():
        if high not in below:
            parents.setdefault(high, below[low][0])
            for name in below[low]:
                group[root(name)] = root(parents[high])
    levels: dict[str, list[int]] = {}
    for high, name in parents.items():
        levels.setdefault(root(name), []).append(high)
    children: dict[str, list[str]] = {}
    for name in _all(below):
        children.setdefault(root(name), []).append(name)
    above: Below = {}
    lines = []
    for key, switches in levels.items():
        switches.sort(key=lambda s: natural(topo.switches.name[s]))
        name = _unused(topo.switches.name[switches[0]], taken)
        lines.append(f"SwitchName={_fit(name)} Switches={_list(children[key])}")
        above |= {switch: [name] for switch in switches}
    return above, lines


def _all(below: Below) -> list[str]:
    return list(dict.fromkeys(name for names in below.values() for name in names))


def _unused(name: str, taken: set[str]) -> str:
    """`name`, with a number behind it where it is taken."""
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name}-{number}"
    taken.add(free)
    return free


def _list(names: Iterable[str]) -> str:
    return ",".join(compress(_fit(n) for n in names))


def _fit(name: str) -> str:
    if _UNFIT & set(name):
        raise InputError(f"Slurm cannot name {name!r}: none of {' '.join(sorted(_UNFIT))} may be in a name")
    return name
