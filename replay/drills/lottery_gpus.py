"""Random faults of GPUs and NVLinks for the scoreboard."""

from __future__ import annotations

import numpy as np

from replay.drills.lottery import Lot, Rng, Ticket, pick
from twin.simulator.scenario import Fault
from twin.topology.model import Topology


def _a_gpu(topo: Topology, rng: Rng) -> str | None:
    """A GPU of a node that has several: a lone one has no peers to tell it by."""
    row = pick(rng, np.flatnonzero(topo.nodes.n_gpus[topo.gpus.node] >= 2))
    return None if row is None else topo.gpu_names[row]


def _node(address: str) -> frozenset[str]:
    return frozenset((address.split("/")[0],))


def gpu_lost(topo: Topology, rng: Rng) -> Ticket | None:
    gpu = _a_gpu(topo, rng)
    return None if gpu is None else Ticket("gpu_lost", gpu, Fault("fail", gpu, 0), _node(gpu))


def gpu_error(topo: Topology, rng: Rng) -> Ticket | None:
    """An XID that says the GPU is in trouble: memory errors that were not contained, NVLink, the page retirement."""
    gpu = _a_gpu(topo, rng)
    fault = Fault("hurt", gpu or "", 0, kind="xid", code=int(rng.choice([48, 64, 74, 95])))
    return None if gpu is None else Ticket("gpu_error", gpu, fault, _node(gpu))


def gpu_throttled(topo: Topology, rng: Rng) -> Ticket | None:
    gpu = _a_gpu(topo, rng)
    fault = Fault("hurt", gpu or "", 0, kind=str(rng.choice(["thermal", "brake"])))
    return None if gpu is None else Ticket("gpu_throttled", gpu, fault, _node(gpu))


def gpu_straggler(topo: Topology, rng: Rng) -> Ticket | None:
    gpu = _a_gpu(topo, rng)
    fault = Fault("hurt", gpu or "", 0, kind="straggle", level=float(rng.uniform(0.25, 0.5)))
    return None if gpu is None else Ticket("gpu_straggler", gpu, fault, _node(gpu), lasts=25.0)


def nvlink_down(topo: Topology, rng: Rng) -> Ticket | None:
    row = pick(rng, np.arange(len(topo.nvlink_names)))
    if row is None:
        return None
    name = topo.nvlink_names[row]
    return Ticket("nvlink_down", name, Fault("fail", name, 0), _node(name))


def nvlink_errors(topo: Topology, rng: Rng) -> Ticket | None:
    row = pick(rng, np.arange(len(topo.nvlink_names)))
    if row is None:
        return None
    name = topo.nvlink_names[row]
    fault = Fault("corrupt", name, 0, kind="crc", rate=float(rng.uniform(300, 2000)))
    return Ticket("nvlink_errors", name, fault, _node(name))


def nvswitch_down(topo: Topology, rng: Rng) -> Ticket | None:
    """A switch chip of a domain that has several."""
    chips = [(i, chip) for i, domain in enumerate(topo.domains.switches) if len(domain) >= 2 for chip in domain]
    row = pick(rng, np.arange(len(chips)))
    if row is None:
        return None
    domain, chip = chips[row]
    nodes = {topo.nodes.name[n] for n in topo.gpus.node[topo.domains.gpu_rows[domain]].tolist()}
    return Ticket("nvswitch_down", chip, Fault("fail", chip, 0), frozenset(nodes))


def nvlink_domain_split(topo: Topology, rng: Rng) -> Ticket | None:
    """A domain over several nodes whose links all go, or one GPU of it that its fabric no longer knows."""
    spread = [len(np.unique(topo.gpus.node[rows])) for rows in topo.domains.gpu_rows]
    domain = pick(rng, np.flatnonzero(np.array(spread) >= 2))
    if domain is None:
        return None
    rows = topo.domains.gpu_rows[domain]
    if rng.random() < 0.5:
        gpu = topo.gpu_names[int(rng.choice(rows))]
        return Ticket("nvlink_domain_split", gpu, Fault("hurt", gpu, 0, kind="fabric"), _node(gpu))
    name = f"domain:{topo.domains.name[domain]}"
    nodes = frozenset(topo.nodes.name[n] for n in topo.gpus.node[rows].tolist())
    return Ticket("nvlink_domain_split", name, Fault("fail", name, 0), nodes)


# see lottery.py
GPUS: tuple[Lot, ...] = (
    Lot("gpu_lost", 10, gpu_lost),
    Lot("gpu_error", 12, gpu_error),
    Lot("gpu_throttled", 7, gpu_throttled),
    Lot("gpu_straggler", 6, gpu_straggler, busy=True),
    Lot("nvlink_down", 3, nvlink_down),
    Lot("nvlink_errors", 2, nvlink_errors),
    Lot("nvswitch_down", 2, nvswitch_down),
    Lot("nvlink_domain_split", 1, nvlink_domain_split),
)
