"""Parts that presets are made of: names, nodes, rows of switches, and regular wiring between them.

Spines of a plane: the smallest n of at least leaves x uplinks / radix that divides the uplinks of a
leaf. It gives every row of the vendor's B300 (Ethernet and XDR) and two-tier B200 tables.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from twin.catalog import hardware
from twin.topology.builder import Builder
from twin.topology.joining import I64
from twin.topology.model import NONE

PLANES = "ABCDEFGH"


def numbered(prefix: str, number: int, count: int, digits: int) -> str:
    return f"{prefix}{number:0{max(digits, len(str(count - 1)))}d}"


def spines_needed(leaves: int, uplinks: int, radix: int) -> int:
    """Spines of a plane so that every leaf has the same number of links to each; 0 where two tiers are not enough."""
    least = max(1, -(-leaves * uplinks // radix))
    return next((n for n in range(least, uplinks + 1) if uplinks % n == 0), 0)


# --- hosts ---


def nodes_of(
    b: Builder, server: str, count: int, *, ports_per_nic: int = 1, first_port: int = 0, per_rack: int = 4
) -> I64:
    """int64[nodes]: servers of the catalogue, each its own NVLink domain where it has switch chips."""
    facts = hardware()["server"][server]
    gpu = hardware()["gpu"][facts["gpu"]]
    rack, rows = NONE, []
    for i in range(count):
        if i % per_rack == 0:
            rack = b.rack(numbered("r", i // per_rack, -(-count // per_rack), 2))
        name = numbered("n", i, count, 3)
        row = b.node(
            name, gpus=facts["gpus"], nics=facts["nics"], ports_per_nic=ports_per_nic, first_port=first_port,
            gpu_model=facts["gpu"], rack=rack, psus=facts.get("psus", 0),
            psu_watts=float(facts.get("psu_watts", "nan")),
        )  # fmt: skip
        if facts["nvswitches"]:
            g = b.nodes[row].gpu0
            chips = [f"{name}/nvsw{k}" for k in range(facts["nvswitches"])]
            b.domain(
                name, range(g, g + facts["gpus"]), chips, gpu["nvlink_links"], gpu["nvlink_link_bytes_per_second"]
            )
        rows.append(row)
    return np.array(rows, dtype=np.int64)


def nvl72_racks(
    b: Builder,
    model: str,
    count: int,
    *,
    ports_per_nic: int = 1,
    first_port: int = 0,
    spare_shelves: int | None = None,
) -> I64:
    """int64[racks, trays], node rows of racks of the catalogue that are one NVLink domain each.

    A feed is one power shelf, half of them on side A and half on B; spare_shelves: how many may fail, None where
    power is not described.
    """
    facts = hardware()["rack"][model]
    tray = hardware()["server"][facts["server"]]
    gpu = hardware()["gpu"][tray["gpu"]]
    trays, chips, gpus = facts["servers"], facts["nvswitches"], tray["gpus"]
    rows = np.zeros((count, trays), np.int64)
    for r in range(count):
        name = numbered("r", r, count, 2)
        if spare_shelves is None:
            rack = b.rack(name)
        else:
            shelf = hardware()["power_shelf"][facts["power_shelf"]]
            rack = b.rack(
                name, f"N+{spare_shelves}", _shelves(name, facts["power_shelves"], float(shelf["capacity_watts"])),
                psus=facts["power_shelves"] * shelf["psus"], psu_watts=float(shelf["psu_watts"]),
            )  # fmt: skip
        for tray_number in range(trays):
            rows[r, tray_number] = b.node(
                numbered("n", trays * r + tray_number, trays * count, 3), gpus=gpus, nics=tray["nics"],
                ports_per_nic=ports_per_nic, first_port=first_port, gpu_model=tray["gpu"], rack=rack,
            )  # fmt: skip
        first = b.nodes[rows[r, 0]].gpu0
        names = [numbered(f"{name}/nvsw", k, chips, 2) for k in range(chips)]
        b.domain(
            name, range(first, first + trays * gpus), names, gpu["nvlink_links"], gpu["nvlink_link_bytes_per_second"]
        )
    return rows


def _shelves(rack: str, count: int, watts: float) -> Sequence[tuple[str, float]]:
    half = -(-count // 2)
    return [(f"{rack}/feed{'AB'[i // half]}{i % half}", watts) for i in range(count)]


def nic_ports(b: Builder, nodes: I64) -> I64:
    """int64[nodes, nics, ports], rows of the NIC ports of nodes that are all alike."""
    first = b.nodes[int(nodes.flat[0])]
    nics, ports = len(first.nics), first.ports_per_nic
    port0 = np.array([b.nodes[n].port0 for n in nodes.ravel().tolist()])
    rows: I64 = port0[:, None, None] + (np.arange(nics)[:, None] * ports + np.arange(ports))
    return rows


# --- switches ---


def switches(
    b: Builder, kind: str, count: int, plane: int, *, model: str, radix: int, rails: Sequence[int] | None = None
) -> I64:
    """int64[switches], rows of new switches `A-leaf-00` and on. kind: leaf, spine or core."""
    tier = ("leaf", "spine", "core").index(kind)
    prefix = f"{b.planes[plane]}-{kind}-"
    return np.array(
        [
            b.switch(
                numbered(prefix, i, count, 2), tier, plane, model=model, radix=radix, rail=rails[i] if rails else NONE
            )
            for i in range(count)
        ],
        dtype=np.int64,
    )


def join_all(
    b: Builder, low: I64, high: I64, uplinks: int, speed: float, *,
    low_port: int, high_port: int | I64 = 0, ports_per_cable: int = 1,
) -> None:  # fmt: skip
    """Joins every one of `low` to every one of `high` with equally many of its `uplinks`, from port `low_port` on.

    high_port: first port used on `high`, one number or int64[low, 1], one for each of `low`. ports_per_cable: so many
    ports of a low switch are one cage, whose cable is split where its links go to several switches.
    """
    each = uplinks // len(high)
    up = np.arange(uplinks)
    i = np.arange(len(low))[:, None]
    start = high_port + i * each if isinstance(high_port, int) else high_port
    cable = None
    if ports_per_cable > 1:
        cages = -(-uplinks // ports_per_cable)
        cable = b.cables(len(low) * cages)[(i * cages + up // ports_per_cable).ravel()]
    b.links(
        np.repeat(low, uplinks),
        np.tile(high[up // each], len(low)),
        (start + up % each).ravel(),
        speed,
        a_number=np.tile(low_port + up, len(low)),
        cable=cable,
    )


def spines_for(
    b: Builder, plane: int, leaves: I64, down: int, uplinks: int, radix: int, speed: float, *,
    model: str, first: int = 0, ports_per_cable: int = 1, count: int = 0,
) -> I64:  # fmt: skip
    """Adds the spines of a plane (as many as needed, or `count`) and joins every leaf to each of them."""
    count = count or spines_needed(len(leaves), uplinks, radix)
    spines = switches(b, "spine", count, plane, model=model, radix=radix)
    join_all(
        b, leaves, spines, uplinks, speed, low_port=first + down, high_port=first, ports_per_cable=ports_per_cable
    )
    return spines


def fill(
    b: Builder, plane: int, ports: I64, radix: int, speed: float, *,
    model: str, first: int = 0, cable: I64 | None = None,
) -> None:  # fmt: skip
    """Puts NIC ports on leaves in their order: one leaf while they fit, then leaves with half their ports up."""
    single = len(ports) <= radix
    per_leaf = radix if single else radix // 2
    count = -(-len(ports) // per_leaf)
    leaves = switches(b, "leaf", count, plane, model=model, radix=radix)
    leaf, place = np.divmod(np.arange(len(ports)), per_leaf)
    b.links(ports, leaves[leaf], first + place, speed, cable=cable)
    if not single:
        spines_for(b, plane, leaves, per_leaf, per_leaf, radix, speed, model=model, first=first)


def rail_leaves(
    b: Builder, plane: int, ports: I64, per_leaf: int, radix: int, speed: float, *,
    model: str, first: int = 0, cable: I64 | None = None,
) -> I64:  # fmt: skip
    """Leaves of one rail each. ports: int64[nodes, rails]; per_leaf nodes make a group with a leaf for every rail."""
    nodes, rails = ports.shape
    count = rails * -(-nodes // per_leaf)
    leaves = switches(b, "leaf", count, plane, model=model, radix=radix, rails=[i % rails for i in range(count)])
    group, place = np.divmod(np.arange(nodes)[:, None], per_leaf)
    leaf = leaves[rails * group + np.arange(rails)]
    b.links(ports.ravel(), leaf.ravel(), np.repeat(first + place.ravel(), rails), speed, cable=cable)
    return leaves
