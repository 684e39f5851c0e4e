"""Who can reach the rest of the fabric with how much bandwidth, from the speed of every link now.

A host port carries what its own link carries, and no more of it than its leaf still has of the uplinks
it was built with; a leaf's uplink carries no more than its spine has of its own. Traffic that stays on
one leaf needs no uplink, so for such a job the figure is the lower bound.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from twin.topology.model import HOST_LEAF, Topology

F64 = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Capacity:
    """gpu: float64[gpus], share of the designed network bandwidth left, NaN for a GPU without a NIC.
    plane: float64[planes], the same for all host ports of a plane, NaN for a plane without any."""

    gpu: F64
    plane: F64
    port: F64  # float64[ports], bits/s of compute host ports, 0 elsewhere


class CapacityModel:
    """The sums that do not change, made once for a topology."""

    def __init__(self, topo: Topology) -> None:
        self.topo = topo
        links, ports = topo.links, topo.ports
        self._speed = np.nan_to_num(links.speed)  # a link of unknown speed counts for nothing
        n_switches = len(topo.switches.name)
        self._upper = [np.flatnonzero(links.tier == t) for t in (2, 1)]  # spine-core first, then leaf-spine
        self._host = np.flatnonzero((links.tier == HOST_LEAF) & topo.compute_links)
        self._direct = np.flatnonzero((links.tier == 3) & topo.compute_links)
        self._low = [ports.switch[links.a[rows]] for rows in self._upper]
        self._high = [ports.switch[links.b[rows]] for rows in self._upper]
        self._leaf = ports.switch[links.b[self._host]]
        host_sum = np.bincount(self._leaf, self._speed[self._host], n_switches)
        self._needed: list[F64] = []
        down = host_sum
        for rows, low in reversed(list(zip(self._upper, self._low, strict=True))):
            up = np.bincount(low, self._speed[rows], n_switches)
            self._needed.insert(0, np.minimum(up, np.where(down > 0, down, up)))
            down = down + np.bincount(ports.switch[links.b[rows]], self._speed[rows], n_switches)
        self._host_ports = links.a[self._host]
        self._nic_design = self._per_nic(np.where(ports.compute, np.nan_to_num(topo.port_speed), 0.0))
        self._plane_design = self._per_plane(self._speed[self._host])

    def _per_nic(self, port_bits: F64) -> F64:
        n_nics = len(self.topo.nics.node)
        mine = self.topo.ports.nic >= 0
        return np.bincount(self.topo.ports.nic[mine], port_bits[mine], n_nics).astype(np.float64)

    def _per_plane(self, host_bits: F64) -> F64:
        plane = self.topo.links.plane[self._host]
        known = plane >= 0
        return np.bincount(plane[known], host_bits[known], len(self.topo.planes)).astype(np.float64)

    def at(self, link_speed: F64) -> Capacity:
        """Capacity with these speeds (float64[links], bits/s; 0 where down, NaN counts as designed)."""
        topo, design = self.topo, self._speed
        now = np.minimum(np.where(np.isnan(link_speed), design, link_speed), design)
        factor = np.ones(len(topo.switches.name))
        for rows, low, high, needed in zip(self._upper, self._low, self._high, self._needed, strict=True):
            up = np.bincount(low, now[rows] * factor[high], len(factor))
            has = needed > 0
            factor[has] = np.minimum(1.0, up[has] / needed[has])
        host_now = now[self._host] * factor[self._leaf]
        port = np.zeros(len(topo.ports.nic))
        port[self._host_ports] = host_now
        for end in (topo.links.a, topo.links.b):
            port[end[self._direct]] = now[self._direct]
        port[~topo.ports.compute] = 0.0
        with np.errstate(divide="ignore", invalid="ignore"):
            plane = self._per_plane(host_now) / self._plane_design
            nic = np.append(self._per_nic(port) / self._nic_design, np.nan)
        return Capacity(nic[topo.gpus.nic], plane, port)

    def nodes(self, capacity: Capacity) -> F64:
        """float64[nodes], share of the designed network bandwidth of all NICs of a node, NaN without any.

        Where a rail is a plane, a lost plane leaves a GPU without a NIC of its own (`capacity.gpu` is 0) but seven
        of eight NICs to its node: what crosses planes is forwarded inside the node by NVLink.
        """
        mine = self.topo.ports.nic >= 0
        node = self.topo.nics.node[self.topo.ports.nic[mine]]
        n = len(self.topo.nodes.name)
        design = np.bincount(self.topo.nics.node, self._nic_design, n)
        with np.errstate(divide="ignore", invalid="ignore"):
            left: F64 = np.bincount(node, capacity.port[mine], n) / design
        return left

    def without(self, links: npt.NDArray[np.intp] | list[int], fraction: float | F64 = 0.0) -> Capacity:
        """Capacity of the designed fabric with these links at `fraction` of their speed."""
        speed = self._speed.copy()
        speed[links] *= fraction
        return self.at(speed)
