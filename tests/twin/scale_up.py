"""Boards of GPUs read by hand: one source a node, every reading of its GPUs and NVLinks set by the test."""

from __future__ import annotations

import numpy as np

from twin.frames import NS, UNKNOWN_U64, Frame
from twin.incident import Incident
from twin.simulator.simulation import EPOCH
from twin.topology.model import Topology
from twin.topology.wiring import read_wiring
from twin.twin import Twin
from twin.yamlfile import Document

COUNTERS = ("crc_errors", "replay_errors", "recovery_errors", "symbol_errors", "ecc_uncorrected")


def boards(nodes: int = 2, *, links: int = 18, chips: int = 2) -> Topology:
    """Nodes of eight GPUs, each an NVLink domain of its own; links: 0 for a part without NVLink, chips: 0 where they
    are not known."""
    text = "name: boards\nplanes: []\nnodes:\n"
    text += "".join(f"  - {{name: n{i}, gpu_model: b200, gpus: 8}}\n" for i in range(nodes))
    if links:
        text += "domains:\n"
        for i in range(nodes):
            gpus = ", ".join(f"n{i}/gpu{g}" for g in range(8))
            names = ", ".join(f"n{i}/nvsw{c}" for c in range(chips))
            text += f"  - {{name: n{i}, gpus: [{gpus}], switches: [{names}], links_per_gpu: {links}"
            text += ", speed: 50GB/s}\n"
    return read_wiring(Document("boards.yaml", text))


class Boards:
    """gpu, nvlink: metric -> values of all, as the next reports say them. gone: GPUs that frames leave out."""

    def __init__(self, topo: Topology, *, interval: float = 1.0) -> None:
        self.topo, self.twin, self.interval = topo, Twin(topo), interval
        n, links = len(topo.gpus.node), len(topo.nvlink_gpu)
        gauges = {
            "utilization_ratio": 0.97, "power_watts": 900.0, "temperature_celsius": 66.0, "sm_clock_hertz": 1.9e9,
            "throttle_reasons": 0.0, "xid": 0.0, "fabric_state": 3.0, "ecc_uncorrected": 0.0,
        }  # fmt: skip
        self.gpu = {m: np.full(n, v) for m, v in gauges.items()}
        names = ("up", "tx_bytes", "rx_bytes", "crc_errors", "replay_errors", "recovery_errors", "symbol_errors")
        self.nvlink = {m: np.full(links, float(m == "up")) for m in names}
        self.gone: set[str] = set()
        self.silent: set[str] = set()
        self._turn = 0

    def run(self, until: float) -> None:
        """Reports of all nodes up to `until` seconds."""
        while self._turn * self.interval < until:
            for i, node in enumerate(self.topo.nodes.name):
                if node not in self.silent:
                    time = EPOCH + round((self._turn + 0.1 + 0.05 * i) * self.interval * NS)
                    self._report(time, node, "gpu", self.gpu)
                    self._report(time, node, "nvlink", self.nvlink)
            self._turn += 1

    def _report(self, time: int, node: str, kind: str, readings: dict[str, np.ndarray]) -> None:
        rows = [
            row
            for name, row in self.topo.rows(kind).items()
            if name.startswith(f"{node}/") and not any(name == g or name.startswith(f"{g}/") for g in self.gone)
        ]
        if rows:
            names = self.topo.names(kind)
            columns = {m: _column(m, v[rows]) for m, v in readings.items()}
            self.twin.ingest(Frame(time, node, kind, tuple(names[r] for r in rows), columns))

    def row(self, address: str) -> int:
        return self.topo.rows("nvlink" if "/nvlink" in address else "gpu")[address]

    def links_of(self, gpu: str) -> np.ndarray:
        return np.flatnonzero(self.topo.nvlink_gpu == self.topo.rows("gpu")[gpu])

    def finish(self) -> list[Incident]:
        """Incidents that no other took over, in the order of detection."""
        self.twin.finish()
        return [i for i in self.twin.incidents if i.superseded_by is None]


def _column(metric: str, values: np.ndarray) -> np.ndarray:
    if metric not in COUNTERS:
        return values.copy()
    unknown = np.isnan(values)
    return np.where(unknown, UNKNOWN_U64, np.where(unknown, 0, values).astype(np.uint64))
