"""Pages of exporters, as the shipped profiles read them on a small wiring."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from collectors.prometheus.http import Reply
from tests.collectors.prometheus_parts import FIXTURES, NOW, exporter, read, values


def test_dcgm_gpus_and_nvlinks_are_read_under_both_spellings_and_sentinels_are_unknown() -> None:
    sample = read(FIXTURES / "dcgm.prom", "dcgm-exporter")
    assert sample.warnings == []
    assert values(sample) == {
        "n0/gpu0": {
            "temperature_celsius": 31, "power_watts": 165.926, "utilization_ratio": 0.87, "sm_clock_hertz": 1.98e9,
            "memory_used_bytes": 3 * 2**20, "energy_joules": 200000000000.5, "xid": 79,
        },
        "n0/gpu1": {"utilization_ratio": 0.25},
        "n0/gpu0/nvlink3": {"crc_errors": 4, "tx_bytes": 2**48},
        "n0/gpu1/nvlink17": {},
    }  # fmt: skip


def test_a_frame_is_of_one_kind_has_the_time_of_the_page_and_counters_keep_64_bits() -> None:
    gpus, links = read(FIXTURES / "dcgm.prom", "dcgm-exporter").frames
    assert (gpus.kind, gpus.source, gpus.time) == ("gpu", "n0:dcgm-exporter", NOW)
    assert links.kind == "nvlink" and links.columns["crc_errors"].dtype == np.uint64
    assert gpus.columns["energy_joules"].dtype == np.float64


def test_a_gpu_may_be_named_by_its_uuid() -> None:
    sample = read(FIXTURES / "dcgm.prom", "dcgm-exporter", names={"GPU-a0": "n1/gpu1"})
    assert {"n1/gpu1", "n1/gpu1/nvlink3", "n0/gpu1"} <= values(sample).keys()
    assert "n0/gpu0" not in values(sample)


def test_a_hostname_that_the_wiring_lacks_gives_way_to_the_target() -> None:
    page = 'DCGM_FI_DEV_GPU_TEMP{gpu="1",Hostname="3f546054f69d"} 40\n'
    assert values(read(page, "dcgm-exporter", target="n1")) == {"n1/gpu1": {"temperature_celsius": 40}}


def test_what_the_wiring_lacks_is_one_warning_with_a_count_and_an_example() -> None:
    page = "".join(f'DCGM_FI_DEV_GPU_TEMP{{gpu="{i}",Hostname="n0"}} 40\n' for i in range(1, 8))
    sample = read(page, "dcgm-exporter")
    assert list(values(sample)) == ["n0/gpu1"]
    (warning,) = sample.warnings
    assert "6 series have no place: the wiring has no n0/gpu2" in warning and 'gpu="2"' in warning


def test_infiniband_exporter_gets_its_names_from_the_info_series() -> None:
    sample = read(FIXTURES / "infiniband-exporter.prom", "infiniband-exporter")
    assert values(sample) == {
        "A-leaf-0/p1": {"up": 1, "tx_bytes": 18446744073709},
        "A-leaf-0/p4": {"tx_bytes": 44, "tx_wait_ticks": 7, "link_downed": 2},
        "n0/nic1/p0": {"rx_bytes": 17},
    }
    (warning,) = sample.warnings
    assert "2 series have no place" in warning and "'storage-9'" in warning


def test_ibqueryerrors_counts_words_of_four_bytes() -> None:
    sample = read(FIXTURES / "ibqueryerrors.prom", "infiniband-exporter-ibqueryerrors")
    assert values(sample) == {
        "A-leaf-0/p2": {"up": 1, "tx_bytes": 1000, "symbol_errors": 3},
        "n0/nic1/p0": {"tx_bytes": 400},
    }


def test_snmp_states_speeds_and_counters_and_a_port_that_is_down_has_no_speed() -> None:
    sample = read(FIXTURES / "snmp.prom", "snmp-if-mib", target="A-leaf-0")
    assert sample.warnings == []
    assert values(sample) == {
        "A-leaf-0/p1": {
            "up": 1, "speed_bits_per_second": 400e9, "tx_bytes": 2**53, "rx_errors": 12, "tx_discards": 13,
        },
        "A-leaf-0/p2": {"up": 0},
        "A-leaf-0/p3": {},
        "A-leaf-0/p4": {"up": 0},
    }  # fmt: skip


def test_gnmic_gives_words_as_labels_numbers_or_a_prefix() -> None:
    assert values(read(FIXTURES / "gnmic.prom", "gnmic")) == {
        "A-leaf-0/p1": {"up": 1, "speed_bits_per_second": 400e9, "tx_bytes": 1234, "rx_bytes": 4321},
        "A-leaf-0/p2": {"up": 0, "tx_bytes": 1},
        "A-leaf-0/p3": {"up": 0, "tx_bytes": 1},
        "A-leaf-0/p4": {"tx_bytes": 1},
    }


def test_two_ports_of_one_device_are_told_apart_or_not_placed() -> None:
    page = "".join(f'node_infiniband_state_id{{device="mlx5_1",port="{port}"}} 4\n' for port in (1, 2))
    sample = read(page, "node-exporter-infiniband")
    assert sample.frames == [] and "no interface of n0 (mlx5_1:1, mlx5_1:2) is a port" in sample.warnings[0]
    told = read(page, "node-exporter-infiniband", ports={"n0": {"mlx5_1:2": "nic1/p0"}})
    assert values(told) == {"n0/nic1/p0": {"up": 1}} and told.warnings == []


def test_a_carrier_that_cannot_be_read_leaves_the_word_to_the_operational_state() -> None:
    """Of an interface that is switched off the kernel gives no carrier."""
    collector = exporter("node-exporter-network")
    up = 'node_network_carrier{device="nic0p0"} 1\nnode_network_up{device="nic0p0"} 0\n'
    off = 'node_network_up{device="nic0p0"} 0\n'
    states = [values(collector.read(Reply(200, "text/plain", p.encode()), NOW)) for p in (up, off, up)]
    assert [s["n0/nic0/p0"]["up"] for s in states] == [1, 0, 1]


def test_counters_of_the_hardware_are_never_mixed_with_those_of_the_kernel() -> None:
    collector = exporter("node-exporter-network")
    kernel = 'node_network_transmit_bytes_total{device="nic0p0"} 10\n'
    both = kernel + 'node_ethtool_transmitted_bytes_phy{device="nic0p0"} 99\n'
    assert values(collector.read(Reply(200, "text/plain", both.encode()), NOW)) == {"n0/nic0/p0": {"tx_bytes": 99}}
    assert values(collector.read(Reply(200, "text/plain", kernel.encode()), NOW)) == {}


def test_an_entity_that_is_no_longer_on_the_page_is_left_out_and_ages() -> None:
    collector = exporter("dcgm-exporter")
    pages = [[0, 1], [1], [0, 1]]
    names = []
    for turn, gpus in enumerate(pages):
        page = "".join(f'DCGM_FI_DEV_GPU_TEMP{{gpu="{i}",Hostname="n0"}} 4{i}\n' for i in gpus)
        names.append(collector.read(Reply(200, "text/plain", page.encode()), NOW + turn).frames[0].names)
    assert names == [("n0/gpu0", "n0/gpu1"), ("n0/gpu1",), ("n0/gpu0", "n0/gpu1")]


def test_a_reading_with_a_time_of_its_own_is_given_once_and_with_that_time() -> None:
    collector = exporter("dcgm-exporter")
    page = Reply(200, "text/plain", b'DCGM_FI_DEV_GPU_TEMP{gpu="0",Hostname="n0"} 40 1799999990250\n')
    (frame,) = collector.read(page, NOW).frames
    assert frame.time == 1_799_999_990_250_000_000
    assert collector.read(page, NOW + 10**9).frames == []


def test_two_profiles_are_read_from_one_page() -> None:
    page = 'node_infiniband_state_id{device="mlx5_0",port="1"} 4\nnode_network_carrier{device="nic1p0"} 0\n'
    sample = read(page, ["node-exporter-infiniband", "node-exporter-network"])
    assert values(sample) == {"n0/nic0/p0": {"up": 1}, "n0/nic1/p0": {"up": 0}}


def test_a_profile_of_the_sites_own_is_a_file_beside_the_site(tmp_path: Path) -> None:
    (tmp_path / "ours.yaml").write_text(
        "source: our own exporter\nentities:\n- kind: gpu\n  device: [chassis]\n  address: 'gpu{slot}'\n"
        "  metrics: {hot: temperature_celsius, kw: {to: power_watts, scale: 1000}}\n"
    )
    page = 'hot{chassis="n1",slot="0"} 40\nkw{chassis="n1",slot="0"} 1.25\n'
    sample = read(page, "ours.yaml", directory=tmp_path)
    assert values(sample) == {"n1/gpu0": {"temperature_celsius": 40, "power_watts": 1250}}
    assert sample.frames[0].source == "n0:ours"
