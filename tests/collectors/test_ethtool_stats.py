"""Statistics of drivers become metrics of ports: the right ones, in the right unit, each once."""

from __future__ import annotations

import asyncio
import tomllib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sysfs_tree import device, interface, roce_port, rows, write

from collectors.ethtool import U64, Ethtool
from collectors.ethtool_fec import FecCounters
from collectors.ethtool_stats import TABLE, DriverStatistics, Plan, rules
from collectors.host import port_collectors
from collectors.netdev import TRAFFIC, NetdevCollector
from collectors.sysfs import LOOK_AGAIN, Value
from twin.errors import InputError
from twin.metrics import REGISTRY

PORT = "n0/nic0/p0"
# of a ConnectX-7, as mlx5/counters.rst lists them, with values of our own; PFC on priorities 3 and 4
MLX5 = {
    "rx_packets": 11, "rx_bytes": 12, "tx_packets": 13, "tx_bytes": 14, "tx_queue_dropped": 3, "rx_ecn_mark": 15,
    "rx_out_of_buffer": 16, "rx_vport_unicast_bytes": 17, "rx_vport_rdma_unicast_bytes": 18,
    "tx_packets_phy": 1_000, "rx_packets_phy": 2_000, "rx_crc_errors_phy": 19, "tx_bytes_phy": 4_000_000,
    "rx_bytes_phy": 2**63 + 1, "rx_symbol_err_phy": 20, "rx_pause_ctrl_phy": 21, "tx_pause_ctrl_phy": 22,
    "rx_discards_phy": 23, "tx_discards_phy": 24, "tx_errors_phy": 25, "link_down_events_phy": 26,
    "rx_pcs_symbol_err_phy": 27, "rx_corrected_bits_phy": 28, "rx_err_lane_0_phy": 29, "rx_err_lane_1_phy": 30,
    "rx_prio3_bytes": 31, "tx_prio3_bytes": 32, "rx_prio3_pause": 33, "rx_prio3_pause_duration": 2_500_000,
    "rx_prio3_pause_transition": 34, "tx_prio3_pause": 35, "tx_prio3_pause_duration": 7, "rx_prio4_pause": 36,
    "rx_prio4_pause_duration": 500_000, "tx_prio4_pause_duration": 0, "rx0_ecn_mark": 9, "rx0_packets": 11,
    "tx_prio3_marked": 37, "rx_pause_duration": 38,
}  # fmt: skip
BNXT = {
    "[0]: rx_ucast_packets": 1, "[0]: rx_ucast_bytes": 2, "rx_total_discard_pkts": 3, "rx_total_frames": 4,
    "rx_pause_frames": 5, "rx_bytes": 6, "tx_total_frames": 7, "tx_bytes": 8, "tx_stat_discard": 9,
    "pfc_pri3_rx_duration_us": 1_000_000, "pfc_pri3_rx_transitions": 10, "pfc_pri3_tx_duration_us": 2_000_000,
    "rx_pcs_symbol_err": 11, "rx_corrected_bits": 12, "rx_bytes_pri0": 13, "pfc_pri5_rx_duration_us": 500_000,
}  # fmt: skip
ICE = {
    "rx_bytes": 1, "rx_bytes.nic": 2, "tx_bytes.nic": 3, "rx_unicast.nic": 4, "rx_multicast.nic": 5,
    "rx_broadcast.nic": 6, "tx_unicast.nic": 7, "tx_multicast.nic": 8, "tx_broadcast.nic": 9, "tx_errors.nic": 10,
    "rx_priority_3_xoff.nic": 11,
}  # fmt: skip


class Driver(Ethtool):
    """A driver with these statistics, in the kernel's place."""

    def __init__(self, name: str, statistics: dict[str, int]) -> None:
        super().__init__()
        self.name, self.statistics, self.calls = name, statistics, 0

    def driver(self, interface: str) -> tuple[str, int]:
        self.calls += 1
        return self.name, len(self.statistics)

    def names(self, interface: str) -> tuple[str, ...]:
        self.calls += 1
        return tuple(self.statistics)

    def values(self, interface: str) -> U64:
        self.calls += 1
        if not self.statistics:
            raise OSError("no such device")
        return np.array(list(self.statistics.values()), np.uint64)


class NoFec(FecCounters):
    def __init__(self, told: dict[str, dict[str, Value]] | None = None) -> None:
        self.told = told or {}

    def read(self) -> dict[str, dict[str, Value]]:
        return self.told

    def close(self) -> None:
        pass


def metrics(driver: str, statistics: dict[str, int]) -> dict[str, Value]:
    return Plan.make(driver, list(statistics)).apply(np.array(list(statistics.values()), np.uint64))


def test_mlx5_counts_pause_in_microseconds_and_the_port_with_rdma() -> None:
    found = metrics("mlx5_core", MLX5)
    assert found == {
        "rx_pause_seconds": pytest.approx(3.0), "tx_pause_seconds": pytest.approx(7e-6),
        "tx_bytes": 4_000_000, "rx_bytes": 2**63 + 1, "tx_packets": 1_000, "rx_packets": 2_000, "tx_discards": 24,
        "rx_discards": 23, "symbol_errors": 27, "ecn_marked_packets": 15,
    }  # fmt: skip


def test_global_pause_counts_where_priorities_have_none() -> None:
    found = metrics("mlx5_core", {"rx_global_pause": 3, "rx_global_pause_duration": 250, "tx_global_pause": 0})
    assert found == {"rx_pause_seconds": pytest.approx(0.00025)}


def test_other_drivers_have_names_of_their_own() -> None:
    assert metrics("bnxt_en", BNXT) == {
        "rx_pause_seconds": pytest.approx(1.5), "tx_pause_seconds": pytest.approx(2.0), "rx_bytes": 6, "tx_bytes": 8,
        "rx_packets": 4, "tx_packets": 7, "symbol_errors": 11,
    }  # fmt: skip
    assert metrics("ice", ICE) == {"rx_bytes": 2, "tx_bytes": 3, "rx_packets": 15, "tx_packets": 24}
    assert metrics("virtio_net", {**MLX5, **BNXT, **ICE}) == {}
    assert metrics("mlx5_core", {}) == {}


def test_every_rule_of_the_table_finds_something_and_has_a_source() -> None:
    names = {"mlx5_core": MLX5, "bnxt_en": BNXT, "ice": ICE}
    for rule in rules():
        assert any(rule.names.fullmatch(name) for name in names[rule.driver]), rule
        assert (rule.scale is not None) == (REGISTRY["port", rule.metric].unit == "s")
    assert all(entry["source"] for entry in tomllib.loads(TABLE.read_text())["statistic"])


def test_a_wrong_table_is_refused_with_every_problem(tmp_path: Path) -> None:
    entry = '[[statistic]]\ndriver = "x"\nnames = "y"\nmetric = "{}"\nunit = "{}"\nsource = "z"\n'
    table = tmp_path / "t.toml"
    table.write_text(entry.format("tx_bytes", "us") + entry.format("up", "bool") + entry.format("made_up", "bytes"))
    with pytest.raises(InputError) as refused:
        rules(table)
    assert len(refused.value.problems) == 3


@given(st.lists(st.tuples(st.sampled_from([*MLX5, *BNXT, *ICE]) | st.text(max_size=8), st.integers(0, 2**40))))
def test_a_metric_is_the_sum_of_what_its_rule_names_whatever_stands_around_it(told: list[tuple[str, int]]) -> None:
    for driver in ("mlx5_core", "bnxt_en", "ice"):
        found = Plan.make(driver, [n for n, _ in told]).apply(np.array([v for _, v in told], np.uint64))
        for rule in rules():
            if rule.driver == driver:
                parts = [value for name, value in told if rule.names.fullmatch(name)]
                expected = pytest.approx(sum(parts) * (rule.scale or 1)) if parts else None
                assert found.get(rule.metric) == expected


def test_names_are_asked_once_and_again_now_and_then() -> None:
    driver = Driver("mlx5_core", dict(MLX5))
    statistics = DriverStatistics(driver, NoFec())
    for _ in range(LOOK_AGAIN):
        statistics.read(["ens1"])
    assert driver.calls == LOOK_AGAIN + 2
    driver.statistics = {name.replace("prio3", "prio5"): value for name, value in MLX5.items()}
    assert statistics.read(["ens1"])["ens1"]["rx_pause_seconds"] == pytest.approx(3.0)
    assert driver.calls == LOOK_AGAIN + 2 + 3


def test_what_was_given_once_is_unknown_and_not_absent_when_the_driver_gives_it_no_more() -> None:
    driver, fec = Driver("mlx5_core", dict(MLX5)), NoFec({"ens1": {"fec_corrected": 5, "fec_uncorrected": 0}})
    statistics = DriverStatistics(driver, fec)
    before = statistics.read(["ens1"])["ens1"]
    assert before["fec_corrected"] == 5 and before["tx_bytes"] == 4_000_000
    driver.statistics, fec.told = {}, {}
    assert statistics.read(["ens1"])["ens1"] == dict.fromkeys(before)


# --- together with the kernel's files and the RDMA device -------------------------------------------


def collected(root: Path, *, shared: bool, statistics: dict[str, int] = MLX5) -> dict[str, float]:
    files = {"device": {"infiniband": {"mlx5_0": {}}}} if shared else {}
    write(root / "class/net", {"ens1": interface(**files)})
    drivers = DriverStatistics(Driver("mlx5_core", statistics), NoFec({"ens1": {"fec_corrected": 99}}))
    return rows(asyncio.run(NetdevCollector("n0", {"ens1": PORT}, root=root, drivers=drivers).collect()))[PORT]


def test_the_wire_counts_where_the_driver_tells_it_with_rdma_or_without(tmp_path: Path) -> None:
    for shared in (True, False):
        values = collected(tmp_path / str(shared), shared=shared)
        assert (values["tx_bytes"], values["rx_packets"]) == (4_000_000, 2_000), "not the kernel's 1000 and 20"
        assert values["rx_pause_seconds"] == pytest.approx(3.0) and values["fec_corrected"] == 99
        assert values["tx_discards"] == 3 + 24, "the driver's queues and the port"
        assert values["rx_errors"] == 4 and values["link_downed"] == 2, "of the kernel's files"
        assert ("ecn_marked_packets" in values) == (not shared), "the RDMA device counts RoCE"


def test_without_counters_of_the_wire_a_shared_interface_gives_no_traffic(tmp_path: Path) -> None:
    values = collected(tmp_path, shared=True, statistics={"rx_prio3_pause_duration": 5})
    assert "tx_bytes" not in values and values["rx_pause_seconds"] == pytest.approx(5e-6)


async def test_traffic_does_not_fall_back_to_another_count_while_the_driver_gives_none(tmp_path: Path) -> None:
    write(tmp_path / "class/net", {"ens1": interface()})
    driver = Driver("mlx5_core", dict(MLX5))
    drivers = DriverStatistics(driver, NoFec())
    watched = NetdevCollector("n0", {"ens1": PORT}, root=tmp_path, drivers=drivers)
    first = await watched.collect()
    driver.statistics = {}
    second = await watched.collect()
    assert [list(f.columns) for f in first.frames] == [list(f.columns) for f in second.frames]
    values = rows(second)[PORT]
    assert values["up"] == 1 and "tx_bytes" not in values and "tx_discards" not in values
    driver.statistics = dict(MLX5)
    assert rows(await watched.collect())[PORT]["tx_bytes"] == 4_000_000


@pytest.mark.parametrize("statistics", [MLX5, {"rx_prio3_pause_duration": 5}])
async def test_one_source_gives_each_metric_of_a_roce_port(tmp_path: Path, statistics: dict[str, int]) -> None:
    write(tmp_path / "class/net", {"ens1": interface(device={"infiniband": {"mlx5_0": {}}})})
    write(tmp_path / "class/infiniband", {"mlx5_0": device(roce_port())})
    drivers = DriverStatistics(Driver("mlx5_core", statistics), NoFec())
    both = port_collectors("n0", {"ens1": PORT}, {("mlx5_0", 1): PORT}, drivers=drivers, root=tmp_path)
    told = {c.name: {m for frame in (await c.collect()).frames for m in frame.columns} for c in both}
    rdma, net = told["n0:infiniband"], told["n0"]
    assert not rdma & net
    assert {"up", "speed_bits_per_second", "rx_pause_seconds", "rx_errors"} <= net
    assert {"cnp_sent_packets", "out_of_sequence_packets", "ecn_marked_packets"} <= rdma
    assert set(TRAFFIC) <= (net if statistics is MLX5 else rdma)


async def test_a_roce_port_is_read_by_its_rdma_device_alone_while_no_interface_is_mapped(tmp_path: Path) -> None:
    write(tmp_path / "class/infiniband", {"mlx5_0": device(roce_port())})
    (rdma,) = port_collectors("n0", {}, {("mlx5_0", 1): PORT}, root=tmp_path)
    assert {"up", "speed_bits_per_second", *TRAFFIC} <= set(rows(await rdma.collect())[PORT])
