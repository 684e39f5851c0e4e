"""Collectors that fail and say so: what our own supervisor tells of them, once an interval."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from twin.errors import InputError
from twin.frames import NS, Frame
from twin.simulator.scenario import Fault
from twin.simulator.world import World
from twin.sources import SUPERVISOR
from twin.topology.model import Topology
from twin.topology.resolve import Target

FAILED = "failed"


def check_silence(fault: Fault) -> None:
    """Raises InputError for a silence of a kind that there is not."""
    if fault.action == "silence" and fault.kind not in ("", FAILED):
        raise InputError(f"silence {fault.target}: kind is {fault.kind!r}, expected {FAILED!r} or none")


class Failing:
    """Sources under a `silence` of kind `failed`; once mended they are told to work."""

    def __init__(self, topo: Topology) -> None:
        self.topo = topo
        self._failures: dict[str, int] = {}  # in a row, 0 since they work again

    def words(self, world: World, start: int) -> Iterator[Frame]:
        """The supervisor's frame at the end of this interval, none before the first failure. start: ns."""
        failing = [name for a in world.faults("silence") if a.fault.kind == FAILED for name in self._names(a.target)]
        self._failures = dict.fromkeys(self._failures, 0) | {n: self._failures.get(n, 0) + 1 for n in failing}
        if self._failures:
            failures = np.array(list(self._failures.values()), np.float64)
            columns = {"up": np.where(failures > 0, 0.0, 1.0), "failures": failures}
            time = start + round((world.t + 0.99 * world.interval) * NS)
            yield Frame(time, SUPERVISOR, "source", tuple(self._failures), columns)

    def _names(self, target: Target) -> list[str]:
        names = [self.topo.switches.name[s] for s in target.switches]
        return names + [self.topo.nodes.name[n] for n in target.nodes]
