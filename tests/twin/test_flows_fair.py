"""Max-min fair rates: by hand, by linear programming, and by what makes an allocation max-min fair."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from tests.twin.random_fabric import random_fabric
from twin.flows import Routes, completion_times, max_min
from twin.flows.repair import FairRates
from twin.flows.routes import F64


@st.composite
def networks(draw: st.DrawFn, most: int = 12) -> tuple[Routes, F64]:
    """Flows over any links in any shares, some links equal in bandwidth, some down."""
    links = draw(st.integers(1, most))
    speed = st.one_of(st.sampled_from([0.0, 100.0, 400.0]), st.floats(1, 1000))
    capacity = np.array(draw(st.lists(speed, min_size=links, max_size=links)))
    row = st.dictionaries(st.integers(0, links - 1), st.sampled_from([1.0, 1.0, 0.5, 0.25, 1 / 3]), max_size=4)
    flows = draw(st.lists(row, min_size=1, max_size=2 * most))
    routes = Routes.of_paths([list(flow) for flow in flows])
    share = np.array([share for flow in flows for share in flow.values()])
    return Routes(routes.start, routes.link, share), capacity


def is_max_min(routes: Routes, capacity: F64, rate: F64, rel: float = 1e-9) -> bool:
    """Feasible, and every flow has a saturated link on which no other flow gets more."""
    crossing = np.where(np.isinf(rate), 0.0, rate)
    load = routes.load(crossing, len(capacity))
    highest = np.zeros(len(capacity))
    np.maximum.at(highest, routes.link, crossing[routes.flow])
    saturated = load >= capacity * (1 - rel)
    mine = saturated[routes.link] & (rate[routes.flow] >= highest[routes.link] * (1 - rel))
    bound = np.bincount(routes.flow, mine, len(rate)) > 0
    return bool((load <= capacity * (1 + rel)).all() and (bound == (np.diff(routes.start) > 0)).all())


def test_the_parking_lot() -> None:
    """One flow over three links, others over one each: the long one gets the least of what links share out."""
    fair = max_min(Routes.of_paths([[0, 1, 2], [0], [1], [1], [2]]), np.array([10.0, 9.0, 10.0]))
    assert fair.rate.tolist() == [3, 7, 3, 3, 7]
    assert fair.bottleneck.tolist() == [1, 0, 1, 1, 2]


def test_a_split_flow_counts_for_its_share_of_each_link() -> None:
    routes = Routes(np.array([0, 2, 3]), np.array([0, 1, 0]), np.array([0.5, 0.5, 1.0]))
    assert max_min(routes, np.array([30.0, 30.0])).rate.tolist() == [20, 20]


def test_a_flow_without_links_has_no_limit_and_one_over_a_dead_link_no_rate() -> None:
    fair = max_min(Routes.of_paths([[], [0, 1], [1]]), np.array([0.0, 5.0]))
    assert fair.rate.tolist() == [np.inf, 0, 5] and fair.bottleneck.tolist() == [-1, 0, 1]


@given(networks())
def test_every_allocation_is_feasible_and_gives_every_flow_a_bottleneck(network: tuple[Routes, F64]) -> None:
    routes, capacity = network
    fair = max_min(routes, capacity)
    assert is_max_min(routes, capacity, fair.rate)
    bound = fair.bottleneck >= 0
    load = routes.load(np.where(bound, fair.rate, 0.0), len(capacity))
    assert np.allclose(load[fair.bottleneck[bound]], capacity[fair.bottleneck[bound]], rtol=1e-9)


@pytest.mark.parametrize("cores", [0, 8])
def test_so_it_does_on_whole_fabrics(cores: int) -> None:
    traffic = random_fabric(2048, leaf=32, pod=512 if cores else 2048, spines=16, cores=cores, seed=5)
    routes, capacity = traffic.routes, np.array(traffic.capacity)
    assert is_max_min(routes, capacity, max_min(routes, capacity).rate)


def by_linear_programming(routes: Routes, capacity: F64) -> F64:
    """The lexicographically largest sorted rates: raise the least rate, fix who cannot have more, and so on."""
    n = len(routes.start) - 1
    use = np.zeros((len(capacity), n))
    use[routes.link, routes.flow] = routes.share
    rate = np.full(n, np.nan)
    while np.isnan(rate).any():
        open_ = np.flatnonzero(np.isnan(rate))
        left = capacity - use[:, ~np.isnan(rate)] @ rate[~np.isnan(rate)]
        level = _most(np.append(np.zeros(len(open_)), -1.0), use[:, open_], left)
        for i, flow in enumerate(open_):
            goal = np.zeros(len(open_) + 1)
            goal[i] = -1.0
            if _most(goal, use[:, open_], left, at_least=level) <= level + 1e-6 * max(level, 1):
                rate[flow] = level
    return rate


def _most(goal: F64, use: F64, left: F64, at_least: float = 0.0) -> float:
    """The most that -goal @ (rates, level) can be, where every rate is at least the level."""
    n = use.shape[1]
    above = np.hstack([-np.eye(n), np.ones((n, 1))])
    limits = np.vstack([np.hstack([use, np.zeros((len(use), 1))]), above])
    bounds = [(0, None)] * n + [(at_least * (1 - 1e-9), None)]
    found = linprog(goal, limits, np.append(np.maximum(left, 0), np.zeros(n)), bounds=bounds)
    assert found.status == 0, found.message
    return float(-found.fun)


@settings(max_examples=60, deadline=None)
@given(networks(most=5))
def test_no_linear_program_finds_a_fairer_allocation(network: tuple[Routes, F64]) -> None:
    routes, capacity = network
    routes = routes.take(np.flatnonzero(np.diff(routes.start)))
    if len(routes.link):
        assert max_min(routes, capacity).rate == pytest.approx(by_linear_programming(routes, capacity), 1e-5, 1e-5)


def solved_anew(routes: Routes, capacity: F64, size: F64) -> F64:
    """Completion times the plain way: all rates from scratch after every event."""
    left, done, now = size.copy(), np.full(len(size), np.inf), 0.0
    while True:
        open_ = np.flatnonzero(np.isinf(done))
        rate = max_min(routes.take(open_), capacity).rate
        with np.errstate(divide="ignore", invalid="ignore"):
            needs = np.where(left[open_] > 0, left[open_] / rate, 0.0)
        if not len(open_) or np.isinf(needs.min()):
            return done
        step = needs.min()
        now += step
        ended = needs <= step * (1 + 1e-9)
        left[open_] -= np.where(np.isinf(rate), 0.0, rate) * step
        done[open_[ended]] = now


@given(networks(), st.randoms(use_true_random=False), st.sampled_from([3, 64]))
def test_repaired_rates_end_transfers_when_rates_solved_anew_do(
    network: tuple[Routes, F64], random: Random, most: int
) -> None:
    routes, capacity = network
    size = np.array([random.choice([0.0, 1.0, 7.0, random.uniform(0.1, 50)]) for _ in routes.start[1:]])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("twin.flows.repair._AT_MOST", most)
        assert completion_times(routes, capacity, size) == pytest.approx(solved_anew(routes, capacity, size), 1e-7)


def test_rates_stay_max_min_fair_while_flows_leave_a_fabric() -> None:
    traffic = random_fabric(512, leaf=32, pod=512, spines=8, seed=11)
    capacity, routes = np.array(traffic.capacity), traffic.routes
    rates = FairRates(routes, capacity)
    for gone in range(0, 480, 3):
        rates.leave([gone, gone + 1, gone + 2])
        still = np.arange(gone + 3, 512)
        assert is_max_min(routes.take(still), capacity, np.array(rates.rate)[still])


def test_transfers_by_hand() -> None:
    """Two share a link until the shorter is done, then the other has it alone. One has no way, one nothing to do."""
    routes = Routes.of_paths([[0], [0], [1], [0], []])
    size = np.array([10.0, 30.0, 1.0, 0.0, 5.0])
    assert completion_times(routes, np.array([10.0, 0.0]), size).tolist() == [2, 4, np.inf, 0, 0]


def test_sizes_that_are_unknown_or_negative_are_refused() -> None:
    for size in (np.nan, -1.0):
        with pytest.raises(ValueError, match="sizes of transfers"):
            completion_times(Routes.of_paths([[0]]), np.ones(1), np.array([size]))


def test_nothing_to_send_is_no_event() -> None:
    assert len(completion_times(Routes.of_paths([]), np.ones(1), np.zeros(0))) == 0
