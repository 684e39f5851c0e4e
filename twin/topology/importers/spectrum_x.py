"""Wiring from a Spectrum-X generator's JSON: lists of nodes and links, each end with its role, plane and rail."""

from __future__ import annotations

from twin.errors import InputError
from twin.topology.importers import hints
from twin.topology.importers.linklist import pair
from twin.topology.importers.sketch import Cable, Device, Sketch
from twin.topology.importers.source import Reader, parse_json, shown, word

_HOST_ROLES = {"host", "compute", "gpu", "worker", "server"}


def parse(text: str, path: str) -> Sketch:
    """The sketch of a generated topology. Raises InputError with the JSON path of what is wrong."""
    reader = Reader(path)
    root = reader.mapping(parse_json(text, path), ())
    if not isinstance(root.get("nodes"), list) or not isinstance(root.get("links"), list):
        hint = "; this looks like --air input" if isinstance(root.get("content"), dict) else ""
        raise InputError(f"{path}: expected lists 'nodes' and 'links'{hint}")
    sketch = Sketch("spectrum-x")
    for i, value in enumerate(root["nodes"]):
        node = reader.mapping(value, ("nodes", i))
        device = sketch.device(reader.text(node.get("name"), ("nodes", i, "name")))
        _role(device, word(node.get("role")).lower())
        device.description = word(node.get("type"))
    known = set(sketch.devices)
    loose = 0
    for i, link in enumerate(root["links"]):
        ends = pair(reader, link, ("links", i))
        if ends is None:
            loose += 1
            continue
        for k, (end, said) in enumerate(ends):
            place = ("links", i, k)
            if end.device not in known:
                raise reader.wrong((*place, "node"), f"there is no node {shown(end.device)}")
            device = sketch.devices[end.device]
            attributes = reader.mapping(said.get("attributes") or {}, (*place, "attributes"))
            if device.kind is None:
                _role(device, word(attributes.get("role")).lower())
            if attributes.get("plane") is not None and device.kind == "switch":
                plane = f"p{reader.integer(attributes['plane'], (*place, 'attributes', 'plane'))}"
                if device.plane not in (None, plane):
                    raise reader.wrong(
                        place, f"{shown(end.device)} is in plane {plane} here and in {device.plane} before"
                    )
                device.plane = plane
        sketch.cables.append(Cable(ends[0][0], ends[1][0]))
    if loose:
        sketch.notes.append(f"left out: {loose} ports that are connected to nothing in the file")
    return sketch


def _role(device: Device, role: str) -> None:
    tier = hints.tier_of(role)
    if tier is not None:
        device.kind, device.tier = "switch", tier
    elif role in _HOST_ROLES:
        device.kind = "host"
