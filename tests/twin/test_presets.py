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


# What is published of the other fabrics, each row with where it is published.
PUBLISHED: list[tuple[str, str, dict[str, int], dict[str, int]]] = [
    (
        "docs.nvidia.com/dgx-superpod/reference-architecture-scalable-infrastructure-b200, table of unit counts",
        "dgx-b200-ndr",
        {"scalable_units": units},
        {"nodes": 32 * units, "gpus": 256 * units, "leaves": leaves, "spines": spines, "cores": cores,
         "host_leaf": 256 * units, "leaf_spine": 256 * units, "spine_core": 256 * units if cores else 0},
    )
    for units, leaves, spines, cores in (
        (2, 16, 8, 0), (4, 32, 16, 0), (8, 64, 32, 0), (16, 128, 128, 64), (32, 256, 256, 128), (64, 512, 512, 256),
    )
] + [
    (
        "docs.nvidia.com/enterprise-reference-architectures/nvl72-ai-factory, both planes together",
        "gb300-nvl72-ethernet",
        {"racks": racks},
        {"gpus": 72 * racks, "leaves": leaves, "spines": spines, "host_leaf": 144 * racks, "nvswitches": 18 * racks},
    )
    for racks, leaves, spines in ((2, 8, 4), (4, 16, 8), (8, 32, 12))
] + [
    (
        "arXiv 2505.09343 table 3: 16,384 endpoints on 768 switches of 64 ports in two tiers",
        "deepseek-mpft",
        {"nodes": 2048},
        {"gpus": 16_384, "leaves": 512, "spines": 256, "planes": 8, "leaf_spine": 16_384},
    ),
    (
        "Alibaba HPN, SIGCOMM 2024: 15 segments of 1,024 GPUs, 16 ToRs each, 60 uplinks a ToR",
        "alibaba-hpn",
        {"segments": 15},
        {"gpus": 15_360, "leaves": 240, "spines": 120, "planes": 2, "host_leaf": 30_720, "leaf_spine": 14_400},
    ),
    (
        "Llama 3 paper: 8 pods of 3,072 GPUs, 192 racks of 16 GPUs a pod",
        "meta-24k-roce",
        {"pods": 8},
        {"gpus": 24_576, "leaves": 1536, "racks": 1536},
    ),
    (
        "arXiv 2605.04333: 800G as eight planes of 100G on switches of 512 ports, 256 of them down",
        "mrc-8plane",
        {"racks": 32},
        {"gpus": 2304, "planes": 8, "leaves": 72, "host_leaf": 18_432},
    ),
    (
        "vendor Rubin announcement: 18 trays of 4 GPUs, 9 switch trays of 4 chips a rack",
        "vera-rubin-spectrum6",
        {"racks": 7},
        {"gpus": 504, "nodes": 126, "planes": 4, "nvswitches": 252},
    ),
    (
        "build.nvidia.com/playbooks/connect-two-stations: two direct cables, no switch",
        "dgx-station-pair",
        {},
        {"gpus": 2, "nodes": 2, "leaves": 0, "direct": 2},
    ),
    (
        "RTX PRO 6000 against B200 guide: 8 GPUs and five adapters a node",
        "rtx-pro-ai-factory",
        {"nodes": 16},
        {"gpus": 128, "nodes": 16, "host_leaf": 80},
    ),
    (
        "DGX B200 guide: two switch chips a board; a rail of up to 64 servers on one leaf is derived",
        "hgx-b200",
        {"nodes": 32},
        {"gpus": 256, "leaves": 8, "spines": 2, "nvswitches": 64},
    ),
    (
        "Hot Chips 34: four switch chips a board",
        "hgx-h100",
        {"nodes": 128},
        {"gpus": 1024, "leaves": 16, "spines": 8, "nvswitches": 512},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("source", "name", "sizes", "expected"), PUBLISHED)
def test_counts_equal_what_is_published(
    source: str, name: str, sizes: dict[str, int], expected: dict[str, int]
) -> None:
    s = summary(preset(name, **sizes))
    got = {key: s[key] if key in s else s["links"].get(key, 0) for key in expected}
    assert got == expected, source


def test_a_gb300_rack_has_eight_shelves_of_33_kw_and_says_how_many_may_fail() -> None:
    """docs.nvidia.com/enterprise-reference-architectures/nvl72-ai-factory, components."""
    topo = preset("gb300-nvl72-superpod", spare_shelves=4)
    mine = topo.feeds.rack == 0
    assert topo.feeds.watts[mine].tolist() == [33_000.0] * 8
    assert topo.feeds.name[0] == "r00/feedA0" and topo.feeds.name[7] == "r00/feedB3"
    assert topo.racks.redundancy[0] == "N+4"


def test_an_ai_factory_node_has_a_storage_adapter_that_no_gpu_uses() -> None:
    topo = preset("rtx-pro-ai-factory")
    ports = topo.ports.compute[topo.ports.nic >= 0].reshape(16, 5)
    assert ports.all(axis=0).tolist() == [True, True, True, True, False]


@pytest.mark.parametrize(("servers", "leaves", "spines"), [(8, 1, 0), (16, 4, 2), (64, 16, 8), (256, 64, 32)])
def test_rtx_pro_leaves_join_64_gpus_in_one_hop_and_then_go_two_tier(servers: int, leaves: int, spines: int) -> None:
    s = summary(preset("rtx-pro-6000", servers=servers))
    assert (s["gpus"], s["leaves"], s["spines"]) == (8 * servers, leaves, spines)
    assert s["network_bits_per_second_per_gpu"] == 400e9


def test_two_tiers_of_64_port_switches_end_at_2048_gpus() -> None:
    with pytest.raises(InputError, match="2048"):
        preset("rtx-pro-6000", servers=257)


LARGER = [
    ("dgx-b200-ndr", {"scalable_units": 16}),
    ("dgx-b200-ndr", {"scalable_units": 32}),
    ("deepseek-mpft", {"nodes": 2048}),
    ("alibaba-hpn", {"segments": 15}),
    ("meta-24k-roce", {"pods": 2}),
    ("vera-rubin-spectrum6", {"racks": 29, "switch_ports": 1024}),
    ("gb300-nvl72-ethernet", {"racks": 8}),
    ("hgx-b200", {"nodes": 65}),
    ("rtx-pro-ai-factory", {"nodes": 97}),
    ("mrc-8plane", {"racks": 1}),
]
SIZES = [(name, {}) for name in PRESETS] + LARGER


@pytest.mark.parametrize(("name", "sizes"), SIZES)
def test_no_port_is_used_twice_and_no_switch_has_more_links_than_ports(name: str, sizes: dict[str, int]) -> None:
    topo = preset(name, **sizes)
    assert len(set(topo.port_names)) == len(topo.port_names)
    used = np.bincount(topo.ports.switch[topo.ports.switch >= 0], minlength=len(topo.switches.name))
    assert (used <= topo.switches.radix).all()
    assert (topo.ports.link >= 0).all()


@pytest.mark.parametrize(("name", "sizes"), SIZES)
def test_every_switch_is_joined_equally_to_every_switch_above_it(name: str, sizes: dict[str, int]) -> None:
    """To all of its plane in two tiers; with three, to those of its pod and rail, or of its core group."""
    topo = preset(name, **sizes)
    for tier in (1, 2):
        up = topo.links.tier == tier
        if not up.any():
            continue
        pairs = np.stack([topo.ports.switch[topo.links.a[up]], topo.ports.switch[topo.links.b[up]]])
        kinds, counts = np.unique(pairs, axis=1, return_counts=True)
        assert len(set(counts.tolist())) == 1
        above, below = np.bincount(kinds[0]), np.bincount(kinds[1])
        assert len(set(above[above > 0].tolist())) == len(set(below[below > 0].tolist())) == 1
        if not (topo.switches.tier == 2).any():
            planes = len(topo.planes)
            leaves, spines = (np.count_nonzero(topo.switches.tier == t) // planes for t in (0, 1))
            assert kinds.shape[1] == leaves * spines * planes


@pytest.mark.parametrize(("name", "sizes"), SIZES)
def test_every_leaf_of_a_plane_reaches_every_other(name: str, sizes: dict[str, int]) -> None:
    topo = preset(name, **sizes)
    up = (topo.links.tier == 1) | (topo.links.tier == 2)
    group = np.arange(len(topo.switches.name))
    a, b = topo.ports.switch[topo.links.a[up]], topo.ports.switch[topo.links.b[up]]
    for _ in range(8):  # up to the core and down again, with room to spare
        lowest = np.minimum(group[a], group[b])
        np.minimum.at(group, a, lowest)
        np.minimum.at(group, b, lowest)
    leaves = topo.switches.tier == 0
    for plane in range(len(topo.planes)):
        assert len(set(group[leaves & (topo.switches.plane == plane)].tolist())) == 1


@pytest.mark.parametrize(("name", "sizes"), SIZES)
def test_a_nic_has_its_ports_in_as_many_planes_as_the_kind_of_plane_says(name: str, sizes: dict[str, int]) -> None:
    topo = preset(name, **sizes)
    planes = [set(topo.ports.plane[topo.ports.nic == nic].tolist()) for nic in range(0, len(topo.nics.node), 97)]
    wanted = len(topo.planes) if topo.plane_kind == "split" else 1
    assert {len(p) for p in planes} == {wanted}


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
        ("dgx-station-pair", {"nodes": 3}, "it takes none"),
        ("dgx-b200-ndr", {"scalable_units": 3}, "expected 1 or 2 or 4"),
        ("vera-rubin-spectrum6", {"racks": 449}, "two tiers of 256 ports end at 448"),
    ],
)
def test_an_unknown_preset_or_size_is_refused_with_what_was_expected(
    name: str, sizes: dict[str, int], reason: str
) -> None:
    with pytest.raises(InputError, match=reason):
        preset(name, **sizes)
