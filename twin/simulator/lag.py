"""Telemetry that is late: readings keep the time at which they were taken and come in later, in their order."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush

from twin.errors import InputError
from twin.frames import NS, Frame
from twin.simulator.scenario import Fault
from twin.simulator.world import World
from twin.topology.model import Topology


def check_lag(fault: Fault) -> None:
    """Raises InputError for a lag that does not say how long it is."""
    if fault.action == "lag" and not (fault.late or 0) > 0:
        raise InputError(f"lag: {fault.target!r}: 'late' is missing (by how many seconds its readings come late)")


class Lag:
    """The frames that are under way. A lag is a queue: when it ends what waits there drains, nothing overtakes."""

    def __init__(self, topo: Topology) -> None:
        self.topo = topo
        self._under_way: list[tuple[int, int, Frame]] = []  # by arrival, then in the order of sending
        self._sent = 0
        self._queue: dict[str, Fault] = {}  # source -> the lag that its readings go, or last went, through
        self._last: dict[Fault, int] = {}  # arrival of the latest frame of a queue

    def arrivals(self, frames: Sequence[Frame], world: World, start: int) -> list[Frame]:
        """What comes in during this interval, of these frames and of earlier ones, in order of arrival.

        start: ns, when the simulation began.
        """
        late = self._late(world)
        if not late and not self._under_way:
            return list(frames)
        self._queue |= late
        for frame in frames:
            arrival, queue = frame.time, self._queue.get(frame.source)
            if queue is not None:
                arrival = max(arrival, self._last.get(queue, 0))
            if frame.source in late:
                fault = late[frame.source]
                arrival = self._last[fault] = max(arrival, frame.time + round((fault.late or 0.0) * NS))
            heappush(self._under_way, (arrival, self._sent, frame))
            self._sent += 1
        end = start + round((world.t + world.interval) * NS)
        out = []
        while self._under_way and self._under_way[0][0] < end:
            out.append(heappop(self._under_way)[2])
        return out

    def _late(self, world: World) -> dict[str, Fault]:
        """The lag of each source that has one, the longest where there are several."""
        out: dict[str, Fault] = {}
        for active in sorted(world.faults("lag"), key=lambda a: a.fault.late or 0.0):
            names = [self.topo.switches.name[s] for s in active.target.switches]
            names += [self.topo.nodes.name[n] for n in active.target.nodes]
            out.update(dict.fromkeys(names, active.fault))
        return out
