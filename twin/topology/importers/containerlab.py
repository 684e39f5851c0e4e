"""Wiring from a containerlab topology (YAML): nodes by name with a kind, cables between their interfaces.

A node's labels `plane`, `tier` and `role` are believed, so that a lab can say what its names do not.
"""

from __future__ import annotations

from typing import Any

from twin.topology.importers import hints
from twin.topology.importers.sketch import Cable, Device, End, Sketch
from twin.topology.importers.source import Reader, parse_yaml, shown, word
from twin.topology.model import ROLES

_HOST_KINDS = {"linux", "k8s-kind", "ext-container", "generic_vm", "host"}
_OUTSIDE = {"host", "mgmt-net", "macvlan", "vxlan", "vxlan-stitch", "dummy"}


def parse(text: str, path: str) -> Sketch:
    """The sketch of a lab. Raises InputError with the line of what is wrong."""
    data, lines = parse_yaml(text, path)
    reader = Reader(path, lines)
    root = reader.mapping(data, ())
    topology = reader.mapping(root.get("topology"), ("topology",))
    nodes = reader.mapping(topology.get("nodes"), ("topology", "nodes"))
    sketch = Sketch(reader.text(root.get("name") or "containerlab", ("name",)))
    for name, value in nodes.items():
        node = reader.mapping(value or {}, ("topology", "nodes", name))
        _describe(sketch.device(name), node, _kind(node, topology))
    outside = 0
    for i, value in enumerate(reader.items(topology.get("links") or [], ("topology", "links"))):
        place = ("topology", "links", i)
        ends = _ends(reader, reader.mapping(value, place), place)
        if ends is None or any(e.device in _OUTSIDE and e.device not in nodes for e in ends):
            outside += 1
            continue
        for end in ends:
            if end.device not in nodes:
                raise reader.wrong(place, f"there is no node {shown(end.device)}")
        sketch.cables.append(Cable(*ends))
    if outside:
        sketch.notes.append(f"left out: {outside} links that lead out of the lab (host, mgmt-net, macvlan and so on)")
    return sketch


def _kind(node: dict[str, Any], topology: dict[str, Any]) -> str:
    """A node's kind, by itself, its group or the lab's defaults."""
    groups, defaults = topology.get("groups"), topology.get("defaults")
    group = node.get("group")
    shared = groups.get(group) if isinstance(groups, dict) and isinstance(group, str) else None
    for holder in (node, shared, defaults):
        if isinstance(holder, dict) and isinstance(holder.get("kind"), str):
            return str(holder["kind"]).lower()
    return ""


def _describe(device: Device, node: dict[str, Any], kind: str) -> None:
    labels = node.get("labels")
    said = labels if isinstance(labels, dict) else {}
    tier = hints.tier_of(word(said.get("tier"))[:40])
    role = word(said.get("role"))[:40].lower()
    switch = tier is not None or hints.tier_of(role) is not None
    if kind:
        software = kind in _HOST_KINDS and not switch and not hints.says_switch(device.name)
        device.kind = "host" if software else "switch"
    if switch:
        device.tier = tier if tier is not None else hints.tier_of(role)
    if role in ROLES:
        device.kind, device.role = "host", role
    if said.get("plane") is not None and device.kind == "switch":
        device.plane = word(said["plane"])[:40].strip() or None
    device.model = word(node.get("type"))[:40] or "unknown"


def _ends(reader: Reader, link: dict[str, Any], place: tuple[str | int, ...]) -> tuple[End, End] | None:
    """Both ends, in the short form `node:interface` or the long one; None for a link with one end in the lab."""
    if "endpoints" not in link:
        if "endpoint" in link:
            return None
        raise reader.wrong(place, "expected endpoints")
    items = reader.items(link["endpoints"], (*place, "endpoints"))
    if len(items) != 2:
        raise reader.wrong((*place, "endpoints"), f"expected two ends, found {len(items)}")
    ends = []
    for i, item in enumerate(items):
        at = (*place, "endpoints", i)
        if isinstance(item, dict):
            device, port = reader.text(item.get("node"), (*at, "node")), item.get("interface")
        else:
            device, colon, port = reader.text(item, at).rpartition(":")
            if not colon:
                raise reader.wrong(at, f"expected node:interface, found {shown(item)}")
        ends.append(End(device, reader.text(port, at)))
    return ends[0], ends[1]
