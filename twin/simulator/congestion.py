"""Congestion in the simulation: how long ports wait, what is marked, dropped, reordered and sent again.

It steps before the ports count bytes, since who waits sends less. InfiniBand ports count ticks of waiting for
credits; Ethernet ports count the time they are paused, their hosts marked packets and notifications.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from twin.simulator.jams import Jam, make_jam
from twin.simulator.scenario import Fault
from twin.simulator.traffic import Flow
from twin.simulator.world import Active, Counter, World
from twin.topology.model import Topology
from twin.xmitwait import bytes_a_tick, infiniband

F64 = npt.NDArray[np.float64]

_PACKET = 4096.0  # bytes, RoCE with an MTU of 4096
_ADAPTER_TICK = 8.0  # bytes; estimated: what an adapter counts is not published
_FULL = 0.97  # of its speed: a full port, headers taken off
_STEP_S, _CHECKPOINT_S = (4.0, 8.0), (45.0, 90.0)  # between bursts of steps, between checkpoints; estimated
_BURST_S, _STORE_S = 1.0, 2.0  # how long either lasts; estimated
_CNP_PER_MARK, _CNP_LIMIT = 0.2, 320e3  # DCQCN: one a flow in 50 us, 16 flows; the share is estimated
_LOSSY = 50.0  # times as many packets out of order or sent again behind a jam; estimated
_ETHERNET_PAUSE = 0.5  # of the wait behind a queue: ECN slows senders before pause must; estimated


class Congestion:
    """Waiting of all ports, in health and under `congest` faults."""

    def __init__(self, topo: Topology, rng: np.random.Generator) -> None:
        self.topo, self._rng = topo, rng
        n = len(topo.ports.nic)
        wired = topo.ports.link >= 0
        self._ib = infiniband(topo)
        tick = np.where(self._ib, np.nan_to_num(bytes_a_tick(topo), nan=_ADAPTER_TICK), np.nan)
        self._tick = np.where(wired, tick, np.nan)
        self._ethernet = wired & ~self._ib
        self._hosts = self._ethernet & (topo.ports.nic >= 0)
        self._jams: dict[Fault, Jam] = {}
        self._step = self._checkpoint = 0.0
        self._stored: tuple[float, F64] = 0.0, np.zeros(n)

        def counter(metric: str, where: npt.NDArray[np.bool_]) -> Counter:
            start = np.where(where, rng.integers(0, 10**6, n).astype(np.float64), np.nan)
            return Counter("port", metric, start)

        self._ticks = counter("tx_wait_ticks", ~np.isnan(self._tick))
        self._rx_pause, self._tx_pause = (counter(f"{d}_pause_seconds", self._ethernet) for d in ("rx", "tx"))
        self._discards = Counter("port", "tx_discards", np.where(wired, 0.0, np.nan))
        hosts = "ecn_marked", "cnp_sent", "cnp_handled", "out_of_sequence", "retransmitted"
        self._packets = [counter(f"{name}_packets", self._hosts) for name in hosts]

    def step(self, world: World) -> None:
        jams = [(a, self._jam(a)) for a in world.faults("congest")]
        self._load(world, jams)
        wait, pause = self._waits(world, jams)
        for counter in (self._ticks, self._rx_pause, self._tx_pause, self._discards, *self._packets):
            fresh = world.restarted_ports
            counter.value[fresh] = np.where(np.isnan(counter.value[fresh]), np.nan, 0.0)
        speed = np.nan_to_num(world.speed)
        self._ticks.go(world, wait * speed / 8 / self._tick)
        self._rx_pause.go(world, pause)
        self._tx_pause.go(world, _at_peer(self.topo, pause))
        drops = self._rng.poisson(world.noise["discards"] * world.interval, len(wait)) / world.interval
        self._discards.go(world, drops.astype(np.float64))
        self._count_packets(world, jams)

    def _jam(self, active: Active) -> Jam:
        fault = active.fault
        if fault not in self._jams:
            self._jams[fault] = make_jam(self.topo, fault, active.target, self._rng)
        return self._jams[fault]

    # --- load ---

    def _load(self, world: World, jams: list[tuple[Active, Jam]]) -> None:
        """Who waits sends less, a jammed job goes slowly, and full ports are full."""
        if not jams:
            return
        topo, flow = self.topo, world.flow
        most = np.nan_to_num(world.speed) / 8
        pace = min(self._pace(world, jam) for _, jam in jams)
        tx, rx = flow.tx * pace, flow.rx * pace
        for _, jam in jams:
            ports = np.array(jam.spared, np.intp)
            tx[ports] *= 0.5
            rows = np.array(list(jam.wait), np.intp)
            tx[rows] = np.minimum(tx[rows], (1 - self._shaky(jam.wait)) * most[rows])
            full = np.array(jam.full, np.intp)
            tx[full] = most[full] * np.minimum(_FULL * self._rng.normal(1, 0.01, len(full)), 1.0)
            mine = np.concatenate([ports, rows, full]).astype(np.intp)
            rx[topo.ports.peer[mine]] = tx[mine]
        world.flow = Flow(tx, rx, flow.pace * pace)

    def _pace(self, world: World, jam: Jam) -> float:
        """A collective goes at the pace of the host that cannot drain; its other planes carry on."""
        if jam.drain is None or world.phase.kind == "idle":
            return 1.0
        port, share = jam.drain
        planes = int(np.count_nonzero((self.topo.ports.nic == self.topo.ports.nic[port]) & self.topo.ports.compute))
        return min(1.0, (planes - 1 + share) / planes / max(world.phase.utilization, 0.01))

    def _shaky(self, shares: dict[int, float]) -> F64:
        """Shares that move from one interval to the next."""
        level = np.array(list(shares.values()))
        spread = 0.08 * np.minimum(level, 2 * (1 - level))
        moved: F64 = np.clip(level + spread * self._rng.normal(0, 1, len(level)), 0, 1)
        return moved

    # --- waiting ---

    def _waits(self, world: World, jams: list[tuple[Active, Jam]]) -> tuple[F64, F64]:
        """Shares of time that each port waits for credits, and that it is paused."""
        wait = self._healthy(world)
        pause = wait * world.noise["pause_share"]
        for active, jam in jams:
            rows = np.array(list(jam.wait), np.intp)
            share = self._shaky(jam.wait)
            behind = 1.0 if active.fault.kind in ("slow_receiver", "pause_storm") else _ETHERNET_PAUSE
            np.maximum.at(wait, rows, share)
            np.maximum.at(pause, rows, share * behind)
        up = np.nan_to_num(world.up)
        return np.clip(wait, 0, 1) * up, np.clip(pause, 0, 1) * up

    def _healthy(self, world: World) -> F64:
        """A little all the time, more in the bursts of steps, much for some ports while a checkpoint is stored."""
        n, rng, noise = len(world.up), self._rng, world.noise
        with np.errstate(divide="ignore", invalid="ignore"):
            busy = np.clip(np.nan_to_num(world.flow.tx * 8 / world.speed), 0, 1)
        wait = noise["wait_base"] * rng.exponential(1, n) * busy
        if world.t >= self._step:
            self._step = world.t + float(rng.uniform(*_STEP_S))
            wait += noise["step_wait"] * rng.random(n) * busy * min(1.0, _BURST_S / world.interval)
        if world.t >= self._checkpoint:
            self._checkpoint = world.t + float(rng.uniform(*_CHECKPOINT_S))
            hit = rng.random(n) < noise["checkpoint_ports"]
            self._stored = world.t + _STORE_S, hit * rng.uniform(0.3, 1, n) * noise["checkpoint_wait"]
        until, share = self._stored
        if world.t < until:
            wait += share * busy * min(1.0, (until - world.t) / world.interval)
        return wait

    # --- packets ---

    def _count_packets(self, world: World, jams: list[tuple[Active, Jam]]) -> None:
        n, noise, rng = len(world.up), world.noise, self._rng
        sent, received = world.flow.tx / _PACKET, world.flow.rx / _PACKET
        share = noise["ecn_marked"] * rng.exponential(1, n)
        lossy = np.ones(n)
        for _, jam in jams:
            rows = np.array(list(jam.marked), np.intp)
            share[rows] = self._shaky(jam.marked)
            lossy[np.array(jam.senders, np.intp)] = lossy[rows] = _LOSSY
        marked = np.clip(share, 0, 1) * received
        notified = np.minimum(marked * _CNP_PER_MARK, _CNP_LIMIT)
        handled = np.full(n, notified[self._hosts].mean() if self._hosts.any() else 0.0)
        for _, jam in jams:
            handled[np.array(jam.senders, np.intp)] += notified[list(jam.marked)].sum() / max(1, len(jam.senders))
        rates = (
            marked, notified, handled * rng.uniform(0.5, 1.5, n), received * noise["out_of_sequence"] * lossy,
            sent * noise["retransmitted"] * lossy,
        )  # fmt: skip
        for counter, rate in zip(self._packets, rates, strict=True):
            counter.go(world, np.where(self._hosts, rate, np.nan))


def _at_peer(topo: Topology, share: F64) -> F64:
    """The same seen from the other end of the cable: who pauses, not who is paused."""
    peer = topo.ports.peer
    return np.where(peer >= 0, share[peer], np.nan)
