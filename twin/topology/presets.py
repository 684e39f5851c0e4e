"""Presets: whole fabrics from a few parameters, each figure traced to a published table.

Spines of a plane: the smallest n of at least leaves x uplinks / radix that divides the uplinks of a
leaf. It gives every row of the vendor's B300 tables (Ethernet and XDR).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from twin.catalog import hardware, switch_ports
from twin.errors import InputError
from twin.topology.builder import Builder
from twin.topology.model import NONE, Topology

PLANES = "ABCDEFGH"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A size that a preset takes. `allowed` is a range or the only values that make sense."""

    name: str
    default: int
    help: str
    allowed: range | tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Preset:
    name: str
    about: str
    source: str
    parameters: tuple[Parameter, ...]
    make: Callable[..., Topology]


def spines_needed(leaves: int, uplinks: int, radix: int) -> int:
    """Spines of a plane so that every leaf has the same number of links to each."""
    least = max(1, -(-leaves * uplinks // radix))
    return next((n for n in range(least, uplinks + 1) if uplinks % n == 0), 0)


def _name(prefix: str, number: int, count: int, digits: int) -> str:
    return f"{prefix}{number:0{max(digits, len(str(count - 1)))}d}"


def _connect_spines(
    b: Builder, plane: int, leaves: list[int], down: int, uplinks: int, radix: int, speed: float, *,
    model: str, first: int = 0, ports_per_cable: int = 1,
) -> None:  # fmt: skip
    """Adds the spines of a plane and joins every leaf to each of them with equally many links."""
    spines = spines_needed(len(leaves), uplinks, radix)
    each = uplinks // spines
    rows = [
        b.switch(_name(f"{b.planes[plane]}-spine-", s, spines, 2), 1, plane, model=model, radix=radix)
        for s in range(spines)
    ]
    cable = NONE
    for i, leaf in enumerate(leaves):
        for up in range(uplinks):
            spine, k = divmod(up, each)
            if ports_per_cable > 1 and up % ports_per_cable == 0:
                cable = b.cable()  # one cage of the leaf, split where its links go to several spines
            b.switch_link(leaf, first + down + up, rows[spine], first + i * each + k, speed, cable)


def _hgx_nodes(b: Builder, count: int, gpu: str, ports_per_nic: int, **options: float) -> list[int]:
    """Nodes of eight GPUs in one NVLink domain of two switch chips, a NIC a GPU."""
    facts = hardware()["gpu"][gpu]
    first_port = int(options.get("first_port", 0))
    per_rack = int(options.get("per_rack", 4))
    rows = []
    for i in range(count):
        if i % per_rack == 0:
            rack = b.rack(_name("r", i // per_rack, -(-count // per_rack), 2))
        name = _name("n", i, count, 3)
        node = b.node(
            name, gpus=8, nics=8, ports_per_nic=ports_per_nic, first_port=first_port, gpu_model=gpu, rack=rack
        )
        g = b.nodes[node].gpu0
        chips = [f"{name}/nvsw{k}" for k in range(2)]
        b.domain(name, range(g, g + 8), chips, facts["nvlink_links"], facts["nvlink_link_bytes_per_second"])
        rows.append(node)
    return rows


def b300_superpod_ethernet(scalable_units: int, planes: int) -> Topology:
    b = Builder("b300-superpod-ethernet", tuple(PLANES[:planes]))
    speed = 800e9 / planes
    radix = switch_ports("sn5600", f"{800 // planes}G")
    nodes = _hgx_nodes(b, 64 * scalable_units, "b300", planes)
    per_leaf = min(64 * scalable_units, radix // 2)  # hosts of one rail on a leaf: 64 at 400G, up to 128 at 200G
    groups = -(-len(nodes) // per_leaf)
    count = 8 * groups
    splits = [[b.cable() for _ in range(8)] for _ in nodes]  # one cable a NIC, split into its planes
    for plane in range(planes):
        leaves = [
            b.switch(
                _name(f"{b.planes[plane]}-leaf-", i, count, 2),
                0,
                plane,
                model="sn5600",
                rail=i % 8,
                radix=radix,
            )
            for i in range(count)
        ]
        for i, node in enumerate(nodes):
            group, place = divmod(i, per_leaf)
            for rail in range(8):
                b.host_link(b.nic_port(node, rail, plane), leaves[8 * group + rail], place, speed, splits[i][rail])
        _connect_spines(b, plane, leaves, per_leaf, per_leaf, radix, speed, model="sn5600", ports_per_cable=planes)
    return b.build()


def b300_superpod_xdr(scalable_units: int) -> Topology:
    b = Builder("b300-superpod-xdr", ("A",))
    nodes = _hgx_nodes(b, 72 * scalable_units, "b300", 1, first_port=1)
    count = 8 * scalable_units
    leaves = [
        b.switch(_name("A-leaf-", i, count, 2), 0, 0, model="q3400", rail=i % 8, radix=144) for i in range(count)
    ]
    for i, node in enumerate(nodes):
        unit, place = divmod(i, 72)
        for rail in range(8):
            b.host_link(b.nic_port(node, rail, 0), leaves[8 * unit + rail], 1 + place, 800e9)
    _connect_spines(b, 0, leaves, 72, 72, 144, 800e9, model="q3400", first=1)
    return b.build()


def gb300_nvl72_superpod(scalable_units: int) -> Topology:
    """Racks of 18 compute trays with 4 GPUs and 18 NVLink switch chips; 8 racks are one 576-GPU unit."""
    b = Builder("gb300-nvl72-superpod", ("A",))
    facts = hardware()["gpu"]["gb300"]
    racks = 8 * scalable_units
    count = 8 * scalable_units
    leaves = [
        b.switch(_name("A-leaf-", i, count, 2), 0, 0, model="q3400", rail=i // 2 % 4, radix=144) for i in range(count)
    ]
    for r in range(racks):
        rack_name = _name("r", r, racks, 2)
        rack = b.rack(rack_name)
        rack_gpus: list[int] = []
        for tray in range(18):
            i = 18 * r + tray
            name = _name("n", i, 18 * racks, 3)
            node = b.node(name, gpus=4, nics=4, first_port=1, gpu_model="gb300", rack=rack)
            rack_gpus.extend(range(b.nodes[node].gpu0, b.nodes[node].gpu0 + 4))
            unit, in_unit = divmod(r, 8)
            half, in_half = divmod(in_unit, 4)  # four racks fill the 72 host ports of a leaf
            for rail in range(4):
                leaf = leaves[8 * unit + 2 * rail + half]
                b.host_link(b.nic_port(node, rail, 0), leaf, 1 + 18 * in_half + tray, 800e9)
        chips = [_name(f"{rack_name}/nvsw", k, 18, 2) for k in range(18)]
        b.domain(rack_name, rack_gpus, chips, facts["nvlink_links"], facts["nvlink_link_bytes_per_second"])
    _connect_spines(b, 0, leaves, 72, 72, 144, 800e9, model="q3400", first=1)
    return b.build()


def rtx_pro_6000(servers: int, gpus_per_server: int) -> Topology:
    """One 400G NIC a GPU: a single 64-port leaf up to 64 GPUs, then leaves with half their ports up."""
    b = Builder("rtx-pro-6000", ("A",))
    endpoints = servers * gpus_per_server
    single = endpoints <= 64
    per_leaf = 64 if single else 32
    leaves_needed = -(-endpoints // per_leaf)
    if leaves_needed * 32 > 64 * 32:
        raise InputError(f"rtx-pro-6000: {endpoints} GPUs; two tiers of 64-port switches end at 2048 (k^2/2)")
    leaves = [
        b.switch(_name("A-leaf-", i, leaves_needed, 2), 0, 0, model="sn5400", radix=64) for i in range(leaves_needed)
    ]
    rack = NONE
    for i in range(servers):
        if i % 16 == 0:
            rack = b.rack(_name("r", i // 16, -(-servers // 16), 2))
        node = b.node(
            _name("n", i, servers, 3), gpus=gpus_per_server, nics=gpus_per_server,
            gpu_model="rtx-pro-6000", rack=rack, psus=4, psu_watts=3200.0,
        )  # fmt: skip
        for k in range(gpus_per_server):
            leaf, place = divmod(i * gpus_per_server + k, per_leaf)
            b.host_link(b.nic_port(node, k, 0), leaves[leaf], place, 400e9)
    if not single:
        _connect_spines(b, 0, leaves, 32, 32, 64, 400e9, model="sn5400")
    return b.build()


_UNITS = "how many scalable units"
PRESETS: dict[str, Preset] = {
    p.name: p
    for p in (
        Preset(
            "b300-superpod-ethernet",
            "DGX B300 SuperPOD on Spectrum-4 Ethernet: 64 nodes a unit, every 800G NIC split over the planes",
            "docs.nvidia.com/dgx-superpod/reference-architecture/scalable-infrastructure-b300",
            (
                Parameter("scalable_units", 1, _UNITS, range(1, 17)),
                Parameter("planes", 2, "planes a NIC is split over (4 is derived, no vendor table)", (2, 4)),
            ),
            b300_superpod_ethernet,
        ),
        Preset(
            "b300-superpod-xdr",
            "DGX B300 SuperPOD on Quantum-X800 XDR InfiniBand, rail-optimised: 72 nodes a unit",
            "docs.nvidia.com/dgx-superpod/reference-architecture/scalable-infrastructure-b300-xdr",
            (Parameter("scalable_units", 1, _UNITS, range(1, 19)),),
            b300_superpod_xdr,
        ),
        Preset(
            "gb300-nvl72-superpod",
            "GB300 NVL72 racks on XDR InfiniBand: 8 racks, 144 trays and 576 GPUs a unit",
            "rack: vendor NVL72 documents; leaves and spines as the 576-port XDR unit (derived)",
            (Parameter("scalable_units", 1, _UNITS, range(1, 19)),),
            gb300_nvl72_superpod,
        ),
        Preset(
            "rtx-pro-6000",
            "RTX PRO 6000 servers with one 400G NIC a GPU on 64-port leaves, 16 servers a rack",
            "founding RTX PRO networking article; leaf and spine counts derived",
            (
                Parameter("servers", 16, "how many servers", range(1, 1025)),
                Parameter("gpus_per_server", 8, "GPUs in a server", (2, 4, 8)),
            ),
            rtx_pro_6000,
        ),
    )
}


def _describe(allowed: range | tuple[int, ...]) -> str:
    if isinstance(allowed, range):
        return f"{allowed.start} to {allowed.stop - 1}"
    return " or ".join(map(str, allowed))


def unknown_preset(name: str) -> str:
    """What to say about a preset that does not exist."""
    near = get_close_matches(name, PRESETS, 1)
    hint = f"did you mean {near[0]}?" if near else f"expected one of {', '.join(PRESETS)}"
    return f"{name!r} is not a preset; {hint}"


def check_parameters(name: str, given: Mapping[str, int]) -> list[str]:
    """Everything that is wrong with the parameters given for preset `name`."""
    known = {p.name: p for p in PRESETS[name].parameters}
    problems = []
    for key, value in given.items():
        if key not in known:
            problems.append(f"preset {name} has no parameter {key!r}; it takes {', '.join(known)}")
        elif value not in known[key].allowed:
            problems.append(f"{name}: {key} is {value}, expected {_describe(known[key].allowed)}")
    return problems


def preset(name: str, **given: int) -> Topology:
    """Builds preset `name`. Raises InputError for an unknown preset or a parameter out of range."""
    if name not in PRESETS:
        raise InputError(unknown_preset(name))
    if problems := check_parameters(name, given):
        raise InputError(problems)
    chosen = PRESETS[name]
    return chosen.make(**{p.name: given.get(p.name, p.default) for p in chosen.parameters})
