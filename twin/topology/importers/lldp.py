"""Wiring from LLDP: what `lldpcli -f json0 show neighbors` (or `lldpctl -f json0`) says on each host and switch.

Formats json0 and json are read. A file may hold the output of many devices after one another, each after a line
`# NAME` or after the output of `lldpcli -f json0 show chassis`, which says who is speaking; one JSON object of
device names to outputs will do too. A cable that both its ends report is one cable.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import nan
from typing import Any

from twin.errors import InputError
from twin.topology.importers.sketch import Cable, End, Sketch
from twin.topology.importers.source import json_error, shown

_NAMELESS = {"", "localhost", "localhost.localdomain", "cumulus", "sonic", "switch", "(none)", "not advertised"}
_FORWARDS = {"bridge", "router"}
_SPEED = re.compile(r"(\d+)\s*G", re.I)
_NAMED = ("ifname", "local", "ifalias")


@dataclass(frozen=True, slots=True)
class _Chassis:
    name: str
    id: str
    description: str
    forwards: bool | None


@dataclass(frozen=True, slots=True)
class _Sighting:
    """What a device hears at one of its interfaces. port: the neighbour's, None where it gave no name for it."""

    local: str
    interface: str
    far: _Chassis
    port: str | None
    port_id: str
    speed: float


def parse(texts: Mapping[str, str], speakers: Mapping[str, str | None], name: str = "lldp") -> Sketch:
    """The sketch of a fabric. texts: path -> output. speakers: path -> whose output it is, if known."""
    heard: list[_Sighting] = []
    speaking: dict[str, _Chassis] = {}
    for path, text in texts.items():
        for local, document, line in _documents(text, path, speakers.get(path)):
            _read(local, document, f"{path}:{line}", heard, speaking)
    if not heard:
        paths = ", ".join(texts)
        raise InputError(f"{paths}: no neighbours; expected the output of `lldpcli -f json0 show neighbors`")
    return _sketch(heard, speaking, name)


# --- from text to sightings ---


def _documents(text: str, path: str, speaker: str | None) -> Iterator[tuple[str | None, dict[str, Any], int]]:
    """(device, JSON object, line) of each output in a file."""
    decoder, at, current = json.JSONDecoder(), 0, speaker
    while at < len(text):
        rest = re.compile(r"\s*").match(text, at)
        at = rest.end() if rest else at
        if at >= len(text):
            return
        line = text.count("\n", 0, at) + 1
        if text[at] == "#":
            end = text.find("\n", at)
            end = len(text) if end < 0 else end
            current = text[at:end].strip("#= \t\r") or current
            at = end
            continue
        try:
            value, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError) as problem:
            raise json_error(problem, path) from problem
        if not isinstance(value, dict):
            raise InputError(f"{path}:{line}: expected the output of lldpcli -f json0, found {shown(value)}")
        if value and not value.keys() & {"lldp", "local-chassis"}:
            inner = {k: v for k, v in value.items() if isinstance(v, dict) and v.keys() & {"lldp", "local-chassis"}}
            if not inner:
                keys = ", ".join(shown(k) for k in list(value)[:5])
                raise InputError(f"{path}:{line}: no LLDP output: expected the key 'lldp', found {keys}")
            for device, document in inner.items():
                yield device, document, line
            continue
        if "local-chassis" in value:
            chassis = _chassis(_one(value["local-chassis"]))
            current = speaker or (chassis.name if chassis is not None and chassis.name else current)
        yield current, value, line


def _read(
    local: str | None, document: dict[str, Any], where: str, heard: list[_Sighting], speaking: dict[str, _Chassis]
) -> None:
    if "local-chassis" in document and (chassis := _chassis(_one(document["local-chassis"]))) is not None:
        speaking[local or chassis.name] = chassis
        local = local or chassis.name
    if "lldp" not in document:
        return
    if not local:
        raise InputError(
            f"{where}: whose neighbours are these? say --lldp HOST=FILE, or put a line '# HOST' or the output of "
            "`lldpcli -f json0 show chassis` before them"
        )
    for interface, entry in _interfaces(document["lldp"]):
        chassis = _chassis(_one(entry))
        if chassis is None or not (chassis.name or chassis.id):
            continue
        port = _dict(_one(entry.get("port")))
        kind, port_id = _id(port)
        description = _text(port.get("descr"))
        named = port_id if kind in _NAMED and port_id else description if " " not in description else ""
        heard.append(_Sighting(local, interface, chassis, named or None, port_id, _speed(port)))


def _interfaces(lldp: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """(local interface, what is heard there) in either form: lists of named objects, or objects by name."""
    for block in lldp if isinstance(lldp, list) else [lldp]:
        entries = block.get("interface") if isinstance(block, dict) else None
        for entry in entries if isinstance(entries, list) else [entries]:
            if not isinstance(entry, dict):
                continue
            if isinstance(entry.get("name"), str) and "chassis" in entry:
                yield entry["name"], entry
            else:
                for name, inner in entry.items():
                    for one in inner if isinstance(inner, list) else [inner]:
                        if isinstance(one, dict) and "chassis" in one:
                            yield name, one


def _one(value: Any) -> Any:
    """The value, or the first where it is a list of them, as json0 writes it."""
    return (value[0] if value else None) if isinstance(value, list) else value


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str:
    value = _one(value)
    value = value.get("value") if isinstance(value, dict) else value
    return value.strip() if isinstance(value, str) else ""


def _id(holder: dict[str, Any]) -> tuple[str, str]:
    value = _dict(_one(holder.get("id")))
    return str(value.get("type", ""))[:20], _text(value)


def _chassis(holder: Any) -> _Chassis | None:
    chassis = _one(_dict(holder).get("chassis"))
    if not isinstance(chassis, dict):
        return None
    name = _text(chassis.get("name"))
    if not chassis.keys() & {"id", "name", "descr"} and len(chassis) == 1:  # format json: by system name
        name, inner = next(iter(chassis.items()))
        chassis = _dict(_one(inner))
    found = chassis.get("capability")
    able = [c for c in (found if isinstance(found, list) else [found]) if isinstance(c, dict)]
    on = {str(c.get("type", "")).lower()[:20] for c in able if c.get("enabled") is True}
    return _Chassis(name, _id(chassis)[1], _text(chassis.get("descr")), bool(on & _FORWARDS) if able else None)


def _speed(port: dict[str, Any]) -> float:
    current = _text(_dict(_one(port.get("auto-negotiation"))).get("current"))
    match = _SPEED.match(current)
    return float(match[1]) * 1e9 if match and 0 < int(match[1][:6]) < 10_000 else nan


# --- from sightings to cables ---


def _sketch(heard: list[_Sighting], speaking: Mapping[str, _Chassis], name: str) -> Sketch:
    sketch = Sketch(name)
    names = _device_names(heard, speaking, sketch)
    reporting = {names[s.local, ""] for s in heard}
    reported = {(names[s.local, ""], s.interface) for s in heard}
    heard_by = {(names[s.far.name, s.far.id], s.port): (names[s.local, ""], s.interface) for s in heard if s.port}
    between: dict[tuple[str, str], set[str]] = defaultdict(set)
    for s in heard:
        between[names[s.local, ""], names[s.far.name, s.far.id]].add(s.interface)
    chassis_seen = list(_described(heard, speaking, names))
    heard = sorted(heard, key=lambda s: names[s.far.name, s.far.id] not in reporting)  # who reports too goes first
    cables: dict[frozenset[tuple[str, str]], Cable] = {}
    several: Counter[tuple[str, str]] = Counter()
    one_sided = 0
    for s in heard:
        here, far = names[s.local, ""], names[s.far.name, s.far.id]
        port = s.port
        if (far, port) not in reported:  # a port told by its address or alias: how the other side calls it
            back, only = heard_by.get((here, s.interface)), between[far, here]
            if back is not None and back[0] == far:
                port = back[1]
            elif port is None and len(only) == 1:
                port = min(only)
        port = port or s.port_id or f"to-{here}-{s.interface}"
        key = frozenset({(here, s.interface), (far, port)})
        if key in cables:
            continue
        several[here, s.interface] += 1
        if several[here, s.interface] > 1:
            continue
        one_sided += far in reporting and (far, port) not in reported
        cables[key] = Cable(End(here, s.interface), End(far, port), s.speed)
    sketch.cables = list(cables.values())
    for device in dict.fromkeys([*sorted(reporting), *(e.device for c in sketch.cables for e in (c.a, c.b))]):
        sketch.device(device)
    for chassis, device in chassis_seen:
        if device in sketch.devices:
            sketch.devices[device].description = chassis.description
            sketch.devices[device].bridge = chassis.forwards
    crowded = sum(n > 1 for n in several.values())
    if crowded:
        sketch.notes.append(f"{crowded} interfaces hear several neighbours; the first of each is taken")
    if one_sided:
        sketch.notes.append(f"{one_sided} cables are seen from one side only, though the other side reports too")
    unheard = set(sketch.devices) - reporting
    if unheard:
        sketch.notes.append(f"{len(unheard)} of {len(sketch.devices)} devices are known from their neighbours only")
    return sketch


def _described(
    heard: list[_Sighting], speaking: Mapping[str, _Chassis], names: Mapping[tuple[str, str], str]
) -> Iterator[tuple[_Chassis, str]]:
    for s in heard:
        yield s.far, names[s.far.name, s.far.id]
    for local, chassis in speaking.items():
        if (local, "") in names:
            yield chassis, names[local, ""]


def _device_names(
    heard: list[_Sighting], speaking: Mapping[str, _Chassis], sketch: Sketch
) -> dict[tuple[str, str], str]:
    """(system name, chassis id) as heard, and (name of the speaker, ""), to one name a device."""
    chassis_of = {c.id: local for local, c in speaking.items() if c.id}
    locals_ = dict.fromkeys(s.local for s in heard)
    short: dict[str, set[str]] = defaultdict(set)
    for full in {*locals_, *(s.far.name for s in heard)}:
        short[full.split(".")[0]].add(full)
    names: dict[tuple[str, str], str] = {}
    for local in locals_:
        names[local, ""] = _short(local, short)
    nameless = 0
    for far in {s.far: None for s in heard}:
        if far.id in chassis_of:
            device = _short(chassis_of[far.id], short)
        elif far.name.lower() in _NAMELESS:
            nameless += 1
            device = f"{far.name or 'chassis'}-{far.id}"
        else:
            device = _short(far.name, short)
        names[far.name, far.id] = device
    if nameless:
        sketch.notes.append(f"{nameless} neighbours have no name of their own; they are named by their chassis id")
    return names


def _short(name: str, known: Mapping[str, set[str]]) -> str:
    """The name without its domain, where no two devices share that."""
    head = name.split(".")[0]
    same = {full for full in known.get(head, set()) if "." in full}
    return head if head and len(same) <= 1 and not head.isdigit() else name
