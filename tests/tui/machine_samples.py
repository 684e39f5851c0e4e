"""Snapshots with GPUs, NVLinks and power in them: readings made up here, judged by the twin itself."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np
from screen_samples import NS, T0, make_snapshot

from twin.frames import Frame
from twin.snapshot import Snapshot
from twin.sources import SUPERVISOR
from twin.topology.builder import Builder
from twin.topology.model import Topology
from twin.topology.presets import preset
from twin.twin import Twin

_COUNTERS = {"crc_errors", "recovery_errors", "ecc_uncorrected", "tx_bytes", "rx_bytes"}


class Machines:
    """Readings of all that a fabric has, a source a node, one for switches and one for power; once a second.

    values: kind -> metric -> float64[entities], as the next second says; of a counter its growth. lost: GPUs that are
    left out. silent: sources that say nothing.
    """

    def __init__(self, topo: Topology, seconds: int, seed: int = 1) -> None:
        self.topo, self.twin = topo, Twin(topo)
        self.time = T0 - seconds * NS
        random = np.random.default_rng(seed)

        def near(kind: str, value: float, spread: float) -> np.ndarray:
            return value + spread * random.standard_normal(len(topo.names(kind)))

        gpus, ports = len(topo.gpus.node), len(topo.ports.link)
        self.values = {
            "gpu": {
                "utilization_ratio": near("gpu", 0.95, 0.01), "power_watts": near("gpu", 1180, 25),
                "power_limit_watts": np.full(gpus, 1400.0), "temperature_celsius": near("gpu", 64, 2),
                "sm_clock_hertz": near("gpu", 1.92e9, 1e7), "memory_used_bytes": near("gpu", 231e9, 2e9),
                "throttle_reasons": np.zeros(gpus), "xid": np.zeros(gpus), "ecc_uncorrected": np.zeros(gpus),
                "fabric_state": np.full(gpus, 3.0),
            },
            "nvlink": {
                "up": np.ones(len(topo.nvlink_gpu)), "crc_errors": np.zeros(len(topo.nvlink_gpu)),
                "recovery_errors": np.zeros(len(topo.nvlink_gpu)),
            },
            "port": {
                "up": np.where(topo.ports.link >= 0, 1.0, 0.0), "speed_bits_per_second": topo.port_speed.copy(),
                "tx_bytes": np.nan_to_num(topo.port_speed) / 8 * (0.55 + 0.03 * random.standard_normal(ports)),
                "rx_bytes": np.nan_to_num(topo.port_speed) / 8 * 0.55,
            },
            "node": {"power_watts": near("node", 5900, 60)},
            "psu": {"up": np.ones(len(topo.psus.node)), "output_watts": near("psu", 2450, 40)},
            "feed": {"power_watts": near("feed", 14_700, 120)},
        }  # fmt: skip
        self.lost: set[str] = set()
        self.silent: set[str] = set()
        self._sums = {
            (k, m): np.zeros(len(v))
            for k, metrics in self.values.items()
            for m, v in metrics.items()
            if m in _COUNTERS
        }
        self._owned = self._owners()

    def _owners(self) -> list[tuple[str, str, np.ndarray]]:
        """(source, kind, rows) of every report."""
        topo = self.topo
        host = {"gpu": topo.gpus.node, "nvlink": topo.gpus.node[topo.nvlink_gpu], "port": topo.port_node,
                "node": np.arange(len(topo.nodes.name))}  # fmt: skip
        owned = [
            (name, kind, np.flatnonzero(of == node))
            for node, name in enumerate(topo.nodes.name)
            for kind, of in host.items()
        ]
        owned.append(("switches", "port", np.flatnonzero(topo.port_node < 0)))
        return owned + [("power", kind, np.arange(len(topo.names(kind)))) for kind in ("psu", "feed")]

    def run(self, seconds: int) -> Machines:
        for _ in range(seconds):
            for key, total in self._sums.items():
                total += self.values[key[0]][key[1]]
            for source, kind, rows in self._owned:
                if source not in self.silent:
                    self._report(source, kind, rows)
            self.time += NS
        return self

    def _report(self, source: str, kind: str, rows: np.ndarray) -> None:
        names = self.topo.names(kind)
        rows = np.array([row for row in rows.tolist() if names[row] not in self.lost], dtype=np.intp)
        if not len(rows):
            return
        columns = {}
        for metric, values in self.values[kind].items():
            total = self._sums.get((kind, metric))
            columns[metric] = values[rows].copy() if total is None else total[rows].astype(np.uint64)
        self.twin.ingest(Frame(self.time + NS // 4, source, kind, tuple(names[r] for r in rows.tolist()), columns))

    def pause(self, seconds: int) -> Machines:
        """Time passes for the twin; nothing is said but by the supervisor, of whom the twin hears the time."""
        for _ in range(seconds):
            up = {"up": np.ones(1), "interval_seconds": np.ones(1)}
            self.twin.ingest(Frame(self.time + NS // 2, SUPERVISOR, "source", ("n000",), up))
            self.time += NS
        return self

    def row(self, kind: str, name: str) -> int:
        return self.topo.rows(kind)[name]

    def snapshot(self) -> Snapshot:
        self.twin.finish()
        return self.twin.snapshot()


@lru_cache
def racks() -> Topology:
    """Two NVL72 racks: 144 GPUs, 18 switch chips and 8 feeds each."""
    return preset("gb300-nvl72-ethernet")


@lru_cache
def well() -> Snapshot:
    return Machines(racks(), 8).run(8).snapshot()


@lru_cache
def ill() -> Snapshot:
    """A GPU is lost, one hot; a switch tray, a link and a port are down, a link has errors; a shelf is dark."""
    m = Machines(racks(), 24)
    m.values["gpu"]["power_watts"][m.row("gpu", "n033/gpu1")] = np.nan  # its driver does not say
    topo = m.run(8).topo
    m.lost = {"n004/gpu2", *(f"n004/gpu2/nvlink{i}" for i in range(18))}
    hot = m.row("gpu", "n020/gpu1")
    gpu, nvlink, feed = m.values["gpu"], m.values["nvlink"], m.values["feed"]
    gpu["throttle_reasons"][hot], gpu["temperature_celsius"][hot], gpu["sm_clock_hertz"][hot] = 0x40, 91, 1.1e9
    chips = [topo.nvswitch_names.index(f"r01/nvsw{i:02d}") for i in (4, 5)]
    nvlink["up"][np.isin(topo.nvlink_switch, chips)] = 0
    nvlink["up"][m.row("nvlink", "n002/gpu0/nvlink7")] = 0
    nvlink["crc_errors"][m.row("nvlink", "n003/gpu3/nvlink9")] = 400
    dark = m.row("feed", "r01/feedB1")
    feed["power_watts"][dark] = 0
    supplies = [m.row("psu", f"r01/psu{i}") for i in range(30, 36)]
    m.values["psu"]["up"][supplies], m.values["psu"]["output_watts"][supplies] = 0, 0
    port = m.row("port", "n010/nic1/p1")
    for end in (port, int(topo.ports.peer[port])):
        m.values["port"]["up"][end] = 0
        m.values["port"]["speed_bits_per_second"][end] = np.nan
    return m.run(16).snapshot()


@lru_cache
def many() -> Snapshot:
    """100,008 GPUs on 12,501 nodes, of which only they report."""
    builder = Builder("many", planes=())
    for node in range(12_501):
        builder.node(f"n{node:05d}", gpus=8, gpu_model="b300", nics=[], first_port=0, ports_per_nic=1)
    topo = builder.build()
    n = len(topo.gpus.node)
    readings = {"power_watts": np.linspace(300, 1100, n), "utilization_ratio": np.linspace(0, 1, n)}
    one = make_snapshot(topo, minutes=0, sources=0)
    return replace(one, gpu=readings, gpu_age=np.linspace(0, 9, n))


@lru_cache
def silent() -> Snapshot:
    """All was well; then nothing was heard for a minute and a half."""
    return Machines(racks(), 98).run(8).pause(90).snapshot()


@lru_cache
def unheard() -> Snapshot:
    """Nothing was ever heard."""
    m = Machines(racks(), 2)
    return m.pause(2).snapshot()
