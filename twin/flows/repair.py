"""A max-min fair allocation that stays so while flows leave.

A flow that leaves changes few others: those that it held back, those that they hold back in turn. So the rates
around the links that it frees are filled anew, with all other flows as they are, and the result is proved by what
makes an allocation max-min fair: every flow has a bottleneck, a saturated link on which no flow gets more. Flows
that lost theirs join, until none has. Most repairs touch a handful of flows of thousands, too few for numpy to pay;
one that grows past that gives way to solving all again.
"""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

import numpy as np

from twin.flows.fair import max_min
from twin.flows.routes import F64, Routes

_AT_MOST = 64  # flows in a repair; with more, solving all in numpy takes less time
_SLACK = 1e-10  # relative: rounding does not make a saturated link free, or one of two equal rates the higher


class _Filling(NamedTuple):
    """Rates and bottlenecks of the flows under repair, and what the links that they cross have left."""

    rate: dict[int, float]
    bottleneck: dict[int, int]
    left: dict[int, float]


class FairRates:
    """rate: the fair rate of each flow, in the unit of `capacity`; what flows had that left means nothing."""

    def __init__(self, routes: Routes, capacity: F64) -> None:
        self._routes, self._capacity = routes, capacity
        self._limit: list[float] = capacity.tolist()
        self._crosses: list[dict[int, float]] = [{} for _ in routes.start[1:]]  # flow -> link -> share
        self._on: defaultdict[int, dict[int, float]] = defaultdict(dict)  # link -> flow -> share
        for flow, link, share in zip(routes.flow.tolist(), routes.link.tolist(), routes.share.tolist(), strict=True):
            share += self._crosses[flow].get(link, 0.0)
            self._crosses[flow][link] = self._on[link][flow] = share
        self._open = set(range(len(self._crosses)))
        fair = max_min(routes, capacity)
        self.rate: list[float] = fair.rate.tolist()
        self._bottleneck: list[int] = fair.bottleneck.tolist()

    def leave(self, flows: list[int]) -> list[int]:
        """Takes flows out. Returns the flows whose rates may have changed by it."""
        self._open.difference_update(flows)
        freed = {link for flow in flows for link in self._crosses[flow]}
        for flow in flows:
            for link in self._crosses[flow]:
                del self._on[link][flow]
        loose = {flow for link in freed for flow in self._on[link] if self._bottleneck[flow] == link}
        while loose:
            if len(loose) > _AT_MOST:
                return self._solve_all()
            filling = self._fill(loose)
            lost = self._without_bottleneck(filling)
            if not lost:
                for flow, rate in filling.rate.items():
                    self.rate[flow], self._bottleneck[flow] = rate, filling.bottleneck[flow]
                break
            loose |= lost
        return list(loose)

    def _solve_all(self) -> list[int]:
        flows = sorted(self._open)
        fair = max_min(self._routes.take(np.array(flows, np.int64)), self._capacity)
        for flow, rate, link in zip(flows, fair.rate.tolist(), fair.bottleneck.tolist(), strict=True):
            self.rate[flow], self._bottleneck[flow] = rate, link
        return flows

    def _fill(self, loose: set[int]) -> _Filling:
        """Progressive filling of the loose flows with what the others leave them, the tightest link at a time."""
        wanted: defaultdict[int, dict[int, float]] = defaultdict(dict)  # link -> its flows still open -> share
        for flow in loose:
            for link, share in self._crosses[flow].items():
                wanted[link][flow] = share
        left = {
            link: self._limit[link] - sum(s * self.rate[f] for f, s in self._on[link].items() if f not in loose)
            for link in wanted
        }
        filling = _Filling({}, {}, left)
        while wanted:
            level, tightest = min((left[link] / sum(open_.values()), link) for link, open_ in wanted.items())
            level = max(level, 0.0)
            for flow in list(wanted[tightest]):
                filling.rate[flow], filling.bottleneck[flow] = level, tightest
                for link, share in self._crosses[flow].items():
                    left[link] -= share * level
                    del wanted[link][flow]
                    if not wanted[link]:
                        del wanted[link]
        return filling

    def _without_bottleneck(self, filling: _Filling) -> set[int]:
        """Other flows that this filling wrongs: they lose their bottleneck, or hold back a flow that gets less."""
        lost = set()
        for link, left in filling.left.items():
            on = self._on[link]
            mine = [flow for flow in on if flow in filling.rate]
            if len(mine) == len(on):
                continue
            saturated = left <= _SLACK * self._limit[link]
            highest = max(filling.rate[flow] for flow in mine) * (1 - _SLACK)
            held = [filling.rate[flow] for flow in mine if filling.bottleneck[flow] == link]
            fair = max(held) * (1 + _SLACK) if held else float("inf")
            for flow in on:
                if flow not in filling.rate:
                    rate = self.rate[flow]
                    unbound = self._bottleneck[flow] == link and not (saturated and rate >= highest)
                    if unbound or rate > fair:
                        lost.add(flow)
        return lost
