"""What tools say of one host, GPUs and their nearest NICs, and how a Topology takes it over."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from math import isnan, nan

from twin.address import natural
from twin.catalog import hardware
from twin.errors import InputError
from twin.topology.builder import Builder, default_nic_of_gpu
from twin.topology.importers.sketch import ASSUMED_GPUS, ASSUMED_SPEED, Sizes
from twin.topology.model import COMPUTE, NONE, Topology

_DEVICE_NUMBER = re.compile(r"mlx[45]_(\d+)|(?:nic|ib|rail|gpu)(\d+)", re.I)
_SLOWEST = 25e9  # bytes/s a link in one direction from NVLink 2 to 4; NVLink 5 has twice that


@dataclass(frozen=True, slots=True)
class SharedDomain:
    """A host's part of an NVLink domain over several hosts, which all call it the same. speed: bytes/s of a link."""

    name: str
    gpus: list[int]
    links_per_gpu: int
    speed: float


@dataclass(slots=True)
class HostFacts:
    """nics: device names. nic_of_gpu: for each GPU the place of its nearest NIC, -1 for none; None: not told.

    groups: GPUs that NVLinks join, each with the links a GPU has. speed: bytes/s of one link in one direction.
    domains: this host's parts of domains over several hosts. model: key of the catalogue. rack: its own name for it.
    """

    gpus: int
    nics: list[str]
    nic_of_gpu: list[int] | None
    groups: list[tuple[list[int], int]] = field(default_factory=list)
    speed: float = nan
    notes: list[str] = field(default_factory=list)
    domains: list[SharedDomain] = field(default_factory=list)
    model: str = "unknown"
    rack: str | None = None


def nearest(distances: list[list[int]], nics: int, far: int) -> list[int] | None:
    """The nearest NIC of each GPU, spread where several are as near. distances: GPU x NIC; `far` tells nothing."""
    if not nics or all(d >= far for row in distances for d in row):
        return None
    load = [0] * nics
    chosen = []
    for row in distances:
        near = min(row)
        if near >= far:
            chosen.append(NONE)
            continue
        best = min((k for k in range(nics) if row[k] == near), key=lambda k: (load[k], k))
        load[best] += 1
        chosen.append(best)
    return chosen


def topology_of(facts: Mapping[str, HostFacts], name: str) -> Builder:
    """A Builder with just these hosts, their NICs of one port and no cables."""
    builder = Builder(name, ())
    for host in sorted(facts, key=natural):
        builder.node(host, gpus=0, nics=_numbers(facts[host].nics))
    return builder


def _numbers(devices: list[str]) -> list[int]:
    """A number for each NIC: the device's own where all have one, else counted."""
    found = [match and int(match[1] or match[2]) for match in map(_DEVICE_NUMBER.fullmatch, devices)]
    own = [n for n in found if n is not None and n < 1000]
    return own if len(own) == len(devices) == len(set(own)) else list(range(len(devices)))


def refine(topo: Topology, facts: Mapping[str, HostFacts], sizes: Sizes) -> Topology:
    """The same wiring with what is known of its hosts, and no speed unknown. facts: host name or pattern -> facts.

    Raises InputError for a name or pattern that no host has.
    """
    builder = Builder(topo.name, topo.planes, labels=dict(topo.labels), notes=list(topo.notes), jobs=list(topo.jobs))
    builder.site_watts = topo.site_watts
    feeds: dict[int, list[tuple[str, float]]] = {}
    for feed, rack, watts in zip(topo.feeds.name, topo.feeds.rack.tolist(), topo.feeds.watts.tolist(), strict=True):
        feeds.setdefault(rack, []).append((feed, watts))
    for row, (rack_name, redundancy) in enumerate(zip(topo.racks.name, topo.racks.redundancy, strict=True)):
        psu0, psus = int(topo.racks.psu0[row]), int(topo.racks.n_psus[row])
        watts = float(topo.psus.watts[psu0]) if psus else nan
        builder.rack(rack_name, redundancy, feeds.get(row, []), psus=psus, psu_watts=watts)
    of_host = _match(topo, facts)
    if all(name in of_host for name, role in zip(topo.nodes.name, topo.nodes.role.tolist(), strict=True) if not role):
        builder.notes[:] = [note for note in builder.notes if not note.startswith(ASSUMED_GPUS)]
    unlike: list[str] = []
    racks = {name: row for row, name in enumerate(topo.racks.name)}
    for row, name in enumerate(topo.nodes.name):
        _copy_node(builder, topo, row, of_host.get(name), sizes, unlike, racks)
    if unlike:
        builder.notes.append(f"GPUs of {len(unlike)} hosts are spread over their NICs: {unlike[0]}")
    for i, name in enumerate(topo.switches.name):
        s = topo.switches
        builder.switch(
            name, int(s.tier[i]), int(s.plane[i]), model=s.model[i], rail=int(s.rail[i]), radix=int(s.radix[i])
        )
    _copy_links(builder, topo, sizes)
    _copy_domains(builder, topo, of_host, sizes)
    if of_host and topo.links.a.size:
        builder.notes.append(f"GPUs of {len(of_host)} hosts are as the hosts themselves say, not as assumed above")
    builder.notes.extend(dict.fromkeys(note for f in of_host.values() for note in f.notes))
    return builder.build()


def _match(topo: Topology, facts: Mapping[str, HostFacts]) -> dict[str, HostFacts]:
    """Host -> facts; a whole name goes before a pattern."""
    hosts = [n for n, role in zip(topo.nodes.name, topo.nodes.role.tolist(), strict=True) if role == COMPUTE]
    found: dict[str, HostFacts] = {}
    for pattern in sorted(facts, key=lambda p: "*" not in p and "?" not in p):
        matching = [h for h in hosts if h == pattern or fnmatchcase(h, pattern)]
        if not matching and pattern in topo.nodes.name:
            matching = [pattern]
        if not matching:
            some = ", ".join(hosts[:3]) + (" …" if len(hosts) > 3 else "")
            raise InputError(f"there is no GPU host {pattern!r} in {topo.name}; GPU hosts are {some or 'not found'}")
        found |= dict.fromkeys(matching, facts[pattern])
    return found


def _copy_node(
    builder: Builder, topo: Topology, row: int, facts: HostFacts | None, sizes: Sizes, unlike: list[str],
    racks: dict[str, int],
) -> None:  # fmt: skip
    nodes, nic0 = topo.nodes, int(topo.nodes.nic0[row])
    numbers = topo.nics.ordinal[nic0 : nic0 + int(nodes.n_nics[row])].tolist()
    gpu0, gpus = int(nodes.gpu0[row]), int(nodes.n_gpus[row])
    of_gpu = [n - nic0 if n >= 0 else NONE for n in topo.gpus.nic[gpu0 : gpu0 + gpus].tolist()]
    if facts is not None:
        gpus, of_gpu = facts.gpus, _nic_of_gpu(nodes.name[row], facts, numbers, of_gpu, unlike)
    ports = topo.nics.n_ports[nic0 : nic0 + len(numbers)].tolist()
    psu0, psus = int(nodes.psu0[row]), int(nodes.n_psus[row])
    rack = int(nodes.rack[row])
    if rack == NONE and facts is not None and facts.rack is not None:
        if facts.rack not in racks:
            racks[facts.rack] = builder.rack(facts.rack)
        rack = racks[facts.rack]
    model = nodes.gpu_model[row]
    if model == "unknown" and facts is not None:
        model = facts.model
    builder.node(
        nodes.name[row], gpus=gpus, nics=numbers, ports_per_nic=ports[0] if ports else 1,
        first_port=int(topo.ports.ordinal[topo.nics.port0[nic0]]) if ports else 0,
        gpu_model=sizes.gpu_model if sizes.gpu_model and model == "unknown" else model, rack=rack,
        role=int(nodes.role[row]), nic_of_gpu=of_gpu, psus=psus,
        psu_watts=float(topo.psus.watts[psu0]) if psus else nan,
    )  # fmt: skip


def _nic_of_gpu(host: str, facts: HostFacts, numbers: list[int], before: list[int], unlike: list[str]) -> list[int]:
    """Places among the node's NICs. The tool's devices are told apart by their numbers, else by their order."""
    usable = sorted({n for n in before if n >= 0}) or list(range(len(numbers)))
    if facts.nic_of_gpu is None:
        spread = default_nic_of_gpu(facts.gpus, len(usable))
        return [usable[n] if n >= 0 else NONE for n in spread]
    own = _numbers(facts.nics)
    if {own[n] for n in facts.nic_of_gpu if n >= 0} <= set(numbers):
        return [numbers.index(own[n]) if n >= 0 else NONE for n in facts.nic_of_gpu]
    used = sorted({n for n in facts.nic_of_gpu if n >= 0})
    if len(used) != len(usable):
        unlike.append(f"{host} has {len(usable)} for GPU traffic, the tool sees {len(used)} near GPUs")
        return [usable[n] if n >= 0 else NONE for n in default_nic_of_gpu(facts.gpus, len(usable))]
    place = dict(zip(used, usable, strict=True))
    return [place[n] if n >= 0 else NONE for n in facts.nic_of_gpu]


def _copy_links(builder: Builder, topo: Topology, sizes: Sizes) -> None:
    links, ports = topo.links, topo.ports
    known = Counter(s for s in links.speed.tolist() if not isnan(s)).most_common(1)
    usual = sizes.link_speed or (known[0][0] if known else ASSUMED_SPEED)
    unknown = 0
    cables: dict[int, int] = {}
    for a, b, speed, number in zip(
        links.a.tolist(), links.b.tolist(), links.speed.tolist(), links.cable.tolist(), strict=True
    ):
        unknown += isnan(speed)
        speed = usual if isnan(speed) else speed
        if number not in cables:
            cables[number] = builder.cable()
        cable = cables[number]
        if ports.nic[a] >= 0 and ports.switch[b] >= 0:
            builder.host_link(a, int(ports.switch[b]), int(ports.ordinal[b]), speed, cable)
        elif ports.nic[a] >= 0:
            builder.direct_link(a, b, speed, cable)
        else:
            ends = (int(ports.switch[a]), int(ports.ordinal[a]), int(ports.switch[b]), int(ports.ordinal[b]))
            builder.switch_link(*ends, speed, cable)
    if unknown:
        builder.notes.append(f"{unknown} links have no speed in the input; that of most is assumed, or --link-speed")


def _copy_domains(builder: Builder, topo: Topology, of_host: Mapping[str, HostFacts], sizes: Sizes) -> None:
    """Domains of the wiring, and those that NVLinks within hosts make."""
    taken: set[int] = set()
    renumbered = topo.gpus.node.tolist()
    for i, name in enumerate(topo.domains.name):
        rows = [
            builder.nodes[renumbered[g]].gpu0 + int(topo.gpus.ordinal[g]) for g in topo.domains.gpu_rows[i].tolist()
        ]
        hosts = {renumbered[g] for g in topo.domains.gpu_rows[i].tolist()}
        if any(builder.nodes[h].gpus != int(topo.nodes.n_gpus[h]) for h in hosts):  # all GPUs that they have now
            nodes = [builder.nodes[h] for h in sorted(hosts)]
            rows = [g for n in nodes for g in range(n.gpu0, n.gpu0 + n.gpus)]
        taken |= set(rows)
        builder.domain(
            name, rows, topo.domains.switches[i], int(topo.domains.links_per_gpu[i]), float(topo.domains.speed[i])
        )
    _shared_domains(builder, of_host, taken)
    model = hardware()["gpu"].get(sizes.gpu_model or "", {})
    assumed = False
    for node in builder.nodes:
        facts = of_host.get(node.name)
        if facts is None or node.gpu0 in taken:
            continue
        for k, (gpus, links) in enumerate(facts.groups):
            speed = float(model.get("nvlink_link_bytes_per_second") or facts.speed)
            assumed |= isnan(speed)
            name = f"nvl-{node.name}" + (f"-{k}" if len(facts.groups) > 1 else "")
            builder.domain(name, [node.gpu0 + g for g in gpus], (), links, _SLOWEST if isnan(speed) else speed)
    if assumed:
        builder.notes.append(
            "the speed of NVLinks is not in the input: 25GB/s a link (NVLink 2 to 4) is assumed; "
            "Blackwell has 50GB/s: say --gpu-model b300 or the like"
        )


def _shared_domains(builder: Builder, of_host: Mapping[str, HostFacts], taken: set[int]) -> None:
    """Domains over several hosts, put together from what each says; their GPUs go to `taken`."""
    parts: dict[str, list[tuple[int, SharedDomain]]] = {}
    for node in builder.nodes:
        facts = of_host.get(node.name)
        if facts is None or node.gpu0 in taken:
            continue
        for part in facts.domains:
            parts.setdefault(part.name, []).append((node.gpu0, part))
    for name, members in parts.items():
        rows = [first + g for first, part in members for g in part.gpus]
        links = max(part.links_per_gpu for _, part in members)
        speeds = [part.speed for _, part in members if not isnan(part.speed)]
        builder.domain(name, rows, (), links, max(speeds, default=_SLOWEST))
        taken |= set(rows)
        builder.notes.append(
            f"{name}: {len(rows)} GPUs of {len(members)} hosts of one cluster and clique; its switch chips are not "
            "seen from the hosts"
        )
