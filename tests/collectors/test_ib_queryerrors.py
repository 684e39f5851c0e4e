"""`ibqueryerrors` is read into counters a port; silence of the tool is not health of the fabric."""

from __future__ import annotations

from pathlib import Path

import pytest

from twin.ibtools import netdiscover
from twin.ibtools.dump import DumpError
from twin.ibtools.queryerrors import QueryErrors, parse

FIXTURES = Path(__file__).parents[1] / "fixtures" / "ib"
LEAF, HOST, HOST_PORT = "abcd000000001100", "abcd0000000a0020", "abcd0000000a0021"


@pytest.fixture
def odd() -> QueryErrors:
    return parse((FIXTURES / "odd.errors.txt").read_text())


def test_data_counters_of_every_port() -> None:
    """Data is in 4-byte words, as printed first, for all ports of the 11 nodes the tool reached."""
    found = parse((FIXTURES / "mini.counters.txt").read_text())
    assert 10**15 < found.counters[LEAF, 1]["PortXmitData"] < 10**15 + 10**6
    assert found.counters[LEAF, 9] == dict.fromkeys(found.counters[LEAF, 1], 0)
    assert (found.nodes_checked, found.ports_checked, found.failed_queries) == (11, 47, 0)
    assert len(found.counters) == 47
    assert len(found.descriptions) == 11
    assert found.descriptions[HOST] == "node-02 mlx5_0"
    assert found.warnings == []


def test_error_counters_above_zero() -> None:
    """Errors are listed for three ports; that the others have none is known, for the summary came."""
    found = parse((FIXTURES / "mini.errors.txt").read_text())
    assert found.counters == {
        (HOST_PORT, 1): {"PortRcvErrors": 17, "PortXmitDiscards": 4},
        (LEAF, 1): {"SymbolErrorCounter": 65535, "PortXmitWait": 4294967295},
        (LEAF, 5): {"LinkDownedCounter": 3},
    }
    assert found.complete
    assert (found.nodes_checked, found.bad_nodes, found.ports_checked, found.bad_ports) == (11, 2, 44, 3)
    assert found.descriptions == {HOST_PORT: "node-02 mlx5_0", LEAF: "MF0;leaf-01:MQM8700/U1"}


def test_rows_of_both_outputs_meet_at_the_node() -> None:
    """Errors go by port GUID and data by node GUID; the discovery leads both to the node."""
    discovery = netdiscover.parse((FIXTURES / "mini.netdiscover.txt").read_text())
    errors = parse((FIXTURES / "mini.errors.txt").read_text()).by_node(discovery.port_guids)
    data = parse((FIXTURES / "mini.counters.txt").read_text()).by_node(discovery.port_guids)
    assert set(errors) <= set(data)
    assert errors[HOST, 1]["PortRcvErrors"] == 17


def test_sums_and_link_lines_are_left_out() -> None:
    """`port ALL` would count a switch twice; `-r` adds lines about links; what was suppressed is said."""
    found = parse((FIXTURES / "mini.errors-details.txt").read_text())
    assert set(found.counters) == {(HOST_PORT, 1), (LEAF, 1), (LEAF, 5)}
    assert found.counters[LEAF, 5]["PortXmitData"] == 40104
    assert found.suppressed == ("PortXmitWait",)
    assert found.warnings == []


def test_extended_error_counters_and_summary(odd: QueryErrors) -> None:
    """64-bit error counters carry a readable figure behind; thresholds and failed queries bound what zero means."""
    assert odd.counters["00ab000000000a11", 1] == {"SymbolErrorCounter": 2**64 - 1, "PortXmitWait": 5_000_000_000}
    assert odd.counters["00ab000000000100", 2] == {"LinkDownedCounter": 255, "PortXmitWait": 12}
    assert odd.descriptions["00ab000000000a11"] == 'host a/1 "left" mlx5_0'
    assert odd.thresholds == {"SymbolErrorCounter": 10, "PortXmitWait": 1000}
    assert odd.suppressed == ("PortRcvSwitchRelayErrors", "VL15Dropped")
    assert odd.failed_queries == 3


def test_what_does_not_fit_is_a_warning_with_its_line(odd: QueryErrors) -> None:
    """A foreign line is told. A counter cut in two is not read, as its digits may be cut as well."""
    assert [warning.split(":")[0] for warning in odd.warnings] == ["line 7", "line 8"]
    assert odd.counters["00ab000000000100", 3] == {}


def test_an_output_cut_short_is_not_complete() -> None:
    """Without the summary nothing is known of ports not listed."""
    whole = (FIXTURES / "mini.errors.txt").read_text()
    found = parse(whole[: whole.index("## Summary")])
    assert not found.complete
    assert "no summary" in found.warnings[0]


def test_a_clean_fabric_is_a_summary() -> None:
    """No row at all is fine where the tool says how many nodes it checked."""
    found = parse(
        "\n## Summary: 12 nodes checked, 0 bad nodes found\n##          44 ports checked, 0 ports have errors\n"
    )
    assert (found.counters, found.nodes_checked, found.ports_checked) == ({}, 12, 44)


@pytest.mark.parametrize("dump", ["", "\n", b"\0", "Errors for\n", "## Thresholds:\n"])
def test_silence_is_an_error(dump: str | bytes) -> None:
    """Without a subnet manager the tool prints nothing and exits with 0: that must not read as a clean fabric."""
    with pytest.raises(DumpError):
        parse(dump)
