"""Bandwidth in bits/s, nominal and now: of each GPU, pair of nodes, rail, plane and of the whole site; the bisection
of each plane; and who is cut off. All follow from the speed of every link; one direction, both are alike.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from twin.capacity import CapacityModel
from twin.flows import Router, Routes, max_min
from twin.topology.model import HOST_LEAF, LEAF_SPINE, SPINE_CORE, Topology

F64 = npt.NDArray[np.float64]
Bool = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.integer]


@dataclass(frozen=True, slots=True)
class Bandwidth:
    """What hosts can send into the network and through it, bits/s.

    gpu: float64[gpus], its part of its NIC, NaN without one. rail: float64[rails], plane: float64[planes], site: all
    compute ports. bisection: float64[planes], what one half of the hosts can send to the other.
    """

    gpu: F64
    rail: F64
    plane: F64
    site: float
    bisection: F64


def bandwidth(model: CapacityModel, speed: F64 | None = None) -> Bandwidth:
    """speed: float64[links], bits/s now (0 where down, NaN counts as designed); None gives the nominal figures."""
    topo = model.topo
    now = np.nan_to_num(topo.links.speed) if speed is None else _known(topo, speed)
    port, ports, nics = model.at(now).port, topo.ports, topo.nics
    mine = np.flatnonzero(ports.compute)
    bits, nic = port[mine], ports.nic[mine]
    per_nic = np.bincount(nic, bits, len(nics.node))
    users = np.bincount(topo.gpus.nic[topo.gpus.nic >= 0], minlength=len(nics.node))
    with np.errstate(divide="ignore", invalid="ignore"):
        gpu = np.append(per_nic / users, np.nan)[topo.gpus.nic]
    return Bandwidth(
        gpu=gpu,
        rail=_sums(nics.rail[nic], bits, int(nics.rail.max(initial=-1)) + 1),
        plane=_sums(ports.plane[mine], bits, len(topo.planes)),
        site=float(bits.sum()),
        bisection=bisection(topo, now),
    )


def bisection(topo: Topology, speed: F64) -> F64:
    """float64[planes], bits/s that one half of the hosts can send to the other: half of what can leave all leaves,
    or of what the cores take where that is less. A leaf without uplinks passes on what its hosts send."""
    links, switch, n = topo.links, topo.ports.switch, len(topo.switches.name)
    now = _known(topo, speed)
    up, above = now.copy(), np.full(n, np.inf)  # above: what a spine with links to cores can pass on
    core = links.tier == SPINE_CORE
    spine = switch[links.a[core]]
    above[spine] = np.bincount(spine, now[core], n)[spine]
    rows = np.flatnonzero(links.tier == LEAF_SPINE)
    low, high = switch[links.a[rows]], switch[links.b[rows]]
    into = np.bincount(high, now[rows], n)
    with np.errstate(divide="ignore", invalid="ignore"):
        up[rows] *= np.where(into[high] > 0, np.minimum(1.0, above[high] / into[high]), 0.0)
    leaving = np.full(n, np.inf)
    leaving[low] = np.bincount(low, up[rows], n)[low]
    host = np.flatnonzero(links.tier == HOST_LEAF)
    hosts = np.bincount(switch[links.b[host]], now[host], n)
    return _sums(topo.switches.plane, np.minimum(hosts, leaving), len(topo.planes)) / 2


def node_pairs(topo: Topology, speed: F64, a: Rows, b: Rows) -> F64:
    """float64[pairs], bits/s from node a[i] to node b[i] if nobody else sends: NIC by NIC, over all planes and ways.

    Each pair has the fabric for itself, so this is more than `Bandwidth.gpu` where uplinks are short, and never more
    than the NICs of either. The k-th NIC that GPUs use sends to the k-th. speed: as for `bandwidth`.
    """
    nics = _compute_nics(topo)
    lanes = np.minimum(nics[a] >= 0, nics[b] >= 0) & (np.asarray(a) != np.asarray(b))[:, None]
    pair, lane = np.nonzero(lanes)
    router = Router(topo, speed)
    routes = router.routes(nics[a[pair], lane], nics[b[pair], lane])
    links = len(router.capacity)
    own, link = np.unique(pair[routes.flow] * links + routes.link, return_inverse=True)  # links of each pair alone
    alone = Routes(routes.start, link.astype(np.int64), routes.share)
    rate = max_min(alone, router.capacity[own % links]).rate
    return np.bincount(pair, rate, len(a)).astype(np.float64)


def cut_off(topo: Topology, speed: F64) -> Bool:
    """bool[gpus], true where its node cannot reach the largest group of GPUs that still reach each other over the
    network; inside a node traffic may go by another NIC. speed: as for `bandwidth`."""
    rows = np.flatnonzero((_known(topo, speed) > 0) & topo.compute_links)
    one, other = (end[rows] for end in topo.link_ends)
    nodes = len(topo.nodes.name)
    group = np.arange(nodes + len(topo.switches.name))
    while True:  # every device takes the lowest number that it can reach, a hop a turn and more
        before = group.copy()
        np.minimum.at(group, one, group[other])
        np.minimum.at(group, other, group[one])
        group = group[group]
        if (group == before).all():
            break
    group = group[:nodes]
    with_gpus = np.bincount(group, topo.nodes.n_gpus > 0, len(before))
    gpus = np.bincount(group, topo.nodes.n_gpus, len(before))
    alone = (with_gpus[group] <= 1) & (np.count_nonzero(topo.nodes.n_gpus) > 1)
    lost: Bool = (alone | (group != gpus.argmax()))[topo.gpus.node]
    return lost


def _known(topo: Topology, speed: F64) -> F64:
    design = np.nan_to_num(topo.links.speed)
    return np.minimum(np.where(np.isnan(speed), design, speed), design)


def _compute_nics(topo: Topology) -> npt.NDArray[np.int64]:
    """int64[nodes, most NICs of a node that GPUs use], their rows, -1 where it has no more."""
    nic = np.unique(topo.gpus.nic[topo.gpus.nic >= 0]).astype(np.int64)
    node = topo.nics.node[nic]
    place = np.arange(len(nic)) - np.searchsorted(node, node)
    out = np.full((len(topo.nodes.name), int(place.max(initial=-1)) + 1), -1, np.int64)
    out[node, place] = nic
    return out


def _sums(group: Rows, values: F64, n: int) -> F64:
    """float64[n], the sum of the values of each group; those of group -1 belong to none."""
    known = group >= 0
    return np.bincount(group[known], values[known], n).astype(np.float64)
