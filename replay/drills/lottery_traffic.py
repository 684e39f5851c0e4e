"""Random faults for the scoreboard that no link state shows: silent planes, errors, congestion."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from replay.drills.lottery import Lot, Rng, Ticket, a_link, link_name, link_place, pick
from twin.simulator.errors import PAM4
from twin.simulator.scenario import Fault
from twin.topology.model import HOST_LEAF, LEAF_SPINE, Topology
from twin.xmitwait import infiniband

Rows = npt.NDArray[np.intp]


def link_errors(topo: Topology, rng: Rng) -> Ticket | None:
    """Symbol errors, or blocks that error correction cannot repair: several a second, far above any budget."""
    if (row := a_link(topo, rng)) is None:
        return None
    name = link_name(topo, row)
    repairs = topo.port_speed[topo.links.a[row]] >= PAM4
    kind = str(rng.choice(["symbol", "fec"])) if repairs else "symbol"
    fault = Fault("corrupt", name, 0, kind=kind, rate=float(rng.uniform(3, 30)))
    return Ticket("link_errors", name, fault, link_place(topo, row))


# --- up, and carrying nothing ---


def plane_silent(topo: Topology, rng: Rng) -> Ticket | None:
    row = pick(rng, np.arange(len(topo.planes)))
    if row is None or len(topo.planes) < 2 or topo.plane_kind != "split":  # rails have no sibling to carry their load
        return None
    return _muted(topo, f"plane:{topo.planes[row]}", row, _of_plane(topo, row))


def leaf_silent(topo: Topology, rng: Rng) -> Ticket | None:
    """A leaf that forwards nothing, in a plane with siblings: its hosts send by those."""
    if len(topo.planes) < 2 or topo.plane_kind != "split":
        return None
    return _a_switch(topo, rng, tier=0, fellows=3)


def spine_silent(topo: Topology, rng: Rng) -> Ticket | None:
    """One of several spines, which carries nothing while the others do."""
    return _a_switch(topo, rng, tier=1, fellows=3)


def _a_switch(topo: Topology, rng: Rng, tier: int, fellows: int) -> Ticket | None:
    plane = topo.switches.plane
    mine = (topo.switches.tier == tier) & (plane >= 0)
    many = np.bincount(plane[mine], minlength=len(topo.planes)) >= fellows
    row = pick(rng, np.flatnonzero(mine & many[plane]))
    if row is None:
        return None
    name = topo.switches.name[row]
    return _muted(topo, name, int(plane[row]), frozenset((name, *_neighbours(topo, row))))


def _muted(topo: Topology, name: str, plane: int, near: frozenset[str]) -> Ticket:
    return Ticket("plane_silent", name, Fault("mute", name, 0), near | {name, f"in:{plane}"})


def _of_plane(topo: Topology, plane: int) -> frozenset[str]:
    return frozenset(topo.switches.name[s] for s in np.flatnonzero(topo.switches.plane == plane))


def _neighbours(topo: Topology, switch: int) -> set[str]:
    """The devices at the other ends of its cables."""
    ports = np.flatnonzero((topo.ports.switch == switch) & (topo.ports.peer >= 0))
    return {topo.port_names[p].split("/")[0] for p in topo.ports.peer[ports].tolist()}


# --- congestion ---


def incast(topo: Topology, rng: Rng) -> Ticket | None:
    return _at_host(topo, rng, "incast")


def slow_receiver(topo: Topology, rng: Rng) -> Ticket | None:
    return _at_host(topo, rng, "slow_receiver")


def pause_storm(topo: Topology, rng: Rng) -> Ticket | None:
    """Ethernet alone has pause."""
    return _at_host(topo, rng, "pause_storm")


def _at_host(topo: Topology, rng: Rng, form: str) -> Ticket | None:
    """The receiver: the NIC port of a host whose leaf has other hosts that may send to it."""
    links = np.flatnonzero((topo.links.tier == HOST_LEAF) & topo.compute_links)
    leaf = topo.ports.switch[topo.links.b[links]]
    hosts = np.bincount(leaf[leaf >= 0], minlength=len(topo.switches.name))
    fit = (leaf >= 0) & (hosts[leaf] >= 8)
    if form == "pause_storm":
        fit &= ~infiniband(topo)[topo.links.a[links]]
    row = pick(rng, links[fit])
    if row is None:
        return None
    return _jam(topo, form, link_name(topo, row), row, rng)


def imbalance(topo: Topology, rng: Rng) -> Ticket | None:
    """One of several equal uplinks of a leaf takes what all should."""
    up = np.flatnonzero(topo.links.tier == LEAF_SPINE)
    leaf = topo.ports.switch[topo.links.a[up]]
    equal = np.bincount(leaf[leaf >= 0], minlength=len(topo.switches.name))
    row = pick(rng, up[(leaf >= 0) & (equal[leaf] >= 4)])
    return None if row is None else _jam(topo, "imbalance", topo.port_names[topo.links.a[row]], row, rng)


def oversubscription(topo: Topology, rng: Rng) -> Ticket | None:
    """Hosts of one leaf want more than its uplinks carry."""
    up = np.flatnonzero(topo.links.tier == LEAF_SPINE)
    down = np.flatnonzero((topo.links.tier == HOST_LEAF) & topo.compute_links)
    n = len(topo.switches.name)
    uplinks = np.bincount(topo.ports.switch[topo.links.a[up]], minlength=n)
    hosts = np.bincount(topo.ports.switch[topo.links.b[down]], minlength=n)
    switch = pick(rng, np.flatnonzero((uplinks >= 2) & (hosts >= 8)))
    if switch is None:
        return None
    row = int(up[topo.ports.switch[topo.links.a[up]] == switch][0])
    return _jam(topo, "oversubscription", topo.switches.name[switch], row, rng)


def _jam(topo: Topology, form: str, cause: str, link: int, rng: Rng) -> Ticket:
    """One jam a plane at a time: its victims are all over it."""
    plane = int(topo.links.plane[link])
    level = None if form == "pause_storm" else float(rng.uniform(0.4, 0.9))
    fault = Fault("congest", cause, 0, kind=form, level=level)
    place = link_place(topo, link) | {f"in:{plane}", f"jam:{plane}"}
    return Ticket("congestion", cause, fault, place, form=form)


# see lottery.py
TRAFFIC: tuple[Lot, ...] = (
    Lot("link_errors", 4, link_errors),
    Lot("plane_silent", 2, plane_silent, busy=True),
    Lot("leaf_silent", 1, leaf_silent, busy=True),
    Lot("spine_silent", 1, spine_silent, busy=True),
    Lot("incast", 3, incast, busy=True),
    Lot("slow_receiver", 3, slow_receiver, busy=True),
    Lot("pause_storm", 1, pause_storm, busy=True),
    Lot("imbalance", 2, imbalance, busy=True),
    Lot("oversubscription", 3, oversubscription, busy=True),
)
