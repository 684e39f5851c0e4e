"""Simulation: the frames that a real fabric would send, under a workload, with faults and noise.

One source a node (its GPUs, NVLinks, NIC ports and supplies), one a switch (its ports) and one a rack (its power),
each reporting on its own phase. All state is arrays over entities, kept by channels; a report is a slice of them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np

from twin.address import link_name
from twin.frames import NS, Frame
from twin.simulator.basics import Gpus, Ports
from twin.simulator.congestion import Congestion
from twin.simulator.errors import LinkErrors
from twin.simulator.faults import FaultState
from twin.simulator.gpufaults import GpuFaults
from twin.simulator.jobs import Jobs, Unused, with_jobs
from twin.simulator.nvlinks import NvLinks
from twin.simulator.power import Power
from twin.simulator.scenario import Phase, Scenario
from twin.simulator.traffic import Traffic
from twin.simulator.world import Channel, Rows, Signals, World
from twin.topology.model import Topology
from twin.topology.presets import preset
from twin.topology.sitepower import with_power

EPOCH = 1_767_225_600 * NS  # 2026-01-01 00:00 UTC, where simulated time starts unless told otherwise
DISCOVERY_S = 10.0  # between two discoveries of the cabling
_TRAFFIC_STREAM, _LOAD_STREAM = 1, 2  # of random numbers, beside those of racks and channels

# Channels beside ports and GPUs, each with a random stream of its own, so that one more changes no other.
CHANNELS: tuple[tuple[str, Callable[[Topology, np.random.Generator], Channel]], ...] = (
    ("errors", LinkErrors),
    ("nvlinks", NvLinks),
    ("gpufaults", GpuFaults),  # last of what reads GPUs: of a lost one nothing is read
    ("power", Power),
)
# What changes the load steps before the ports, which count it.
LOADS: tuple[tuple[str, Callable[[Topology, np.random.Generator], Channel]], ...] = (("congestion", Congestion),)


@cache
def noise_levels() -> dict[str, float]:
    """The levels of noise.toml by name."""
    text = files(__package__).joinpath("noise.toml").read_text("utf-8")
    return {name: float(entry["value"]) for name, entry in tomllib.loads(text).items()}


@dataclass(slots=True)
class _Source:
    """Who reports: kind -> the rows it reads and their names."""

    name: str
    rows: dict[str, Rows | slice]
    names: dict[str, tuple[str, ...]]


class Simulation:
    """Runs a scenario. `frames()` gives its frames in order of time; the same seed gives the same frames."""

    def __init__(
        self, scenario: Scenario, topology: Topology | None = None, *, start: int = EPOCH, noise: float = 1.0
    ) -> None:
        self.scenario = scenario
        fabric = topology if topology is not None else preset(scenario.preset, **scenario.parameters)
        fabric = fabric if scenario.power is None else with_power(fabric, scenario.power)
        self.topology = with_jobs(fabric, scenario.jobs)
        self.start = start
        self.noise = {k: v * noise for k, v in noise_levels().items()}
        self._rng = np.random.default_rng(scenario.seed)
        self._faults = FaultState(self.topology, scenario.faults)
        self._discovers = any(f.action == "swap" for f in scenario.faults)
        self._jobs, self._unused = Jobs(self.topology, scenario.jobs), Unused(self.topology)
        own = np.random.default_rng((scenario.seed, 0, _TRAFFIC_STREAM))
        self._traffic = Traffic(self.topology, self.noise, own)
        self._channels: list[Channel] = [
            make(self.topology, np.random.default_rng((scenario.seed, 0, _LOAD_STREAM + i)))
            for i, (_, make) in enumerate(LOADS)
        ]
        self._channels.append(Ports(self.topology, self._rng))
        self._sources, racks = _sources(self.topology), _racks(self.topology)
        spread = self.noise["report_phase"] if self.noise["report_phase"] < 1 else 0.9
        self._phase = self._rng.uniform(0.02, max(spread, 0.03), len(self._sources))
        self._racks = _Racks(racks, np.random.default_rng((scenario.seed, 0)))
        self._channels.append(Gpus(self.topology, self._rng))
        for i, (_, channel) in enumerate(CHANNELS):
            self._channels.append(channel(self.topology, np.random.default_rng((scenario.seed, i + 1))))

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
        world = self._world(t)
        for channel in self._channels:
            channel.step(world)
        jitter = self._rng.normal(0, self.noise["report_jitter"], len(self._sources))
        lost = self._rng.random(len(self._sources)) < self.noise["report_loss"]
        offset = np.clip(self._phase + jitter, 0.01, 0.98) * interval  # never before what it reports
        out: list[Frame] = []
        for i in np.argsort(offset, kind="stable").tolist():
            if not lost[i] and self._sources[i].name not in self._faults.silent:
                time = self.start + round((t + offset[i]) * 1e6) * 1000
                out.extend(_report(self._sources[i], time, float(offset[i]), world.signals))
        out.extend(self._racks.report(self.start, world))
        if self._discovers and (t // DISCOVERY_S) != ((t - interval) // DISCOVERY_S):
            out.append(self._discovery(t))
        return out

    def _world(self, t: float) -> World:
        state = self._faults
        state.advance(t)
        up, speed = state.ports()
        phase, link_speed = self._phase_at(t), state.link_speed()
        flow = self._traffic.at(self._jobs.at(phase), link_speed, self._rng, self._unused.at(state.active))
        return World(
            topo=self.topology, noise=self.noise, t=t, interval=self.scenario.interval, phase=phase,
            active=state.active, link_speed=link_speed, up=up, speed=speed, flow=flow, dead=state.dead,
            restarted=state.restarted, restarted_ports=state.restarted_ports, fell=state.fell, signals=Signals(),
        )  # fmt: skip

    def _discovery(self, t: float) -> Frame:
        """What a discovery of the whole fabric finds: every cable, by its two ends."""
        ports = self.topology.port_names
        names = tuple(link_name(ports[a], ports[b]) for a, b in self._faults.cables(t))
        time = self.start + round((t + 0.99 * self.scenario.interval) * 1e6) * 1000
        return Frame(time, "discovery", "link", names, {"found": np.ones(len(names))})


class _Racks:
    """The sources of racks: they report in the middle of the interval, and lose nothing."""

    def __init__(self, sources: list[_Source], rng: np.random.Generator) -> None:
        self._sources = sources
        self._phase = rng.uniform(0.2, 0.8, len(sources)).tolist()

    def report(self, start: int, world: World) -> Iterator[Frame]:
        for source, phase in zip(self._sources, self._phase, strict=True):
            seconds = phase * world.interval
            if source.name not in world.dead:
                yield from _report(source, start + round((world.t + seconds) * 1e6) * 1000, seconds, world.signals)


def _report(source: _Source, time: int, seconds: float, signals: Signals) -> Iterator[Frame]:
    for kind, rows in source.rows.items():
        columns = signals.columns(kind, rows, seconds)
        if columns:
            yield Frame(time, source.name, kind, source.names[kind], columns)


def _sources(topo: Topology) -> list[_Source]:
    names = topo.port_names
    order = np.argsort(topo.ports.switch, kind="stable")
    bounds = np.searchsorted(topo.ports.switch[order], np.arange(len(topo.switches.name) + 1))
    links = np.concatenate([[0], np.cumsum(topo.nvlinks_per_gpu)])
    out = []
    for i, node in enumerate(topo.nodes.name):
        first, last = topo.nodes.nic0[i], topo.nodes.nic0[i] + topo.nodes.n_nics[i]
        ports = np.flatnonzero((topo.ports.nic >= first) & (topo.ports.nic < last) & (topo.ports.link >= 0))
        gpu0, n_gpus = int(topo.nodes.gpu0[i]), int(topo.nodes.n_gpus[i])
        psu0 = int(topo.nodes.psu0[i])
        rows: dict[str, Rows | slice] = {
            "port": ports,
            "gpu": slice(gpu0, gpu0 + n_gpus),
            "nvlink": slice(int(links[gpu0]), int(links[gpu0 + n_gpus])),
            "psu": slice(psu0, psu0 + int(topo.nodes.n_psus[i])),
            "node": slice(i, i + 1),
        }
        out.append(_source(topo, node, rows, tuple(names[p] for p in ports)))
    for s, switch in enumerate(topo.switches.name):
        ports = order[bounds[s] : bounds[s + 1]]
        out.append(_source(topo, switch, {"port": ports}, tuple(names[p] for p in ports)))
    return out


def _racks(topo: Topology) -> list[_Source]:
    out = []
    for r, rack in enumerate(topo.racks.name):
        feeds, psu0 = np.flatnonzero(topo.feeds.rack == r), int(topo.racks.psu0[r])
        rows: dict[str, Rows | slice] = {"feed": feeds, "psu": slice(psu0, psu0 + int(topo.racks.n_psus[r]))}
        source = _source(topo, rack, rows, ())
        if source.rows:
            out.append(source)
    return out


def _source(topo: Topology, name: str, rows: dict[str, Rows | slice], ports: tuple[str, ...]) -> _Source:
    names = {"port": ports}
    for kind, mine in rows.items():
        if kind != "port":
            all_ = topo.names(kind)
            names[kind] = all_[mine] if isinstance(mine, slice) else tuple(all_[r] for r in mine)
    kept = {kind: mine for kind, mine in rows.items() if len(names[kind])}
    return _Source(name, kept, {kind: names[kind] for kind in kept})
