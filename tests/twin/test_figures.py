"""What follows from the wiring: NVLink beside network, bisection, oversubscription, what a lost plane costs."""

from __future__ import annotations

import numpy as np
import pytest

from twin.capacity import CapacityModel
from twin.topology.model import links_by_chip
from twin.topology.presets import preset
from twin.topology.resolve import resolve
from twin.topology.summary import summary, text

# per-GPU NVLink in GB/s both ways, network in Gb/s one way, and how many times the one is the other one way
NVLINK = [
    ("gb300-nvl72-superpod", 1800, 800, 9.0),  # vendor NVL72 documents; NVLink against InfiniBand guide: nine times
    ("b300-superpod-ethernet", 1800, 800, 9.0),  # DGX B300 page
    ("dgx-b200-ndr", 1800, 400, 18.0),  # DGX B200 guide; NVLink against InfiniBand guide: 18 times
    ("hgx-h100", 900, 400, 9.0),  # H100 data sheet
    ("deepseek-mpft", 400, 400, 4.0),  # arXiv 2505.09343: H800
    ("vera-rubin-spectrum6", 3600, 1600, 9.0),  # vendor Rubin announcement
    ("rtx-pro-6000", 0, 400, None),  # RTX PRO 6000 networking article: no NVLink
]


@pytest.mark.parametrize(("name", "nvlink", "network", "ratio"), NVLINK)
def test_nvlink_and_network_of_a_gpu_are_those_of_its_data_sheet(
    name: str, nvlink: int, network: int, ratio: float | None
) -> None:
    s = summary(preset(name))
    assert s["nvlink_bytes_per_second_per_gpu"] == pytest.approx(nvlink * 1e9)
    assert s["network_bits_per_second_per_gpu"] == pytest.approx(network * 1e9)
    assert s["nvlink_to_network_ratio"] == (None if ratio is None else pytest.approx(ratio))


@pytest.mark.parametrize(
    ("name", "terabytes"),
    [("gb300-nvl72-superpod", 129.6), ("hgx-b200", 14.4), ("vera-rubin-spectrum6", 259.2), ("hgx-h100", 7.2)],
)
def test_an_nvlink_domain_has_the_bandwidth_that_is_published(name: str, terabytes: float) -> None:
    """The vendor rounds 259.2 TB/s of a Rubin rack to 260."""
    assert summary(preset(name))["nvlink_bytes_per_second_per_domain"] == pytest.approx(terabytes * 1e12)


@pytest.mark.parametrize(
    ("name", "by_chip"),
    [
        ("gb300-nvl72-superpod", [1] * 18),
        ("vera-rubin-spectrum6", [1] * 36),
        ("hgx-b200", [9, 9]),
        ("b300-superpod-xdr", [9, 9]),
        ("hgx-h100", [5, 4, 4, 5]),
        ("deepseek-mpft", [2, 2, 2, 2]),
    ],
)
def test_every_gpu_has_its_links_on_the_chips_of_its_own_domain(name: str, by_chip: list[int]) -> None:
    topo = preset(name)
    chips = len(by_chip)
    domain = topo.gpus.domain[topo.nvlink_gpu]
    assert (topo.nvlink_switch // chips == domain).all()
    counts = np.zeros((len(topo.gpus.node), chips), int)
    np.add.at(counts, (topo.nvlink_gpu, topo.nvlink_switch % chips), 1)
    assert (counts == by_chip).all()
    assert len(topo.nvlink_names) == len(topo.nvlink_switch)
    assert len(topo.nvswitch_names) == chips * len(topo.domains.name)


def test_a_switch_chip_of_an_nvl72_has_72_ports() -> None:
    topo = preset("gb300-nvl72-superpod")
    assert set(np.bincount(topo.nvlink_switch).tolist()) == {72}


@pytest.mark.parametrize(("links", "chips"), [(18, 4), (18, 18), (36, 5), (8, 3), (1, 4)])
def test_links_are_spread_evenly_and_none_is_lost(links: int, chips: int) -> None:
    counts = links_by_chip(links, chips)
    assert sum(counts) == links and max(counts) - min(counts) <= 1


@pytest.mark.parametrize(
    ("name", "sizes", "terabits"),
    [
        ("b300-superpod-ethernet", {}, {"A": 102.4, "B": 102.4}),  # 512 GPUs at 400G a plane
        ("b300-superpod-ethernet", {"planes": 4}, dict.fromkeys("ABCD", 51.2)),
        ("b300-superpod-xdr", {}, {"A": 230.4}),
        ("meta-24k-roce", {"pods": 2}, {"A": 16 * 2 * 27 * 0.4 / 2}),
        ("alibaba-hpn", {}, dict.fromkeys("AB", 8 * 60 * 0.4 / 2)),
        ("dgx-station-pair", {}, {"direct": 0.8}),
    ],
)
def test_bisection_is_half_of_the_narrowest_tier(
    name: str, sizes: dict[str, int], terabits: dict[str, float]
) -> None:
    found = summary(preset(name, **sizes))["bisection_bits_per_second"]
    assert found == {plane: pytest.approx(t * 1e12) for plane, t in terabits.items()}


@pytest.mark.parametrize(
    ("name", "sizes", "expected"),
    [
        ("b300-superpod-ethernet", {}, {"leaf": 1.0}),
        ("alibaba-hpn", {"segments": 2}, {"leaf": 128 * 200 / (60 * 400)}),  # SIGCOMM 2024: 1.067 to 1
        ("meta-24k-roce", {"pods": 8}, {"leaf": 1.0, "spine": 192 / 27}),  # 7 to 1 in whole ports
        ("dgx-b200-ndr", {"scalable_units": 16}, {"leaf": 1.0, "spine": 1.0}),
        ("rtx-pro-6000", {"servers": 8}, {}),
    ],
)
def test_oversubscription_is_down_over_up_of_each_tier(
    name: str, sizes: dict[str, int], expected: dict[str, float]
) -> None:
    assert summary(preset(name, **sizes))["oversubscription"] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("name", "sizes", "most", "one_hop"),
    [
        ("rtx-pro-6000", {"servers": 8}, 2048, 64),  # RTX PRO 6000 networking article: one 64-port leaf joins 64 GPUs
        ("deepseek-mpft", {}, 16_384, 32),
        ("mrc-8plane", {}, 131_072, 256),
        ("alibaba-hpn", {}, 15_360, 128),
        ("b300-superpod-ethernet", {}, 8192, 64),
        ("b300-superpod-ethernet", {"planes": 4}, 32_768, 64),
        ("b300-superpod-xdr", {}, 10_368, 72),
        ("rtx-pro-ai-factory", {}, 49_152, 32),  # two GPUs share an adapter
    ],
)
def test_a_design_says_where_it_ends_and_how_many_gpus_one_hop_joins(
    name: str, sizes: dict[str, int], most: int, one_hop: int
) -> None:
    s = summary(preset(name, **sizes))
    assert (s["scale_limit"]["gpus"], s["gpus_in_one_hop"]) == (most, one_hop)


def test_switch_ports_are_counted_by_tier() -> None:
    ports = summary(preset("b300-superpod-ethernet"))["switch_ports"]
    assert ports == {
        "used": 3072,
        "total": 24 * 128,
        "by_tier": {"leaf": {"used": 2048, "total": 2048}, "spine": {"used": 1024, "total": 1024}},
    }


def test_the_text_says_what_kind_of_planes_they_are() -> None:
    assert "(split: " in text(preset("b300-superpod-ethernet"))
    assert "(rail: " in text(preset("deepseek-mpft"))
    assert "rail" not in text(preset("b300-superpod-xdr"))


# --- what a lost plane costs --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "sizes", "planes"),
    [
        ("b300-superpod-ethernet", {}, 2),
        ("b300-superpod-ethernet", {"planes": 4}, 4),
        ("mrc-8plane", {}, 8),
        ("alibaba-hpn", {}, 2),
        ("vera-rubin-spectrum6", {}, 4),
    ],
)
def test_a_plane_lost_of_a_split_nic_leaves_its_other_ports_to_every_gpu(
    name: str, sizes: dict[str, int], planes: int
) -> None:
    topo = preset(name, **sizes)
    model = CapacityModel(topo)
    left = model.without(resolve(topo, f"plane:{topo.planes[-1]}").links.tolist())
    assert topo.plane_kind == "split"
    assert left.gpu == pytest.approx((planes - 1) / planes)
    assert model.nodes(left) == pytest.approx((planes - 1) / planes)


def test_a_plane_lost_that_is_a_rail_takes_one_nic_of_eight() -> None:
    topo = preset("deepseek-mpft")
    model = CapacityModel(topo)
    left = model.without(resolve(topo, "plane:C").links.tolist())
    assert topo.plane_kind == "rail"
    assert left.gpu.reshape(-1, 8) == pytest.approx(np.tile([1, 1, 0, 1, 1, 1, 1, 1], (128, 1)))
    assert model.nodes(left) == pytest.approx(7 / 8)
