"""Random faults of power for the scoreboard."""

from __future__ import annotations

import numpy as np

from replay.drills.lottery import Lot, Rng, Ticket, pick
from twin.power import PowerModel, Read
from twin.simulator.scenario import Fault
from twin.topology.checks.power import node_watts
from twin.topology.model import Topology


def psu_down(topo: Topology, rng: Rng) -> Ticket | None:
    """A supply of a node or of a power shelf that has others."""
    model = PowerModel(topo)
    fellows = np.bincount(model.psu_holder, minlength=model.n)[model.psu_holder]
    row = pick(rng, np.flatnonzero(fellows >= 2))
    if row is None:
        return None
    name = topo.psu_names[row]
    return Ticket("psu_down", name, Fault("fail", name, 0), _holder(model, int(model.psu_holder[row])))


def feed_down(topo: Topology, rng: Rng) -> Ticket | None:
    """One of several feeds of a rack."""
    model = PowerModel(topo)
    row = pick(rng, np.flatnonzero(np.bincount(topo.feeds.rack, minlength=model.n_racks)[topo.feeds.rack] >= 2))
    if row is None:
        return None
    name = topo.feeds.name[row]
    return Ticket(
        "feed_down", name, Fault("fail", name, 0), _holder(model, model.n_nodes + int(topo.feeds.rack[row]))
    )


def redundancy_lost(topo: Topology, rng: Rng) -> Ticket | None:
    """A node that draws more than its supplies could give after the losses that it is to bear."""
    found = _a_node(topo, rng)
    if found is None:
        return None
    model, node, all_of_it, after_loss = found
    watts = float(rng.uniform(0.3, 0.7)) * (all_of_it - after_loss) + after_loss
    return _drawing(model, "redundancy_lost", node, watts)


def power_headroom(topo: Topology, rng: Rng) -> Ticket | None:
    """A node that draws more than all its supplies give."""
    found = _a_node(topo, rng)
    if found is None:
        return None
    model, node, all_of_it, _ = found
    return _drawing(model, "power_headroom", node, float(rng.uniform(1.1, 1.4)) * all_of_it)


def power_swing(topo: Topology, rng: Rng) -> Ticket | None:
    """A rack whose load goes up and down with each step, too small a part of the site to move all of it."""
    racks = np.flatnonzero(np.bincount(topo.nodes.rack[topo.nodes.rack >= 0], minlength=len(topo.racks.name)) >= 2)
    row = pick(rng, racks)
    if row is None or len(racks) < 4:
        return None
    name, period = topo.racks.name[row], float(rng.choice([4, 6, 8]))
    fault = Fault("draw", name, 0, kind="swing", level=float(rng.uniform(0.6, 0.9)), period=period)
    place = _holder(PowerModel(topo), len(topo.nodes.name) + row)
    return Ticket("power_swing", name, fault, place, within=25.0, lasts=30.0)


def _a_node(topo: Topology, rng: Rng) -> tuple[PowerModel, int, float, float] | None:
    """(model, row, W of all its supplies, W after the losses it is to bear), of a node that is well in health."""
    model = PowerModel(topo)
    state = model.at(_nothing(topo), np.zeros(len(topo.psus.watts), bool), np.zeros(len(topo.feeds.name), bool))
    capacity, after = state.capacity[: model.n_nodes], state.after_loss[: model.n_nodes]
    fit = np.flatnonzero((topo.nodes.n_psus >= 2) & (after < 0.9 * capacity))
    fit = np.array([n for n in fit.tolist() if node_watts(topo, n) < float(after[n])], np.intp)
    row = pick(rng, fit)
    return None if row is None else (model, row, float(capacity[row]), float(after[row]))


def _nothing(topo: Topology) -> Read:
    """No reading at all: what is not known counts as designed."""
    return lambda kind, metric: np.full(len(topo.names(kind)), np.nan)


def _drawing(model: PowerModel, kind: str, node: int, watts: float) -> Ticket:
    name = model.name(node)
    return Ticket(kind, name, Fault("draw", name, 0, watts=watts), _holder(model, node))


def _holder(model: PowerModel, holder: int) -> frozenset[str]:
    """A node, or a rack and all that is in it; and the rack of a node, whose load it is a part of."""
    topo = model.topo
    inside = {topo.nodes.name[n] for n in model.nodes_of(holder).tolist()}
    rack = holder - model.n_nodes if holder >= model.n_nodes else int(topo.nodes.rack[holder])
    return frozenset(inside | ({topo.racks.name[rack]} if rack >= 0 else set()))


# see lottery.py
POWER: tuple[Lot, ...] = (
    Lot("psu_down", 1.5, psu_down),
    Lot("feed_down", 1, feed_down),
    Lot("redundancy_lost", 1, redundancy_lost),
    Lot("power_headroom", 0.75, power_headroom),
    Lot("power_swing", 0.75, power_swing, busy=True),
)
