"""`iblinkinfo -l` is read into one record a port; a port that is down is down, whatever speed is printed."""

from __future__ import annotations

from pathlib import Path

import pytest

from twin.ibtools.dump import DumpError
from twin.ibtools.linkinfo import LinkInfo, PortInfo, parse

FIXTURES = Path(__file__).parents[1] / "fixtures" / "ib"
CORE, LEAF = "00ab000000000100", "00ab000000000200"
CORE_NAME = 'MF0;A1 "core" (east):MQM9700/U1'


@pytest.fixture
def odd() -> LinkInfo:
    return parse((FIXTURES / "odd.linkinfo.txt").read_bytes())


@pytest.fixture
def core(odd: LinkInfo) -> dict[int, PortInfo]:
    """The core switch's ports by number."""
    return {port.port: port for port in odd.ports if port.guid == CORE}


def test_every_port_of_a_real_output_is_read() -> None:
    """The mini fabric with two cables out: 28 port ends up at HDR, the others down without a speed."""
    found = parse((FIXTURES / "mini.linkinfo.txt").read_text())
    assert found.warnings == []
    up = [port for port in found.ports if port.active]
    down = [port for port in found.ports if port.down]
    assert len(up) == 28
    assert len(up) + len(down) == len(found.ports) == 43
    assert {(port.width, port.speed, port.could_be_width) for port in up} == {("4x", "HDR", "12x")}
    assert {(port.width, port.speed, port.peer_guid) for port in down} == {(None, None, None)}


def test_one_line_in_full(odd: LinkInfo) -> None:
    assert odd.ports[0] == PortInfo(
        guid="00ab000000000a11",
        port=1,
        lid=10,
        description='host a/1 "left" mlx5_0',
        state="Active",
        physical="LinkUp",
        width="4x",
        speed="NDR",
        peer_guid=CORE,
        peer_port=1,
        peer_lid=7,
        peer_description=CORE_NAME,
    )


def test_padding_is_no_part_of_a_description(odd: LinkInfo) -> None:
    """iblinkinfo pads the near description to 30 characters, and neither the far nor a longer one."""
    assert odd.ports[0].description == 'host a/1 "left" mlx5_0'
    assert odd.ports[1].description == odd.ports[0].peer_description == CORE_NAME


def test_what_a_link_could_be(core: dict[int, PortInfo]) -> None:
    """Hints name the width and speed that both ends support, where they agreed on less."""
    assert (core[2].width, core[2].speed) == ("1x", "HDR")
    assert (core[2].could_be_width, core[2].could_be_speed) == ("4x", "NDR")
    assert (core[4].speed, core[4].could_be_speed) == ("QDR", "FDR10")
    assert (core[1].could_be_width, core[1].could_be_speed) == (None, None)


def test_a_down_port_has_no_speed(core: dict[int, PortInfo]) -> None:
    """Down, polling or disabled ports are down even where a width, a speed, a peer or a hint is printed."""
    for number in (6, 7, 8):
        port = core[number]
        assert port.down and not port.active
        assert (port.width, port.speed, port.could_be_speed) == (None, None, None)
    assert core[7].peer_guid == LEAF


def test_a_port_that_waits_is_neither_down_nor_active(core: dict[int, PortInfo]) -> None:
    """`Initialize` with a link waits for the subnet manager; settings of `-p` beside it do no harm."""
    port = core[5]
    assert not port.down and not port.active
    assert (port.state, port.physical, port.width, port.speed) == ("Initialize", "LinkUp", "4x", "XDR")


def test_a_far_end_and_a_speed_may_be_missing(core: dict[int, PortInfo]) -> None:
    """`Port not available` is a port without a known peer, and an undefined speed is unknown."""
    assert core[9].active
    assert (core[9].width, core[9].speed, core[9].peer_guid) == ("4x", None, None)
    assert core[3].speed == "FDR10"


def test_a_cut_line_is_told(odd: LinkInfo) -> None:
    assert [warning.split(":")[0] for warning in odd.warnings] == ["line 11"]


def test_other_forms_are_refused() -> None:
    """Without -l iblinkinfo prints blocks, which this parser does not read as an empty fabric."""
    with pytest.raises(DumpError, match="with -l"):
        parse('Switch: 0x00ab000000000100 leaf:\n           1    1[  ] ==( Down/ Polling)==>   [  ] "" ( )\n')
    with pytest.raises(DumpError, match="found nothing"):
        parse("")
