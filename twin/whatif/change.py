"""What is asked: what fails, is repaired, gets slower, or may draw less. From addresses to another state."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from twin.catalog import hardware
from twin.errors import InputError
from twin.power import PowerModel
from twin.topology.model import Topology
from twin.topology.resolve import Target, resolve
from twin.whatif.state import Bool, State


@dataclass(frozen=True, slots=True)
class Change:
    """Addresses. degrade: (address, share of the designed speed that its links keep). limit: W a GPU may draw."""

    fail: tuple[str, ...] = ()
    repair: tuple[str, ...] = ()
    degrade: tuple[tuple[str, float], ...] = ()
    limit: float | None = None

    @property
    def empty(self) -> bool:
        return not (self.fail or self.repair or self.degrade or self.limit is not None)


def apply(model: PowerModel, state: State, change: Change) -> State:
    """The state after a change: repairs first, then failures, then slower links and limits.

    Raises InputError for an address that the fabric lacks, for failing what is down, repairing what is whole.
    """
    _check_limit(model.topo, change.limit)
    topo, now = model.topo, _Parts(model.topo, state)
    for address in change.repair:
        _repair(now, target_of(topo, address), model)
    for address in change.fail:
        _fail(now, target_of(topo, address))
    for address, fraction in change.degrade:
        _degrade(now, target_of(topo, address), fraction)
    return settled(model, now.state(), change.limit, now.off)


def _check_limit(topo: Topology, limit: float | None) -> None:
    if limit is None:
        return
    if not limit > 0:
        raise InputError(f"limit: {limit:g} W; expected what a GPU may draw, above 0")
    for name in sorted(set(topo.nodes.gpu_model)):
        least = hardware()["gpu"].get(name, {}).get("least_power_limit_watts", 0)
        if limit < least:
            raise InputError(f"limit: {limit:g} W; a GPU {name} cannot be set below {least:g} W")


def without(model: PowerModel, state: State, target: Target) -> State:
    """The state without one thing, whether or not that was down already."""
    now = _Parts(model.topo, state)
    now.fail(target)
    return settled(model, now.state(), None, now.off)


def is_down(topo: Topology, state: State, target: Target) -> bool:
    """Whether all that an address covers is down; true where it covers nothing."""
    return all(down.all() for down in _Parts(topo, state).down(target))


class _Parts:
    """Copies of what a change may touch."""

    def __init__(self, topo: Topology, state: State) -> None:
        self.topo, self._before = topo, state
        self.speed, self.nvlink_up = state.speed.copy(), state.nvlink_up.copy()
        self.gpu_lost, self.psu_lost, self.feed_dark = (
            a.copy() for a in (state.gpu_lost, state.psu_lost, state.feed_dark)
        )
        self.off = np.zeros(len(topo.nodes.name), bool)  # nodes that fail as a whole, and draw nothing then

    def state(self) -> State:
        return replace(
            self._before, speed=self.speed, nvlink_up=self.nvlink_up, gpu_lost=self.gpu_lost,
            psu_lost=self.psu_lost, feed_dark=self.feed_dark,
        )  # fmt: skip

    def fail(self, target: Target) -> None:
        self.speed[target.links] = 0.0
        self.nvlink_up[target.nvlinks] = False
        self.psu_lost[target.psus] = True
        self.feed_dark[target.feeds] = True
        self.off[target.nodes] = True
        if not target.address.startswith("domain:"):  # whose links go, not the GPUs themselves
            self.gpu_lost[target.gpus] = True

    def down(self, target: Target) -> Iterator[Bool]:
        """For each kind of part, which of those that an address covers are down."""
        yield self.speed[target.links] == 0
        yield ~self.nvlink_up[target.nvlinks]
        yield self.gpu_lost[target.gpus]
        yield self.psu_lost[target.psus]
        yield self.feed_dark[target.feeds]


def target_of(topo: Topology, address: str) -> Target:
    """What an address covers; of a rack its feeds and shelves as well."""
    target = resolve(topo, address)
    if not len(target.racks):
        return target
    feeds = np.flatnonzero(np.isin(topo.feeds.rack, target.racks))
    shelves = np.flatnonzero(np.isin(topo.psus.rack, target.racks))
    return replace(target, feeds=feeds, psus=np.concatenate([target.psus, shelves]))


def _fail(now: _Parts, target: Target) -> None:
    down = list(now.down(target))
    if not any(map(len, down)):
        raise InputError(f"fail: {target.address!r} has no links and no parts in {now.topo.name}")
    if all(part.all() for part in down):
        raise InputError(f"fail: {target.address!r} is down already; repair it, or fail something that is up")
    now.fail(target)


def _repair(now: _Parts, target: Target, model: PowerModel) -> None:
    design = np.nan_to_num(now.topo.links.speed)[target.links]
    if not any(down.any() for down in now.down(target)) and (now.speed[target.links] >= design).all():
        raise InputError(f"repair: {target.address!r} is whole already")
    dark = model.unpowered(now.psu_lost, now.feed_dark)
    now.speed[target.links] = design
    now.nvlink_up[target.nvlinks] = True
    now.gpu_lost[target.gpus] = now.psu_lost[target.psus] = now.feed_dark[target.feeds] = False
    now.psu_lost[np.isin(model.psu_feed, target.feeds)] = False
    for node in np.setdiff1d(dark, model.unpowered(now.psu_lost, now.feed_dark)).tolist():  # power is back
        _repair(now, resolve(now.topo, now.topo.nodes.name[node]), model)


def _degrade(now: _Parts, target: Target, fraction: float) -> None:
    if not 0 < fraction < 1:
        raise InputError(f"degrade: {target.address}={fraction:g}; expected a share of its speed between 0 and 1")
    if not len(target.links):
        raise InputError(f"degrade: {target.address!r} has no links of the network that could be slower")
    if not now.speed[target.links].any():
        raise InputError(f"degrade: {target.address!r} is down already")
    now.speed[target.links] *= fraction


def settled(model: PowerModel, state: State, limit: float | None, off: Bool) -> State:
    """What follows at once: supplies without their feed give nothing, nodes without power are dark and draw nothing.

    limit: W a GPU may draw from now on. off: bool[nodes], those that are dark for another reason.
    """
    topo = model.topo
    psu_lost = state.psu_lost | np.append(state.feed_dark, False)[model.psu_feed]
    dark = off.copy()
    dark[model.unpowered(psu_lost, state.feed_dark)] = True
    owner = np.append(dark, False)  # the port of a switch belongs to no node
    gone = owner[topo.port_node[topo.links.a]] | owner[topo.port_node[topo.links.b]]
    gpu_lost = state.gpu_lost | dark[topo.gpus.node]
    drawn = np.where(gpu_lost, 0.0, state.gpu_watts if limit is None else np.minimum(state.gpu_watts, limit))
    saved = np.bincount(topo.gpus.node, np.nan_to_num(state.gpu_watts - drawn), len(dark))
    node = np.where(dark, 0.0, np.maximum(state.node_watts - saved, 0.0))
    racked = topo.nodes.rack >= 0
    less = np.nan_to_num(state.node_watts - node)
    in_rack, racks = topo.nodes.rack[racked], len(topo.racks.name)
    rack = np.maximum(state.rack_watts - np.bincount(in_rack, less[racked], racks), 0.0)
    all_dark = (np.bincount(in_rack, minlength=racks) > 0) & (np.bincount(in_rack, ~dark[racked], racks) == 0)
    return replace(
        state,
        speed=np.where(gone, 0.0, state.speed),
        nvlink_up=state.nvlink_up & ~dark[topo.gpus.node[topo.nvlink_gpu]],
        gpu_lost=gpu_lost,
        psu_lost=psu_lost,
        node_watts=node,
        rack_watts=np.where(all_dark, 0.0, rack),
        gpu_watts=drawn,
    )
