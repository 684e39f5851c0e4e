"""`ibnetdiscover`: the full dump of blocks, and with `-p` the list of ports.

The full dump is the better source: it names nodes by node GUID, says how many ports each has and which port
GUIDs belong to it; a port of a block that no line mentions has no cable. The list names adapters by port GUID
only, but shows what a port without a far end says of itself.
"""

from __future__ import annotations

import re

from twin.ibtools.discovery import Builder, DanglingPort, Discovery, Link, Node, NodeKind, Rate
from twin.ibtools.dump import DumpError, Warnings, guid, numbered_lines, readable, shown

__all__ = ["DanglingPort", "Discovery", "Link", "Node", "parse", "parse_ports", "parse_topology"]

_KINDS: dict[str, NodeKind] = {
    "Switch": "switch", "Ca": "ca", "Hca": "ca", "Rt": "router",  # a block's first line
    "S": "switch", "H": "ca", "R": "router",  # a far end
    "SW": "switch", "CA": "ca", "RT": "router",  # a row of the port list
}  # fmt: skip

# Switch	65 "S-2c5…"		# "leaf" enhanced port 0 lid 73 lmc 0
# A description may hold quotes, so the last quote of the line ends it (`".*"` is greedy).
_BLOCK = re.compile(
    r'(?P<kind>Switch|Ca|Hca|Rt)\s+(?P<nports>\d{1,3})\s+"[SHR]-(?P<guid>[\da-fA-F]{1,16})"'
    r'(?:\s*#\s*"(?P<description>.*)"(?:.*? lid (?P<lid>\d{1,5}))?.*)?',
    re.ASCII,
)

# [1](e09…) 	"S-2c5…"[32](e09…) 		# lid 8 lmc 0 "spine" lid 236 4xNDR
# GUIDs in parentheses are port GUIDs, which only ends that are no switches have. `[ext 3]` is the number on a
# chassis' panel. A line without its comment still says what is cabled to what.
_CABLE = re.compile(
    r"\[(?P<port>\d{1,3})\](?:\[ext \d+\])?(?:\((?P<port_guid>[\da-fA-F]{1,16})\))?\s+"
    r'"(?P<far_kind>[SHR])-(?P<far>[\da-fA-F]{1,16})"\[(?P<far_port>\d{1,3})\](?:\[ext \d+\])?\s*'
    r"(?:\((?P<far_port_guid>[\da-fA-F]{1,16})\)\s*)?"
    r'(?:#\s*(?:lid (?P<lid>\d{1,5}) lmc \d+ )?"(?P<far_name>.*)" lid (?P<far_lid>\d{1,5})\s+'
    r"(?P<width>\d{1,2}x|\?\?)(?P<speed>[A-Z]+\d*|\?\?\?).*)?",
    re.ASCII,
)

# CA   134  1 0x7cf… 4x EDR - SW  1719 10 0x7cf… ( 'o0001 HCA-1' - 'ib-i1l1s01' )
# SW  2052 37 0x506… 4x ???                                    'ib-i4l1s01'
_ROW = re.compile(
    r"\s*(?P<kind>SW|CA|RT)\s+(?P<lid>\d{1,5})\s+(?P<port>\d{1,3})\s+0x(?P<guid>[\da-fA-F]{1,16})\s+"
    r"(?P<width>\d{1,2}x|\?\?)\s+(?P<speed>[A-Z]+\d*|\?\?\?)\s+"
    r"(?:- (?P<far_kind>SW|CA|RT)\s+(?P<far_lid>\d{1,5})\s+(?P<far_port>\d{1,3})\s+"
    r"0x(?P<far>[\da-fA-F]{1,16}) \( '(?P<names>.*)' \)|(?!- )(?P<name>.*))",
    re.ASCII,
)

# # Initiated from node e09d730300156ff6 port e09d730300156ff6
_ORIGIN = re.compile(r"# Initiated from node (?P<guid>[\da-fA-F]{1,16}) ", re.ASCII)

# Lines of a full dump that hold nothing needed here: comments, identifiers, the headings of `-g`.
_ASIDE = re.compile(r"#|vendid=|devid=|sysimgguid=|(?:switch|ca|rt)guid=|Chassis \d|Hostname: |Non-Chassis Nodes")


def parse(dump: str | bytes) -> Discovery:
    """Read either form; which one it is shows in the first line that only one of them has."""
    lines = numbered_lines(dump, "ibnetdiscover")
    for _, line in readable(lines, Warnings()):
        if _ROW.fullmatch(line):
            return _ports(lines)
        if _BLOCK.fullmatch(line) or _ASIDE.match(line):
            return _topology(lines)
    raise DumpError(1, f"expected output of ibnetdiscover, found {shown(lines[0][1])}")


def parse_topology(dump: str | bytes) -> Discovery:
    """Read the full form: a block a node, a line a cabled port."""
    return _topology(numbered_lines(dump, "ibnetdiscover"))


def parse_ports(dump: str | bytes) -> Discovery:
    """Read the form of `-p`: a row a port, with or without a far end."""
    return _ports(numbered_lines(dump, "ibnetdiscover -p"))


def _topology(lines: list[tuple[int, str]]) -> Discovery:
    warnings = Warnings()
    builder = Builder("topology", warnings)
    blocks: dict[str, int] = {}  # GUID -> line
    owner = ""
    for number, line in readable(lines, warnings):
        if cable := _CABLE.fullmatch(line):
            if owner:
                _cabled_port(builder, number, owner, cable)
            else:
                warnings.add(number, "a port before any Switch, Ca or Rt line")
        elif _ASIDE.match(line):
            if origin := _ORIGIN.match(line):
                builder.found.origin = guid(origin["guid"])
        elif block := _BLOCK.fullmatch(line):
            owner = _block(builder, block)
            if blocks.setdefault(owner, number) != number:
                warnings.add(number, f"node {owner} has a block on line {blocks[owner]} already")
        else:
            warnings.add(number, f"not understood: {shown(line)}")
    if not blocks:
        expected = "expected a Switch, Ca or Rt block after the header, found none"
        raise DumpError(lines[-1][0], f"{expected}; did ibnetdiscover reach the fabric?")
    _doubt(builder, lines[-1][0], blocks)
    return builder.done()


def _doubt(builder: Builder, line: int, blocks: dict[str, int]) -> None:
    """Warn of a dump that looks whole but is not the fabric."""
    if missing := [far for far in builder.found.nodes if far not in blocks]:
        cut = f"{len(missing)} nodes are far ends but have no block of their own, {missing[0]} first"
        builder.warnings.add(line, f"{cut}; is the dump cut short?")
    elif set(blocks) == {builder.found.origin}:
        builder.warnings.add(line, "only the node that ibnetdiscover ran on; is its own cable out?")


def _ports(lines: list[tuple[int, str]]) -> Discovery:
    warnings = Warnings()
    builder = Builder("ports", warnings)
    for number, line in readable(lines, warnings):
        if row := _ROW.fullmatch(line):
            _listed_port(builder, number, row)
        else:
            warnings.add(number, f"not understood: {shown(line)}")
    if not builder.found.nodes:
        raise DumpError(1, f"expected rows of ibnetdiscover -p, found {shown(lines[0][1])}")
    return builder.done()


def _block(builder: Builder, match: re.Match[str]) -> str:
    kind, nports, digits, description, lid = match.groups()
    owner = guid(digits)
    builder.node(owner, _KINDS[kind], description or "", int(nports), int(lid) if lid else None)
    return owner


def _cabled_port(builder: Builder, line: int, owner: str, match: re.Match[str]) -> None:
    port, port_guid, far_kind, far, far_port, far_port_guid, lid, far_name, far_lid, *rate = match.groups()
    far = guid(far)
    node = builder.found.nodes[owner]
    if lid and node.lid is None:  # an adapter's own LID is on its ports' lines, not in its heading
        builder.node(owner, node.kind, node.description, node.nports, int(lid))
    builder.peer(far, _KINDS[far_kind], far_name or "", int(far_lid) if far_lid else None)
    if port_guid:
        builder.found.port_guids[guid(port_guid)] = owner
    if far_port_guid:
        builder.found.port_guids[guid(far_port_guid)] = far
    builder.cable(line, (owner, int(port)), (far, int(far_port)), _rate(*rate))


def _listed_port(builder: Builder, line: int, match: re.Match[str]) -> None:
    kind, lid, port, digits, *rate, far_kind, far_lid, far_port, far, names, name = match.groups()
    near = guid(digits)
    if far:
        name, far_name = _two_names(builder, line, names)
        builder.peer(guid(far), _KINDS[far_kind], far_name, int(far_lid))
        builder.cable(line, (near, int(port)), (guid(far), int(far_port)), _rate(*rate))
    else:
        name = name.strip().removeprefix("'").removesuffix("'")
        builder.loose_end((near, int(port)), _rate(*rate))
    builder.node(near, _KINDS[kind], name, None, int(lid))


def _two_names(builder: Builder, line: int, names: str) -> tuple[str, str]:
    """Split `near' - 'far`; a description that holds the separator itself cannot be told apart."""
    near, *rest = names.split("' - '")
    if len(rest) != 1:
        builder.warnings.add(line, f"cannot tell the two descriptions apart: {shown(names)}")
    return near, "' - '".join(rest)


def _rate(width: str | None, speed: str | None) -> Rate:
    return (None if width == "??" else width, None if speed == "???" else speed)
