"""Bandwidth in bits/s, nominal and now, against figures worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twin.bandwidth import Bandwidth, bandwidth, bisection, cut_off, node_pairs
from twin.capacity import CapacityModel
from twin.topology import figures
from twin.topology.model import Topology
from twin.topology.presets import PRESETS, preset
from twin.topology.resolve import resolve

SPLIT = preset("b300-superpod-ethernet")  # 64 nodes of 8 GPUs, every NIC 2 x 400G, one port in each of two planes
RAIL = preset("deepseek-mpft", nodes=16)  # 16 nodes of 8 GPUs, NIC i, 400G, in plane i alone
MODEL = CapacityModel(SPLIT)
T = 1e12


def speed(topo: Topology, *lost: str, fraction: float = 0.0) -> np.ndarray:
    out = topo.links.speed.copy()
    for address in lost:
        out[resolve(topo, address).links] *= fraction
    return out


def now(topo: Topology, *lost: str, fraction: float = 0.0) -> Bandwidth:
    return bandwidth(CapacityModel(topo), speed(topo, *lost, fraction=fraction))


def test_nominal_figures_of_split_planes() -> None:
    found = bandwidth(MODEL)
    assert (found.gpu == 800e9).all()
    assert found.rail.tolist() == [64 * 800e9] * 8
    assert found.plane.tolist() == [512 * 400e9] * 2
    assert found.site == pytest.approx(409.6 * T)
    assert found.bisection == pytest.approx(np.array([102.4 * T, 102.4 * T]))


def test_eight_cards_of_400g_give_a_server_3_2_terabits() -> None:
    topo = preset("rtx-pro-6000")
    found = bandwidth(CapacityModel(topo))
    assert np.bincount(topo.gpus.node, found.gpu)[0] == 3.2e12
    assert node_pairs(topo, topo.links.speed, np.array([0]), np.array([1])).tolist() == [3.2e12]


def test_a_lost_split_plane_halves_every_gpu_rail_and_pair_and_takes_its_own_bisection() -> None:
    found = now(SPLIT, "plane:B")
    assert (found.gpu == 400e9).all() and found.rail.tolist() == [64 * 400e9] * 8
    assert found.plane.tolist() == [512 * 400e9, 0] and found.bisection.tolist() == [102.4 * T, 0]
    assert node_pairs(SPLIT, speed(SPLIT, "plane:B"), np.array([0, 3]), np.array([1, 60])).tolist() == [3.2e12] * 2


def test_one_of_four_split_planes_lost_leaves_three_quarters() -> None:
    topo = preset("b300-superpod-ethernet", planes=4)
    assert (now(topo, "plane:C").gpu == 600e9).all()


def test_a_lost_rail_plane_takes_one_rail_and_an_eighth_of_every_pair() -> None:
    found = now(RAIL, "plane:C")
    assert RAIL.plane_kind == "rail"
    assert found.rail.tolist() == [16 * 400e9 * (rail != 2) for rail in range(8)]
    assert (found.gpu == np.where(RAIL.gpus.ordinal == 2, 0, 400e9)).all()
    assert node_pairs(RAIL, speed(RAIL, "plane:C"), np.array([0]), np.array([5])).tolist() == [7 * 400e9]
    assert not cut_off(RAIL, speed(RAIL, "plane:C")).any(), "the other seven NICs of its node carry it"


def test_a_lost_leaf_takes_an_eighth_of_its_planes_bisection_and_one_port_of_a_rail() -> None:
    found = now(SPLIT, "A-leaf-03")
    assert found.bisection == pytest.approx(np.array([102.4 * T * 7 / 8, 102.4 * T]))
    assert found.rail[3] == 64 * 400e9 and found.rail[2] == 64 * 800e9


def test_a_lost_spine_takes_a_quarter_of_its_planes_bisection() -> None:
    assert now(SPLIT, "A-spine-00").bisection == pytest.approx(np.array([102.4 * T * 0.75, 102.4 * T]))


def test_a_lost_spine_costs_a_pair_that_is_alone_nothing() -> None:
    assert node_pairs(SPLIT, speed(SPLIT, "A-spine-00"), np.array([0]), np.array([9])).tolist() == [6.4e12]


def test_a_port_at_half_its_speed_costs_its_gpu_a_quarter() -> None:
    found = now(SPLIT, "n012/nic3/p0", fraction=0.5)
    assert found.gpu[12 * 8 + 3] == 600e9 and np.count_nonzero(found.gpu < 800e9) == 1


def test_a_node_reaches_itself_without_the_network() -> None:
    assert node_pairs(SPLIT, SPLIT.links.speed, np.array([4]), np.array([4])).tolist() == [0]


def test_a_node_without_links_is_cut_off_and_no_other() -> None:
    gone = cut_off(SPLIT, speed(SPLIT, "n012"))
    assert np.flatnonzero(gone).tolist() == list(range(96, 104))


def test_a_node_with_one_link_left_is_not_cut_off() -> None:
    now_ = speed(SPLIT, "n012")
    now_[resolve(SPLIT, "n012/nic5/p1").links] = 400e9
    assert not cut_off(SPLIT, now_).any()


def test_all_are_cut_off_from_each_other_without_any_plane() -> None:
    assert cut_off(SPLIT, speed(SPLIT, "plane:A", "plane:B")).all()


def test_a_host_alone_misses_nobody() -> None:
    topo = preset("rtx-pro-6000", servers=1)
    assert not cut_off(topo, np.zeros(len(topo.links.a))).any()


@pytest.mark.parametrize("name", [n for n in PRESETS if n != "dgx-station-pair"])
def test_the_bisection_of_a_healthy_fabric_is_what_its_wiring_says(name: str) -> None:
    topo = preset(name)
    assert bisection(topo, topo.links.speed).tolist() == pytest.approx(list(figures.bisection(topo).values()))


links = st.lists(st.integers(0, len(SPLIT.links.a) - 1), max_size=40)


@settings(max_examples=30, deadline=None)
@given(links, st.integers(0, len(SPLIT.links.a) - 1), st.floats(0, 1))
def test_a_slower_link_never_gives_bandwidth(slow: list[int], more: int, fraction: float) -> None:
    speeds = SPLIT.links.speed.copy()
    speeds[slow] *= fraction
    before = bandwidth(MODEL, speeds)
    speeds[more] *= fraction
    after = bandwidth(MODEL, speeds)
    for one, other in ((before.gpu, after.gpu), (before.rail, after.rail), (before.plane, after.plane)):
        assert (other <= one * (1 + 1e-12)).all() and (other >= 0).all()
    assert (after.bisection <= before.bisection * (1 + 1e-12)).all()
    assert after.site == pytest.approx(after.plane.sum()) == pytest.approx(after.rail.sum())


@settings(max_examples=25, deadline=None)
@given(links, st.integers(0, 63), st.integers(0, 63))
def test_a_pair_gets_the_same_both_ways_and_no_more_than_either_node_can_send(
    lost: list[int], a: int, b: int
) -> None:
    speeds = SPLIT.links.speed.copy()
    speeds[lost] = 0
    ways = node_pairs(SPLIT, speeds, np.array([a, b]), np.array([b, a]))
    own = np.bincount(SPLIT.port_node[SPLIT.links.a][SPLIT.links.tier == 0], speeds[SPLIT.links.tier == 0])
    assert ways[0] == pytest.approx(ways[1])
    assert ways[0] <= min(own[a], own[b]) * (1 + 1e-9)
