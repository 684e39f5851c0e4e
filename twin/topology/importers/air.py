"""Wiring from a vendor AIR export (JSON): nodes by name, cables as pairs of ends.

Host interfaces are named `rail<R>p<P>`, rail and plane counted from 1, and `network_pci` tells a NIC's model and
how many ports it has.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from math import nan
from typing import Any

from twin.catalog import hardware
from twin.errors import InputError
from twin.topology.importers.linklist import pair
from twin.topology.importers.sketch import Cable, Device, End, Sketch
from twin.topology.importers.source import Reader, parse_json, shown, word
from twin.units import show_speed

_RAIL_PLANE = re.compile(r"rail\d+p(\d{1,3})", re.I)


def parse(text: str, path: str) -> Sketch:
    """The sketch of an AIR export. Raises InputError with the JSON path of what is wrong."""
    reader = Reader(path)
    root = reader.mapping(parse_json(text, path), ())
    inside = isinstance(root.get("content"), dict)
    place: tuple[str | int, ...] = ("content",) if inside else ()
    content = reader.mapping(root["content"], place) if inside else root
    if not isinstance(content.get("nodes"), dict) or not isinstance(content.get("links"), list):
        hint = "; this looks like --spectrum-x input" if isinstance(root.get("nodes"), list) else ""
        raise InputError(f"{path}: expected content.nodes (by name) and content.links (a list){hint}")
    sketch = Sketch("air")
    details: dict[str, dict[str, Any]] = {}
    for name, value in content["nodes"].items():
        details[name] = reader.mapping(value, (*place, "nodes", name))
        _describe(sketch.device(name), details[name])
    loose = 0
    speeds: dict[str, float] = {}
    for i, link in enumerate(content["links"]):
        ends = pair(reader, link, (*place, "links", i))
        if ends is None:
            loose += 1
            continue
        for k, (end, _) in enumerate(ends):
            if end.device not in details:
                raise reader.wrong((*place, "links", i, k, "node"), f"there is no node {shown(end.device)}")
        speed = next((s for end, said in ends if (s := _speed(details[end.device], said, speeds)) == s), nan)
        sketch.cables.append(Cable(ends[0][0], ends[1][0], speed))
    if loose:
        sketch.notes.append(f"left out: {loose} ports that are connected to nothing in the export")
    sketch.notes += [f"{nic}: {show_speed(speed)} a port" for nic, speed in sorted(speeds.items())]
    _planes(sketch)
    return sketch


def _describe(device: Device, said: dict[str, Any]) -> None:
    model, emulates = word(said.get("model")), word(said.get("emulation_type"))
    nics = said.get("network_pci")
    device.description = word(said.get("os"))
    if model.lower() == "host" or emulates.upper() == "HOST" or nics:
        device.kind = "host"
    elif emulates.upper().startswith("SWITCH"):
        device.kind = "switch"
        device.model = model[:60] or "unknown"
    if isinstance(nics, dict):
        counts = [n.get("number_of_ports") for n in nics.values() if isinstance(n, dict)]
        device.nic_ports = max((c for c in counts if isinstance(c, int) and 0 < c <= 64), default=None)


def _speed(node: dict[str, Any], end: dict[str, Any], known: dict[str, float]) -> float:
    """Bits/s of a NIC port: what the NIC has, by the catalogue, through the number of its ports."""
    nics, name = node.get("network_pci"), end.get("network_pci")
    nic = nics.get(name) if isinstance(nics, dict) and isinstance(name, str) else None
    if not isinstance(nic, dict):
        return nan
    model = re.sub(r"^connectx-?", "connectx-", word(nic.get("model")).lower())
    whole, ports = hardware()["nic"].get(model, {}).get("port_bits_per_second"), nic.get("number_of_ports")
    if whole is None or isinstance(ports, bool) or not isinstance(ports, int) or not 0 < ports <= 64:
        return nan
    known[f"{model} in {ports} ports"] = whole / ports
    return float(whole / ports)


def _planes(sketch: Sketch) -> None:
    """A leaf's plane is that of the interfaces which lead to it."""
    votes: dict[str, Counter[int]] = defaultdict(Counter)
    example: tuple[End, str] | None = None
    for cable in sketch.cables:
        for end, other in ((cable.a, cable.b), (cable.b, cable.a)):
            if match := _RAIL_PLANE.fullmatch(end.port or ""):
                votes[other.device][int(match[1])] += 1
                example = example or (end, other.device)
    for switch, planes in votes.items():
        plane, most = planes.most_common(1)[0]
        sketch.devices[switch].plane = f"p{plane}"
        if most < planes.total():
            sketch.notes.append(
                f"{shown(switch)}: {planes.total() - most} cables come from interfaces of other planes"
            )
    if example:
        sketch.notes.append(f"planes come from host interfaces: {example[0].port} leads to {shown(example[1])}")
