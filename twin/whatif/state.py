"""The state that a what-if starts from and arrives at: the designed fabric, or a snapshot of the twin.

A snapshot shares nothing with the twin that changes, and a state shares nothing with another: the twin that is
watched is never touched.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from twin.catalog import hardware
from twin.power import PowerModel, total
from twin.simulator.power import rack_base_watts
from twin.snapshot import Snapshot
from twin.topology.checks.power import node_watts
from twin.topology.model import Topology
from twin.topology.resolve import resolve

F64 = npt.NDArray[np.float64]
Bool = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class State:
    """Arrays over all entities of a kind. What is not known counts as designed, and as up.

    speed: float64[links], bits/s, 0 down. nvlink_up: bool[nvlinks]. gpu_lost: bool[gpus]. psu_lost: bool[psus].
    feed_dark: bool[feeds]. psu_watts, feed_watts: what each can give while it is there. node_watts, rack_watts,
    gpu_watts: what each draws, NaN unknown.
    """

    speed: F64
    nvlink_up: Bool
    gpu_lost: Bool
    psu_lost: Bool
    feed_dark: Bool
    psu_watts: F64
    feed_watts: F64
    node_watts: F64
    rack_watts: F64
    gpu_watts: F64


def designed(topo: Topology) -> State:
    """Everything up, everything at full load by the catalogue; what that does not know draws NaN."""
    nodes = topo.nodes
    known = {(m, n, p): node_watts(topo, i) for i, (m, n, p) in enumerate(_kinds(topo))}
    draw = np.array([known[kind] or np.nan for kind in _kinds(topo)], dtype=np.float64)
    rack = total(nodes.rack, draw, len(topo.racks.name)) + rack_base_watts(topo)
    rack[np.bincount(nodes.rack[nodes.rack >= 0], minlength=len(rack)) == 0] = np.nan
    return State(
        speed=np.nan_to_num(topo.links.speed),
        nvlink_up=np.ones(len(topo.nvlink_gpu), bool),
        gpu_lost=np.zeros(len(topo.gpus.node), bool),
        psu_lost=np.zeros(len(topo.psus.node), bool),
        feed_dark=np.zeros(len(topo.feeds.name), bool),
        psu_watts=topo.psus.watts.copy(),
        feed_watts=topo.feeds.watts.copy(),
        node_watts=draw,
        rack_watts=rack,
        gpu_watts=gpu_limits(topo),
    )


def of_snapshot(snapshot: Snapshot, model: PowerModel) -> State:
    """The state that the twin knows. model: of the snapshot's wiring."""
    topo, power = snapshot.topology, snapshot.power
    design = np.nan_to_num(topo.links.speed)
    known = np.minimum(np.where(np.isnan(snapshot.link_speed), design, snapshot.link_speed), design)
    known[_told_down(snapshot)] = 0.0
    nvlinks = snapshot.nvlink.get("up", np.full(len(topo.nvlink_gpu), np.nan))
    unread = np.full(len(topo.psus.node), np.nan)
    psu_up, rating = snapshot.psu.get("up", unread), snapshot.psu.get("capacity_watts", unread)
    shown = {kind: dict[str, tuple[float, float]]() for kind in ("node", "rack", "feed", "site")}
    for name, kind, watts, capacity in zip(
        power.names, power.kinds, power.watts.tolist(), power.capacity.tolist(), strict=True
    ):
        shown[kind][name] = watts, capacity
    feed = _column(topo.feeds.name, shown["feed"], 1)
    dark = feed == 0
    lost = np.zeros(len(topo.gpus.node), bool)
    gone = {i.cause for i in snapshot.incidents if i.kind == "gpu_lost" and i.is_open}
    if gone:
        lost[[row for name, row in topo.rows("gpu").items() if name in gone]] = True
    return State(
        speed=known,
        nvlink_up=nvlinks != 0,
        gpu_lost=lost,
        psu_lost=(psu_up == 0) | np.append(dark, False)[model.psu_feed],
        feed_dark=dark,
        psu_watts=np.where(np.isnan(rating), topo.psus.watts, rating),
        feed_watts=np.where(np.isnan(feed) | dark, topo.feeds.watts, feed),
        node_watts=_or(_column(topo.nodes.name, shown["node"], 0), snapshot.node.get("power_watts")),
        rack_watts=_column(topo.racks.name, shown["rack"], 0),
        gpu_watts=_or(np.full(len(lost), np.nan), snapshot.gpu.get("power_watts")),
    )


def _told_down(snapshot: Snapshot) -> Bool:
    """bool[links] that an open incident says are down although nothing reads them: both ends of an uplink fall silent
    with their switches, and what was last read of them is that they are up."""
    down = np.zeros(len(snapshot.link_speed), bool)
    for incident in snapshot.incidents:
        if incident.state == "open" and incident.kind in ("plane_down", "switch_down"):
            down[resolve(snapshot.topology, incident.cause).links] = True
    return down


def gpu_limits(topo: Topology) -> F64:
    """float64[gpus], the power limit in W that each comes with, NaN where the catalogue does not know it."""
    table = hardware()["gpu"]
    per_node = [float(table.get(m, {}).get("power_limit_watts", np.nan)) for m in topo.nodes.gpu_model]
    return np.array(per_node, dtype=np.float64)[topo.gpus.node]


def _kinds(topo: Topology) -> list[tuple[str, int, int]]:
    """Nodes of one kind draw alike: model, GPUs, supplies."""
    nodes = topo.nodes
    return list(zip(nodes.gpu_model, nodes.n_gpus.tolist(), nodes.n_psus.tolist(), strict=True))


def _column(names: tuple[str, ...], shown: dict[str, tuple[float, float]], which: int) -> F64:
    nothing = (np.nan, np.nan)
    return np.array([shown.get(name, nothing)[which] for name in names], dtype=np.float64)


def _or(value: F64, other: F64 | None) -> F64:
    return value if other is None else np.where(np.isnan(value), other, value)
