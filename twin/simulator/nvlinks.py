"""NVLinks: state, traffic and error counters of every one, and what breaks them.

`fail` takes an NVLink, a switch chip or a whole domain down; of a failed GPU nothing is readable. `flap` takes them
down now and then. `corrupt` adds `rate` errors a second of one kind. `hurt` of kind `nvlink` takes all NVLinks of a
GPU down, as drivers report it ("all links are inactive").
"""

from __future__ import annotations

import numpy as np

from twin.errors import InputError
from twin.simulator.gpufaults import lost, restarted_gpus
from twin.simulator.scenario import Fault
from twin.simulator.world import F64, Counter, World
from twin.topology.model import Topology
from twin.topology.resolve import Target

ERRORS = {"crc": "crc_errors", "replay": "replay_errors", "recovery": "recovery_errors", "symbol": "symbol_errors"}
_RARE = ("replay", "recovery")
_LOAD = 0.5  # of a link's speed at full pace (estimated)
_ABOVE_NOMINAL = 1.0625  # drivers read 53,125 MB/s on a link of 50 GB/s (vendor health validation)


def check_nvlink_errors(fault: Fault, target: Target) -> None:
    """Raises InputError for a `corrupt` of NVLinks with errors that these do not have, or without a rate."""
    if fault.action != "corrupt" or not len(target.nvlinks):
        return
    if fault.kind not in ERRORS:
        raise InputError(f"corrupt {fault.target}: kind is {fault.kind!r}, expected one of {', '.join(ERRORS)}")
    if fault.rate is None:
        raise InputError(f"corrupt {fault.target}: 'rate' is missing (errors a second of each NVLink)")


class NvLinks:
    """Readings of all NVLinks; in a fabric without any it gives none."""

    def __init__(self, topo: Topology, rng: np.random.Generator) -> None:
        self._rng = rng
        self._gpu = topo.nvlink_gpu
        self._n = n = len(self._gpu)
        speed = np.append(topo.domains.speed, 0.0)[topo.gpus.domain][self._gpu] if n else np.zeros(0)
        self._speed = np.nan_to_num(speed)
        self._bytes = [Counter("nvlink", m, np.floor(rng.uniform(1e9, 1e14, n))) for m in ("tx_bytes", "rx_bytes")]
        self._errors = {kind: Counter("nvlink", metric, np.zeros(n)) for kind, metric in ERRORS.items()}
        self._fresh = True

    def step(self, world: World) -> None:
        if not self._n:
            return
        if self._fresh:
            self._fresh = False
            self._age(world.noise["nvlink_historic"])
        gone = lost(world)[self._gpu]
        up = np.where(gone, np.nan, self._up(world))
        world.signals.gauge("nvlink", "up", up)
        speed = np.where(up == 1, self._speed * _ABOVE_NOMINAL, np.nan)
        world.signals.gauge("nvlink", "speed_bytes_per_second", speed)
        anew = restarted_gpus(world)[self._gpu]
        for counter, rate in [*self._traffic(world, up), *self._noise(world, up)]:
            counter.value[anew] = 0.0
            counter.go(world, rate)
            world.signals.counters["nvlink"][counter.metric][0][gone] = np.nan

    def _age(self, share: float) -> None:
        """Some links have a history: what they counted long ago, and count no more."""
        for counter in self._errors.values():
            old = self._rng.random(self._n) < share
            counter.value[old] = self._rng.integers(1, 600, int(old.sum()))

    def _up(self, world: World) -> F64:
        up = np.ones(self._n)
        for a in world.faults("fail", "flap", "hurt"):
            fault, whole = a.fault, len(a.target.gpus) > 0 and not a.fault.target.startswith("domain:")
            if fault.action == "hurt":
                down = fault.kind == "nvlink"
            else:
                down = not whole and (fault.action == "fail" or a.age % fault.period < fault.down)
            if down:
                up[a.target.nvlinks] = 0.0
        return up

    def _traffic(self, world: World, up: F64) -> list[tuple[Counter, F64]]:
        busy = np.nan_to_num(up) * self._speed * _LOAD * world.flow.pace[self._gpu]
        for a in world.faults("hurt"):
            if a.fault.kind == "fabric":  # every link is up, and carries nothing
                busy[a.target.nvlinks] = 0.0
        noise = world.noise["load_noise"]
        return [(c, busy * np.maximum(0.0, 1 + noise * self._rng.standard_normal(self._n))) for c in self._bytes]

    def _noise(self, world: World, up: F64) -> list[tuple[Counter, F64]]:
        """Errors a second: a few anywhere, and those of the faults. Whole errors within each interval."""
        out = []
        for kind, counter in self._errors.items():
            name = "nvlink_background_recoveries" if kind in _RARE else "nvlink_background_errors"
            many = self._rng.poisson(world.noise[name] * world.interval * self._n)
            found = np.bincount(self._rng.integers(0, self._n, many), minlength=self._n).astype(np.float64)
            for a in world.faults("corrupt"):
                rows = a.target.nvlinks
                if a.fault.kind == kind and a.fault.rate is not None and len(rows):
                    found[rows] += self._rng.poisson(a.fault.rate * world.interval, len(rows))
            found[up != 1] = 0.0
            out.append((counter, found / world.interval))
        return out
