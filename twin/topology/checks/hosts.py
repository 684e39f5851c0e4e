"""Do like nodes have like cables, and does every NIC sit on a leaf of its rail?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from twin.topology.checks.finding import Issue, count, listed
from twin.topology.model import COMPUTE, HOST_LEAF, NONE, Topology

Rows = npt.NDArray[np.integer]
Bool = npt.NDArray[np.bool_]

_HOME = 0.5  # a leaf is at home in its most frequent rail and in all with at least this share of that one's NICs
_STRAYED = 0.25  # more NICs than this share away from home, and the fabric is not rail-optimised at all
_UNCABLED, _NO_PLANE = -2, NONE


class Siblings(NamedTuple):
    """Nodes alike. ports: their NIC ports as (NIC number, place in it). plane: int32[nodes, ports], row of planes,
    -1 cabled without a plane, -2 not cabled or not there. row: int32[nodes, ports], port row or -1."""

    nodes: Rows
    ports: tuple[tuple[int, int], ...]
    plane: Rows
    row: Rows


def siblings(topo: Topology) -> Iterator[Siblings]:
    """GPU nodes by model and number of GPUs, where there are at least two."""
    nodes = topo.nodes
    kinds: dict[tuple[str, int], list[int]] = {}
    gpu_hosts = np.flatnonzero((nodes.role == COMPUTE) & (nodes.n_gpus > 0))
    for n in gpu_hosts.tolist():
        kinds.setdefault((nodes.gpu_model[n], int(nodes.n_gpus[n])), []).append(n)
    ports = np.flatnonzero(topo.ports.nic >= 0)
    nic = topo.ports.nic[ports]
    offset = ports - topo.nics.port0[nic]
    owner, code = topo.nics.node[nic], topo.nics.ordinal[nic].astype(np.int64) * 64 + offset
    plane = np.where(topo.ports.link[ports] >= 0, topo.ports.plane[ports], _UNCABLED)
    for rows in kinds.values():
        if len(rows) < 2:
            continue
        mine = np.isin(owner, rows)
        keys = np.unique(code[mine])
        at = np.searchsorted(rows, owner[mine]), np.searchsorted(keys, code[mine])
        planes = np.full((len(rows), len(keys)), _UNCABLED, np.int32)
        row = np.full(planes.shape, NONE, np.int32)
        planes[at], row[at] = plane[mine], ports[mine]
        yield Siblings(np.array(rows), tuple((int(k) // 64, int(k) % 64) for k in keys), planes, row)


def like_nodes(topo: Topology) -> Iterator[Issue]:
    """Rules port-plane, plane-missing and ports-missing."""
    for group in siblings(topo):
        usual = _usual_planes(group.plane, len(topo.planes))
        yield from _wrong_planes(topo, group, usual)
        yield from _missing(topo, group, usual)


def _usual_planes(plane: Rows, planes: int) -> Rows:
    """For each port the plane of most nodes that have it cabled, -2 where there is no such.

    Of two nodes that differ the first counts, since neither is most.
    """
    votes = np.stack([(plane == p).sum(axis=0) for p in range(planes)] or [np.zeros(plane.shape[1], int)])
    best = votes.argmax(axis=0)
    most = 2 * votes.max(axis=0) > (plane >= 0).sum(axis=0)
    usual: Rows = np.where(most, best, plane[0] if len(plane) == 2 else _UNCABLED)
    return usual


def _wrong_planes(topo: Topology, group: Siblings, usual: Rows) -> Iterator[Issue]:
    wrong = (group.plane >= 0) & (usual >= 0) & (group.plane != usual)
    for n, k in zip(*np.nonzero(wrong), strict=True):
        place, is_, meant = topo.port_names[group.row[n, k]], topo.planes[group.plane[n, k]], topo.planes[usual[k]]
        yield Issue(
            "port-plane", place, topo.nodes.name[group.nodes[n]], "",
            f"a cable into plane {is_}, to {topo.port_names[topo.ports.peer[group.row[n, k]]]}",
            f"plane {meant}, as the same port of {_others(len(group.nodes))}",
        )  # fmt: skip


def _missing(topo: Topology, group: Siblings, usual: Rows) -> Iterator[Issue]:
    """A plane that a node misses as a whole is one thing; what else is not cabled is told by port."""
    cabled = group.plane != _UNCABLED
    n = len(group.nodes)
    expected = (2 * cabled.sum(axis=0) > n) | (n == 2) & cabled.any(axis=0)
    lacking = ~cabled & expected
    for node in np.flatnonzero(lacking.any(axis=1)).tolist():
        name, left = topo.nodes.name[group.nodes[node]], lacking[node].copy()
        for p, plane in enumerate(topo.planes if cabled[node].any() else ()):
            its = expected & (usual == p)
            if its.any() and lacking[node, its].all() and not (group.plane[node] == p).any():
                left &= ~its
                yield Issue(
                    "plane-missing", name, name, plane, f"no cable into plane {plane}",
                    f"{count(int(its.sum()), 'cable')} into it, as {_others(n)} {_have(n)}",
                )  # fmt: skip
        if ports := [_port(topo, group, node, k) for k in np.flatnonzero(left).tolist()]:
            yield Issue(
                "ports-missing", name, name, "",
                f"{count(int((cabled[node] & expected).sum()), 'cabled NIC port')}, none at {listed(ports)}",
                f"{int(expected.sum())}, as {_others(n)} {_have(n)}",
            )  # fmt: skip


def _port(topo: Topology, group: Siblings, node: int, k: int) -> str:
    row = int(group.row[node, k])
    nic, place = group.ports[k]
    return topo.port_names[row].partition("/")[2] if row >= 0 else f"nic{nic} port {place}"


def _have(nodes: int) -> str:
    return "has" if nodes == 2 else "have"


def _others(nodes: int) -> str:
    return "its sibling node" if nodes == 2 else f"most of {nodes:,} like nodes"


# --- rails ---


def rails(topo: Topology) -> Iterator[Issue]:
    """Rule rails-cross: silent where the fabric does not keep rails apart anyway."""
    links = topo.links
    host = np.flatnonzero(links.tier == HOST_LEAF)
    rail, leaf = topo.nics.rail[topo.ports.nic[links.a[host]]], topo.ports.switch[links.b[host]]
    host, rail, leaf = host[rail >= 0], rail[rail >= 0], leaf[rail >= 0]
    if not len(host) or not rail.max():
        return
    n_rails = int(rail.max()) + 1
    nics = np.bincount(leaf * n_rails + rail, minlength=len(topo.switches.name) * n_rails).reshape(-1, n_rails)
    home = (nics > 0) & (nics >= _HOME * nics.max(axis=1, keepdims=True))
    told = np.flatnonzero((topo.switches.rail >= 0) & (topo.switches.rail < n_rails) & (nics.sum(axis=1) > 0))
    home[told] = False
    home[told, topo.switches.rail[told]] = True
    used = nics.sum(axis=1) > 0
    stray = ~home[leaf, rail]
    if stray.mean() > _STRAYED or 2 * home[used].sum(axis=1).mean() > n_rails:
        return
    for row, r, s in zip(host[stray].tolist(), rail[stray].tolist(), leaf[stray].tolist(), strict=True):
        place, name = topo.port_names[links.a[row]], topo.switches.name[s]
        own = listed([str(i) for i in np.flatnonzero(home[s]).tolist()])
        yield Issue(
            "rails-cross", place, topo.nodes.name[topo.port_node[links.a[row]]], _plane(topo, int(links.plane[row])),
            f"rail {r}, on {name}, whose other NICs are of rail {own}", f"a leaf of rail {r}",
        )  # fmt: skip


def _plane(topo: Topology, row: int) -> str:
    return topo.planes[row] if row >= 0 else ""
