"""Max-min fair rates by progressive filling, all links that are locally the tightest at once.

The level of a link is what it has left, divided by what its open flows take of it. A link is frozen when no flow on
it has a link of a lower level elsewhere: nothing that happens on other links can change it then, since levels only
rise. Freezing every such link each round, rather than the lowest alone, takes about ten rounds where filling one
link at a time takes one a link (D. Bertsekas, R. Gallager, Data Networks, 1992, section 6.5.2, for the algorithm and
for the proof that an allocation is max-min fair exactly when every flow has a bottleneck).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from twin.flows.routes import F64, I64, Routes, sums

_TIE = 1e-12  # levels this close, relatively, are one: sums in another order must not cost a round each


class Allocation(NamedTuple):
    """rate: float64[flows], inf without a link. bottleneck: int64[flows], the saturated link on which no flow gets
    more than this one, -1 for a flow without a link."""

    rate: F64
    bottleneck: I64


def max_min(routes: Routes, capacity: F64) -> Allocation:
    """Max-min fair rates. capacity: float64[directed links], 0 for one that is down."""
    n_flows = len(routes.start) - 1
    rate, bottleneck = np.full(n_flows, np.inf), np.full(n_flows, -1, np.int64)
    flows = np.arange(n_flows)  # the open flows, and the links that they cross
    links, left = np.arange(len(capacity)), capacity
    flow, link, share = routes.flow, routes.link, routes.share  # the entries of open flows, numbered among those
    while len(link):
        used, link = _renumber(link, len(links))
        links, left = links.take(used), left.take(used)
        level = (left / np.bincount(link, share)).take(link)
        lowest = np.full(len(flows), np.inf)
        np.minimum.at(lowest, flow, level)
        tightest = level <= (lowest * (1 + _TIE)).take(flow)
        waits = np.zeros(len(links), bool)
        waits[link.take(np.flatnonzero(~tightest))] = True
        frozen = np.flatnonzero(tightest & ~waits.take(link))
        now = np.zeros(len(flows), bool)
        now[flow.take(frozen)] = True
        bottleneck[flows.take(flow.take(frozen))] = links.take(link.take(frozen))
        done, still = np.flatnonzero(now), np.flatnonzero(~now)
        rate[flows.take(done)] = lowest.take(done)
        ended = now.take(flow)
        entry, rest = np.flatnonzero(ended), np.flatnonzero(~ended)
        taken = lowest.take(flow.take(entry)) * share.take(entry)
        left = np.maximum(left - sums(link.take(entry), taken, len(links)), 0.0)
        flows, flow = flows.take(still), (np.cumsum(~now) - 1).take(flow.take(rest))
        link, share = link.take(rest), share.take(rest)
    return Allocation(rate, bottleneck)


def _renumber(rows: I64, n: int) -> tuple[I64, I64]:
    """The distinct values of `rows` (below n) in order, and the place of each row among them."""
    there = np.zeros(n, bool)
    there[rows] = True
    return np.flatnonzero(there), (np.cumsum(there) - 1).take(rows)
