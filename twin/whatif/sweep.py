"""Every single failure of a class of parts (N-1), and pairs of them (N-2), ranked by what they cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import numpy as np

from twin.errors import InputError
from twin.topology.model import Topology
from twin.topology.resolve import Target
from twin.whatif.change import is_down, target_of, without
from twin.whatif.figures import F64, Figures, Power
from twin.whatif.question import SAME, JobChange, WhatIf
from twin.whatif.report import job_to_json
from twin.whatif.state import State

PAIRS = 2_000  # pairs worked out exactly, at most
_POOL = 1_500  # parts, the costliest, whose pairs are looked at at all
_LOOKS = 4e9  # sums that may be made to choose them
_TOLD = 10  # kinds of outcome for which jobs are predicted, which takes longest


def _links(topo: Topology) -> list[str]:
    return [topo.link_name(row) for row in range(len(topo.links.a))]


CLASSES: dict[str, Callable[[Topology], Sequence[str]]] = {
    "switches": lambda topo: topo.switches.name,
    "links": _links,
    "planes": lambda topo: [f"plane:{name}" for name in topo.planes],
    "nics": lambda topo: topo.nic_names,
    "nodes": lambda topo: topo.nodes.name,
    "gpus": lambda topo: topo.gpu_names,
    "nvswitches": lambda topo: topo.nvswitch_names,
    "domains": lambda topo: [f"domain:{name}" for name in topo.domains.name],
    "racks": lambda topo: topo.racks.name,
    "feeds": lambda topo: topo.feeds.name,
    "psus": lambda topo: topo.psu_names,
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What failing these addresses costs. gpu, nvlink: (least, mean) share over GPUs, NaN where there is none.

    headroom: W left at the holder that is worst off among those it touches, NaN where it touches no power;
    headroom_after_loss: the same with one more unit lost. jobs: filled in for the costliest only.
    """

    failed: tuple[str, ...]
    gpus_affected: int
    gpu: tuple[float, float]
    nvlink: tuple[float, float]
    headroom: float
    headroom_after_loss: float
    jobs: tuple[JobChange, ...] = ()

    @property
    def rank(self) -> tuple[float, ...]:
        """Costliest first: what trips a breaker; then by the GPU that is worst off, which sets the pace of its job,
        and by all of them; then by what power is left."""
        values = (float(not self.headroom < 0), *self.gpu, *self.nvlink, self.headroom, self.headroom_after_loss)
        return tuple(float("inf") if v != v else round(v, 9) for v in values)


@dataclass(frozen=True, slots=True)
class Sweep:
    """outcomes: costliest first. possible: how many there are; `bound` says which, where not all were worked out.
    skipped: how many parts are down already."""

    what: str
    outcomes: tuple[Outcome, ...]
    possible: int
    skipped: int = 0
    bound: str = ""

    @property
    def groups(self) -> list[list[Outcome]]:
        """Outcomes that cost the same, costliest first."""
        return [list(alike) for _, alike in groupby(self.outcomes, key=lambda o: (o.rank, o.gpus_affected))]

    def to_json(self) -> dict[str, Any]:
        return {
            "sweep": self.what,
            "possible": self.possible,
            "computed": len(self.outcomes),
            "down_already": self.skipped,
            "bound": self.bound or None,
            "outcomes": [_to_json(outcome) for outcome in self.outcomes],
        }


def singles(whatif: WhatIf, what: str) -> Sweep:
    """Every failure of one part of a class of `CLASSES`. Raises InputError for another, or where there is none."""
    scale = _Scale(whatif)
    targets = _targets(whatif, what)
    up = [target for target in targets if not is_down(whatif.topo, whatif.state, target)]
    outcomes = [scale.weigh((target,))[0] for target in up]
    return Sweep(what, scale.rank(outcomes, up), len(targets), len(targets) - len(up))


def pairs(whatif: WhatIf, what: str) -> Sweep:
    """Failures of two parts of a class at once. Where there are too many, those are worked out that hit one GPU, or
    the power of one node or rack, hardest by the sum of what each costs alone."""
    scale = _Scale(whatif)
    up = [t for t in _targets(whatif, what) if not is_down(whatif.topo, whatif.state, t)]
    chosen = _hardest([scale.weigh((target,)) for target in up])
    possible = len(up) * (len(up) - 1) // 2
    both = [(up[i], up[j]) for i, j in chosen]
    outcomes = [scale.weigh(pair)[0] for pair in both]
    told = (
        f"{len(both):,} of {possible:,} pairs: those that hit one GPU, node or rack hardest by the sum of both alone"
    )
    return Sweep(what, scale.rank(outcomes, up), possible, bound=told if len(both) < possible else "")


def _targets(whatif: WhatIf, what: str) -> list[Target]:
    if what not in CLASSES:
        raise InputError(f"sweep: {what!r}; expected one of {', '.join(CLASSES)}")
    found = [target_of(whatif.topo, address) for address in CLASSES[what](whatif.topo)]
    found = [t for t in found if any(map(len, (t.links, t.nvlinks, t.gpus, t.psus, t.feeds, t.nodes)))]
    if not found:
        raise InputError(f"sweep: {whatif.topo.name} has no {what}; see `fabrictwin topology show`")
    return found


class _Scale:
    """Weighs failures against the state before, working out only what they can change."""

    def __init__(self, whatif: WhatIf) -> None:
        self._whatif, self._meter, self._before = whatif, whatif.meter, whatif.before

    def weigh(self, targets: Sequence[Target]) -> tuple[Outcome, F64]:
        """The outcome, and float64[2 x gpus + holders], the share that each loses of bandwidth, NVLink and power."""
        was, after = self._before, self._figures(self._state(targets))
        lost = [np.nan_to_num(was.gpu - after.gpu), np.nan_to_num(was.nvlink - after.nvlink)]
        with np.errstate(divide="ignore", invalid="ignore"):
            power = np.nan_to_num(1 - after.power.capacity / was.power.capacity)
        affected = int(np.count_nonzero((lost[0] > SAME) | (lost[1] > SAME)))
        headroom = _worst(was.power, after.power)
        names = tuple(target.address for target in targets)
        outcome = Outcome(names, affected, _least_mean(after.gpu), _least_mean(after.nvlink), *headroom)
        return outcome, np.concatenate([*lost, power])

    def rank(self, outcomes: list[Outcome], targets: list[Target]) -> tuple[Outcome, ...]:
        """Costliest first, with what jobs get for the first of each of the costliest kinds."""
        ranked = sorted(outcomes, key=lambda o: o.rank)
        by_address = {target.address: target for target in targets}
        heads: dict[tuple[float, ...], int] = {}
        for place, outcome in enumerate(ranked):
            heads.setdefault(outcome.rank, place)
        for place in list(heads.values())[:_TOLD]:
            state = self._state([by_address[address] for address in ranked[place].failed])
            after = self._figures(state)
            jobs = tuple(self._whatif.job(job, state, after) for job in self._whatif.jobs)
            ranked[place] = replace(ranked[place], jobs=jobs)
        return tuple(ranked)

    def _state(self, targets: Sequence[Target]) -> State:
        state = self._whatif.state
        for t in targets:
            if any(map(len, (t.nodes, t.gpus, t.nvlinks, t.psus, t.feeds))):
                state = without(self._meter.power_model, state, t)
            else:
                speed = state.speed.copy()
                speed[t.links] = 0.0
                state = replace(state, speed=speed)
        return state

    def _figures(self, state: State) -> Figures:
        """Those that `weigh` looks at; the others are as before."""
        base, was, meter = self._whatif.state, self._before, self._meter
        gpu = meter.bandwidth(state)[0]
        if state.nvlink_up is base.nvlink_up and state.gpu_lost is base.gpu_lost:
            return replace(was, gpu=gpu)
        return replace(was, gpu=gpu, nvlink=meter.nvlink(state), power=meter.power(state))


def _least_mean(share: F64) -> tuple[float, float]:
    known = share[~np.isnan(share)]
    return (float(known.min()), float(known.mean())) if len(known) else (float("nan"), float("nan"))


def _worst(before: Power, after: Power) -> tuple[float, float]:
    """Least headroom, now and after one more loss, of the holders that lose capacity and still draw something."""
    with np.errstate(invalid="ignore"):
        hit = (after.capacity < before.capacity) & (after.load > 0)
    if not hit.any():
        return float("nan"), float("nan")
    return float(after.headroom[hit].min()), float(after.headroom_after_next[hit].min())


def _hardest(weighed: list[tuple[Outcome, F64]]) -> list[tuple[int, int]]:
    """Pairs of these, by their places: the `PAIRS` of which one GPU or holder loses most, then all together."""
    loss = np.array([lost for _, lost in weighed], dtype=np.float32)
    loss = loss[:, (loss > 0).any(0)]
    ranked = np.array(sorted(range(len(weighed)), key=lambda i: weighed[i][0].rank), dtype=np.intp)
    pool = np.sort(ranked[: min(_POOL, int((2 * _LOOKS / max(1, loss.shape[1])) ** 0.5))])
    loss, all_ = loss[pool], loss[pool].sum(1)
    one, other = np.triu_indices(len(pool), 1)
    peak = np.zeros(len(one), np.float32)
    if loss.shape[1]:
        rows = [(loss[i] + loss[i + 1 :]).max(1) for i in range(len(pool) - 1)]
        peak = np.concatenate(rows) if rows else peak
    order = np.lexsort((-(all_[one] + all_[other]), -peak))[:PAIRS]
    return list(zip(pool[one[order]].tolist(), pool[other[order]].tolist(), strict=True))


def _to_json(o: Outcome) -> dict[str, Any]:
    out: dict[str, Any] = {
        "failed": list(o.failed),
        "gpus_affected": o.gpus_affected,
        "bandwidth_fraction": {"min": o.gpu[0], "mean": o.gpu[1]},
        "nvlink_fraction": {"min": o.nvlink[0], "mean": o.nvlink[1]},
        "headroom_watts": o.headroom,
        "headroom_after_loss_watts": o.headroom_after_loss,
    }
    return {**out, "collectives": [job_to_json(job) for job in o.jobs]} if o.jobs else out
