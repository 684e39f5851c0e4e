"""The channels every simulation has: ports with their traffic, and the GPUs that drive it."""

from __future__ import annotations

import numpy as np

from twin.catalog import hardware
from twin.simulator.world import Counter, World
from twin.topology.model import Topology

_IDLE_WATTS, _IDLE_CELSIUS, _BUSY_CELSIUS = 0.2, 34.0, 68.0


class Ports:
    """up, speed, bytes and downs of every port."""

    def __init__(self, topo: Topology, rng: np.random.Generator) -> None:
        n = len(topo.ports.nic)
        tx, rx = rng.integers(10**9, 10**14, (2, n)).astype(np.float64)
        self._bytes = Counter("port", "tx_bytes", tx), Counter("port", "rx_bytes", rx)
        self._downed = Counter("port", "link_downed", np.zeros(n))

    def step(self, world: World) -> None:
        for counter in (*self._bytes, self._downed):
            counter.value[world.restarted_ports] = 0.0
        self._downed.value[world.fell] += 1
        world.signals.gauge("port", "up", world.up)
        world.signals.gauge("port", "speed_bits_per_second", world.speed)
        for counter, rate in zip(self._bytes, (world.flow.tx, world.flow.rx), strict=True):
            counter.go(world, rate)
        self._downed.go(world, np.zeros(len(world.up)))


class Gpus:
    """Utilisation, power and temperature of every GPU, by the pace of its work."""

    def __init__(self, topo: Topology, rng: np.random.Generator) -> None:
        self._rng = rng
        models = hardware()["gpu"]
        watts = [float(models.get(m, {}).get("power_limit_watts", 1000.0)) for m in topo.nodes.gpu_model]
        self._limit = np.array(watts)[topo.gpus.node] if watts else np.zeros(0)

    def step(self, world: World) -> None:
        pace, n = world.flow.pace, len(world.flow.pace)
        busy = pace * (1 + self._rng.normal(0, world.noise["gpu_power_noise"], n))
        say = world.signals.gauge
        say("gpu", "utilization_ratio", np.clip(np.where(pace > 0, 0.97, 0.0) + self._rng.normal(0, 0.005, n), 0, 1))
        say("gpu", "power_watts", self._limit * (_IDLE_WATTS + (0.9 - _IDLE_WATTS) * busy))
        say("gpu", "power_limit_watts", self._limit)
        warm = (_BUSY_CELSIUS - _IDLE_CELSIUS) * pace
        say("gpu", "temperature_celsius", _IDLE_CELSIUS + warm + self._rng.normal(0, 0.8, n))
