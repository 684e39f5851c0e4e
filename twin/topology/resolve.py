"""From an address to the parts of the fabric it stands for."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from difflib import get_close_matches

import numpy as np
import numpy.typing as npt

from twin.errors import InputError
from twin.topology.model import Topology

Rows = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Target:
    """What an address covers: links that go with it, whole switches and nodes, and parts (rows of each kind)."""

    address: str
    links: Rows
    switches: Rows
    nodes: Rows
    gpus: Rows = field(default_factory=lambda: NO_ROWS)
    nvlinks: Rows = field(default_factory=lambda: NO_ROWS)
    psus: Rows = field(default_factory=lambda: NO_ROWS)
    feeds: Rows = field(default_factory=lambda: NO_ROWS)
    racks: Rows = field(default_factory=lambda: NO_ROWS)


def _rows(*values: int) -> Rows:
    return np.array(values, dtype=np.intp)


NO_ROWS: Rows = _rows()


def resolve(topo: Topology, address: str) -> Target:
    """What an address stands for. Raises InputError with a near match.

    `plane:B`, a switch, a node, a rack, `n0/nic1`, a port or a link; also a GPU, an NVLink, an NVLink switch chip or
    domain, a supply, a feed: these have no links of the network.
    """
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
        return _nodes(topo, address, _rows(node))
    if (rack := topo.rows("rack").get(address)) is not None:
        return replace(_nodes(topo, address, np.flatnonzero(topo.nodes.rack == rack)), racks=_rows(rack))
    if (part := _part(topo, address)) is not None:
        return part
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


def _nodes(topo: Topology, address: str, nodes: Rows) -> Target:
    """Whole nodes with all that is in them."""
    mine = np.isin(topo.port_node[topo.links.a], nodes) | np.isin(topo.port_node[topo.links.b], nodes)
    gpus = np.isin(topo.gpus.node, nodes)
    return Target(
        address, np.flatnonzero(mine), NO_ROWS, nodes, np.flatnonzero(gpus),
        np.flatnonzero(gpus[topo.nvlink_gpu]), np.flatnonzero(np.isin(topo.psus.node, nodes)),
    )  # fmt: skip


def _part(topo: Topology, address: str) -> Target | None:
    """A GPU with its NVLinks, an NVLink, the NVLinks of a switch chip or of a domain, a supply, a feed."""
    none = NO_ROWS
    if (gpu := topo.rows("gpu").get(address)) is not None:
        return Target(address, none, none, none, _rows(gpu), np.flatnonzero(topo.nvlink_gpu == gpu))
    if (link := topo.rows("nvlink").get(address) if "/nvlink" in address else None) is not None:
        return Target(address, none, none, none, nvlinks=_rows(link))
    if address in topo.nvswitch_names:
        chip = topo.nvswitch_names.index(address)
        return Target(address, none, none, none, nvlinks=np.flatnonzero(topo.nvlink_switch == chip))
    if address.startswith("domain:") and (row := topo.rows("domain").get(address[7:])) is not None:
        gpus = topo.domains.gpu_rows[row].astype(np.intp)
        links = np.flatnonzero(np.isin(topo.nvlink_gpu, gpus))
        return Target(address, none, none, none, gpus, links)
    if (psu := topo.rows("psu").get(address)) is not None:
        return Target(address, none, none, none, psus=_rows(psu))
    if (feed := topo.rows("feed").get(address)) is not None:
        return Target(address, none, none, none, feeds=_rows(feed))
    return None


def _unknown(topo: Topology, address: str) -> str:
    domains = (f"domain:{name}" for name in topo.domains.name)
    pool: list[str] = [*topo.switches.name, *topo.nodes.name, *topo.racks.name, *domains]
    if "/" in address:
        head = address.split("--")[0].rpartition("/")[0]
        parts = (*topo.port_names, *topo.gpu_names, *topo.nvswitch_names, *topo.psu_names, *topo.feeds.name)
        pool = [p for p in parts if p.startswith(head)] or pool
    near = get_close_matches(address.split("--")[0], pool, 1)
    hint = f"; did you mean {near[0]}?" if near else ""
    return f"{topo.name} has no {address!r}{hint}"
