"""Load of every port under a workload: what hosts ask for, shared over planes and uplinks that are left."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from twin.capacity import CapacityModel
from twin.simulator.scenario import Phase
from twin.topology.model import HOST_LEAF, LEAF_SPINE, Topology

F64 = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Flow:
    """tx, rx: bytes/s of every port. pace: float64[gpus], progress of the job's GPUs, 0 idle to 1."""

    tx: F64
    rx: F64
    pace: F64


class Traffic:
    def __init__(self, topo: Topology, noise: dict[str, float]) -> None:
        self.topo, self.noise = topo, noise
        self._model = CapacityModel(topo)
        self._host = np.flatnonzero((topo.links.tier == HOST_LEAF) & topo.compute_links)
        self._uplinks = np.flatnonzero(topo.links.tier == LEAF_SPINE)
        self._leaf_of_host = topo.ports.switch[topo.links.b[self._host]]
        self._leaf_of_uplink = topo.ports.switch[topo.links.a[self._uplinks]]
        self._leaves = max(1, int(np.count_nonzero(topo.switches.tier == 0)) // max(1, len(topo.planes)))

    def at(self, phase: Phase, link_speed: F64, rng: np.random.Generator) -> Flow:
        """Flow with these link speeds (bits/s). A collective goes at the pace of its slowest GPU."""
        topo = self.topo
        n = len(topo.ports.nic)
        capacity = self._model.at(link_speed)
        idle = phase.kind == "idle"
        wanted = self.noise["idle_load"] if idle else phase.utilization
        reachable = capacity.gpu[~np.isnan(capacity.gpu) & (capacity.gpu > 0)]
        pace = 1.0 if idle else min(1.0, float(reachable.min(initial=1.0)) / max(wanted, 1e-9))
        swing = 1 + (0.0 if idle else float(rng.uniform(-1, 0)) * self.noise["step_swing"])
        with np.errstate(divide="ignore", invalid="ignore"):
            per_gpu = np.where(capacity.gpu > 0, wanted * pace * swing / capacity.gpu, 0.0)
        share = np.append(np.nan_to_num(per_gpu), 0.0)[topo.port_gpu]
        tx, rx = np.zeros(n), np.zeros(n)
        ports = topo.links.a[self._host]
        for out in (tx, rx):
            rate = capacity.port[ports] / 8 * share[ports]
            out[ports] = np.minimum(rate * self._jitter(len(ports), rng), link_speed[self._host] / 8)
        peers = topo.links.b[self._host]
        tx[peers], rx[peers] = rx[ports], tx[ports]
        self._load_uplinks(phase, link_speed, tx, rx, rng)
        gpu_pace = np.where(np.nan_to_num(capacity.gpu) > 0, 0.0 if idle else pace * swing, 0.0)
        return Flow(tx, rx, gpu_pace)

    def _load_uplinks(self, phase: Phase, link_speed: F64, tx: F64, rx: F64, rng: np.random.Generator) -> None:
        """What leaves a leaf is spread over its uplinks by their speed (adaptive routing)."""
        if not len(self._uplinks):
            return
        cross = self.noise["cross_leaf_allreduce"] if phase.kind == "allreduce" else 1 - 1 / self._leaves
        count = len(self.topo.switches.name)
        speed = link_speed[self._uplinks]
        left = np.bincount(self._leaf_of_uplink, speed, count)
        sent = np.bincount(self._leaf_of_host, tx[self.topo.links.a[self._host]], count) * min(cross, 1.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            per_bit = np.where(left > 0, sent / left, 0.0)[self._leaf_of_uplink]
        low, high = self.topo.links.a[self._uplinks], self.topo.links.b[self._uplinks]
        for mine, other in ((tx, rx), (rx, tx)):
            load = np.minimum(per_bit * speed * self._jitter(len(speed), rng), speed / 8)
            mine[low], other[high] = load, load

    def _jitter(self, n: int, rng: np.random.Generator) -> F64:
        return np.maximum(0.0, 1 + rng.normal(0, self.noise["load_noise"], n))
