"""Where congestion sits: which ports wait, which are full and whose packets are marked under one `congest` fault.

A port that cannot hand on what it has fills the switch, and the switch holds up all who send to it: spines, the
leaves below them, hosts. Each step outwards the wait is less, since others' traffic does not pass the jam.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from twin.errors import InputError
from twin.simulator.scenario import Fault
from twin.topology.model import HOST_LEAF, LEAF_SPINE, SPINE_CORE, TIERS, Topology
from twin.topology.resolve import Target
from twin.xmitwait import infiniband

F64 = npt.NDArray[np.float64]
Rows = npt.NDArray[np.intp]

FORMS = ("incast", "slow_receiver", "oversubscription", "imbalance", "pause_storm")
_AT_HOST = ("incast", "slow_receiver", "pause_storm")
_LEVEL = {"pause_storm": 0.99}  # share of time that the worst port waits, unless the fault says
_USUAL_LEVEL = 0.6
_NEAR, _FAR = 0.8, 0.45  # of that level one hop from the jam, and two
_SENDERS = 16  # hosts that send to one receiver


@dataclass
class Jam:
    """wait: share of time by port that waits. full: ports that send all they can. marked: share of packets by NIC
    port. senders: NIC ports that send into the jam. spared: ports that carry little, though they could carry it.
    drain: the receiving port and the share that its host still takes."""

    wait: dict[int, float] = field(default_factory=dict)
    full: list[int] = field(default_factory=list)
    marked: dict[int, float] = field(default_factory=dict)
    senders: list[int] = field(default_factory=list)
    spared: list[int] = field(default_factory=list)
    drain: tuple[int, float] | None = None


def check_congest(topo: Topology, fault: Fault, target: Target) -> None:
    """Raises InputError for a fault of congestion that cannot be."""
    if fault.kind not in FORMS:
        raise InputError(f"congest: kind is {fault.kind!r}, expected one of {', '.join(FORMS)}")
    if fault.level is not None and not 0 < fault.level <= 1:
        raise InputError(f"congest: level is {fault.level:g}, expected a share of time above 0 and up to 1")
    tiers = topo.links.tier[target.links]
    if fault.kind == "oversubscription":
        leaf = len(target.switches) == 1 and bool((tiers == LEAF_SPINE).any() and (tiers == HOST_LEAF).any())
        if not leaf:
            raise InputError(f"congest: {fault.target!r} is no leaf with uplinks; oversubscription needs one")
    elif len(target.links) != 1 or len(target.switches) or len(target.nodes):
        raise InputError(f"congest: {fault.target!r} is not one link; {fault.kind} needs a port or a link")
    elif fault.kind in _AT_HOST and tiers[0] != HOST_LEAF:
        raise InputError(f"congest: {fault.target!r} leads to no host; {fault.kind} needs the port of a NIC")
    elif fault.kind == "imbalance" and tiers[0] not in (LEAF_SPINE, SPINE_CORE):
        raise InputError(f"congest: {fault.target!r} is no uplink; imbalance needs a link between switches")
    if fault.kind == "pause_storm" and bool(infiniband(topo)[topo.links.a[target.links]].any()):
        raise InputError("congest: a pause storm needs Ethernet; InfiniBand has no pause, take slow_receiver")


def make_jam(topo: Topology, fault: Fault, target: Target, rng: np.random.Generator) -> Jam:
    level = fault.level if fault.level is not None else _LEVEL.get(fault.kind, _USUAL_LEVEL)
    if fault.kind in _AT_HOST:
        return _at_host(topo, fault.kind, int(target.links[0]), level, rng)
    if fault.kind == "imbalance":
        return _at_uplink(topo, int(target.links[0]), level, rng)
    return _at_leaf(topo, int(target.switches[0]), level, rng)


def _at_host(topo: Topology, kind: str, link: int, level: float, rng: np.random.Generator) -> Jam:
    nic, down = int(topo.links.a[link]), int(topo.links.b[link])
    leaf = int(topo.ports.switch[down])
    jam = Jam()
    if kind == "incast":
        jam.full = [down]
    else:
        jam.wait[down] = level
        jam.drain = nic, 1 - level
    jam.marked[nic] = level if kind == "incast" else 0.2 * level  # all while the queue is long
    near, far = _hosts(topo, leaf, rng)
    near = near[near != nic][: _SENDERS // 2]
    far = far[: _SENDERS - len(near)]
    uplinks = _uplinks(topo, leaf)
    for port in topo.ports.peer[uplinks].tolist():
        jam.wait[port] = _NEAR * level
    for other in np.unique(topo.peer_switch[far]).tolist():
        for port in _uplinks(topo, other).tolist():
            jam.wait[port] = _FAR * level
    for ports, share in ((near, _NEAR), (far, _FAR)):
        for port in ports.tolist():
            jam.wait[port] = share * level * float(rng.uniform(0.6, 1.0))
            jam.senders.append(port)
    return jam


def _at_uplink(topo: Topology, link: int, level: float, rng: np.random.Generator) -> Jam:
    """Flows that hash onto one of several equal paths."""
    port = int(topo.links.a[link])
    switch = int(topo.ports.switch[port])
    below = topo.ports.peer[_below(topo, switch)]
    held = rng.permutation(below)[: max(2, len(below) // 8)]
    jam = Jam(full=[port], senders=held.tolist())
    jam.wait = {p: level * float(rng.uniform(0.6, 1.0)) for p in held.tolist()}
    jam.spared = [p for p in _uplinks(topo, switch).tolist() if p != port]
    jam.marked = dict.fromkeys(_receivers(topo, switch, rng), 0.4 * level)
    return jam


def _at_leaf(topo: Topology, leaf: int, level: float, rng: np.random.Generator) -> Jam:
    """Hosts that want more than the uplinks of their leaf carry."""
    held = topo.ports.peer[_below(topo, leaf)].tolist()
    jam = Jam(full=_uplinks(topo, leaf).tolist(), senders=held)
    jam.wait = {p: level * float(rng.uniform(0.6, 1.0)) for p in held}
    jam.marked = dict.fromkeys(_receivers(topo, leaf, rng), 0.3 * level)
    return jam


def _ports_of(topo: Topology, switch: int) -> Rows:
    return np.flatnonzero((topo.ports.switch == switch) & (topo.ports.link >= 0))


def _uplinks(topo: Topology, switch: int) -> Rows:
    """Ports of a switch that lead to a higher tier."""
    mine = _ports_of(topo, switch)
    above = topo.peer_switch[mine]
    up: Rows = mine[(above >= 0) & (topo.switches.tier[above] > topo.switches.tier[switch])]
    return up


def _below(topo: Topology, switch: int) -> Rows:
    mine = _ports_of(topo, switch)
    return mine[~np.isin(mine, _uplinks(topo, switch))]


def _hosts(topo: Topology, leaf: int, rng: np.random.Generator) -> tuple[Rows, Rows]:
    """NIC ports on this leaf, and on other leaves of its plane, in random order."""
    plane = topo.switches.plane[leaf]
    at = topo.peer_switch
    nics = np.flatnonzero((topo.ports.nic >= 0) & topo.ports.compute & (at >= 0))
    nics = nics[topo.switches.plane[at[nics]] == plane]
    leaves = topo.switches.tier[at[nics]] == TIERS.index("leaf")
    here = at[nics] == leaf
    return rng.permutation(nics[here]), rng.permutation(nics[leaves & ~here])


def _receivers(topo: Topology, switch: int, rng: np.random.Generator) -> list[int]:
    """Hosts elsewhere that get what went through the jam."""
    _, far = _hosts(topo, switch, rng)
    return [int(p) for p in far[:_SENDERS]]
