"""What else a GPU says of itself (clock, throttle reasons, XID, memory errors, energy, fabric state), and its faults.

`hurt` does what `kind` says to a GPU, or to all GPUs of a node or domain:
xid (`code`), ecc (`rate` errors a second, or one), thermal, brake, power, straggle (`level`: share of the clock that
is lost), fabric (registration with the NVLink fabric is under way again), nvlink (see nvlinks.py).
A GPU that failed, or with XID 79, answers nothing any more.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from twin.errors import InputError
from twin.simulator.scenario import Fault
from twin.simulator.world import F64, Active, Counter, World
from twin.topology.model import Topology
from twin.topology.resolve import Target

HURTS = ("xid", "ecc", "power", "thermal", "brake", "straggle", "fabric", "nvlink")
IDLE, POWER_CAP, SLOWDOWN, SOFT_THERMAL, HARD_THERMAL, BRAKE = 1, 4, 8, 0x20, 0x40, 0x80  # NVML clocks event reasons
_BUSY_HERTZ, _IDLE_HERTZ = 1.92e9, 0.345e9  # estimated: between the base and boost clocks of Hopper and Blackwell
_LOST_CODE = 79
_OLD_CODES = (13, 31, 43, 45)  # what crashed programs leave behind
_LEVEL = {"thermal": 0.4, "brake": 0.5, "power": 0.3, "straggle": 0.3}  # share of the clock lost unless told
_CAPPED = 0.3  # of the samples of a busy GPU say software power cap (estimated)
_HOT = 91.0


def check_hurt(fault: Fault, target: Target) -> None:
    """Raises InputError for a `hurt` of no GPU, or of a kind or degree that there is not."""
    if fault.action != "hurt":
        return
    if fault.kind not in HURTS:
        raise InputError(f"hurt {fault.target}: kind is {fault.kind!r}, expected one of {', '.join(HURTS)}")
    if not len(target.gpus):
        raise InputError(f"hurt: {fault.target!r} is no GPU, nor a node or domain of GPUs")
    if fault.kind == "xid" and fault.code is None:
        raise InputError(f"hurt {fault.target}: 'code' is missing (the XID)")
    if fault.level is not None and not 0 < fault.level < 1:
        raise InputError(f"hurt {fault.target}: level is {fault.level:g}, expected a share between 0 and 1")


def lost(world: World) -> npt.NDArray[np.bool_]:
    """bool[gpus]: those of which nothing can be read."""
    out = np.zeros(len(world.topo.gpus.node), bool)
    for a in world.faults("fail", "hurt"):
        gone = a.fault.code == _LOST_CODE if a.fault.action == "hurt" else _is_gpu(a)
        if gone:
            out[a.target.gpus] = True
    return out


def restarted_gpus(world: World) -> npt.NDArray[np.bool_]:
    """bool[gpus]: those whose driver was loaded again now, so that their counters begin anew."""
    names = world.topo.rows("node")
    nodes = [names[n] for n in world.restarted if n in names]
    out = np.isin(world.topo.gpus.node, nodes)
    for a in world.faults("restart"):
        if a.age < world.interval:
            out[a.target.gpus] = True
    return out


def _is_gpu(a: Active) -> bool:
    """A fault of GPUs themselves, not of the node or the domain that they are in."""
    return len(a.target.gpus) == 1 and not len(a.target.nodes) and "/" in a.fault.target


class GpuFaults:
    """The second half of a GPU's readings."""

    def __init__(self, topo: Topology, rng: np.random.Generator) -> None:
        self._rng = rng
        self._n = n = len(topo.gpus.node)
        self._quality = rng.standard_normal(n)
        self._in_fabric = topo.gpus.domain >= 0
        self._ecc = Counter("gpu", "ecc_uncorrected", np.floor(rng.exponential(0.02, n)))
        self._energy = Counter("gpu", "energy_joules", rng.uniform(1e6, 1e10, n))
        self._xid: F64 | None = None
        self._hit: dict[int, int] = {}  # GPU -> its code, while an XID fault lasts

    def step(self, world: World) -> None:
        gauges = world.signals.gauges["gpu"]
        busy = world.flow.pace > 0
        clock = self._clock(world, busy)
        reasons = self._reasons(world, busy)
        fabric = np.where(self._in_fabric, 3.0, np.nan)
        for a in world.faults("hurt"):
            self._hurt(a, gauges, clock, reasons, fabric)
        for a in world.faults("fail"):
            if a.fault.target.startswith("domain:"):
                fabric[a.target.gpus] = 2.0
        anew = restarted_gpus(world)
        say = world.signals.gauge
        say("gpu", "sm_clock_hertz", clock)
        say("gpu", "throttle_reasons", reasons)
        say("gpu", "fabric_state", fabric)
        for counter, rate in ((self._ecc, self._ecc_rate(world)), (self._energy, gauges["power_watts"])):
            counter.value[anew] = 0.0
            counter.go(world, np.nan_to_num(rate))
        self._silence(world, self._xids(world, anew))

    def _clock(self, world: World, busy: npt.NDArray[np.bool_]) -> F64:
        spread, noise = world.noise["sm_clock_spread"], world.noise["sm_clock_noise"]
        share = 1 + spread * self._quality + noise * self._rng.standard_normal(self._n)
        return np.where(busy, _BUSY_HERTZ * np.maximum(share, 0.1), _IDLE_HERTZ)

    def _reasons(self, world: World, busy: npt.NDArray[np.bool_]) -> F64:
        chance = self._rng.random(self._n)
        capped = np.where(chance < _CAPPED, POWER_CAP, 0)
        blip = np.where(self._rng.random(self._n) < world.noise["throttle_blips"], SOFT_THERMAL, 0)
        return np.where(busy, capped | blip, IDLE).astype(np.float64)

    def _hurt(self, a: Active, gauges: dict[str, F64], clock: F64, reasons: F64, fabric: F64) -> None:
        rows, kind = a.target.gpus, a.fault.kind
        if kind == "fabric":
            fabric[rows] = 2.0
        if kind not in _LEVEL:
            return
        left = 1 - (_LEVEL[kind] if a.fault.level is None else a.fault.level)
        clock[rows] *= left
        power = gauges["power_watts"] = gauges["power_watts"].copy()
        power[rows] *= left
        if kind == "thermal":
            reasons[rows] = SOFT_THERMAL | HARD_THERMAL | SLOWDOWN
            gauges["temperature_celsius"][rows] = _HOT
        elif kind == "brake":
            reasons[rows] = BRAKE | SLOWDOWN
        elif kind == "power":
            reasons[rows] = POWER_CAP
            limit = gauges["power_limit_watts"] = gauges["power_limit_watts"].copy()
            limit[rows] *= left

    def _ecc_rate(self, world: World) -> F64:
        rate = np.zeros(self._n)
        for a in world.faults("hurt"):
            if a.fault.kind != "ecc":
                continue
            if a.fault.rate is not None:
                rate[a.target.gpus] = self._rng.poisson(a.fault.rate * world.interval, len(a.target.gpus))
            elif a.age < world.interval:
                self._ecc.value[a.target.gpus] += 1
        return rate / world.interval

    def _xids(self, world: World, anew: npt.NDArray[np.bool_]) -> F64:
        """The last XID of each GPU. It stays when its fault is over, unless the GPU had to be reset for it."""
        if self._xid is None:
            old = self._rng.random(self._n) < world.noise["old_xids"]
            self._xid = np.where(old, self._rng.choice(_OLD_CODES, self._n), 0).astype(np.float64)
        hit: dict[int, int] = {}
        for a in world.faults("hurt"):
            if a.fault.kind == "xid" and a.fault.code is not None:
                hit.update(dict.fromkeys(a.target.gpus.tolist(), a.fault.code))
        for gpu, code in self._hit.items():
            if gpu not in hit and code not in _OLD_CODES:
                self._xid[gpu] = 0.0
        self._hit = hit
        self._xid[anew] = 0.0
        self._xid[list(hit)] = list(hit.values())
        return self._xid.copy()

    def _silence(self, world: World, xid: F64) -> None:
        """Nothing is read of a lost GPU, but the driver still tells why."""
        gone = lost(world)
        for metric, values in world.signals.gauges["gpu"].items():
            if gone.any():
                world.signals.gauges["gpu"][metric] = np.where(gone, np.nan, values)
        for value, _ in world.signals.counters["gpu"].values():
            value[gone] = np.nan
        xid[gone & (xid != _LOST_CODE)] = np.nan
        world.signals.gauge("gpu", "xid", xid)
