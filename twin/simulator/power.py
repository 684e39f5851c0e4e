"""Power: what nodes draw, what their supplies and feeds say of it, and how these fail.

A node draws what its GPUs draw and what its host draws, its supplies share that evenly, those on one feed load it.
`fail` of a supply or a feed takes it away (a node without any power left is dark), `degrade` with capacity_fraction
takes part of what it can give. `draw` changes what nodes draw to `level` times: at once, with kind `ramp` within
`period` seconds, with kind `swing` up and down between all of it and `1 - level` of it, once every `period`; or to
`watts` a node at once.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from twin.catalog import hardware
from twin.errors import InputError
from twin.power import Bool, Ints, PowerModel, total
from twin.simulator.scenario import Fault
from twin.simulator.world import F64, Active, World
from twin.topology.checks.power import node_watts
from twin.topology.model import Topology
from twin.topology.resolve import Target

DRAWS = ("", "ramp", "swing")
_HOST_PER_GPU = 575.0  # W where the server's full load is not known: DGX H100, 10.2 kW less 8 x 700 W
_IDLE_HOST = 0.6  # of the host's power at full load (estimated: fans, memory and switches hardly rest)
_EFFICIENCY = 0.94  # of a supply at half load (80 PLUS Titanium asks for 94 to 96 %)


def check_power(fault: Fault, target: Target) -> None:
    """Raises InputError for a fault of power that makes no sense."""
    part = len(target.psus) + len(target.feeds) > 0 and not len(target.nodes)
    if fault.action == "degrade" and part and fault.capacity_fraction is None:
        raise InputError(f"degrade: {fault.target!r} has no speed; expected capacity_fraction")
    if fault.action != "draw":
        return
    if fault.kind not in DRAWS:
        raise InputError(f"draw: kind {fault.kind!r}; expected one of ramp, swing, or none for a step")
    if not len(target.nodes):
        raise InputError(f"draw: {fault.target!r} draws nothing that can be changed; expected a node or a rack")
    if fault.watts is not None:
        if fault.level is not None or fault.kind:
            raise InputError("draw: watts is all that a node draws, at once; expected no level and no kind beside it")
        return
    if fault.level is None or (fault.kind == "swing" and fault.level > 1):
        wanted = "the share that it swings by, 0 to 1" if fault.kind == "swing" else "how many times as much"
        raise InputError(f"draw: level {fault.level}; expected {wanted}")


def failed(model: PowerModel, active: Sequence[Active]) -> tuple[Bool, Bool]:
    """bool[psus], bool[feeds]: what has failed, or has no power to pass on."""
    psus, feeds = np.zeros(len(model.psu_feed), bool), np.zeros(len(model.topo.feeds.name), bool)
    for a in active:
        if a.fault.action == "fail" and not len(a.target.nodes):
            psus[a.target.psus] = feeds[a.target.feeds] = True
    return psus | np.append(feeds, False)[model.psu_feed], feeds


def unpowered(model: PowerModel, active: Sequence[Active]) -> Ints:
    """Rows of the nodes that have no supply, no shelf and no feed left."""
    psus, feeds = failed(model, active)
    if not psus.any() and not feeds.any():
        return np.zeros(0, np.intp)
    return model.unpowered(psus, feeds)


class Power:
    """Supplies, nodes and feeds."""

    def __init__(self, topo: Topology, rng: np.random.Generator) -> None:
        self._rng, self._model = rng, PowerModel(topo)
        self._host = _hosts(topo)
        self._base = rack_base_watts(topo)
        self._n_gpus = np.maximum(np.bincount(topo.gpus.node, minlength=len(topo.nodes.name)), 1)

    def step(self, world: World) -> None:
        model, topo = self._model, world.topo
        lost, dark = failed(model, world.active)
        nodes = self._nodes(world)
        racks = self._base + total(topo.nodes.rack, nodes, model.n_racks)
        racks *= np.bincount(topo.nodes.rack[topo.nodes.rack >= 0], minlength=model.n_racks) > 0
        given = self._share(np.r_[nodes, racks], lost)
        say = world.signals.gauge
        say(
            "node",
            "power_watts",
            np.where(nodes > 0, nodes * self._meter(world, "node_power_noise", len(nodes)), np.nan),
        )
        noisy = given * self._meter(world, "supply_noise", len(given))
        say("psu", "up", np.where(lost, 0.0, 1.0))
        say("psu", "input_watts", np.where(lost & ~np.append(dark, False)[model.psu_feed], np.nan, noisy))
        say("psu", "output_watts", np.where(lost, np.nan, noisy * _EFFICIENCY))
        say("psu", "capacity_watts", topo.psus.watts * self._left(world, "psus", len(given)))
        fed = self._feeds(nodes, given, dark)
        say("feed", "power_watts", fed * self._meter(world, "node_power_noise", len(fed)))
        say("feed", "capacity_watts", topo.feeds.watts * self._left(world, "feeds", len(fed)))

    def _nodes(self, world: World) -> F64:
        """float64[nodes], W; 0 for those without power."""
        topo, n = world.topo, len(self._host)
        gpus = np.nan_to_num(world.signals.gauges["gpu"]["power_watts"])
        pace = np.bincount(topo.gpus.node, world.flow.pace, n) / self._n_gpus
        out = np.bincount(topo.gpus.node, gpus, n) + self._host * (_IDLE_HOST + (1 - _IDLE_HOST) * pace)
        for a in world.faults("draw"):
            nodes = a.target.nodes
            out[nodes] = out[nodes] * _level(a) if a.fault.watts is None else a.fault.watts
        alive = np.fromiter((name not in world.dead for name in topo.nodes.name), bool, n)
        drawn: F64 = np.where(alive, out, 0.0)
        return drawn

    def _share(self, load: F64, lost: Bool) -> F64:
        """What each supply draws: its holder's load, evenly over those that are left."""
        holder = self._model.psu_holder
        left = np.bincount(holder[~lost], minlength=self._model.n)
        each: F64 = np.where(lost, 0.0, (load / np.maximum(left, 1))[holder])
        return each

    def _feeds(self, nodes: F64, given: F64, dark: Bool) -> F64:
        """Load of each feed: the supplies on it, and its share of nodes that have none."""
        model, topo = self._model, self._model.topo
        out = total(model.psu_feed, given, len(dark))
        shelves = topo.racks.n_psus > 0
        bare = (topo.nodes.n_psus == 0) & (topo.nodes.rack >= 0) & ~np.append(shelves, False)[topo.nodes.rack]
        rack = total(topo.nodes.rack[bare], nodes[bare], model.n_racks)
        left = np.bincount(topo.feeds.rack[~dark], minlength=model.n_racks)
        drawn: F64 = np.where(dark, 0.0, out + (rack / np.maximum(left, 1))[topo.feeds.rack])
        return drawn

    def _left(self, world: World, what: str, n: int) -> F64:
        """Share of its rating that each supply or feed can give."""
        out = np.ones(n)
        for a in world.faults("degrade"):
            if not len(a.target.nodes) and a.fault.capacity_fraction is not None:
                out[getattr(a.target, what)] = a.fault.capacity_fraction
        return out

    def _meter(self, world: World, noise: str, n: int) -> F64:
        return np.maximum(0.0, 1 + self._rng.normal(0, world.noise[noise], n))


def _level(a: Active) -> float:
    fault, level = a.fault, a.fault.level or 0.0
    if fault.kind == "swing":
        return 1 - level if a.age % fault.period >= fault.period / 2 else 1.0
    reached = min(1.0, a.age / fault.period) if fault.kind == "ramp" else 1.0
    return 1 + (level - 1) * reached


def _hosts(topo: Topology) -> F64:
    """float64[nodes], W at full load of all but the GPUs: of the server's full load what its GPUs leave."""
    limits = {name: float(g["power_limit_watts"]) for name, g in hardware()["gpu"].items()}
    known: dict[tuple[str, int], float] = {}
    out = np.zeros(len(topo.nodes.name))
    for node, (model, n) in enumerate(zip(topo.nodes.gpu_model, topo.nodes.n_gpus.tolist(), strict=True)):
        if n and (model, n) not in known:
            rest = node_watts(topo, node) - limits.get(model, np.inf) * n
            known[model, n] = rest if rest > 0 else _HOST_PER_GPU * n
        out[node] = known[model, n] if n else 0.0
    return out


def rack_base_watts(topo: Topology) -> F64:
    """float64[racks], W of what is in a rack beside its nodes: of its full load what they leave."""
    tables = hardware()
    full = {
        (tables["server"][r["server"]]["gpu"], r["servers"]): r["power_watts"]
        - r["servers"] * tables["server"][r["server"]].get("power_watts", np.inf)
        for r in tables["rack"].values()
        if "power_watts" in r and r["nvswitches"]
    }
    out = np.zeros(len(topo.racks.name))
    for rack in range(len(out)):
        nodes = np.flatnonzero(topo.nodes.rack == rack)
        model = topo.nodes.gpu_model[nodes[0]] if len(nodes) else ""
        out[rack] = max(0.0, full.get((model, len(nodes)), 0.0))
    return out
