"""Random traffic on random fabrics as bare paths, for checks of the flow model that do not rest on its routing."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from twin.flows import Routes


@dataclass(frozen=True)
class Traffic:
    """paths: link rows of each flow. capacity: bytes/s of each link. size: bytes of each flow."""

    paths: list[list[int]]
    capacity: list[float]
    size: list[int]

    @property
    def routes(self) -> Routes:
        return Routes.of_paths(self.paths)


def random_fabric(
    hosts: int, *, leaf: int, pod: int, spines: int, cores: int = 0, seed: int, flows: int | None = None
) -> Traffic:
    """Flows from different hosts to random other ones, over spines and cores drawn at random; links of two speeds.

    leaf, pod: hosts below a leaf, and below the spines of a pod; one pod and no cores make two tiers.
    flows: how many, as many as hosts when not given.
    """
    rng = np.random.default_rng(seed)
    n = flows or hosts
    source = rng.permutation(hosts)[:n]
    ends = np.stack([source, (source + rng.integers(1, hosts, n)) % hosts], 1).tolist()
    spine, core = rng.integers(0, spines, n).tolist(), rng.integers(0, max(cores, 1), n).tolist()
    links: dict[tuple[object, object], int] = {}
    paths = []
    for both, s, c in zip(ends, spine, core, strict=True):
        up, down = ([("host", e), ("leaf", e // leaf), ("spine", e // pod, s), ("core", s, c)] for e in both)
        top = next(i for i, (a, b) in enumerate(zip(up, down, strict=True)) if a == b)
        stations = up[: top + 1] + down[:top][::-1]
        paths.append([links.setdefault(hop, len(links)) for hop in pairwise(stations)])
    capacity = rng.choice([25e9, 50e9], len(links)).tolist()
    return Traffic(paths, capacity, rng.integers(10**6, 10**9, n).tolist())
