"""Wiring from a topograph model (YAML): a tree of switches, and blocks of nodes that share an accelerator domain."""

from __future__ import annotations

from typing import Any

from twin.errors import InputError
from twin.topology.importers.hostlist import Hostlists
from twin.topology.importers.sketch import Cable, End, Sketch
from twin.topology.importers.slurm import nvlink_blocks
from twin.topology.importers.source import Reader, parse_yaml, shown

Place = tuple[str | int, ...]
_DOMAIN = ("/domain", "/accelerator", "accelerator", "nvlink")  # ends of the keys that name a block's domain


def parse(text: str, path: str) -> Sketch:
    """The sketch of a model. Raises InputError with the line of what is wrong."""
    data, lines = parse_yaml(text, path)
    reader = Reader(path, lines)
    root = reader.mapping(data, ())
    blocks_key = "capacity_blocks" if "capacity_blocks" in root else "blocks"
    if "switches" not in root or blocks_key not in root:
        raise InputError(f"{path}: expected 'switches' and 'blocks' (or 'capacity_blocks') of a topograph model")
    sketch, lists = Sketch("topograph"), Hostlists()
    domains: dict[str, list[str]] = {}
    types: set[str] = set()
    switch_of: dict[str, str] = {}  # block -> switch, where switches list their blocks
    for name, switch, place in _named(reader, root["switches"], ("switches",)):
        sketch.device(name).kind = "switch"
        for child in _names(reader, lists, switch.get("switches"), (*place, "switches")):
            if sketch.device(child).kind is None:
                sketch.devices[child].kind = "switch"
            sketch.cables.append(Cable(End(child), End(name)))
        inside = _names(reader, lists, switch.get("capacity_blocks"), (*place, "capacity_blocks"))
        switch_of |= dict.fromkeys(inside, name)
    for name, block, place in _named(reader, root[blocks_key], (blocks_key,)):
        nodes = dict.fromkeys(_names(reader, lists, block.get("nodes"), (*place, "nodes")))
        above = block.get("switch") or switch_of.get(name)
        for node in nodes:
            if sketch.device(node).kind == "switch":
                raise reader.wrong(place, f"{shown(node)} is a switch and a node")
            sketch.devices[node].kind = "host"
        if above is not None:
            leaf = reader.text(above, (*place, "switch"))
            if sketch.device(leaf).kind == "host":
                raise reader.wrong(place, f"{shown(leaf)} is a node and a switch")
            sketch.devices[leaf].kind = "switch"
            sketch.cables += [Cable(End(node), End(leaf)) for node in nodes]
        if (domain := _domain(block)) is not None:
            domains.setdefault(domain, []).extend(nodes)
        if isinstance(block.get("type"), str):
            types.add(block["type"])
    sketch.notes.append("a topograph model tells of no NICs and no cables: one of each a connection is assumed")
    if types:
        sketch.notes.append(f"GPUs are {', '.join(shown(t) for t in sorted(types))}; --gpu-model puts it in the file")
    nvlink_blocks(sketch, domains)
    return sketch


def _named(reader: Reader, value: object, place: Place) -> list[tuple[str, dict[str, Any], Place]]:
    """(name, entry, place) of a mapping by name, or of a list of entries that may hold their name."""
    if isinstance(value, dict):
        entries = reader.mapping(value, place)
        return [
            (name, reader.mapping(entry or {}, (*place, name)), (*place, name)) for name, entry in entries.items()
        ]
    out = []
    for i, item in enumerate(reader.items(value, place)):
        entry = reader.mapping(item, (*place, i))
        name = reader.text(entry["name"], (*place, i, "name")) if "name" in entry else f"block-{i + 1}"
        out.append((name, entry, (*place, i)))
    return out


def _names(reader: Reader, lists: Hostlists, value: object, place: Place) -> list[str]:
    """Names, each of which may be a hostlist expression."""
    if value is None:
        return []
    try:
        return [
            n for i, v in enumerate(reader.items(value, place)) for n in lists.expand(reader.text(v, (*place, i)))
        ]
    except ValueError as problem:
        raise reader.wrong(place, str(problem)) from problem


def _domain(block: dict[str, Any]) -> str | None:
    """The accelerator domain that a block names: as its key `nvlink`, or among its labels and annotations."""
    if isinstance(block.get("nvlink"), str):
        return str(block["nvlink"])
    for holder in (block.get("annotations"), block.get("labels")):
        for key, value in holder.items() if isinstance(holder, dict) else ():
            if isinstance(key, str) and key.endswith(_DOMAIN) and isinstance(value, str):
                return value
    return None
