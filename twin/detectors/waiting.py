"""What ports say of congestion, as shares: of time for which they may not send, of packets marked or dropped.

A port waits when the device at the far end takes no more: on InfiniBand it counts ticks without credits (XmitWait),
on Ethernet it is paused, which both ends measure. Everything is told of the port that sends. Frames of pause say
nothing, time does: a pause is also ended by a frame.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from twin.detectors.rules import Rules
from twin.detectors.scene import Scene
from twin.frames import NS
from twin.state import HEADROOM
from twin.topology.model import Topology
from twin.xmitwait import bytes_a_tick

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
Bool = npt.NDArray[np.bool_]

_USUAL_TICK = 8.0  # bytes, of every Quantum: what an unknown port is taken to count, if it stands out besides
_STANDS_OUT = 4.0  # times what is usual for its peers or for itself
_USUAL_LEAST = 0.002  # and of at least this share
_PAST = 60.0  # seconds over which a port's own past is averaged
_PACKET = 4096.0  # bytes: RoCE's largest, where packets are not counted
_FEW = 1000.0  # packets a second; of fewer a share says nothing


@dataclass(frozen=True, slots=True)
class PortView:
    """Arrays over ports, all of the direction out of the port, NaN where unknown.

    wait: share of time in which it has data and may not send. queue: share of packets marked or dropped for the
    length of its queue. marked: share of packets marked alone. load: share of its speed that it sends. time: event
    time of the newest reading.
    """

    wait: F64
    queue: F64
    marked: F64
    load: F64
    speed: F64
    time: I64


class PortWatch:
    """Reads the scene. Remembers what is usual for ports whose ticks are of unknown length."""

    def __init__(self, topo: Topology, rules: Rules) -> None:
        self.topo, self.rules = topo, rules
        n = len(topo.ports.link)
        tick = bytes_a_tick(topo)
        self._known_tick = ~np.isnan(tick)
        self._tick = np.where(self._known_tick, tick, _USUAL_TICK)
        self._peer = np.where(topo.ports.peer >= 0, topo.ports.peer, n)
        tier = np.append(topo.switches.tier, -1)[topo.ports.switch]
        self._class = np.where(topo.ports.nic >= 0, -1, tier)  # NICs, leaves, spines, cores
        self._usual, self._usual_time = np.full(n, np.nan), np.zeros(n, np.int64)

    @staticmethod
    def heard(scene: Scene) -> bool:
        """Whether anybody reports a sign of congestion."""
        return any(scene.heard("port", m) for m in _SIGNS)

    def at(self, scene: Scene) -> PortView:
        speed = scene.fresh("port", "speed_bits_per_second")
        speed = np.where(speed > 0, speed, self.topo.port_speed)
        wait, time = self._wait(scene, speed)
        marked, queue, queue_time = self._queue(scene)
        sent = np.fmax(scene.fresh("port", "tx_bytes"), self._other_end(scene.fresh("port", "rx_bytes")))
        down = np.append(scene.links.down, False)[self.topo.ports.link]
        wait, queue = np.where(down, 0.0, wait), np.where(down, 0.0, queue)
        return PortView(wait, queue, marked, sent * 8 / speed, speed, np.maximum(time, queue_time))

    def _other_end(self, values: F64) -> F64:
        """What the far end of each port's cable says, NaN without one."""
        return np.append(values, np.nan)[self._peer]

    def _wait(self, scene: Scene, speed: F64) -> tuple[F64, I64]:
        shares = []
        times = [np.zeros(len(speed), np.int64)]
        if scene.heard("port", "tx_wait_ticks"):
            times.append(scene.time("port", "tx_wait_ticks"))
            ticks = scene.fresh("port", "tx_wait_ticks") * self._tick * 8 / speed
            shares.append(self._believed(ticks, times[-1]))
        if scene.heard("port", "rx_pause_seconds"):
            shares.append(scene.fresh("port", "rx_pause_seconds"))
            times.append(scene.time("port", "rx_pause_seconds"))
        if scene.heard("port", "tx_pause_seconds"):
            shares.append(self._other_end(scene.fresh("port", "tx_pause_seconds")))
            times.append(np.append(scene.time("port", "tx_pause_seconds"), 0)[self._peer])
        if scene.heard("port", "rx_discards"):  # the far end has no room for what we send
            shares.append(self._other_end(self._drops(scene, "rx_discards")))
            times.append(np.append(scene.time("port", "rx_discards"), 0)[self._peer])
        wait = np.full(len(speed), np.nan)
        for share in shares:
            wait = np.fmax(wait, np.where(share <= HEADROOM, np.minimum(share, 1.0), np.nan))
        return wait, np.max(times, axis=0)

    def _queue(self, scene: Scene) -> tuple[F64, F64, I64]:
        """Shares of packets marked, and marked or dropped."""
        marked = queue = np.full(len(self._peer), np.nan)
        time = np.zeros(len(self._peer), np.int64)
        if scene.heard("port", "ecn_marked_packets"):  # counted by the host, told of the port that sends to it
            packets = scene.fresh("port", "rx_packets")
            packets = np.where(np.isnan(packets), scene.fresh("port", "rx_bytes") / _PACKET, packets)
            with np.errstate(divide="ignore", invalid="ignore"):
                share = scene.fresh("port", "ecn_marked_packets") / packets
            share = np.where(packets < _FEW, 0.0, share)
            marked = self._other_end(np.where(share <= HEADROOM, np.minimum(share, 1.0), np.nan))
            queue = marked
            time = np.append(scene.time("port", "ecn_marked_packets"), 0)[self._peer]
        if scene.heard("port", "tx_discards"):
            queue = np.fmax(queue, self._drops(scene, "tx_discards"))
            time = np.maximum(time, scene.time("port", "tx_discards"))
        return marked, queue, time

    def _drops(self, scene: Scene, metric: str) -> F64:
        """Dropped packets on the scale of shares: as many as are tolerated count as the tolerated share."""
        rate = scene.fresh("port", metric) / self.rules.discards
        return np.minimum(rate * self.rules.congestion_share, 1.0)

    def _believed(self, share: F64, time: I64) -> F64:
        """Of ports whose ticks are of unknown length only what stands out from their peers and their own past."""
        unknown = ~self._known_tick & ~np.isnan(share)
        if not unknown.any():
            return share
        peers = np.full(len(share), np.nan)
        for kind in np.unique(self._class[unknown]):
            mine = unknown & (self._class == kind)
            peers[mine] = np.median(share[mine])
        usual = np.maximum(np.fmin(peers, self._usual), _USUAL_LEAST)
        stands_out = share >= _STANDS_OUT * usual
        fresh = unknown & (time > self._usual_time)
        weight = np.clip((time - self._usual_time) / (_PAST * NS), 0, 1)
        calm = fresh & ~(stands_out & (share >= self.rules.congestion_share))
        before = np.where(np.isnan(self._usual), share, self._usual)
        self._usual[calm] = (before + weight * (share - before))[calm]
        self._usual_time = np.where(fresh, time, self._usual_time)
        return np.where(unknown & ~stands_out, np.minimum(share, 0.0), share)


_SIGNS = (
    "tx_wait_ticks", "rx_pause_seconds", "tx_pause_seconds", "rx_discards", "tx_discards", "ecn_marked_packets",
)  # fmt: skip
