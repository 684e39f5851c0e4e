"""Simulation: the frames that a real fabric would send, under a workload, with faults and noise.

One source a node (its GPUs, NVLinks, NIC ports and supplies), one a switch (its ports) and one a rack (its power),
each reporting on its own phase. All state is arrays over entities, kept by channels; a report is a slice of them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator
from functools import cache
from importlib.resources import files

import numpy as np

from twin.address import link_name
from twin.frames import NS, Frame
from twin.simulator.basics import Gpus, Ports
from twin.simulator.congestion import Congestion
from twin.simulator.errors import LinkErrors
from twin.simulator.failing import Failing
from twin.simulator.faults import FaultState
from twin.simulator.gpufaults import GpuFaults
from twin.simulator.jobs import Jobs, Unused, with_jobs
from twin.simulator.lag import Lag
from twin.simulator.nvlinks import NvLinks
from twin.simulator.power import Power
from twin.simulator.readings import Reporters, devices, racks
from twin.simulator.scenario import Phase, Scenario
from twin.simulator.traffic import Traffic
from twin.simulator.world import Channel, Signals, World
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
        self._lag, self._failing = Lag(self.topology), Failing(self.topology)
        self._jobs, self._unused = Jobs(self.topology, scenario.jobs), Unused(self.topology)
        own = np.random.default_rng((scenario.seed, 0, _TRAFFIC_STREAM))
        self._traffic = Traffic(self.topology, self.noise, own)
        self._channels: list[Channel] = [
            make(self.topology, np.random.default_rng((scenario.seed, 0, _LOAD_STREAM + i)))
            for i, (_, make) in enumerate(LOADS)
        ]
        self._channels.append(Ports(self.topology, self._rng))
        self._sources, their_racks = devices(self.topology), racks(self.topology)
        spread = self.noise["report_phase"] if self.noise["report_phase"] < 1 else 0.9
        self._phase = self._rng.uniform(0.02, max(spread, 0.03), len(self._sources))
        # racks report in the middle of the interval, and lose nothing
        self._rack_phase = np.random.default_rng((scenario.seed, 0)).uniform(0.2, 0.8, len(their_racks))
        self._reporters = Reporters(self.topology, [*self._sources, *their_racks])
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
        seconds = np.concatenate([offset, self._rack_phase * interval])
        readings, sources = self._reporters.read(world.signals, seconds), self._reporters.sources
        silent = [gone or s.name in self._faults.silent for gone, s in zip(lost.tolist(), sources, strict=False)]
        silent += [s.name in world.dead for s in sources[len(silent) :]]
        out: list[Frame] = []
        for i in [*np.argsort(offset, kind="stable").tolist(), *range(len(offset), len(sources))]:
            if not silent[i]:
                out.extend(readings.frames(i, self.start + round((t + seconds[i]) * 1e6) * 1000))
        if self._discovers and (t // DISCOVERY_S) != ((t - interval) // DISCOVERY_S):
            out.append(self._discovery(t))
        out.extend(self._failing.words(world, self.start))
        return self._lag.arrivals(out, world, self.start)

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
