"""Ways through a fabric: complete, short, over what is up, and as many as the way of routing says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twin.capacity import CapacityModel
from twin.flows import Router, Routes, max_min
from twin.flows.router import Paths, Planes
from twin.flows.routes import F64, I64
from twin.topology.model import LEAF_SPINE, SPINE_CORE, Topology
from twin.topology.presets import preset
from twin.topology.resolve import resolve

B300 = preset("b300-superpod-ethernet")  # 64 nodes, a leaf a rail and plane, 4 spines a plane
UPLINKS = set(np.flatnonzero(B300.links.tier == LEAF_SPINE).tolist())  # directed: upwards
THREE_TIERS = preset("dgx-b200-ndr", scalable_units=16)
POD = preset("meta-24k-roce", pods=2)


def at(*rows: int) -> I64:
    return np.array(rows, np.int64)


def nic(topo: Topology, address: str) -> I64:
    return at(topo.rows("nic")[address])


def without(topo: Topology, *addresses: str, speed_fraction: float = 0.0) -> F64:
    speed = topo.links.speed.copy()
    for address in addresses:
        speed[resolve(topo, address).links] *= speed_fraction
    return speed


def devices(topo: Topology, row: int) -> tuple[int, int]:
    """Where a directed link begins and ends."""
    low, high = (int(end[row % len(topo.links.a)]) for end in topo.link_ends)
    return (low, high) if row < len(topo.links.a) else (high, low)


def balanced(topo: Topology, routes: Routes, source: I64, target: I64) -> bool:
    """Whether every flow leaves its source whole, arrives whole, and is lost or born nowhere between."""
    for flow in range(len(source)):
        net: dict[int, float] = {}
        for entry in range(routes.start[flow], routes.start[flow + 1]):
            begin, end = devices(topo, int(routes.link[entry]))
            net[begin] = net.get(begin, 0.0) - routes.share[entry]
            net[end] = net.get(end, 0.0) + routes.share[entry]
        wanted = {int(topo.nics.node[source[flow]]): -1.0, int(topo.nics.node[target[flow]]): 1.0}
        if any(abs(amount - wanted.get(device, 0.0)) > 1e-9 for device, amount in net.items()):
            return False
    return True


@pytest.mark.parametrize("paths", ["split", "hash"])
@pytest.mark.parametrize("planes", ["spread", "hash"])
@pytest.mark.parametrize("topo", [B300, THREE_TIERS, POD], ids=lambda topo: topo.name)
@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_flows_arrive_whole_over_links_that_are_up(seed: int, topo: Topology, paths: Paths, planes: Planes) -> None:
    n = len(topo.nics.node)
    rng = np.random.default_rng(seed)
    source = rng.integers(0, n, 8)
    target = (source + 8 * rng.integers(1, n // 8, 8)) % n  # another node
    speed = topo.links.speed.copy()
    fabric = np.flatnonzero(topo.links.tier > 0)
    speed[rng.choice(fabric, len(fabric) // 5)] = 0
    speed[rng.choice(fabric, len(fabric) // 5)] *= 0.5
    router = Router(topo, speed, paths=paths, planes=planes, seed=seed)
    routes = router.routes(source, target)
    assert balanced(topo, routes, source, target)
    assert (router.capacity[routes.link] > 0).all()
    volume = rng.random(8)
    assert router.load(source, target, volume) == pytest.approx(routes.load(volume, len(router.capacity)))


def test_the_same_rail_is_one_hop_and_another_rail_three_links_more() -> None:
    hop = Router(B300, B300.links.speed, paths="hash", planes="hash").routes
    assert len(hop(nic(B300, "n000/nic3"), nic(B300, "n063/nic3")).link) == 2
    assert len(hop(nic(B300, "n000/nic3"), nic(B300, "n063/nic4")).link) == 4


def test_a_split_flow_uses_every_equal_path_alike() -> None:
    """Two planes, a leaf with 16 links to each of 4 spines, as many down to the other leaf."""
    routes = Router(B300, B300.links.speed).routes(nic(B300, "n000/nic0"), nic(B300, "n001/nic1"))
    assert sorted(routes.share) == pytest.approx([1 / 128] * 256 + [0.5] * 4)


def test_slow_paths_carry_less_and_dead_ones_nothing_where_routing_is_adaptive() -> None:
    """Spine 0 is down, spine 1 has half its speed towards the leaf of rail 1 alone: 2.5 spines of 4 are left."""
    speed = without(B300, "plane:B", "A-spine-00")
    ends = B300.ports.switch[B300.links.a], B300.ports.switch[B300.links.b]
    leaf, spine = (B300.rows("switch")[name] for name in ("A-leaf-01", "A-spine-01"))
    speed[(ends[0] == leaf) & (ends[1] == spine)] /= 2
    router = Router(B300, speed)
    routes = router.routes(nic(B300, "n000/nic0"), nic(B300, "n001/nic1"))
    up = [share for row, share in zip(routes.link.tolist(), routes.share.tolist(), strict=True) if row in UPLINKS]
    assert sorted(up) == pytest.approx([0.2 / 16] * 16 + [0.4 / 16] * 32)
    assert max_min(routes, router.capacity).rate.tolist() == [400e9], "still the NIC's own port"


def test_hashing_draws_the_same_links_every_time_others_for_another_seed_and_all_of_them_in_the_end() -> None:
    source, target = np.repeat(nic(B300, "n000/nic0"), 2000), np.repeat(nic(B300, "n001/nic1"), 2000)

    def uplinks(seed: int) -> I64:
        router = Router(B300, B300.links.speed, paths="hash", planes="hash", seed=seed)
        link = router.routes(source, target, np.arange(2000)).link
        return np.array([row for row in link.tolist() if row in UPLINKS])

    assert (uplinks(7) == uplinks(7)).all() and (uplinks(7) != uplinks(8)).any()
    assert len(np.unique(uplinks(7))) == 128


def test_each_tier_draws_anew_so_that_the_flows_of_one_spine_use_all_its_uplinks() -> None:
    """Drawn once for all tiers, those that chose the same uplink would choose the same one again (polarisation)."""
    many, n = 6000, len(THREE_TIERS.nics.node)
    router = Router(THREE_TIERS, THREE_TIERS.links.speed, paths="hash")
    routes = router.routes(np.zeros(many, np.int64), np.full(many, n - 8, np.int64), np.arange(many))
    first, second = routes.link.reshape(many, 6)[:, 2], routes.link.reshape(many, 6)[:, 3]
    spines = THREE_TIERS.ports.switch[THREE_TIERS.links.b[first]]
    up = (THREE_TIERS.links.tier == SPINE_CORE) & (THREE_TIERS.ports.switch[THREE_TIERS.links.a] == spines[0])
    assert set(second[spines == spines[0]].tolist()) == set(np.flatnonzero(up).tolist())


def test_flows_of_one_pair_share_a_path_unless_they_have_queue_pairs_of_their_own() -> None:
    router = Router(B300, B300.links.speed, paths="hash", planes="hash")
    twice = np.repeat(nic(B300, "n000/nic0"), 2), np.repeat(nic(B300, "n001/nic1"), 2)
    assert len(np.unique(router.routes(*twice).link)) == 4
    assert len(np.unique(router.routes(*twice, at(1, 2)).link)) > 4


def test_one_queue_pair_gets_one_plane_and_balancing_gets_both() -> None:
    ends = nic(B300, "n000/nic0"), nic(B300, "n001/nic0")
    one, both = Router(B300, B300.links.speed, planes="hash"), Router(B300, B300.links.speed, planes="spread")
    assert max_min(one.routes(*ends), one.capacity).rate.tolist() == [400e9]
    assert max_min(both.routes(*ends), both.capacity).rate.tolist() == [800e9]


@pytest.mark.parametrize(("fraction", "rate"), [(0.0, 400e9), (0.5, 600e9)])
def test_a_slow_or_dead_port_leaves_its_flow_the_other_planes(fraction: float, rate: float) -> None:
    router = Router(B300, without(B300, "n001/nic0/p1", speed_fraction=fraction))
    routes = router.routes(nic(B300, "n000/nic0"), nic(B300, "n001/nic0"))
    assert max_min(routes, router.capacity).rate == pytest.approx([rate])


def test_a_flow_without_a_way_stands_still_and_one_to_itself_needs_none() -> None:
    router = Router(B300, without(B300, "n001/nic0/p0", "n001/nic0/p1"))
    own = nic(B300, "n000/nic0")
    routes = router.routes(np.concatenate([own, own]), np.concatenate([nic(B300, "n001/nic0"), own]))
    assert max_min(routes, router.capacity).rate.tolist() == [0, np.inf]


def test_a_leaf_without_uplinks_still_joins_its_own_hosts() -> None:
    up = [f"{plane}-spine-0{i}" for plane in "AB" for i in range(4)]
    router = Router(B300, without(B300, *up))
    first = np.repeat(nic(B300, "n000/nic0"), 2)
    routes = router.routes(first, np.concatenate([nic(B300, "n001/nic0"), nic(B300, "n001/nic1")]))
    assert max_min(routes, router.capacity).rate.tolist() == [800e9, 0]


def test_rails_that_are_planes_do_not_meet() -> None:
    topo = preset("deepseek-mpft", nodes=16)
    router = Router(topo, topo.links.speed)
    routes = router.routes(at(0, 0), at(8, 9))
    assert max_min(routes, router.capacity).rate.tolist() == [400e9, 0]


def test_a_cable_between_two_hosts_is_a_path() -> None:
    topo = preset("dgx-station-pair")
    router = Router(topo, topo.links.speed)
    assert max_min(router.routes(at(0, 1), at(1, 0)), router.capacity).rate.tolist() == [800e9, 800e9]


@pytest.mark.parametrize("topo", [THREE_TIERS, POD], ids=lambda topo: topo.name)
def test_three_tiers_are_climbed_only_as_far_as_needed(topo: Topology) -> None:
    router = Router(topo, topo.links.speed, paths="hash")
    n = len(topo.nics.node)
    hops = np.diff(router.routes(np.zeros(n - 1, np.int64), np.arange(1, n)).start)
    assert set(hops.tolist()) == {2, 4, 6}


def test_a_spine_that_lost_a_leaf_is_left_out_rather_than_reached_over_the_core() -> None:
    leaf = int(POD.peer_switch[POD.nics.port0[8]])
    spine = POD.rows("switch")[next(name for name in POD.switches.name if "spine" in name)]
    low, high = (POD.ports.switch[end] for end in (POD.links.a, POD.links.b))
    speed = POD.links.speed.copy()
    speed[(low == leaf) & (high == spine)] = 0
    away = next(n for n in range(8, 3072, 8) if POD.peer_switch[POD.nics.port0[n]] != leaf)
    routes = Router(POD, speed).routes(at(away), at(8))
    assert spine + len(POD.nodes.name) not in {end for row in routes.link.tolist() for end in devices(POD, row)}
    assert set(POD.links.tier[routes.link % len(speed)].tolist()) == {0, LEAF_SPINE}


def test_two_spines_of_a_pod_lost_send_flows_over_the_others() -> None:
    lost = [name for name in POD.switches.name if "spine" in name][:2]
    router = Router(POD, without(POD, *lost), paths="hash", seed=3)
    rng = np.random.default_rng(0)
    source, target = rng.integers(0, 3072, 300), 3072 + rng.integers(0, 3072, 300)
    routes = router.routes(source, target)
    dead = {POD.rows("switch")[name] + len(POD.nodes.name) for name in lost}
    assert not dead & {device for link in routes.link.tolist() for device in devices(POD, link)}
    assert (np.diff(routes.start) == 6).all()


def test_a_full_exchange_gets_what_the_capacity_model_says_is_left() -> None:
    """All NICs to all rails at once saturate leaves' uplinks, which is the bound that capacity gives."""
    speed = without(B300, "A-spine-00", "B-spine-01")
    router = Router(B300, speed)
    n = 512
    source = np.arange(n)
    load = np.sum([router.load(source, (source + 1 + 8 * k) % n, np.full(n, 1 / 8)) for k in range(8)], axis=0)
    used = np.flatnonzero(load)
    pace = (router.capacity[used] / load[used]).min()
    assert pace / 800e9 == pytest.approx(CapacityModel(B300).at(speed).gpu.min(), rel=0.01)


def test_an_unknown_speed_counts_as_designed() -> None:
    speed = np.full(len(B300.links.a), np.nan)
    assert (Router(B300, speed).capacity[:-1] == 400e9).all()
