"""Wiring from Slurm's `topology.conf` and `topology.yaml`: trees of switches, blocks of nodes.

Slurm knows which nodes hang on which switch and no more: one NIC a node and one cable a connection are assumed.
Blocks are what topology-aware sites make of NVLink domains.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from twin.errors import InputError
from twin.topology.importers.hostlist import Hostlists
from twin.topology.importers.sketch import Cable, End, Scaleup, Sketch
from twin.topology.importers.source import Reader, parse_yaml, shown

_PAIR = re.compile(r"([A-Za-z]+)=(\S+)")
_KEYS = {"switchname", "switches", "nodes", "linkspeed", "blockname", "blocksizes", "planeblocksizes"}
_RACK_HOSTS, _RACK_GPUS = 18, 4  # NVL72: 18 compute trays of 4 GPUs
NVL_LINKS, NVL_SPEED = 18, 50e9  # NVLink 5, bytes/s of one link in one direction


def parse_conf(text: str, path: str) -> Sketch:
    """The sketch of a `topology.conf`. Raises InputError with every line that is wrong."""
    tree = _Tree(path)
    problems: list[str] = []
    lines = _joined(text)
    for number, line in lines:
        try:
            _conf_line(tree, number, line)
        except ValueError as problem:
            problems.append(f"{path}:{number}: {problem}")
            if len(problems) == 20:
                break
    if problems:
        raise InputError(problems)
    return tree.sketch()


def _joined(text: str) -> list[tuple[int, str]]:
    """Lines with their numbers, without comments; a backslash at the end joins two."""
    out: list[tuple[int, str]] = []
    held, start = "", 0
    for number, raw in enumerate(text.split("\n"), 1):
        line = raw.split("#", 1)[0].strip()
        start = start or number
        if line.endswith("\\"):
            held += line[:-1] + " "
            continue
        if (held + line).strip():
            out.append((start, (held + line).strip()))
        held, start = "", 0
    if held.strip():
        out.append((start, held.strip()))
    return out


def _conf_line(tree: _Tree, number: int, line: str) -> None:
    if line.lower().startswith("include "):
        tree.notes.append(f"line {number}: what it includes is not read: {shown(line[8:].strip())}")
        return
    pairs = {key.lower(): value.strip('"') for key, value in _PAIR.findall(line)}
    unknown = set(pairs) - _KEYS
    if not pairs or unknown or _PAIR.sub("", line).strip():
        what = ", ".join(sorted(unknown)) if unknown else shown(line)
        raise ValueError(f"expected SwitchName=… or BlockName=… with Switches= or Nodes=, found {what}")
    expand = tree.hostlists.expand
    nodes = expand(pairs["nodes"]) if "nodes" in pairs else []
    if "switchname" in pairs:
        if "nodes" not in pairs and "switches" not in pairs:
            raise ValueError(f"switch {shown(pairs['switchname'])} has neither Nodes= nor Switches=")
        children = expand(pairs["switches"]) if "switches" in pairs else []
        for name in expand(pairs["switchname"]):
            tree.switch(name, children, nodes, number)
    elif "blockname" in pairs:
        tree.block(pairs["blockname"], nodes)
    elif not pairs.keys() & {"blocksizes", "planeblocksizes"}:
        raise ValueError(f"expected SwitchName=… or BlockName=…, found {shown(line)}")


def parse_yaml_file(text: str, path: str) -> Sketch:
    """The sketch of a `topology.yaml`: all its topologies together, since they tell of the same nodes."""
    data, lines = parse_yaml(text, path)
    reader, tree = Reader(path, lines), _Tree(path)
    if not isinstance(data, list):
        raise reader.wrong((), f"expected a list of topologies (- topology: NAME …), found {shown(data)}")
    for i, entry in enumerate(data):
        topology = reader.mapping(entry, (i,))
        if "tree" in topology:
            body = reader.mapping(topology["tree"], (i, "tree"))
            for k, item in enumerate(reader.items(body.get("switches"), (i, "tree", "switches"))):
                _yaml_switch(reader, tree, item, (i, "tree", "switches", k), lines)
        elif "block" in topology:
            body = reader.mapping(topology["block"], (i, "block"))
            for k, item in enumerate(reader.items(body.get("blocks"), (i, "block", "blocks"))):
                block = reader.mapping(item, (i, "block", "blocks", k))
                place = (i, "block", "blocks", k, "block")
                tree.block(reader.text(block.get("block"), place), _names(reader, tree, block.get("nodes"), place))
        elif "flat" not in topology and "topology" not in topology:
            raise reader.wrong((i,), "expected a topology with one of tree, block or flat")
    return tree.sketch()


def _yaml_switch(reader: Reader, tree: _Tree, item: object, place: tuple[str | int, ...], lines: Any) -> None:
    switch = reader.mapping(item, place)
    name = reader.text(switch.get("switch"), (*place, "switch"))
    children = _names(reader, tree, switch.get("children"), (*place, "children"))
    nodes = _names(reader, tree, switch.get("nodes"), (*place, "nodes"))
    tree.switch(name, children, nodes, lines.line(place))


def _names(reader: Reader, tree: _Tree, value: object, place: tuple[str | int, ...]) -> list[str]:
    if value is None:
        return []
    parts = value if isinstance(value, list) else [value]
    try:
        return [name for part in parts for name in tree.hostlists.expand(reader.text(part, place))]
    except ValueError as problem:
        raise reader.wrong(place, str(problem)) from problem


class _Tree:
    """Switches with their children, and blocks."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.children: dict[str, tuple[list[str], list[str], int]] = {}
        self.blocks: dict[str, list[str]] = {}
        self.notes: list[str] = []
        self.hostlists = Hostlists()

    def switch(self, name: str, children: Iterable[str], nodes: Iterable[str], line: int) -> None:
        kids, hosts, first = self.children.get(name, ([], [], line))
        self.children[name] = [*kids, *children], [*hosts, *nodes], first

    def block(self, name: str, nodes: Iterable[str]) -> None:
        self.blocks.setdefault(name, []).extend(nodes)

    def sketch(self) -> Sketch:
        if not self.children and not self.blocks:
            raise InputError(f"{self.path}: no switches and no blocks; expected a Slurm topology")
        sketch = Sketch("slurm")
        sketch.notes += self.notes
        problems = []
        hosts = dict.fromkeys(n for _, nodes, _ in self.children.values() for n in nodes)
        hosts |= dict.fromkeys(n for nodes in self.blocks.values() for n in nodes)
        for name, (children, nodes, line) in self.children.items():
            sketch.device(name).kind = "switch"
            problems += [
                f"{self.path}:{line}: switch {shown(name)} is above {shown(c)}, which is not defined"
                for c in children
                if c not in self.children
            ]
            problems += [
                f"{self.path}:{line}: {shown(n)} is a switch and a node" for n in nodes if n in self.children
            ]
        if problems:
            raise InputError(problems[:20])
        for host in hosts:
            sketch.device(host).kind = "host"
        for name, (children, nodes, _) in self.children.items():
            sketch.cables += [Cable(End(below), End(name)) for below in dict.fromkeys([*nodes, *children])]
        sketch.notes.append("a Slurm topology tells of no NICs and no cables: one of each a connection is assumed")
        nvlink_blocks(sketch, self.blocks)
        return sketch


def nvlink_blocks(sketch: Sketch, blocks: dict[str, list[str]]) -> None:
    """Takes blocks of nodes for NVLink domains."""
    if not blocks:
        return
    taken: set[str] = set()
    for name, nodes in blocks.items():
        mine = [n for n in dict.fromkeys(nodes) if n not in taken]
        taken |= set(mine)
        sketch.domains.append(Scaleup(name, mine, NVL_LINKS, NVL_SPEED))
    each = max(len(d.hosts) for d in sketch.domains)
    text = f"{len(blocks)} blocks are taken for NVLink domains of {NVL_LINKS} links of 50GB/s a GPU"
    if each == _RACK_HOSTS:
        for host in taken:
            if sketch.devices[host].gpus is None:
                sketch.devices[host].gpus = _RACK_GPUS
        text += f"; blocks of {_RACK_HOSTS} nodes are NVL72 racks, {_RACK_GPUS} GPUs a node"
    sketch.notes.append(text)
