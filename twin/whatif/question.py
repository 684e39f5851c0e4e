"""WhatIf: a state, what is asked of it, and the comparison of before and after."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from twin.collectives import Prediction, predict
from twin.collectives.formulas import Algorithm
from twin.detectors.rules import Rules
from twin.snapshot import Snapshot
from twin.topology.model import Topology
from twin.whatif.change import Change, apply
from twin.whatif.figures import F64, Figures, Meter
from twin.whatif.foresight import Foreseen, Foresight, told
from twin.whatif.state import Bool, State, designed, of_snapshot

Job = tuple[str, tuple[int, ...], str]  # as in Topology.jobs: name, node rows, collective
EVERYONE = "all GPUs"  # the job that is judged where the wiring names none
SAME = 1e-9  # shares closer than this are one


@dataclass(frozen=True, slots=True)
class JobChange:
    """What a job's collective gets before and after. lost: how many of its GPUs a change takes, so that it stops."""

    name: str
    before: Prediction
    after: Prediction
    lost: int = 0

    @property
    def fraction(self) -> float:
        """After over before; NaN where there was none before."""
        was = self.before.bus_bandwidth
        return self.after.bus_bandwidth / was if was else float("nan")


@dataclass(frozen=True, slots=True)
class Answer:
    """Before and after a change. incidents: those that would follow, worst first; ended: (kind, cause) of those that
    would be over."""

    topo: Topology
    change: Change
    meter: Meter
    before: Figures
    after: Figures
    jobs: tuple[JobChange, ...]
    incidents: tuple[Foreseen, ...]
    ended: tuple[tuple[str, str], ...]

    @property
    def losers(self) -> Bool:
        """bool[gpus], those that have less bandwidth or fewer NVLinks than before."""
        return _less(self.before.gpu, self.after.gpu) | _less(self.before.nvlink, self.after.nvlink)

    @property
    def gainers(self) -> Bool:
        """bool[gpus], those that have more of either."""
        return _less(self.after.gpu, self.before.gpu) | _less(self.after.nvlink, self.before.nvlink)


class WhatIf:
    """Questions to one state of a fabric. What holds before any change is worked out once."""

    def __init__(
        self, topo: Topology, state: State | None = None, *, rules: Rules | None = None, meter: Meter | None = None
    ) -> None:
        self.topo = topo
        self.meter = meter or Meter(topo)
        self.state = state or designed(topo)
        self.rules = rules or Rules.load()
        self._foresight = Foresight(self.meter, self.rules)
        self.before = self.meter.read(self.state)
        everyone = np.flatnonzero(topo.nodes.n_gpus > 0).tolist()
        self.jobs: tuple[Job, ...] = topo.jobs or (((EVERYONE, tuple(everyone), "allreduce"),) if everyone else ())
        self._predictions: dict[str, Prediction] = {}
        self._designed = designed(topo) if state is not None else self.state
        self._standing = self._foresight.standing(self.state)

    @classmethod
    def of_snapshot(cls, snapshot: Snapshot, *, rules: Rules | None = None, meter: Meter | None = None) -> WhatIf:
        """Questions to what the twin knows. The twin that made the snapshot is not touched."""
        meter = meter or Meter(snapshot.topology)
        return cls(snapshot.topology, of_snapshot(snapshot, meter.power_model), rules=rules, meter=meter)

    def ask(self, change: Change) -> Answer:
        """What a change would do. Raises InputError for one that makes no sense (see `apply`)."""
        state = apply(self.meter.power_model, self.state, change)
        after = self.meter.read(state)
        found = self._foresight.after(self.state, state)
        new = [told(f) for key, f in found.items() if key not in self._standing]
        order = ("critical", "warning", "info")
        return Answer(
            self.topo,
            change,
            self.meter,
            self.before,
            after,
            tuple(self.job(job, state, after) for job in self.jobs),
            tuple(sorted(new, key=lambda f: (order.index(f.story.severity), -f.story.affected.gpus, f.cause))),
            tuple(sorted(key for key in self._standing if key not in found)),
        )

    def after(self, change: Change) -> WhatIf:
        """Questions to the state after a change."""
        if change.empty:
            return self
        return WhatIf(
            self.topo, apply(self.meter.power_model, self.state, change), rules=self.rules, meter=self.meter
        )

    def job(self, job: Job, state: State, after: Figures) -> JobChange:
        """One job before and after, with the algorithm that is fastest on the designed fabric."""
        before = self._before(job)
        gone = state.gpu_lost & ~self.state.gpu_lost
        lost = int(np.count_nonzero(gone & np.isin(self.topo.gpus.node, job[1])))
        if lost:
            return JobChange(job[0], before, replace(before, bus_bandwidth=0.0, link=""), lost)
        same = np.array_equal(state.speed, self.state.speed) and np.array_equal(state.nvlink_up, self.state.nvlink_up)
        now = before if same else self._predict(job, state.speed, after.nvlink, before.algorithm)
        return JobChange(job[0], before, now)

    def _before(self, job: Job) -> Prediction:
        if job[0] not in self._predictions:
            begun = self._predict(job, self._designed.speed, np.ones(len(self.before.nvlink)), None)
            if self.state is not self._designed:
                begun = self._predict(job, self.state.speed, self.before.nvlink, begun.algorithm)
            self._predictions[job[0]] = begun
        return self._predictions[job[0]]

    def _predict(self, job: Job, speed: F64, nvlink: F64, algorithm: Algorithm | None) -> Prediction:
        nvlinks = np.where(np.isnan(nvlink), 1.0, nvlink)
        return predict(self.topo, speed, job, nvlinks=nvlinks, algorithm=algorithm)


def _less(one: F64, other: F64) -> Bool:
    with np.errstate(invalid="ignore"):
        less: Bool = other < one - SAME
    return less
