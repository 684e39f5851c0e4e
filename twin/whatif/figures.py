"""What a state means in figures: bandwidth and NVLink of every GPU, planes, power."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from twin.bandwidth import bisection, cut_off
from twin.capacity import CapacityModel
from twin.power import PowerModel
from twin.topology.model import Topology
from twin.whatif.state import Bool, State

F64 = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Power:
    """Arrays over holders (nodes, then racks), W, NaN unknown; as in `PowerState`."""

    load: F64
    capacity: F64
    after_next: F64
    lost_units: Ints

    @property
    def headroom(self) -> F64:
        return self.capacity - self.load

    @property
    def headroom_after_next(self) -> F64:
        """What is left when one more unit (a feed, a supply) is lost."""
        return self.after_next - self.load


@dataclass(frozen=True, slots=True)
class Figures:
    """gpu: float64[gpus], share of the designed network bandwidth, NaN without a NIC, 0 for one that is lost; where a
    rail is a plane it is that of the node, since NVLink forwards. nvlink: float64[gpus], share of its NVLinks that is
    up, NaN without any. cut_off: bool[gpus], see `twin.bandwidth.cut_off`. plane: float64[planes], share of the
    designed capacity. bisection: float64[planes], bits/s.
    """

    gpu: F64
    nvlink: F64
    cut_off: Bool
    plane: F64
    bisection: F64
    links_down: Ints  # [planes]
    power: Power


class Meter:
    """Reads the figures of states of one fabric."""

    def __init__(self, topo: Topology, capacity: CapacityModel | None = None) -> None:
        self.topo = topo
        self.capacity, self.power_model = capacity or CapacityModel(topo), PowerModel(topo)
        links = topo.links
        self._mine = np.flatnonzero(topo.compute_links & (links.plane >= 0))
        self.nvlinks = topo.nvlinks_per_gpu

    def read(self, state: State) -> Figures:
        gpu, plane = self.bandwidth(state)
        down = self._mine[state.speed[self._mine] == 0]
        return Figures(
            gpu=gpu,
            nvlink=self.nvlink(state),
            cut_off=cut_off(self.topo, state.speed),
            plane=plane,
            bisection=bisection(self.topo, state.speed),
            links_down=np.bincount(self.topo.links.plane[down], minlength=len(self.topo.planes)),
            power=self.power(state),
        )

    def bandwidth(self, state: State) -> tuple[F64, F64]:
        """float64[gpus], float64[planes], as in `Figures`."""
        left = self.capacity.at(state.speed)
        share = left.gpu
        if self.topo.plane_kind == "rail":
            share = self.capacity.nodes(left)[self.topo.gpus.node]
        return np.where(state.gpu_lost & ~np.isnan(share), 0.0, share), left.plane

    def nvlink(self, state: State) -> F64:
        """float64[gpus], as in `Figures`."""
        up = np.bincount(self.topo.nvlink_gpu[state.nvlink_up], minlength=len(self.nvlinks))
        with np.errstate(divide="ignore", invalid="ignore"):
            share: F64 = up / self.nvlinks
        return np.where(state.gpu_lost & ~np.isnan(share), 0.0, share)

    def power(self, state: State) -> Power:
        """Of nodes and racks, with the loads of the state."""
        given = {("psu", "capacity_watts"): state.psu_watts, ("feed", "capacity_watts"): state.feed_watts}

        def read(kind: str, metric: str) -> F64:
            unknown = {"psu": len(state.psu_lost), "feed": len(state.feed_dark)}.get(kind, len(state.node_watts))
            return given.get((kind, metric), np.full(unknown, np.nan))

        found = self.power_model.at(read, state.psu_lost, state.feed_dark)
        load = np.concatenate([state.node_watts, state.rack_watts])
        return Power(load, found.capacity, found.after_next, found.lost_units)
