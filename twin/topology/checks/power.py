"""Does a rack survive the loss of the feeds that it is built to lose?"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from twin.catalog import hardware
from twin.topology.checks.finding import Issue, count
from twin.topology.model import Topology
from twin.units import show_watts

_SPARE = re.compile(r"N\+(\d+|N)", re.IGNORECASE)
_FROM_SUPPLIES = 0.5  # of the rating of its supplies, where nothing else is known: what redundant ones leave


def feeds(topo: Topology) -> Iterator[Issue]:
    """Rules feeds-single and feeds-short. Racks without feeds in the file are not judged."""
    for row in np.unique(topo.feeds.rack).tolist():
        watts = sorted(topo.feeds.watts[topo.feeds.rack == row].tolist())
        name, redundancy = topo.racks.name[row], topo.racks.redundancy[row]
        spare = feeds_to_lose(redundancy, len(watts))
        if spare < 1 or spare >= len(watts):
            yield Issue(
                "feeds-single", name, name, "", f"{count(len(watts), 'feed')}, redundancy {redundancy}",
                "a feed more than the rack needs, and the redundancy to say so (N+1, N+N)",
            )  # fmt: skip
            continue
        left = sum(watts[: len(watts) - spare])
        needed = sum(node_watts(topo, n) for n in np.flatnonzero(topo.nodes.rack == row).tolist())
        if needed > left:
            yield Issue(
                "feeds-short", name, name, "",
                f"{show_watts(left)} left without {count(spare, 'feed')} ({redundancy})",
                f"at least {show_watts(needed)}, what its nodes draw",
            )  # fmt: skip


def feeds_to_lose(redundancy: str, feeds: int) -> int:
    """How many feeds may fail: half of them for N+N, k for N+k, none for anything else."""
    match = _SPARE.fullmatch(redundancy.strip())
    if match is None:
        return 0
    return feeds // 2 if match[1] in "Nn" else int(match[1])


def node_watts(topo: Topology, node: int) -> float:
    """The least that a node draws at full load by what is known of it; 0 where nothing is."""
    model, gpus = topo.nodes.gpu_model[node], int(topo.nodes.n_gpus[node])
    tables = hardware()
    servers = [s["power_watts"] for s in tables["server"].values()
               if s.get("gpu") == model and s.get("gpus") == gpus and "power_watts" in s]  # fmt: skip
    if servers:
        return float(min(servers))
    if limit := tables["gpu"].get(model, {}).get("power_limit_watts"):
        return float(limit) * gpus
    first, supplies = int(topo.nodes.psu0[node]), int(topo.nodes.n_psus[node])
    return _FROM_SUPPLIES * float(np.nansum(topo.psus.watts[first : first + supplies]))
