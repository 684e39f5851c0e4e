from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sysfs_tree import TEXT, Tree, device, ib_port, number, roce_port, rows, write

from collectors import rdma_port
from collectors.base import CollectorError
from collectors.infiniband_sysfs import IbPort, InfinibandCollector, list_ports
from collectors.sysfs import Files, Value
from twin.errors import InputError
from twin.metrics import REGISTRY

SAMPLES = Path(__file__).parents[3] / "shared/samples/sysfs-infiniband-h100"
MAP = {("mlx5_0", 1): "n0/nic0/p0"}


def collector(root: Path, ports: Mapping[tuple[str, int], str] = MAP) -> InfinibandCollector:
    return InfinibandCollector(ports, root=root, clock=lambda: 1_764_547_200_000_000_000)


def read(path: Path) -> dict[str, Value]:
    files = Files(path)
    assert files.present()
    return rdma_port.read_port(files)


async def one(root: Path, port: Tree) -> dict[str, float]:
    write(root / "class/infiniband", {"mlx5_0": device(port)})
    return rows(await collector(root).collect())["n0/nic0/p0"]


async def test_an_active_infiniband_port_gives_its_counters_with_words_as_bytes(tmp_path: Path) -> None:
    assert await one(tmp_path, ib_port()) == {
        "up": 1, "speed_bits_per_second": 400e9, "tx_bytes": 4000, "rx_bytes": 8000, "tx_packets": 10,
        "rx_packets": 20, "tx_discards": 3, "rx_errors": 4, "symbol_errors": 5, "link_downed": 6,
        "tx_wait_ticks": 7, "out_of_sequence_packets": 11, "retransmitted_packets": 7,
    }  # fmt: skip


async def test_a_roce_port_gives_congestion_marks_and_none_of_the_infiniband_errors(tmp_path: Path) -> None:
    assert await one(tmp_path, roce_port()) == {
        "up": 1, "speed_bits_per_second": 400e9, "tx_bytes": 4000, "rx_bytes": 8000, "tx_packets": 10,
        "rx_packets": 20, "ecn_marked_packets": 21, "cnp_sent_packets": 22, "cnp_handled_packets": 23,
        "out_of_sequence_packets": 11, "retransmitted_packets": 7,
    }  # fmt: skip


async def test_a_port_that_is_down_has_no_speed_whatever_rate_says(tmp_path: Path) -> None:
    down = ib_port(state="1: DOWN\n", phys_state="2: Polling\n", rate="10 Gb/sec (4X SDR)\n")
    values = await one(tmp_path, down)
    assert values["up"] == 0
    assert "speed_bits_per_second" not in values


@pytest.mark.parametrize(
    ("state", "phys_state", "up"),
    [
        ("4: ACTIVE", "5: LinkUp", 1), ("4: ACTIVE", "4: ACTIVE", 1), ("4: ACTIVE", None, 1),
        ("1: DOWN", "2: Polling", 0), ("1: DOWN", "3: Disabled", 0), ("2: INIT", "5: LinkUp", 0),
        ("3: ARMED", "5: LinkUp", 0),
        (None, "2: Polling", 0), (None, "3: Disabled", 0),
        (None, "5: LinkUp", None), (None, "4: ACTIVE", None), (None, None, None), ("0: NOP", "5: LinkUp", None),
        ("5: ACTIVE_DEFER", "5: LinkUp", None), ("ACTIVE", "LinkUp", None), ("", "", None), ("44: X", "", None),
    ],
)  # fmt: skip
def test_the_logical_state_decides(state: str | None, phys_state: str | None, up: int | None) -> None:
    assert rdma_port.is_up(state, phys_state) == up


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("400 Gb/sec (4X NDR)", 400e9), ("200 Gb/sec (2X NDR)", 200e9), ("800 Gb/sec (4X XDR)", 800e9),
        ("2.5 Gb/sec (1X SDR)", 2.5e9), ("100 Gb/sec", 100e9),
        ("10", None), ("0 Gb/sec", None), ("N/A", None), ("-1 Gb/sec", None), ("Gb/sec", None), (None, None),
    ],
)  # fmt: skip
def test_rate_is_the_whole_link(text: str | None, expected: float | None) -> None:
    assert rdma_port.rate(text) == expected


async def test_a_counter_without_a_value_or_a_file_is_unknown(tmp_path: Path) -> None:
    counters = {
        "port_xmit_data": "N/A (no PMA)",
        "port_rcv_data": "",
        "port_xmit_packets": "12\n",
        "symbol_error": None,
    }
    values = await one(tmp_path, ib_port(counters=counters, hw_counters=None))
    assert values == {"up": 1, "speed_bits_per_second": 400e9, "tx_packets": 12}


async def test_a_counter_at_its_limit_arrives_as_the_limit_that_the_registry_knows(tmp_path: Path) -> None:
    stuck = {"port_xmit_data": "4294967295", "link_downed": "255", "port_xmit_wait": "4294967295"}
    values = await one(tmp_path, ib_port(counters=stuck))
    for metric in ("tx_bytes", "link_downed", "tx_wait_ticks"):
        assert values[metric] in REGISTRY["port", metric].limits


@pytest.mark.parametrize(("words", "expected"), [(2**62 - 1, 4 * (2**62 - 1)), (2**62, None), (2**64 - 1, None)])
async def test_bytes_that_no_longer_fit_64_bits_are_unknown(tmp_path: Path, words: int, expected: int | None) -> None:
    write(tmp_path, ib_port(counters={"port_xmit_data": str(words)}))
    assert read(tmp_path)["tx_bytes"] == expected


@pytest.mark.parametrize("missing", ["packet_seq_err", "local_ack_timeout_err", "roce_adp_retrans"])
async def test_retransmissions_are_unknown_when_one_of_their_causes_is(tmp_path: Path, missing: str) -> None:
    causes: dict[str, str | None] = {"packet_seq_err": "1", "local_ack_timeout_err": "2", "roce_adp_retrans": "4"}
    causes[missing] = None
    assert "retransmitted_packets" not in await one(tmp_path, ib_port(hw_counters=causes))


async def test_a_driver_that_counts_packets_sent_again_is_believed(tmp_path: Path) -> None:
    assert (await one(tmp_path, roce_port(hw_counters={"retrans_pkts": "99"})))["retransmitted_packets"] == 99


async def test_only_mapped_ports_are_given_and_names_of_any_form_do(tmp_path: Path) -> None:
    devices = {
        "ibP16p3s0": device(ib_port()),
        "mlx5_bond_0": device(roce_port()),
        "mlx5_2": device(ib_port(), ib_port()),
    }
    write(tmp_path / "class/infiniband", devices)
    ports = {("ibP16p3s0", 1): "n0/nic0/p1", ("mlx5_2", 2): "n0/nic1/p0"}
    assert set(rows(await collector(tmp_path, ports).collect())) == {"n0/nic0/p1", "n0/nic1/p0"}


async def test_link_layers_come_in_a_frame_each(tmp_path: Path) -> None:
    write(tmp_path / "class/infiniband", {"mlx5_0": device(ib_port()), "mlx5_1": device(roce_port())})
    sample = await collector(tmp_path, {**MAP, ("mlx5_1", 1): "n0/nic1/p0"}).collect()
    assert [frame.names for frame in sample.frames] == [("n0/nic0/p0",), ("n0/nic1/p0",)]
    assert "tx_wait_ticks" not in sample.frames[1].columns


async def test_a_device_that_vanishes_is_unknown_in_the_columns_it_had(tmp_path: Path) -> None:
    devices = write(tmp_path / "class/infiniband", {"mlx5_0": device(ib_port()), "mlx5_1": device(roce_port())})
    watched = collector(tmp_path, {**MAP, ("mlx5_1", 1): "n0/nic1/p0"})
    before = await watched.collect()
    (devices / "mlx5_1").rename(tmp_path / "gone")
    after = await watched.collect()
    assert rows(after)["n0/nic1/p0"] == {}
    assert [list(f.columns) for f in after.frames] == [list(f.columns) for f in before.frames]
    assert after.warnings == ["n0/nic1/p0: no device mlx5_1 with a port 1"]


async def test_nothing_to_read_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(CollectorError, match="no RDMA driver"):
        await collector(tmp_path).collect()
    (tmp_path / "class/infiniband").mkdir(parents=True)
    with pytest.raises(CollectorError, match="no device is mapped"):
        await collector(tmp_path, {}).collect()


def test_a_wrong_map_is_refused() -> None:
    with pytest.raises(InputError, match="two devices are mapped to n0/nic0/p0"):
        InfinibandCollector({("a", 1): "n0/nic0/p0", ("b", 1): "n0/nic0/p0"})


def test_ports_are_listed_in_natural_order(tmp_path: Path) -> None:
    write(tmp_path / "class/infiniband", {"mlx5_10": device(ib_port()), "mlx5_2": device(ib_port(), roce_port())})
    assert list_ports(tmp_path) == [
        IbPort("mlx5_2", 1, "InfiniBand"), IbPort("mlx5_2", 2, "Ethernet"), IbPort("mlx5_10", 1, "InfiniBand"),
    ]  # fmt: skip
    assert list_ports(tmp_path / "nothing") == []


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="no samples beside this checkout")
async def test_a_real_h100_node_is_read_with_its_bond_left_out(tmp_path: Path) -> None:
    (tmp_path / "class").mkdir()
    (tmp_path / "class/infiniband").symlink_to(SAMPLES)
    ports = [p for p in list_ports(tmp_path) if p.link_layer == "InfiniBand"]
    assert [p.device for p in ports] == [f"mlx5_{i}" for i in (0, 1, 4, 5, 6, 7, 8, 9)]
    sample = await collector(tmp_path, {(p.device, 1): f"n0/nic{i}/p0" for i, p in enumerate(ports)}).collect()
    values = rows(sample)
    assert {v["up"] for v in values.values()} == {1}
    assert {v["speed_bits_per_second"] for v in values.values()} == {400e9}
    assert values["n0/nic0/p0"]["tx_bytes"] == 4 * 230442669431839
    assert values["n0/nic0/p0"]["retransmitted_packets"] == 3
    assert values["n0/nic1/p0"]["link_downed"] == 255
    assert not any("ecn_marked_packets" in v for v in values.values()), "an InfiniBand port has no such file"
    assert not sample.warnings


FILES = ("state", "phys_state", "rate", "link_layer")
COUNTERS = ("port_xmit_data", "link_downed", "port_xmit_wait")
OCCASIONS = ("packet_seq_err", "local_ack_timeout_err", "roce_adp_retrans")
STATES = st.sampled_from(
    [b"4: ACTIVE\n", b"1: DOWN", b"5: LinkUp", b"2: Polling", b"400 Gb/sec (4X NDR)", b"10 Gb/sec"]
)


@settings(max_examples=60, deadline=None)
@given(st.fixed_dictionaries({**dict.fromkeys(FILES, TEXT | STATES), **dict.fromkeys(COUNTERS + OCCASIONS, TEXT)}))
def test_whatever_the_files_hold_nothing_raises_and_no_number_is_made_up(files: dict[str, bytes | None]) -> None:
    with tempfile.TemporaryDirectory() as place:
        tree = {f: files[f] for f in FILES}
        below = {"counters": {f: files[f] for f in COUNTERS}, "hw_counters": {f: files[f] for f in OCCASIONS}}
        write(Path(place), {**tree, **below})
        values = read(Path(place))
    words = number(files["port_xmit_data"])
    assert values["tx_bytes"] == (None if words is None or words >= 2**62 else words * 4)
    assert values["link_downed"] == number(files["link_downed"])
    assert values["tx_wait_ticks"] == number(files["port_xmit_wait"])
    causes = [number(files[f]) for f in OCCASIONS]
    total = values["retransmitted_packets"]
    assert total is None or (None not in causes and total == sum(c or 0 for c in causes))
    speed = values["speed_bits_per_second"]
    if speed is not None:
        assert values["up"] == 1
        assert (b"%g Gb/sec" % (speed / 1e9)) in (files["rate"] or b"")
    if values["up"] == 1:
        assert (files["state"] or b"").strip().startswith(b"4:")
