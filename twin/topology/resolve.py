"""From an address to the parts of the fabric it stands for."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches

import numpy as np
import numpy.typing as npt

from twin.errors import InputError
from twin.topology.model import Topology

Rows = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Target:
    """What an address covers: links that go with it, and whole switches and nodes (rows)."""

    address: str
    links: Rows
    switches: Rows
    nodes: Rows


def _rows(*values: int) -> Rows:
    return np.array(values, dtype=np.intp)


def resolve(topo: Topology, address: str) -> Target:
    """`plane:B`, a switch, a node, `n0/nic1`, a port or a link. Raises InputError with a near match."""
    none = _rows()
    if address.startswith("plane:"):
        plane = topo.rows("plane").get(address[6:])
        if plane is None:
            raise InputError(f"there is no {address!r}; planes are {', '.join(topo.planes) or 'not defined here'}")
        switches = np.flatnonzero(topo.switches.plane == plane)
        return Target(address, np.flatnonzero(topo.links.plane == plane), switches, none)
    if (switch := topo.rows("switch").get(address)) is not None:
        mine = (topo.ports.switch[topo.links.a] == switch) | (topo.ports.switch[topo.links.b] == switch)
        return Target(address, np.flatnonzero(mine), _rows(switch), none)
    if (node := topo.rows("node").get(address)) is not None:
        mine = (topo.port_node[topo.links.a] == node) | (topo.port_node[topo.links.b] == node)
        return Target(address, np.flatnonzero(mine), none, _rows(node))
    if (nic := topo.rows("nic").get(address)) is not None:
        mine = (topo.ports.nic[topo.links.a] == nic) | (topo.ports.nic[topo.links.b] == nic)
        return Target(address, np.flatnonzero(mine), none, none)
    if (port := topo.rows("port").get(address)) is not None:
        if topo.ports.link[port] < 0:
            raise InputError(f"port {address!r} has no cable in {topo.name}")
        return Target(address, _rows(int(topo.ports.link[port])), none, none)
    ends = address.split("--")
    if len(ends) == 2:
        a, b = (topo.rows("port").get(end) for end in ends)
        if a is not None and b is not None and topo.ports.peer[a] == b:
            return Target(address, _rows(int(topo.ports.link[a])), none, none)
    raise InputError(_unknown(topo, address))


def _unknown(topo: Topology, address: str) -> str:
    pool: list[str] = [*topo.switches.name, *topo.nodes.name]
    if "/" in address:
        head = address.split("--")[0].rpartition("/")[0]
        pool = [p for p in topo.port_names if p.startswith(head)] or pool
    near = get_close_matches(address.split("--")[0], pool, 1)
    hint = f"; did you mean {near[0]}?" if near else ""
    return f"{topo.name} has no {address!r}{hint}"
