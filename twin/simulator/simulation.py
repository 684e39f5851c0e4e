"""Simulation: the frames that a real fabric would send, under a workload, with faults and noise.

One source a node (its GPUs and NIC ports) and one a switch (its ports), each reporting on its own phase.
All state is arrays over ports; a report is a slice of them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.resources import files

import numpy as np
import numpy.typing as npt

from twin.address import link_name
from twin.catalog import hardware
from twin.frames import NS, Frame
from twin.simulator.faults import FaultState
from twin.simulator.scenario import Phase, Scenario
from twin.simulator.traffic import Traffic
from twin.topology.model import Topology
from twin.topology.presets import preset

F64 = npt.NDArray[np.float64]

EPOCH = 1_767_225_600 * NS  # 2026-01-01 00:00 UTC, where simulated time starts unless told otherwise
DISCOVERY_S = 10.0  # between two discoveries of the cabling
_IDLE_WATTS, _IDLE_CELSIUS, _BUSY_CELSIUS = 0.2, 34.0, 68.0


@cache
def noise_levels() -> dict[str, float]:
    """The levels of noise.toml by name."""
    text = files(__package__).joinpath("noise.toml").read_text("utf-8")
    return {name: float(entry["value"]) for name, entry in tomllib.loads(text).items()}


class Simulation:
    """Runs a scenario. `frames()` gives its frames in order of time; the same seed gives the same frames."""

    def __init__(
        self, scenario: Scenario, topology: Topology | None = None, *, start: int = EPOCH, noise: float = 1.0
    ) -> None:
        self.scenario = scenario
        self.topology = topology if topology is not None else preset(scenario.preset, **scenario.parameters)
        self.start = start
        self.noise = {k: v * noise for k, v in noise_levels().items()}
        self._rng = np.random.default_rng(scenario.seed)
        self._faults = FaultState(self.topology, scenario.faults)
        self._discovers = any(f.action == "swap" for f in scenario.faults)
        self._traffic = Traffic(self.topology, self.noise)
        n_ports = len(self.topology.ports.nic)
        self._tx, self._rx = self._rng.integers(10**9, 10**14, (2, n_ports)).astype(np.float64)
        self._downed = np.zeros(n_ports)
        self._make_sources()

    def _make_sources(self) -> None:
        topo = self.topology
        names = topo.port_names
        order = np.argsort(topo.ports.switch, kind="stable")
        bounds = np.searchsorted(topo.ports.switch[order], np.arange(len(topo.switches.name) + 1))
        self._sources: list[tuple[str, npt.NDArray[np.intp], tuple[str, ...], slice]] = []
        for i, node in enumerate(topo.nodes.name):
            first, last = topo.nodes.nic0[i], topo.nodes.nic0[i] + topo.nodes.n_nics[i]
            ports = np.flatnonzero((topo.ports.nic >= first) & (topo.ports.nic < last) & (topo.ports.link >= 0))
            gpus = slice(int(topo.nodes.gpu0[i]), int(topo.nodes.gpu0[i] + topo.nodes.n_gpus[i]))
            self._sources.append((node, ports, tuple(names[p] for p in ports), gpus))
        for s, switch in enumerate(topo.switches.name):
            ports = order[bounds[s] : bounds[s + 1]]
            self._sources.append((switch, ports, tuple(names[p] for p in ports), slice(0, 0)))
        self._gpu_names = [topo.gpu_names[gpus] for *_, gpus in self._sources]
        spread = self.noise["report_phase"] if self.noise["report_phase"] < 1 else 0.9
        self._phase = self._rng.uniform(0.02, max(spread, 0.03), len(self._sources))
        models = hardware()["gpu"]
        watts = [float(models.get(m, {}).get("power_limit_watts", 1000.0)) for m in topo.nodes.gpu_model]
        self._limit = np.array(watts)[topo.gpus.node] if watts else np.zeros(0)

    def frames(self) -> Iterator[Frame]:
        """Frames from the start to the end of the scenario."""
        steps = round(self.scenario.duration / self.scenario.interval)
        for step in range(steps):
            yield from self._step(step * self.scenario.interval)

    def _phase_at(self, t: float) -> Phase:
        return [p for p in self.scenario.workload if p.at <= t][-1]

    def _step(self, t: float) -> list[Frame]:
        """All reports of the interval that begins at t seconds."""
        interval = self.scenario.interval
        restarted, fell = self._faults.advance(t)
        self._tx[restarted], self._rx[restarted], self._downed[restarted] = 0.0, 0.0, 0.0
        self._downed[fell] += 1
        up, speed = self._faults.ports()
        flow = self._traffic.at(self._phase_at(t), self._faults.link_speed(), self._rng)
        gpu = self._gpus(flow.pace)
        jitter = self._rng.normal(0, self.noise["report_jitter"], len(self._sources))
        lost = self._rng.random(len(self._sources)) < self.noise["report_loss"]
        offset = np.clip(self._phase + jitter, 0.01, 0.98) * interval  # never before what it reports
        out: list[Frame] = []
        for i in np.argsort(offset, kind="stable").tolist():
            if not lost[i] and self._sources[i][0] not in self._faults.silent:
                time = self.start + round((t + offset[i]) * 1e6) * 1000
                out.extend(self._report(i, time, float(offset[i]), up, speed, flow.tx, flow.rx, gpu))
        if self._discovers and (t // DISCOVERY_S) != ((t - interval) // DISCOVERY_S):
            out.append(self._discovery(t))
        self._tx += flow.tx * interval
        self._rx += flow.rx * interval
        return out

    def _report(
        self, i: int, time: int, seconds: float, up: F64, speed: F64, tx: F64, rx: F64, gpu: dict[str, F64]
    ) -> Iterator[Frame]:
        source, ports, names, gpus = self._sources[i]
        if len(ports):
            columns = {
                "up": up[ports],
                "speed_bits_per_second": speed[ports],
                "tx_bytes": (self._tx[ports] + tx[ports] * seconds).astype(np.uint64),
                "rx_bytes": (self._rx[ports] + rx[ports] * seconds).astype(np.uint64),
                "link_downed": self._downed[ports].astype(np.uint64),
            }
            yield Frame(time, source, "port", names, columns)
        if gpus.stop > gpus.start:
            yield Frame(time, source, "gpu", self._gpu_names[i], {k: v[gpus] for k, v in gpu.items()})

    def _discovery(self, t: float) -> Frame:
        """What a discovery of the whole fabric finds: every cable, by its two ends."""
        ports = self.topology.port_names
        names = tuple(link_name(ports[a], ports[b]) for a, b in self._faults.cables(t))
        time = self.start + round((t + 0.99 * self.scenario.interval) * 1e6) * 1000
        return Frame(time, "discovery", "link", names, {"found": np.ones(len(names))})

    def _gpus(self, pace: F64) -> dict[str, F64]:
        """GPU readings. pace: float64[gpus], 0 idle to 1 full speed."""
        n = len(pace)
        busy = pace * (1 + self._rng.normal(0, self.noise["gpu_power_noise"], n))
        return {
            "utilization_ratio": np.clip(np.where(pace > 0, 0.97, 0.0) + self._rng.normal(0, 0.005, n), 0, 1),
            "power_watts": self._limit * (_IDLE_WATTS + (0.9 - _IDLE_WATTS) * busy),
            "power_limit_watts": self._limit,
            "temperature_celsius": _IDLE_CELSIUS
            + (_BUSY_CELSIUS - _IDLE_CELSIUS) * pace
            + self._rng.normal(0, 0.8, n),
        }
