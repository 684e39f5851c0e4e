"""One host from what NVML says there, as `fabrictwin topology nvml` prints it: GPUs, NVLink domains, rack."""

from __future__ import annotations

from math import isinf, nan
from typing import Any

from twin.address import clean
from twin.topology.importers.hostfacts import HostFacts, SharedDomain
from twin.topology.importers.source import Reader, parse_json, printable, shown

MOST_GPUS, MOST_LINKS = 64, 64


def parse(text: str, path: str) -> HostFacts:
    """What one host says. Raises InputError with the place."""
    return facts_of(parse_json(text, path), path)


def facts_of(data: Any, path: str) -> HostFacts:
    """The same from parsed JSON. A domain that is shared over hosts has the same name on all of them."""
    reader = Reader(path)
    top = reader.mapping(data, ())
    if "gpus" not in top or "domains" not in top:
        raise reader.wrong((), "expected gpus and domains, as `fabrictwin topology nvml` prints")
    gpus = [reader.mapping(gpu, ("gpus", i)) for i, gpu in enumerate(reader.items(top["gpus"], ("gpus",)))]
    if len(gpus) > MOST_GPUS:
        raise reader.wrong(("gpus",), f"expected at most {MOST_GPUS} GPUs of one host, found {len(gpus)}")
    facts = HostFacts(len(gpus), [], None)
    facts.model = clean(reader.text(top.get("gpu_model") or "unknown", ("gpu_model",)))
    facts.rack = clean(printable(reader.text(top["rack"], ("rack",)))) if top.get("rack") else None
    for i, entry in enumerate(reader.items(top["domains"], ("domains",))):
        _domain(reader, reader.mapping(entry, ("domains", i)), i, facts)
    facts.notes += [
        f"nvml: gpu{i} of {shown(top.get('host', path))}: {printable(str(gpu['problem']))}"
        for i, gpu in enumerate(gpus)
        if gpu.get("problem")
    ]
    return facts


def _domain(reader: Reader, entry: dict[str, Any], i: int, facts: HostFacts) -> None:
    place = ("domains", i)
    name = clean(printable(reader.text(entry.get("name"), (*place, "name"))))
    members = [reader.integer(g, (*place, "gpus", k)) for k, g in enumerate(reader.items(entry.get("gpus"), place))]
    if wrong := [g for g in members if not 0 <= g < facts.gpus]:
        raise reader.wrong((*place, "gpus"), f"GPU {wrong[0]} is not one of {facts.gpus}")
    links = reader.integer(entry.get("links_per_gpu"), (*place, "links_per_gpu"))
    if not 0 < links <= MOST_LINKS:
        raise reader.wrong((*place, "links_per_gpu"), f"expected 1 to {MOST_LINKS}, found {links}")
    speed = nan if entry.get("speed") is None else entry["speed"]
    if isinstance(speed, bool) or not isinstance(speed, int | float) or speed <= 0 or isinf(speed):
        raise reader.wrong((*place, "speed"), f"expected bytes/s or null, found {shown(speed)}")
    value = float(speed)
    if entry.get("shared"):
        facts.domains.append(SharedDomain(name, members, links, value))
    else:
        facts.groups.append((members, links))
        facts.speed = value
