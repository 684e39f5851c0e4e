from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sysfs_tree import TEXT, interface, number, rows, write

from collectors import netdev
from collectors.base import CollectorError
from collectors.netdev import NetdevCollector, match_names
from collectors.sysfs import Files
from twin.errors import InputError
from twin.frames import parse_line, to_line

MAP = {"ens1": "n0/nic0/p0"}
NOW = 1_764_547_200_123_456_789


def collector(root: Path, devices: Mapping[str, str] | None = MAP, **options: object) -> NetdevCollector:
    return NetdevCollector("n0", devices, root=root, clock=lambda: NOW, **options)  # type: ignore[arg-type]


async def one(root: Path, **files: object) -> dict[str, float]:
    write(root / "class/net", {"ens1": interface(**files)})  # type: ignore[arg-type]
    return rows(await collector(root).collect())["n0/nic0/p0"]


async def test_a_healthy_interface_gives_every_column(tmp_path: Path) -> None:
    assert await one(tmp_path) == {
        "up": 1, "speed_bits_per_second": 400e9, "tx_bytes": 1000, "rx_bytes": 2000, "tx_packets": 10,
        "rx_packets": 20, "tx_discards": 3, "rx_errors": 4, "link_downed": 2,
    }  # fmt: skip


async def test_frames_carry_source_and_a_time_rounded_to_a_microsecond(tmp_path: Path) -> None:
    write(tmp_path / "class/net", {"ens1": interface()})
    frame = (await collector(tmp_path, name="n0/netdev").collect()).frames[0]
    assert (frame.source, frame.kind, frame.time) == ("n0/netdev", "port", 1_764_547_200_123_457_000)
    assert parse_line(to_line(frame))[0].time == frame.time


async def test_counters_keep_all_64_bits(tmp_path: Path) -> None:
    large = 2**63 + 1
    write(tmp_path / "class/net", {"ens1": interface(statistics={"tx_bytes": str(large)})})
    frame = (await collector(tmp_path).collect()).frames[0]
    assert int(frame.columns["tx_bytes"][0]) == large


@pytest.mark.parametrize(
    ("operstate", "carrier", "up"),
    [
        ("up", "1", 1), ("up", None, 1), ("unknown", "1", 1), (None, "1", 1), ("nonsense", "1", 1),
        ("down", None, 0), ("dormant", "1", 0), ("lowerlayerdown", "1", 0), ("notpresent", None, 0),
        ("testing", "1", 0), ("up", "0", 0), ("unknown", "0", 0),
        ("unknown", None, None), (None, None, None), ("", "", None), ("nonsense", "2", None),
    ],
)  # fmt: skip
def test_an_interface_is_up_when_nothing_says_down(
    operstate: str | None, carrier: str | None, up: int | None
) -> None:
    assert netdev.is_up(operstate, carrier) == up


@pytest.mark.parametrize("text", ["-1", "0", "4294967295", "2147483647", "", "fast", "1e3", "1_000", "٤٠٠", None])
def test_a_speed_that_says_nothing_is_unknown(text: str | None) -> None:
    assert netdev.speed(text) is None


async def test_an_interface_that_is_down_has_no_speed(tmp_path: Path) -> None:
    values = await one(tmp_path, operstate="down\n", carrier="0\n")
    assert values["up"] == 0
    assert "speed_bits_per_second" not in values


async def test_an_unreadable_file_is_unknown_and_the_rest_is_there(tmp_path: Path) -> None:
    """Reading a directory fails as reading `carrier` of an interface that is down does: with an error."""
    values = await one(tmp_path, speed={}, carrier_down_count={}, carrier_changes={}, statistics={"rx_bytes": "7"})
    assert values == {"up": 1, "rx_bytes": 7}


async def test_an_old_kernel_counts_all_carrier_changes_and_every_second_is_a_down(tmp_path: Path) -> None:
    assert (await one(tmp_path, carrier_down_count=None, carrier_changes="7\n"))["link_downed"] == 3


async def test_an_interface_that_vanishes_is_unknown_and_known_again_when_it_returns(tmp_path: Path) -> None:
    both = {"ens1": "n0/nic0/p0", "ens2": "n0/nic1/p0"}
    write(tmp_path / "class/net", {"ens1": interface(), "ens2": interface()})
    watched = collector(tmp_path, both)
    assert rows(await watched.collect())["n0/nic1/p0"]["up"] == 1
    (tmp_path / "class/net/ens2").rename(tmp_path / "elsewhere")
    sample = await watched.collect()
    assert rows(sample) == {"n0/nic0/p0": rows(sample)["n0/nic0/p0"], "n0/nic1/p0": {}}
    assert sample.warnings == ["n0/nic1/p0: no interface ens2"]
    (tmp_path / "elsewhere").rename(tmp_path / "class/net/ens2")
    sample = await watched.collect()
    assert rows(sample)["n0/nic1/p0"]["up"] == 1
    assert not sample.warnings


async def test_interfaces_that_rdma_shares_give_no_traffic(tmp_path: Path) -> None:
    """The kernel's byte counters leave RDMA out: they would show a busy port as idle."""
    roce = interface(device={"infiniband": {"mlx5_0": {}}})
    bond = interface(device={"infiniband": {"mlx5_bond_0": {}}})
    write(tmp_path / "class/net", {"ens1": roce, "ens2": interface(), "ens3": bond})
    maps = {"ens1": "n0/nic0/p0", "ens2": "n0/nic1/p0", "ens3": "n0/nic2/p0"}
    sample = await collector(tmp_path, maps).collect()
    assert sorted(frame.names for frame in sample.frames) == [("n0/nic0/p0",), ("n0/nic1/p0", "n0/nic2/p0")]
    values = rows(sample)
    assert set(values["n0/nic0/p0"]) == {"up", "speed_bits_per_second", "tx_discards", "rx_errors", "link_downed"}
    assert values["n0/nic1/p0"]["tx_bytes"] == values["n0/nic2/p0"]["tx_bytes"] == 1000


async def test_without_a_map_interfaces_are_taken_by_name_also_when_they_come_later(tmp_path: Path) -> None:
    watched = collector(tmp_path, None)
    write(tmp_path / "class/net", {"nic0p0": interface(), "eth0": interface()})
    assert set(rows(await watched.collect())) == {"n0/nic0/p0"}
    write(tmp_path / "class/net", {"rail1p0": interface()})
    (tmp_path / "class/net/nic0p0").rename(tmp_path / "gone")
    values = rows(await watched.collect())
    assert values["n0/nic0/p0"] == {}
    assert values["n0/nic1/p0"]["up"] == 1


async def test_no_interface_to_watch_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(CollectorError, match="no such directory"):
        await collector(tmp_path, None).collect()
    write(tmp_path / "class/net", {"eth0": interface()})
    with pytest.raises(CollectorError, match="named like nic0p1 or rail0p1"):
        await collector(tmp_path, None).collect()


def test_names_say_nic_and_port() -> None:
    assert match_names(["nic0p1", "rail3p1", "eth_rail4p0", "eth0", "rail1", "xnic0p0", "nic0p0s1"], "n7") == {
        "nic0p1": "n7/nic0/p1",
        "rail3p1": "n7/nic3/p1",
        "eth_rail4p0": "n7/nic4/p0",
    }


def test_rails_counted_from_one_are_shifted_where_only_that_fits_the_site() -> None:
    site = {f"n0/nic{n}/p{p}" for n in range(2) for p in range(2)}
    from_one = ["rail1p1", "rail1p2", "rail2p1", "rail2p2"]
    assert sorted(match_names(from_one, "n0", site).values()) == sorted(site)
    assert match_names(["rail0p0", "rail1p1"], "n0", site) == {"rail0p0": "n0/nic0/p0", "rail1p1": "n0/nic1/p1"}
    assert match_names(["rail0p0", "rail7p1"], "n0", site) == {"rail0p0": "n0/nic0/p0"}, "7 is no NIC of the site"
    assert match_names(["nic1p1", "nic2p2"], "n0", site) == {"nic1p1": "n0/nic1/p1"}, "our own names never shift"


def test_two_names_for_one_port_give_it_once() -> None:
    assert match_names(["nic0p0", "rail0p0"], "n0") == {"nic0p0": "n0/nic0/p0"}


def test_a_wrong_map_is_refused_with_every_problem() -> None:
    with pytest.raises(InputError) as refused:
        NetdevCollector("n0", {"a": "n0/nic0/p0", "b": "n0/nic0/p0", "c": "n0/gpu1"})
    assert len(refused.value.problems) == 2


@pytest.mark.skipif(not Path("/sys/class/net/lo").exists(), reason="no /sys/class/net/lo here")
async def test_the_real_interfaces_of_this_machine_can_be_read() -> None:
    values = rows(await NetdevCollector("me", {"lo": "me/nic0/p0"}).collect())["me/nic0/p0"]
    assert values["up"] == 1
    assert values["tx_bytes"] >= 0
    assert "speed_bits_per_second" not in values, "a loopback has no speed"


FILES = ("operstate", "carrier", "speed", "carrier_down_count", "tx_bytes")


@settings(max_examples=60, deadline=None)
@given(st.fixed_dictionaries(dict.fromkeys(FILES, TEXT)))
def test_whatever_the_files_hold_nothing_raises_and_no_number_is_made_up(files: dict[str, bytes | None]) -> None:
    with tempfile.TemporaryDirectory() as place:
        tree = interface(**{**files, "carrier_changes": None, "statistics": {"tx_bytes": files["tx_bytes"]}})
        write(Path(place) / "class/net", {"ens1": tree})
        opened = Files(Path(place) / "class/net/ens1")
        assert opened.present()
        values = netdev.read_interface(opened)
    assert values["tx_bytes"] == number(files["tx_bytes"])
    assert values["link_downed"] == number(files["carrier_down_count"])
    megabits = values["speed_bits_per_second"]
    assert megabits is None or (values["up"] == 1 and megabits == (number(files["speed"]) or 0) * 1_000_000)
    if values["up"] is not None:
        said = {(files["operstate"] or b"").strip(), (files["carrier"] or b"").strip()}
        assert said & ({b"up", b"1"} if values["up"] else {b"down", b"dormant", b"0"})
