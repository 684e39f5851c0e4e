"""Random faults for the scoreboard: what breaks, how often, where, and which incident must say so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from twin.simulator.scenario import Fault
from twin.topology.model import HOST_LEAF, LEAF_SPINE, Topology

Rng = np.random.Generator


@dataclass(frozen=True, slots=True)
class Ticket:
    """A fault without its times, and the incident that tells it: kind and cause.

    place: addresses that it touches; two tickets with a common one are not drawn together. within: seconds that the
    incident may take, beyond which it counts as missed.
    """

    kind: str
    cause: str
    fault: Fault
    place: frozenset[str]
    within: float = 30.0
    lasts: float = 20.0
    form: str = ""  # the class that the incident must have


@dataclass(frozen=True, slots=True)
class Lot:
    """A kind of fault. weight: share of all faults. draw: a ticket of it, None where a fabric has no place for it.

    busy: it shows only while GPUs work and send.
    """

    name: str
    weight: float
    draw: Callable[[Topology, Rng], Ticket | None]
    busy: bool = False


def draw(topo: Topology, rng: Rng, lots: tuple[Lot, ...], taken: frozenset[str] = frozenset()) -> Ticket | None:
    """A ticket away from what is `taken`; None where several tries find none."""
    if not lots:
        return None
    weights = np.array([lot.weight for lot in lots])
    for _ in range(20):
        lot = lots[int(rng.choice(len(lots), p=weights / weights.sum()))]
        ticket = lot.draw(topo, rng)
        if ticket is not None and not ticket.place & taken:
            return ticket
    return None


# --- links, switches, planes ---


def pick(rng: Rng, rows: npt.NDArray[np.intp]) -> int | None:
    """One of these rows, None of none."""
    return int(rng.choice(rows)) if len(rows) else None


def link_place(topo: Topology, row: int) -> frozenset[str]:
    """Both devices of a link, its plane's name not: two links of a plane may break at once."""
    a, b = topo.port_names[topo.links.a[row]], topo.port_names[topo.links.b[row]]
    return frozenset((a.split("/")[0], b.split("/")[0]))


def link_name(topo: Topology, row: int) -> str:
    host = topo.links.tier[row] == HOST_LEAF
    return topo.port_names[topo.links.a[row]] if host else topo.link_name(row)


def a_link(topo: Topology, rng: Rng) -> int | None:
    """A host link or a link between switches, as likely each; one that is not alone at its device."""
    host = np.flatnonzero((topo.links.tier == HOST_LEAF) & topo.compute_links)
    upper = np.flatnonzero(topo.links.tier == LEAF_SPINE)
    return pick(rng, upper if len(upper) and rng.random() < 0.5 else host)


def link_down(topo: Topology, rng: Rng) -> Ticket | None:
    if (row := a_link(topo, rng)) is None:
        return None
    name = link_name(topo, row)
    return Ticket("link_down", name, Fault("fail", name, 0), link_place(topo, row))


def link_slow(topo: Topology, rng: Rng) -> Ticket | None:
    if (row := a_link(topo, rng)) is None:
        return None
    name = link_name(topo, row)
    fault = Fault("degrade", name, 0, speed_fraction=float(rng.choice([0.25, 0.5, 0.75])))
    return Ticket("link_slow", name, fault, link_place(topo, row))


def link_flapping(topo: Topology, rng: Rng) -> Ticket | None:
    if (row := a_link(topo, rng)) is None:
        return None
    name = link_name(topo, row)
    period = float(rng.uniform(4, 8))
    fault = Fault("flap", name, 0, period=period, down=float(rng.uniform(1.2, 2)))
    return Ticket("link_flapping", name, fault, link_place(topo, row), within=4 * period + 5, lasts=6 * period)


def switch_down(topo: Topology, rng: Rng) -> Ticket | None:
    """A leaf or spine whose loss is not that of its whole plane: one of several of its tier there."""
    plane, tier = topo.switches.plane, topo.switches.tier
    fellows = np.array([np.count_nonzero((plane == p) & (tier == t)) for p, t in zip(plane, tier, strict=True)])
    row = pick(rng, np.flatnonzero((fellows >= 3) & (plane >= 0)))
    if row is None:
        return None
    name = topo.switches.name[row]
    links = (topo.ports.switch[topo.links.a] == row) | (topo.ports.switch[topo.links.b] == row)
    near = (link_place(topo, int(r)) for r in np.flatnonzero(links))
    return Ticket("switch_down", name, Fault("fail", name, 0), frozenset((name, f"in:{plane[row]}")).union(*near))


def node_down(topo: Topology, rng: Rng) -> Ticket | None:
    cabled = topo.port_node[topo.links.a]
    cables = np.bincount(cabled[cabled >= 0], minlength=len(topo.nodes.name))
    row = pick(rng, np.flatnonzero((cables >= 2) & (topo.nodes.n_gpus > 0)))
    if row is None or not len(topo.switches.name):
        return None
    name = topo.nodes.name[row]
    return Ticket("link_down", name, Fault("fail", name, 0), frozenset((name,)))


def nic_down(topo: Topology, rng: Rng) -> Ticket | None:
    several = topo.nodes.n_nics[topo.nics.node] >= 2  # else it is the same as its node
    row = pick(rng, np.flatnonzero((topo.nics.n_ports >= 2) & (topo.nics.rail >= 0) & several))
    if row is None:
        return None
    name = topo.nic_names[row]
    return Ticket("link_down", name, Fault("fail", name, 0), frozenset((name.split("/")[0],)))


def plane_down(topo: Topology, rng: Rng) -> Ticket | None:
    switches = np.bincount(topo.switches.plane[topo.switches.plane >= 0], minlength=len(topo.planes))
    row = pick(rng, np.flatnonzero(switches >= 2))  # a plane of one switch is that switch
    if row is None or len(topo.planes) < 2:
        return None
    mine = {topo.switches.name[s] for s in np.flatnonzero(topo.switches.plane == row)}
    name = f"plane:{topo.planes[row]}"
    return Ticket("plane_down", name, Fault("fail", name, 0), frozenset({name, f"in:{row}", *mine}))


def plane_degraded(topo: Topology, rng: Rng) -> Ticket | None:
    """A good part of a plane's uplinks at once."""
    uplinks = np.bincount(topo.links.plane[topo.links.tier == LEAF_SPINE], minlength=len(topo.planes))
    spine = (topo.switches.tier == 1) & (topo.switches.plane >= 0)
    spines = np.bincount(topo.switches.plane[spine], minlength=len(topo.planes))
    row = pick(rng, np.flatnonzero((uplinks >= 32) & (spines >= 2)))  # with one spine it is that spine
    if row is None:
        return None
    mine = {topo.switches.name[s] for s in np.flatnonzero(topo.switches.plane == row)}
    name = f"plane:{topo.planes[row]}"
    fault = Fault("degrade", name, 0, capacity_fraction=float(rng.choice([0.5, 0.75])))
    return Ticket("plane_degraded", name, fault, frozenset({name, f"in:{row}", *mine}))


def source_silent(topo: Topology, rng: Rng) -> Ticket | None:
    """A node or switch whose telemetry stops, nothing else."""
    name = str(rng.choice([*topo.nodes.name, *topo.switches.name]))
    return Ticket("telemetry_stale", name, Fault("silence", name, 0), frozenset((name,)), lasts=25.0)


def collector_failed(topo: Topology, rng: Rng) -> Ticket | None:
    """A source whose collector says that it fails."""
    name = str(rng.choice([*topo.nodes.name, *topo.switches.name]))
    return Ticket("collector_failed", name, Fault("silence", name, 0, kind="failed"), frozenset((name,)))


def miscabled(topo: Topology, rng: Rng) -> Ticket | None:
    """Two cables of one plane that change places at two leaves."""
    links = np.flatnonzero((topo.links.tier == HOST_LEAF) & topo.compute_links)
    row = pick(rng, links)
    if row is None or not len(topo.switches.name):
        return None
    leaf = topo.ports.switch[topo.links.b]
    other = pick(rng, links[(topo.links.plane[links] == topo.links.plane[row]) & (leaf[links] != leaf[row])])
    if other is None:
        return None
    first, second = sorted((row, other))
    fault = Fault("swap", link_name(topo, first), 0, other=link_name(topo, second))
    place = link_place(topo, first) | link_place(topo, second)
    return Ticket("miscabled", link_name(topo, first), fault, place, lasts=25.0)


# Weights of all lots: published mixes folded to what a fabric monitor sees: GPU, memory and XID 35 of 100, link down
# or flapping 15, half rate or a lost plane 12, congestion 12, NVLink 8, switches 5, power 5, monitoring 8. Within one
# of these the shares are estimated; nodes and NICs that go are of what is called hardware.
LINKS: tuple[Lot, ...] = (
    Lot("link_down", 6, link_down),
    Lot("link_flapping", 5, link_flapping),
    Lot("link_slow", 4, link_slow),
    Lot("plane_down", 2, plane_down),
    Lot("plane_degraded", 2, plane_degraded),
    Lot("switch_down", 5, switch_down),
    Lot("node_down", 4, node_down),
    Lot("nic_down", 2, nic_down),
    Lot("miscabled", 1, miscabled),
    Lot("telemetry_stale", 5, source_silent),
    Lot("collector_failed", 3, collector_failed),
)
