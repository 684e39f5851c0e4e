"""Load of every port under a workload: what hosts ask for, shared over planes and uplinks that are left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from twin.capacity import CapacityModel
from twin.simulator.jobs import Work
from twin.topology.model import HOST_LEAF, LEAF_SPINE, Topology

F64 = npt.NDArray[np.float64]
Bool = npt.NDArray[np.bool_]

_KEPT = 0.95  # of the requests that a node has, those that it still has an interval later; estimated
_SERVING_PACE, _STORING_PACE = 0.6, 0.1  # of a GPU's full pace: in inference, while a checkpoint is stored; estimated


@dataclass(frozen=True, slots=True)
class Flow:
    """tx, rx: bytes/s of every port. pace: float64[gpus], progress of the job's GPUs, 0 idle to 1."""

    tx: F64
    rx: F64
    pace: F64


class Traffic:
    """rng: a stream of its own, for what flows only under some faults and workloads."""

    def __init__(self, topo: Topology, noise: dict[str, float], rng: np.random.Generator) -> None:
        self.topo, self.noise, self._rng = topo, noise, rng
        self._model = CapacityModel(topo)
        self._host = np.flatnonzero((topo.links.tier == HOST_LEAF) & topo.compute_links)
        self._uplinks = np.flatnonzero(topo.links.tier == LEAF_SPINE)
        self._leaf_of_host = topo.ports.switch[topo.links.b[self._host]]
        self._leaf_of_uplink = topo.ports.switch[topo.links.a[self._uplinks]]
        self._requests = np.zeros(len(topo.nodes.name))  # of each node: logarithm of what it serves to what is usual
        self._leaves = max(1, int(np.count_nonzero(topo.switches.tier == 0)) // max(1, len(topo.planes)))

    def at(
        self, works: Sequence[Work], link_speed: F64, rng: np.random.Generator, unused: Bool | None = None
    ) -> Flow:
        """Flow with these link speeds (bits/s). A collective goes at the pace of its slowest GPU.

        unused: bool[links], those that nobody sends over though they are up; hosts use what else they have.
        """
        topo = self.topo
        n = len(topo.ports.nic)
        usable = link_speed if unused is None else np.where(unused, 0.0, link_speed)
        capacity = self._model.at(usable)
        asked, gpu_pace = self._paces(works, capacity.gpu, rng)
        with np.errstate(divide="ignore", invalid="ignore"):
            per_gpu = np.where(capacity.gpu > 0, asked / capacity.gpu, 0.0)
        share = np.append(np.nan_to_num(per_gpu), 0.0)[topo.port_gpu]
        tx, rx = np.zeros(n), np.zeros(n)
        ports = topo.links.a[self._host]
        for out in (tx, rx):
            rate = capacity.port[ports] / 8 * share[ports]
            out[ports] = np.minimum(rate * self._jitter(len(ports), rng), usable[self._host] / 8)
        peers = topo.links.b[self._host]
        tx[peers], rx[peers] = rx[ports], tx[ports]
        self._load_uplinks(works, usable, tx, rx, rng)
        reach = capacity.gpu
        if unused is not None and unused.any():
            reach = self._model.at(link_speed).gpu  # a GPU whose ports are muted waits busily for the others
            self._trickle(unused & (link_speed > 0), link_speed, tx, rx)
        return Flow(tx, rx, np.where(np.nan_to_num(reach) > 0, gpu_pace, 0.0))

    def _paces(self, works: Sequence[Work], reach: F64, rng: np.random.Generator) -> tuple[F64, F64]:
        """float64[gpus] twice: share of its bandwidth that each asks for, and the pace of its job."""
        asked, paces = np.zeros(len(reach)), np.zeros(len(reach))
        for work in works:
            if work.kind == "inference":
                served = self._serve()[self.topo.gpus.node[work.gpus]]
                asked[work.gpus] = np.minimum(work.utilization * served, np.nan_to_num(reach[work.gpus]))
                paces[work.gpus] = np.minimum(served * _SERVING_PACE, 1.0)
                continue
            idle = work.kind == "idle"
            wanted = self.noise["idle_load"] if idle else work.utilization
            mine = reach[work.gpus]
            reachable = mine[~np.isnan(mine) & (mine > 0)]
            pace = 1.0 if idle else min(1.0, float(reachable.min(initial=1.0)) / max(wanted, 1e-9))
            swing = 1 + (0.0 if idle else float(rng.uniform(-1, 0)) * self.noise["step_swing"])
            asked[work.gpus] = wanted * pace * swing
            waits = _STORING_PACE if work.kind == "checkpoint" else 1.0
            paces[work.gpus] = 0.0 if idle else pace * swing * waits
        return asked, paces

    def _serve(self) -> F64:
        """float64[nodes]: requests that each serves now, to what is usual; it changes slowly, each for itself."""
        fresh = self._rng.normal(0, self.noise["request_spread"], len(self._requests))
        self._requests = _KEPT * self._requests + np.sqrt(1 - _KEPT**2) * fresh
        served: F64 = np.exp(self._requests)
        return served

    def _load_uplinks(
        self, works: Sequence[Work], link_speed: F64, tx: F64, rx: F64, rng: np.random.Generator
    ) -> None:
        """What leaves a leaf is spread over its uplinks by their speed (adaptive routing)."""
        if not len(self._uplinks):
            return
        count = len(self.topo.switches.name)
        speed = link_speed[self._uplinks]
        left = np.bincount(self._leaf_of_uplink, speed, count)
        sent = np.zeros(count)
        ports = self.topo.links.a[self._host]
        for work in works:
            cross = self.noise["cross_leaf_allreduce"] if work.kind == "allreduce" else 1 - 1 / self._leaves
            its = work.gpus[self.topo.port_gpu[ports]]
            sent += np.bincount(self._leaf_of_host[its], tx[ports[its]], count) * min(cross, 1.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            per_bit = np.where(left > 0, sent / left, 0.0)[self._leaf_of_uplink]
        low, high = self.topo.links.a[self._uplinks], self.topo.links.b[self._uplinks]
        for mine, other in ((tx, rx), (rx, tx)):
            load = np.minimum(per_bit * speed * self._jitter(len(speed), rng), speed / 8)
            mine[low], other[high] = load, load

    def _trickle(self, links: Bool, link_speed: F64, tx: F64, rx: F64) -> None:
        """A link that is up is never quite silent: subnet management, ARP and LLDP go on."""
        rows = np.flatnonzero(links & self.topo.compute_links)
        a, b = self.topo.links.a[rows], self.topo.links.b[rows]
        for mine, other in ((tx, rx), (rx, tx)):
            load = link_speed[rows] / 8 * self.noise["idle_load"] * self._jitter(len(rows), self._rng)
            mine[a], other[b] = load, load

    def _jitter(self, n: int, rng: np.random.Generator) -> F64:
        return np.maximum(0.0, 1 + rng.normal(0, self.noise["load_noise"], n))
