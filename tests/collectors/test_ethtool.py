"""The ioctl and the netlink messages, asked of the real kernel and compared with what `ethtool` and `ip` print."""

from __future__ import annotations

import json
import re
import socket
import struct
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors import ethtool_stats
from collectors.ethtool import Ethtool
from collectors.ethtool_fec import FecCounters, attributes, messages, parse_fec
from collectors.ethtool_stats import DriverStatistics, Rule
from tests.rigs import veth
from tests.rigs.veth import Veth

pytestmark = pytest.mark.service("iproute2", "ethtool")
ROOT = Path(__file__).parents[2]


@pytest.fixture
def pair(unavailable: Callable[[str], None]) -> Iterator[Veth]:
    if reason := veth.missing():
        unavailable(reason)
    with Veth() as built:
        yield built


@pytest.fixture
def asked(pair: Veth) -> Iterator[Ethtool]:
    made = Ethtool(pair.socket(socket.AF_INET, socket.SOCK_DGRAM))
    yield made
    made.close()


def printed(pair: Veth, interface: str) -> list[tuple[str, int]]:
    """Names and values as `ethtool -S` prints them, in its order."""
    lines = pair.run("ethtool", "-S", interface).splitlines()[1:]
    return [(name.strip(), int(value)) for name, _, value in (line.rpartition(":") for line in lines)]


def test_names_and_values_are_those_that_ethtool_prints(pair: Veth, asked: Ethtool) -> None:
    pair.send("v1", 25)
    expected = printed(pair, "v0")
    assert dict(expected)["rx_queue_0_xdp_packets"] >= 25
    assert asked.driver("v0") == ("veth", len(expected))
    assert list(zip(asked.names("v0"), asked.values("v0").tolist(), strict=True)) == expected


def test_statistics_that_come_with_new_queues_are_named_anew(
    pair: Veth, asked: Ethtool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule = Rule("veth", re.compile("rx_queue_[0-9]+_xdp_packets"), "rx_packets", None)
    monkeypatch.setattr(ethtool_stats, "rules", lambda: (rule,))
    statistics = DriverStatistics(asked)
    pair.send("v1", 10)

    def both() -> None:
        total = sum(value for name, value in printed(pair, "v0") if rule.names.fullmatch(name))
        assert statistics.read(["v0"])["v0"] == {"rx_packets": total} and total >= 10

    both()
    names = asked.names("v0")
    for end in ("v0", "v1"):
        pair.run("ethtool", "-L", end, "rx", "4", "tx", "4")
    pair.send("v1", 200)
    counts = [value for name, value in printed(pair, "v0") if rule.names.fullmatch(name)]
    assert all(counts[:4]), "every queue got some"
    assert len(asked.values("v0")) == len(asked.names("v0")) > len(names)
    both()
    pair.run("ethtool", "-L", "v1", "tx", "2")
    pair.run("ethtool", "-L", "v0", "rx", "2", "tx", "2")
    both()
    statistics.close()


def test_an_interface_that_goes_is_unknown_and_known_again_when_it_returns(
    pair: Veth, asked: Ethtool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule = Rule("veth", re.compile("peer_ifindex"), "rx_packets", None)
    monkeypatch.setattr(ethtool_stats, "rules", lambda: (rule,))
    statistics = DriverStatistics(asked)
    assert statistics.read(["v0", "nothing"]) == {
        "v0": {"rx_packets": dict(printed(pair, "v0"))["peer_ifindex"]},
        "nothing": {},
    }
    pair.run("ip", "link", "set", "v0", "down")
    pair.run("ip", "link", "set", "v0", "name", "elsewhere")
    assert statistics.read(["v0"]) == {"v0": {"rx_packets": None}}
    pair.run("ip", "link", "set", "elsewhere", "name", "v0")
    assert statistics.read(["v0"])["v0"]["rx_packets"] is not None
    statistics.close()


@pytest.mark.parametrize("interface", ["lo", "nothing", "a" * 40, "", "a\0b"])
def test_what_has_no_statistics_is_an_error_of_the_system(asked: Ethtool, interface: str) -> None:
    with pytest.raises(OSError):
        asked.values(interface)


def test_the_kernel_answers_for_fec_and_veth_counts_none(pair: Veth) -> None:
    counters = FecCounters(pair.socket(socket.AF_NETLINK, socket.SOCK_RAW, 16))
    assert counters.read() == counters.read() == {}
    listed = json.loads(pair.run("sh", "-c", "ethtool --json -I --show-fec v0 || true") or "[]")
    assert not [entry for entry in listed if "statistics" in entry]
    counters.close()


COLLECT = """
import asyncio, json, sys
sys.path[:0] = ["tests/collectors", "."]
from sysfs_tree import rows
from collectors.netdev import NetdevCollector
print(json.dumps(rows(asyncio.run(NetdevCollector("n0", {"v0": "n0/nic0/p0", "v1": "n0/nic0/p1"}).collect()))))
"""


def collected(pair: Veth) -> dict[str, dict[str, float]]:
    command = f"cd {ROOT} && exec {sys.executable} -c '{COLLECT}'"
    found: dict[str, dict[str, float]] = json.loads(pair.run("sh", "-c", command))
    return found


def test_an_interface_reads_as_ip_link_prints_it_and_drops_of_a_queue_are_no_drops_of_the_port(pair: Veth) -> None:
    pair.run("tc", "qdisc", "add", "dev", "v1", "root", "tbf", "rate", "8kbit", "burst", "500", "limit", "500")
    assert 0 < pair.send("v1", 50) < 50
    (queue,) = json.loads(pair.run("tc", "-s", "-j", "qdisc", "show", "dev", "v1"))
    assert queue["drops"] > 0
    pair.run("tc", "qdisc", "del", "dev", "v1", "root")
    values = collected(pair)
    for interface, address in (("v0", "n0/nic0/p0"), ("v1", "n0/nic0/p1")):
        (shown,) = json.loads(pair.run("ip", "-s", "-j", "link", "show", interface))
        stats = shown["stats64"]
        assert values[address] == {
            "up": 1, "speed_bits_per_second": 10e9,
            "tx_bytes": stats["tx"]["bytes"], "rx_bytes": stats["rx"]["bytes"],
            "tx_packets": stats["tx"]["packets"], "rx_packets": stats["rx"]["packets"],
            "tx_discards": stats["tx"]["dropped"], "rx_errors": stats["rx"]["errors"],
            "link_downed": int(pair.run("cat", f"/sys/class/net/{interface}/carrier_down_count")),
        }  # fmt: skip
    assert values["n0/nic0/p1"]["tx_packets"] > 0 and values["n0/nic0/p1"]["tx_discards"] == 0


# --- netlink messages, built by hand --------------------------------------------------------------


def attribute(kind: int, value: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)


def fec_answer(name: bytes = b"ens1\0", **counters: list[int]) -> bytes:
    """An answer to FEC_GET as the kernel puts it (net/ethtool/fec.c): each counter a total, then its lanes."""
    kinds = {"corrected": 2, "uncorrectable": 3, "corrected_bits": 4}
    stats = b"".join(attribute(kinds[k], struct.pack(f"={len(v)}Q", *v)) for k, v in counters.items())
    header = attribute(1 | 0x8000, attribute(1, struct.pack("=I", 7)) + attribute(2, name))
    return b"\x1d\x01\0\0" + header + attribute(3, b"\0") + attribute(5 | 0x8000, stats)


def test_corrected_and_uncorrectable_blocks_are_the_totals_without_lanes_and_bits() -> None:
    answer = fec_answer(corrected=[2**63 + 5, 2, 3], uncorrectable=[7], corrected_bits=[99])
    assert parse_fec(answer) == ("ens1", {"fec_corrected": 2**63 + 5, "fec_uncorrected": 7})


def test_counters_that_a_driver_lacks_are_not_there_or_unknown() -> None:
    assert parse_fec(fec_answer(corrected=[], uncorrectable=[])) == ("ens1", {})
    assert parse_fec(fec_answer(corrected=[2**64 - 1])) == ("ens1", {"fec_corrected": None})


@given(st.binary(max_size=120), st.integers(0, 130))
def test_any_bytes_are_read_without_an_error_and_give_whole_numbers_or_nothing(noise: bytes, cut: int) -> None:
    for block in (noise, fec_answer(corrected=[5], uncorrectable=[6])[:cut] + noise):
        _, values = parse_fec(block)
        assert all(value is None or 0 <= value < 2**64 - 1 for value in values.values())
        assert sum(len(value) for _, value in attributes(block)) <= len(block)
        assert sum(len(payload) for _, _, payload in messages(block)) <= len(block)
