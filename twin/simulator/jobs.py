"""Who works where: the jobs of a scenario on their nodes, and the links they do not use though these are up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from twin.errors import InputError
from twin.simulator.scenario import Job, Phase, Workload
from twin.topology.model import HOST_LEAF, Topology

if TYPE_CHECKING:
    from twin.simulator.world import Active

Bool = npt.NDArray[np.bool_]
EVERYONE = "job"  # names the work that runs where a scenario names no jobs


@dataclass(frozen=True, slots=True)
class Work:
    """A collective in lockstep. utilization: share of a GPU's network bandwidth asked for. gpus: bool[gpus]."""

    kind: Workload
    utilization: float
    gpus: Bool


class Jobs:
    """The work at each moment: one job over everything, or those of the scenario with the nodes that they have."""

    def __init__(self, topo: Topology, jobs: Sequence[Job]) -> None:
        """topo: as `with_jobs` gives it."""
        rows = {name: nodes for name, nodes, _ in topo.jobs}
        self._all = np.ones(len(topo.gpus.node), bool)
        self._jobs = [(job, np.isin(topo.gpus.node, rows[job.name])) for job in jobs]
        self._rest = self._all & ~np.any([gpus for _, gpus in self._jobs] or [self._all], axis=0)

    def at(self, phase: Phase) -> list[Work]:
        """A phase is the work of all where no jobs are named; an idle one pauses those that are."""
        if not self._jobs:
            return [Work(phase.kind, phase.utilization, self._all)]
        paused = phase.kind == "idle"
        works = [Work("idle" if paused else job.kind, job.utilization, gpus) for job, gpus in self._jobs]
        return [*works, Work("idle", 0.0, self._rest)] if self._rest.any() else works


def with_jobs(topo: Topology, jobs: Sequence[Job]) -> Topology:
    """The fabric with these jobs on it, as it is without any. Raises InputError for a node that is not there or has
    two jobs."""
    if not jobs:
        return topo
    index, taken = topo.rows("node"), dict[str, str]()
    called = [job.name for job in jobs]
    problems = [f"two jobs are called {name!r}" for name in dict.fromkeys(called) if called.count(name) > 1]
    for job in jobs:
        problems += [f"job {job.name!r}: {topo.name} has no node {n!r}" for n in job.nodes if n not in index]
        problems += [f"job {job.name!r}: {n!r} works for {taken[n]!r} already" for n in job.nodes if n in taken]
        taken.update(dict.fromkeys(job.nodes, job.name))
    if problems:
        raise InputError(problems)
    return replace(topo, jobs=tuple((job.name, tuple(index[n] for n in job.nodes), job.kind) for job in jobs))


class Unused:
    """Links that carry nothing though they are up: muted ones, and the planes that jobs have left."""

    def __init__(self, topo: Topology) -> None:
        self.topo = topo
        self._node = np.where(topo.links.tier == HOST_LEAF, topo.port_node[topo.links.a], -1)

    def at(self, active: Sequence[Active]) -> Bool:
        """bool[links] under these faults."""
        out = np.zeros(len(self._node), bool)
        for now in active:
            if now.fault.action == "mute":
                out[now.target.links] = True
            elif now.fault.action == "abandon":
                plane = self.topo.planes.index(plane_of(self.topo, now.fault.other))
                out |= np.isin(self._node, now.target.nodes) & (self.topo.links.plane == plane)
        return out


def plane_of(topo: Topology, address: str) -> str:
    """The plane that `plane:B`, or short `B`, names. Raises InputError where there is no such plane."""
    name = address.removeprefix("plane:")
    if name not in topo.planes:
        raise InputError(
            f"abandon: {address!r} is no plane; planes are {', '.join(topo.planes) or 'not defined here'}"
        )
    return name
