"""`ibnetdiscover` is read into nodes, cables and ports without a far end, and never into less without a word."""

from __future__ import annotations

import pickle
import time
from collections import Counter
from pathlib import Path

import pytest

from twin.ibtools.discovery import DanglingPort, Discovery, Link, Node
from twin.ibtools.dump import MAX_WARNINGS, DumpError
from twin.ibtools.netdiscover import parse, parse_ports, parse_topology

FIXTURES = Path(__file__).parents[1] / "fixtures" / "ib"
SAMPLES = Path(__file__).parents[3] / "shared" / "samples" / "infiniband-diags" / "ibnetdiscover"
samples = pytest.mark.skipif(not SAMPLES.exists(), reason="real outputs are not kept beside the repository")

CORE, LEAF, HOST = "00ab000000000100", "00ab000000000200", "00ab000000000a10"


@pytest.fixture
def odd() -> Discovery:
    return parse((FIXTURES / "odd.netdiscover.txt").read_bytes())


@pytest.fixture
def odd_ports() -> Discovery:
    return parse((FIXTURES / "odd.netdiscover-p.txt").read_bytes())


def ends(found: Discovery) -> set[tuple[str, int, str, int]]:
    return {(link.a_guid, link.a_port, link.b_guid, link.b_port) for link in found.links}


def test_a_whole_dump_gives_every_node_and_each_cable_once() -> None:
    """mini.net has 4 switches, 8 hosts and 16 cables, of which two were pulled before the dump."""
    found = parse((FIXTURES / "mini.netdiscover.txt").read_text())
    assert found.form == "topology"
    assert Counter(node.kind for node in found.nodes.values()) == {"switch": 4, "ca": 7}
    assert len(found.links) == len(ends(found)) == 14
    assert {(link.width, link.speed) for link in found.links} == {("4x", "HDR")}
    assert found.nodes["abcd000000001100"] == Node("abcd000000001100", "switch", "MF0;leaf-01:MQM8700/U1", 10, 1)
    assert found.nodes["abcd0000000a0010"] == Node("abcd0000000a0010", "ca", "node-01 mlx5_0", 1, 5)
    assert found.origin == "abcd0000000a0010"
    assert found.dangling == []
    assert found.warnings == []


def test_both_forms_of_the_same_fabric_agree() -> None:
    """Once port GUIDs are led back to nodes, the port list shows the cables that the full dump shows."""
    full = parse((FIXTURES / "mini.netdiscover.txt").read_text())
    listed = parse((FIXTURES / "mini.netdiscover-p.txt").read_text())
    assert listed.form == "ports"

    def node(guid: str) -> str:
        return full.port_guids.get(guid, guid)

    assert {tuple(sorted(((node(a), p), (node(b), q)))) for a, p, b, q in ends(listed)} == {
        tuple(sorted(((a, p), (b, q)))) for a, p, b, q in ends(full)
    }
    assert {node(guid) for guid in listed.nodes} == set(full.nodes)
    linked = {end for a, p, b, q in ends(full) for end in ((a, p), (b, q))}
    empty = {(node.guid, port) for node in full.nodes.values() for port in range(1, (node.nports or 0) + 1)} - linked
    assert {(port.guid, port.port) for port in listed.dangling} == empty


def test_a_link_starts_at_its_lower_end(odd: Discovery) -> None:
    """Whichever end a dump names first, the same cable is the same `Link`."""
    assert all((link.a_guid, link.a_port) < (link.b_guid, link.b_port) for link in odd.links)
    assert Link(CORE, 3, LEAF, 3, "2x", "HDR") in odd.links


def test_descriptions_are_kept_as_given(odd: Discovery) -> None:
    """Quotes, `;`, `:`, `/`, `#` and spaces at the end stay; bytes that are no UTF-8 are replaced."""
    assert odd.nodes[CORE].description == 'MF0;A1 "core" #1:MQM9700/U1 '
    assert odd.nodes[HOST].description == 'host a/1 mlx5_0: "left"'
    assert odd.nodes[LEAF].description == "leaf \ufffd\ufffd"


def test_ports_lids_and_kinds_come_from_the_blocks(odd: Discovery) -> None:
    """A description that says `lid` gives no LID; an adapter's LID is that of its first port."""
    router = odd.nodes["00ab000000000c00"]
    assert router == Node("00ab000000000c00", "router", "router lid 5 to the north", 2, 12)
    assert (odd.nodes[CORE].nports, odd.nodes[CORE].lid) == (65, 7)
    assert (odd.nodes[HOST].nports, odd.nodes[HOST].lid) == (2, 10)
    assert odd.nodes["00ab000000000108"].description == "Mellanox Technologies Aggregation Node"


def test_port_guids_lead_to_their_node(odd: Discovery) -> None:
    """Both ports of a two-port adapter belong to it, with GUIDs padded to 16 digits."""
    assert odd.port_guids["00ab000000000a11"] == HOST
    assert odd.port_guids["00ab000000000a12"] == HOST
    assert odd.port_guids["00ab000000000c01"] == "00ab000000000c00"


def test_unknown_rates_are_unknown(odd: Discovery, odd_ports: Discovery) -> None:
    """`??` and `???` are None, not a width and a speed; the other end may know better."""
    assert Link(CORE, 5, LEAF, 5, "4x", "HDR") in odd.links  # `?????` from one end
    assert Link(CORE, 4, LEAF, 4, "4x", "FDR10") in odd.links
    assert Link(CORE, 2, LEAF, 2, "4x", "XDR") in odd_ports.links  # `4x ???` from one end
    assert parse('Switch\t2 "S-1"\n[1]\t"S-2"[3]\t\t# "x" lid 2 ?????').links == [
        Link("0000000000000001", 1, "0000000000000002", 3, None, None)
    ]


def test_what_does_not_fit_is_a_warning_with_its_line(odd: Discovery) -> None:
    """Foreign lines, a loop, a second far end, ends that differ and a cut line are told; the rest is read."""
    dump = (FIXTURES / "odd.netdiscover.txt").read_bytes().decode(errors="replace").split("\n")
    told = {int(warning.split(":")[0].removeprefix("line ")): warning for warning in odd.warnings}
    quoted = {number: dump[number - 1][:5] for number in told}
    assert quoted == {21: '[9]\t"', 30: "ibwar", 31: '[3]\t"', 34: '[6]\t"', len(dump): "[2](a"}
    assert "cabled to itself" in told[21]
    assert "differ" in told[31]
    assert "two far ends" in told[34]
    assert DanglingPort(CORE, 9, "4x", "NDR") in odd.dangling


def test_ports_without_far_end_are_kept_with_what_is_known(odd_ports: Discovery) -> None:
    """`4x ???` and an unquoted description are dangling ports, of a node that is known."""
    assert odd_ports.dangling == [
        DanglingPort(LEAF, 37, "4x", None),
        DanglingPort(LEAF, 38, None, "SDR"),
        DanglingPort(LEAF, 39, "4x", "SDR"),
    ]
    assert odd_ports.nodes["00ab000000000a11"] == Node("00ab000000000a11", "ca", "host a/1: 'left' mlx5_0", None, 10)
    assert odd_ports.nodes["00ab000000000c01"].kind == "router"


def test_a_row_cut_short_is_no_dangling_port(odd_ports: Discovery) -> None:
    """Half a row does not say that the port has no far end; and two names that cannot be told apart are told."""
    assert (LEAF, 40) not in {(port.guid, port.port) for port in odd_ports.dangling}
    assert [warning.split(":")[0] for warning in odd_ports.warnings] == ["line 9", "line 10"]


def test_a_dump_cut_short_is_told() -> None:
    """Nodes that are named as far ends but have no block of their own show that the end is missing."""
    whole = (FIXTURES / "mini.netdiscover.txt").read_text()
    found = parse(whole[: len(whole) // 3])
    assert any("cut short" in warning for warning in found.warnings)


def test_the_only_node_being_the_own_one_is_told() -> None:
    """With its own cable out, ibnetdiscover reports one node and exits with 0, as if all others had gone."""
    found = parse('# Initiated from node 00ab000000000a10 port 0\n\nCa\t1 "H-00ab000000000a10"\t\t# "x"\n')
    assert len(found.nodes) == 1
    assert "own cable" in found.warnings[0]


@pytest.mark.parametrize(
    ("dump", "line", "says"),
    [
        ("", 1, "found nothing"),
        (b" \n\n", 1, "found nothing"),
        ("#\n# Topology file: generated on Mon\n#\n", 3, "expected a Switch, Ca or Rt block"),
        (b"\x7fELF\n\x00\x01", 2, "binary"),
        ("{}\n", 1, "expected output of ibnetdiscover"),
        ('Switch\t: 0x00ab ports 40 devid 0x1 vendid 0x2 "x"\n', 1, "expected output of ibnetdiscover"),  # of -l
    ],
)
def test_what_is_no_dump_is_an_error(dump: str | bytes, line: int, says: str) -> None:
    """Nothing, a header alone, or another file is an error with its line: never an empty, healthy fabric."""
    with pytest.raises(DumpError, match=says) as error:
        parse(dump)
    assert error.value.line == line
    assert pickle.loads(pickle.dumps(error.value)).line == line


def test_one_form_is_not_taken_for_the_other() -> None:
    """Asked for one form, the parser refuses the other instead of finding nothing in it."""
    with pytest.raises(DumpError):
        parse_ports((FIXTURES / "mini.netdiscover.txt").read_text())
    with pytest.raises(DumpError):
        parse_topology((FIXTURES / "mini.netdiscover-p.txt").read_text())


def test_warnings_have_an_end() -> None:
    """A long foreign text earns a bounded list of warnings."""
    found = parse((FIXTURES / "mini.netdiscover.txt").read_text() + "nonsense\n" * 1000)
    assert len(found.warnings) == MAX_WARNINGS + 1
    assert found.warnings[-1] == f"and {1000 - MAX_WARNINGS} more warnings"


def test_a_fabric_of_588_nodes_takes_little_time() -> None:
    """A dump of 255 kB takes about 40 ms; the limit leaves room for a slow machine."""
    dump = large_dump()
    assert len(dump) > 250_000
    times = []
    for _ in range(5):
        start = time.process_time()
        found = parse(dump)
        times.append(time.process_time() - start)
    assert len(found.nodes) == 588
    assert len(found.links) == 576 + 8 * 72
    assert min(times) < 0.2


def large_dump() -> str:
    """One XDR unit: 576 adapters on 8 leaves, 72 uplinks a leaf to 4 spines."""
    rows: dict[str, list[str]] = {}
    for leaf in range(8):
        near = f"S-{0x100 + leaf:016x}"
        for port in range(1, 73):
            host, spine = f"H-{0xA0000 + leaf * 72 + port:016x}", f"S-{0x200 + port % 4:016x}"
            for a, at, b, to in ((near, port, host, 1), (near, port + 72, spine, leaf * 18 + (port + 3) // 4)):
                rows.setdefault(a, []).append(f'[{at}]\t"{b}"[{to}]\t\t# "a rather long description {b}" lid 9 4xXDR')
                rows.setdefault(b, []).append(f'[{to}]\t"{a}"[{at}]\t\t# "a rather long description {a}" lid 9 4xXDR')
    heads = {node: f'{"Ca" if node[0] == "H" else "Switch"}\t144 "{node}"\t\t# "a description"' for node in rows}
    blocks = ["\n".join(["", "vendid=0x2c9", "devid=0x1023", heads[node], *rows[node]]) for node in rows]
    return "\n".join(["# Topology file: generated", *blocks])


@samples
def test_a_real_superpod() -> None:
    """40 switches, 582 adapters, 40 of them aggregation nodes; 2,228 link ends are 1,114 cables, all 4xNDR."""
    found = parse((SAMPLES / "superpod-ndr.out").read_bytes())
    assert Counter(node.kind for node in found.nodes.values()) == {"switch": 40, "ca": 582}
    assert sum(node.description == "Mellanox Technologies Aggregation Node" for node in found.nodes.values()) == 40
    assert len(found.links) == 1114
    assert {(link.width, link.speed) for link in found.links} == {("4x", "NDR")}
    assert all(node.nports and node.lid for node in found.nodes.values())
    assert found.warnings == []


@samples
def test_real_port_lists() -> None:
    """The lists kept beside other projects, one of which contradicts itself on line 5."""
    first, second, third = (parse((SAMPLES / name).read_bytes()) for name in ("test.out", "test2.out", "test3.out"))
    assert DanglingPort("506b4b03005c2740", 37, "4x", None) in first.dangling
    assert len(first.links) == 4
    assert first.warnings == []
    assert second.nodes["946dae0300618c83"].description == " 5FB0406-spine-IB02 "
    assert [warning.split(":")[0] for warning in second.warnings] == ["line 5"]
    assert third.nodes["0002c9020040f161"].description == "Infiniscale-IV Mellanox Technologies"
