"""Presets: their numbers are those of the published tables."""

from __future__ import annotations

import numpy as np
import pytest

from twin.errors import InputError
from twin.topology.presets import PRESETS, preset
from twin.topology.summary import summary

# SU, nodes, GPUs, leaves, spines, node-leaf cables, leaf-spine cables
# docs.nvidia.com/dgx-superpod/reference-architecture/scalable-infrastructure-b300
ETHERNET = [
    (1, 64, 512, 16, 8, 512, 512),
    (2, 128, 1024, 32, 16, 1024, 1024),
    (4, 256, 2048, 64, 32, 2048, 2048),
    (8, 512, 4096, 128, 64, 4096, 4096),
    (16, 1024, 8192, 256, 128, 8192, 8192),
]
# docs.nvidia.com/dgx-superpod/reference-architecture/scalable-infrastructure-b300-xdr; its last row prints 9216
# GPUs where its own cables say 10368
XDR = [
    (1, 72, 576, 8, 4, 576, 576),
    (2, 144, 1152, 16, 8, 1152, 1152),
    (4, 288, 2304, 32, 18, 2304, 2304),
    (8, 576, 4608, 64, 36, 4608, 4608),
    (18, 1296, 10368, 144, 72, 10368, 10368),
]


@pytest.mark.parametrize(
    ("name", "row"),
    [("b300-superpod-ethernet", r) for r in ETHERNET] + [("b300-superpod-xdr", r) for r in XDR],
)
def test_superpod_counts_equal_the_vendor_tables(name: str, row: tuple[int, ...]) -> None:
    s = summary(preset(name, scalable_units=row[0]))
    got = (
        row[0],
        s["nodes"],
        s["gpus"],
        s["leaves"],
        s["spines"],
        s["cables"]["host_leaf"],
        s["cables"]["leaf_spine"],
    )
    assert got == row


def test_one_dual_plane_unit_has_1024_host_links_of_400g_on_512_split_cables() -> None:
    s = summary(preset("b300-superpod-ethernet"))
    assert (s["planes"], s["links"]["host_leaf"], s["cables"]["host_leaf"]) == (2, 1024, 512)
    assert s["host_link_bits_per_second"] == 400e9


def test_a_quad_plane_nic_is_split_four_times() -> None:
    s = summary(preset("b300-superpod-ethernet", planes=4))
    assert (s["planes"], s["host_link_bits_per_second"], s["network_bits_per_second_per_gpu"]) == (4, 200e9, 800e9)


def test_a_gb300_unit_is_eight_racks_of_72_gpus_and_18_switch_chips() -> None:
    s = summary(preset("gb300-nvl72-superpod"))
    assert (s["racks"], s["nodes"], s["gpus"], s["nvlink_domains"], s["nvswitches"]) == (8, 144, 576, 8, 144)
    assert (s["leaves"], s["spines"], s["links"]["nvlink"]) == (8, 4, 576 * 18)


@pytest.mark.parametrize(("servers", "leaves", "spines"), [(8, 1, 0), (16, 4, 2), (64, 16, 8), (256, 64, 32)])
def test_rtx_pro_leaves_join_64_gpus_in_one_hop_and_then_go_two_tier(servers: int, leaves: int, spines: int) -> None:
    s = summary(preset("rtx-pro-6000", servers=servers))
    assert (s["gpus"], s["leaves"], s["spines"]) == (8 * servers, leaves, spines)
    assert s["network_bits_per_second_per_gpu"] == 400e9


def test_two_tiers_of_64_port_switches_end_at_2048_gpus() -> None:
    with pytest.raises(InputError, match="2048"):
        preset("rtx-pro-6000", servers=257)


@pytest.mark.parametrize("name", PRESETS)
def test_no_port_is_used_twice_and_no_switch_has_more_links_than_ports(name: str) -> None:
    topo = preset(name)
    assert len(set(topo.port_names)) == len(topo.port_names)
    used = np.bincount(topo.ports.switch[topo.ports.switch >= 0], minlength=len(topo.switches.name))
    assert (used <= topo.switches.radix).all()
    assert (topo.ports.link >= 0).all()


@pytest.mark.parametrize("name", PRESETS)
def test_every_leaf_is_joined_equally_to_every_spine_of_its_plane(name: str) -> None:
    topo = preset(name)
    up = topo.links.tier == 1
    if not up.any():
        return
    pairs = np.stack([topo.ports.switch[topo.links.a[up]], topo.ports.switch[topo.links.b[up]]])
    kinds, counts = np.unique(pairs, axis=1, return_counts=True)
    assert len(set(counts.tolist())) == 1
    planes = len(topo.planes)
    leaves, spines = (np.count_nonzero(topo.switches.tier == t) // planes for t in (0, 1))
    assert kinds.shape[1] == leaves * spines * planes


def test_the_same_rail_of_a_rail_optimised_unit_is_one_hop() -> None:
    topo = preset("b300-superpod-xdr")
    leaf_rail = topo.switches.rail[topo.peer_switch[: len(topo.nics.node)]]
    assert (leaf_rail == topo.nics.rail).all()


@pytest.mark.parametrize(
    ("name", "sizes", "reason"),
    [
        ("b300-superpod-ethrnet", {}, "did you mean b300-superpod-ethernet"),
        ("b300-superpod-ethernet", {"scalable_units": 17}, "expected 1 to 16"),
        ("b300-superpod-ethernet", {"planes": 3}, "expected 2 or 4"),
        ("b300-superpod-xdr", {"planes": 2}, "no parameter 'planes'"),
    ],
)
def test_an_unknown_preset_or_size_is_refused_with_what_was_expected(
    name: str, sizes: dict[str, int], reason: str
) -> None:
    with pytest.raises(InputError, match=reason):
        preset(name, **sizes)
