"""Bandwidths that follow from the wiring: bisection, oversubscription, reach of one hop, NVLink beside network."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from twin.topology.model import DIRECT, HOST_LEAF, LEAF_SPINE, SPINE_CORE, TIERS, Topology

F64 = npt.NDArray[np.float64]


def network_per_gpu(topo: Topology) -> float:
    """Bits/s, one direction, the mean over GPUs."""
    if not len(topo.gpus.node):
        return 0.0
    return float(np.nansum(np.where(topo.ports.compute, topo.port_speed, 0.0)) / len(topo.gpus.node))


def nvlink_per_gpu(topo: Topology) -> float:
    """Bytes/s, both directions together as vendors count it, the mean over GPUs."""
    if not len(topo.gpus.node):
        return 0.0
    speed = np.append(topo.domains.speed, 0.0)[topo.gpus.domain]
    return float(2 * (topo.nvlinks_per_gpu * speed).sum() / len(topo.gpus.node))


def nvlink_per_domain(topo: Topology) -> float:
    """Bytes/s, both directions, of the largest NVLink domain."""
    d = topo.domains
    return max(
        (2.0 * len(g) * int(n) * float(s) for g, n, s in zip(d.gpu_rows, d.links_per_gpu, d.speed, strict=True)),
        default=0.0,
    )


def bisection(topo: Topology) -> dict[str, float]:
    """Bits/s a plane that one half of the hosts can send to the other: half of the narrowest tier.

    Without planes all is under `fabric`; two nodes with direct cables have all of these.
    """
    links = topo.links
    direct = links.tier == DIRECT
    if direct.any() and len(topo.nodes.name) == 2:
        return {"direct": float(links.speed[direct].sum())}
    named = [(name, links.plane == p) for p, name in enumerate(topo.planes)] or [("fabric", links.plane < 0)]
    out = {}
    for name, mine in named:
        tiers = [float(links.speed[mine & (links.tier == t)].sum()) for t in (HOST_LEAF, LEAF_SPINE, SPINE_CORE)]
        if any(tiers):
            out[name] = min(t for t in tiers if t) / 2
    return out


def oversubscription(topo: Topology) -> dict[str, float]:
    """For each tier with links upward: bandwidth down over bandwidth up, of its most loaded switch."""
    links, ports = topo.links, topo.ports
    n = len(topo.switches.name)
    a, b = ports.switch[links.a], ports.switch[links.b]
    up = np.bincount(a[a >= 0], links.speed[a >= 0], n)
    down = np.bincount(b[b >= 0], links.speed[b >= 0], n)
    out = {}
    for tier, name in enumerate(TIERS):
        mine = (topo.switches.tier == tier) & (up > 0)
        if mine.any():
            out[name] = float((down[mine] / up[mine]).max())
    return out


def switch_ports(topo: Topology) -> dict[str, Any]:
    """Ports used and built in, in all and by tier; total counts only switches whose radix is known."""
    used = np.bincount(topo.ports.switch[topo.ports.switch >= 0], minlength=len(topo.switches.name))

    def counts(mine: npt.NDArray[np.bool_]) -> dict[str, int]:
        return {"used": int(used[mine].sum()), "total": int(topo.switches.radix[mine].sum())}

    tiers = {name: topo.switches.tier == t for t, name in enumerate(TIERS)}
    every = np.ones(len(used), bool)
    return {**counts(every), "by_tier": {name: counts(mine) for name, mine in tiers.items() if mine.any()}}


def one_hop(topo: Topology) -> int:
    """The most GPUs that one leaf joins, so that they reach each other in one hop."""
    nic = topo.gpus.nic
    rows = np.flatnonzero(topo.ports.compute & (topo.peer_switch >= 0))
    if not len(rows):
        return 0
    per_nic = np.bincount(nic[nic >= 0], minlength=len(topo.nics.node))
    pairs = np.unique(topo.peer_switch[rows].astype(np.int64) * len(per_nic) + topo.ports.nic[rows])
    return int(np.bincount(pairs // len(per_nic), per_nic[pairs % len(per_nic)]).max())
