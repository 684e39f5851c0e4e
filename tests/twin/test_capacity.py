"""Capacity: what is left of the network after links are lost."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twin.capacity import CapacityModel
from twin.errors import InputError
from twin.topology.presets import preset
from twin.topology.resolve import resolve

ETHERNET = preset("b300-superpod-ethernet")
MODEL = CapacityModel(ETHERNET)


def lost(address: str, **sizes: int) -> tuple[list[float], list[float]]:
    """What planes and (distinct) GPUs keep when an address is lost."""
    topo = preset("b300-superpod-ethernet", **sizes)
    left = CapacityModel(topo).without(resolve(topo, address).links.tolist())
    return left.plane.tolist(), np.unique(left.gpu).tolist()


def test_a_healthy_fabric_has_all_its_capacity() -> None:
    left = MODEL.without([])
    assert left.plane.tolist() == [1, 1] and (left.gpu == 1).all()


def test_one_of_two_planes_lost_leaves_half_to_every_gpu() -> None:
    assert lost("plane:B") == ([1, 0], [0.5])


def test_one_of_four_planes_lost_leaves_three_quarters() -> None:
    assert lost("plane:C", planes=4) == ([1, 1, 0, 1], [0.75])


def test_a_leaf_takes_half_of_the_gpus_of_its_rail_and_an_eighth_of_its_plane() -> None:
    assert lost("A-leaf-03") == ([0.875, 1], [0.5, 1])


def test_one_of_four_spines_takes_a_quarter_of_every_leafs_uplinks() -> None:
    assert lost("A-spine-00") == ([0.75, 1], [0.875])


def test_one_of_a_leafs_64_uplinks_takes_its_share_from_the_64_gpus_behind_it() -> None:
    left = MODEL.without(resolve(ETHERNET, "A-leaf-00/p64").links.tolist())
    assert left.plane[0] == pytest.approx(1 - 1 / 512)
    assert np.count_nonzero(left.gpu < 1) == 64


def test_an_unknown_speed_counts_as_designed() -> None:
    speed = np.full(len(ETHERNET.links.a), np.nan)
    assert (MODEL.at(speed).gpu == 1).all()


@given(st.sets(st.integers(0, len(ETHERNET.links.a) - 1), max_size=30), st.integers(0, len(ETHERNET.links.a) - 1))
def test_losing_one_more_link_never_gives_capacity(links: set[int], more: int) -> None:
    before, after = MODEL.without(sorted(links)), MODEL.without(sorted(links | {more}))
    assert (after.gpu <= before.gpu + 1e-12).all() and (after.plane <= before.plane + 1e-12).all()
    assert (after.gpu >= 0).all()


@pytest.mark.parametrize(
    ("address", "count"),
    [
        ("plane:A", 1024),
        ("A-leaf-00", 128),
        ("A-spine-00", 128),
        ("n000", 16),
        ("n000/nic0", 2),
        ("n000/nic0/p1", 1),
        ("A-leaf-00/p64", 1),
        ("A-leaf-00/p64--A-spine-00/p0", 1),
    ],
)
def test_an_address_covers_its_links(address: str, count: int) -> None:
    assert len(resolve(ETHERNET, address).links) == count


@pytest.mark.parametrize("address", ["plane:Q", "A-leaf-99", "n000/nic0/p7", "n000/nic0/p0--A-leaf-00/p1", "", "--"])
def test_an_unknown_address_is_refused(address: str) -> None:
    with pytest.raises(InputError):
        resolve(ETHERNET, address)
