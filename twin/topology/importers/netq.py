"""Wiring from NetQ's topology graph (JSON): nodes in groups, each with a tier, and links named by their two ends.

Hosts have tier -1. Links name devices, not ports.
"""

from __future__ import annotations

from typing import Any

from twin.errors import InputError
from twin.topology.importers.sketch import Cable, End, Sketch
from twin.topology.importers.source import Reader, parse_json, shown
from twin.topology.model import TIERS

_BETWEEN = "-*-"


def parse(text: str, path: str) -> Sketch:
    """The sketch of a NetQ topology. Raises InputError with the JSON path of what is wrong."""
    reader = Reader(path)
    data = parse_json(text, path)
    if isinstance(data, list) and len(data) != 1:
        raise InputError(f"{path}: expected one topology, found {len(data)}")
    place: tuple[str | int, ...] = (0,) if isinstance(data, list) else ()
    root = reader.mapping(data[0] if isinstance(data, list) else data, place)
    if "nodes" not in root or "links" not in root:
        raise InputError(f"{path}: expected 'nodes' and 'links' of a NetQ topology, found {shown(list(root)[:5])}")
    sketch, name_of, tiers = Sketch("netq"), {}, {}
    for node_id, name, tier in _nodes(reader, root, place):
        if name in sketch.devices and node_id not in name_of:
            name = f"{name}-{node_id}"
        name_of[node_id] = name
        sketch.device(name).kind = "host" if tier < 0 else "switch"
        tiers[name] = tier
    lowest = min((t for t in tiers.values() if t >= 0), default=0)
    for name, tier in tiers.items():
        if tier >= 0:
            sketch.devices[name].tier = min(tier - lowest, len(TIERS) - 1)
    for i, value in enumerate(reader.items(root["links"], (*place, "links"))):
        where = (*place, "links", i)
        link_id = reader.text(reader.mapping(value, where).get("id"), (*where, "id"))
        ends = link_id.split(_BETWEEN)
        if len(ends) != 2:
            raise reader.wrong((*where, "id"), f"expected two nodes joined by {_BETWEEN}, found {shown(link_id)}")
        for end in ends:
            if end not in name_of:
                raise reader.wrong((*where, "id"), f"there is no node {shown(end)}")
        sketch.cables.append(Cable(End(name_of[ends[0]]), End(name_of[ends[1]])))
    sketch.notes.append("NetQ links name no ports: one cable, and one NIC of the host, a link is assumed")
    return sketch


def _nodes(reader: Reader, root: dict[str, Any], place: tuple[str | int, ...]) -> list[tuple[str, str, int]]:
    """(id, name, tier) of every node in every group."""
    out = []
    for g, group in enumerate(reader.items(root["nodes"], (*place, "nodes"))):
        at = (*place, "nodes", g)
        inner = reader.mapping(group, at)
        for n, value in enumerate(reader.items(inner.get("compounded_nodes"), (*at, "compounded_nodes"))):
            where = (*at, "compounded_nodes", n)
            node = reader.mapping(value, where)
            node_id = reader.text(node.get("id"), (*where, "id"))
            name = reader.text(node.get("name") or node_id, (*where, "name"))
            out.append((node_id, name, reader.integer(node.get("tier"), (*where, "tier"))))
    return out
