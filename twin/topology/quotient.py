"""A fabric small enough to draw: devices merged into classes, parallel links into one edge with a count.

The finest of a few ways to merge that stays under the limits is taken: every device; hosts on the same leaves as
one; switches with the same neighbours as one; then devices that look alike, ever more coarsely.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from twin.topology.hostnames import compress
from twin.topology.model import ROLES, TIERS, Topology

I64 = npt.NDArray[np.int64]

MOST_BOXES, MOST_EDGES = 60, 200
MOST_HOSTS = 8  # that are drawn one by one


@dataclass(frozen=True, slots=True)
class Box:
    """Devices drawn as one. rank: 0 for hosts, then leaf, spine, core. plane: its name or empty."""

    names: tuple[str, ...]
    rank: int
    kind: str  # leaf, spine, core, or the role of hosts
    plane: str
    gpus: int
    model: str

    @property
    def title(self) -> str:
        return ", ".join(compress(self.names))

    @property
    def detail(self) -> str:
        """What it is, for a second line."""
        n = len(self.names)
        if self.rank:
            what = f"{n} {self.kind} switches" if n > 1 else self.kind
            return what + (f", {self.model}" if self.model != "unknown" else "")
        hosts = f"{n} hosts" if n > 1 else "host" if self.kind == ROLES[0] else self.kind
        return hosts + (f", {self.gpus} GPU{'s' if self.gpus > 1 else ''}" if self.gpus else "")


@dataclass(frozen=True, slots=True)
class Edge:
    """Links between two boxes, the upper first. low, high: rows of boxes. speed: bits/s of one link, NaN unknown."""

    high: int
    low: int
    links: int
    speed: float


@dataclass(frozen=True, slots=True)
class Drawing:
    name: str
    boxes: tuple[Box, ...]
    edges: tuple[Edge, ...]


def draw(topo: Topology) -> Drawing:
    """The finest drawing of a fabric within the limits, or the coarsest there is."""
    drawing = None
    for labels in _ways(topo):
        if len(np.unique(labels)) <= MOST_BOXES:
            drawing = _drawing(topo, labels)
            if len(drawing.edges) <= MOST_EDGES:
                return drawing
    return drawing or _drawing(topo, labels)


# --- ways to merge: int64[nodes + switches], the class of each device ---


def _ways(topo: Topology) -> Iterator[I64]:
    hosts = len(topo.nodes.name)
    n = hosts + len(topo.switches.name)
    kind = _kinds(topo)
    each = np.arange(n)
    near = _neighbours(topo, each, kind)
    if hosts <= MOST_HOSTS:
        yield each
    yield np.where(each < hosts, near, n + each)
    merged = near
    for _ in range(2):  # what merged may make its neighbours alike
        merged = _neighbours(topo, merged, kind)
    yield near
    yield merged
    for rounds in (2, 1, 0):
        alike = kind
        for _ in range(rounds):
            alike = _neighbours(topo, alike, alike)
        yield alike


def _kinds(topo: Topology) -> I64:
    """Hosts by role and GPUs, switches by plane, tier and model."""
    keys = [("", int(r), m, int(g)) for r, m, g in
            zip(topo.nodes.role, topo.nodes.gpu_model, topo.nodes.n_gpus, strict=True)]  # fmt: skip
    keys += [("switch", int(p), m, int(t)) for p, m, t in
             zip(topo.switches.plane, topo.switches.model, topo.switches.tier, strict=True)]  # fmt: skip
    number = {key: i for i, key in enumerate(dict.fromkeys(keys))}
    return np.array([number[k] for k in keys], dtype=np.int64)


def _neighbours(topo: Topology, labels: I64, kind: I64) -> I64:
    """A class for each device by its own kind and the classes of its neighbours, with how many links to each."""
    a, b = (ends.astype(np.int64) for ends in topo.link_ends)
    near = np.stack([np.r_[a, b], labels[np.r_[b, a]]], axis=1)
    pairs, links = np.unique(near, axis=0, return_counts=True)
    seen: list[list[int]] = [[k] for k in kind.tolist()]
    for (device, other), count in zip(pairs.tolist(), links.tolist(), strict=True):
        seen[device] += [other, count]
    number: dict[tuple[int, ...], int] = {}
    return np.array([number.setdefault(tuple(s), len(number)) for s in seen], dtype=np.int64)


# --- the drawing of one way ---


def _drawing(topo: Topology, labels: I64) -> Drawing:
    hosts = len(topo.nodes.name)
    names = (*topo.nodes.name, *topo.switches.name)
    _, first, box_of = np.unique(labels, return_index=True, return_inverse=True)
    rank_of = np.r_[np.zeros(hosts, np.int64), topo.switches.tier + 1]
    order = np.lexsort((first, -rank_of[first]))
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    box_of = place[box_of]
    members: list[list[int]] = [[] for _ in order]
    for device, box in enumerate(box_of.tolist()):
        members[box].append(device)
    boxes = []
    for rows in members:
        one, rank = rows[0], int(rank_of[rows[0]])
        switch = one - hosts
        gpus = int(topo.nodes.n_gpus[rows].sum()) if not rank else 0
        plane = int(topo.switches.plane[switch]) if rank else -1
        boxes.append(
            Box(
                tuple(names[r] for r in rows), rank, TIERS[rank - 1] if rank else ROLES[topo.nodes.role[one]],
                topo.planes[plane] if plane >= 0 else "", gpus, topo.switches.model[switch] if rank else "",
            )
        )  # fmt: skip
    a, b = topo.link_ends
    low, high = box_of[a], box_of[b]
    flip = low < high  # upper boxes come first
    low, high = np.where(flip, high, low), np.where(flip, low, high)
    speed, which = np.unique(topo.links.speed, return_inverse=True)
    triples, links = np.unique(np.stack([high, low, which], axis=1), axis=0, return_counts=True)
    edges = tuple(
        Edge(h, lo, n, float(speed[w])) for (h, lo, w), n in zip(triples.tolist(), links.tolist(), strict=True)
    )
    return Drawing(topo.name, tuple(boxes), edges)
