"""Fabrics of eight-GPU servers with an NVLink board: DGX SuperPODs and HGX servers, rail-optimised."""

from __future__ import annotations

import numpy as np

from twin.catalog import switch_ports
from twin.topology.builder import Builder
from twin.topology.joining import I64
from twin.topology.model import Topology
from twin.topology.presets.parts import (
    PLANES,
    join_all,
    nic_ports,
    nodes_of,
    rail_leaves,
    spines_for,
    spines_needed,
    switches,
)


def b300_superpod_ethernet(scalable_units: int, planes: int) -> Topology:
    b = Builder("b300-superpod-ethernet", tuple(PLANES[:planes]))
    speed = 800e9 / planes
    radix = switch_ports("sn5600", f"{800 // planes}G")
    nodes = nodes_of(b, "dgx-b300", 64 * scalable_units, ports_per_nic=planes)
    per_leaf = min(len(nodes), radix // 2)  # hosts of one rail on a leaf: 64 at 400G, up to 128 at 200G
    ports = nic_ports(b, nodes)
    split = b.cables(len(nodes) * 8)  # one cable a NIC, split into its planes
    for plane in range(planes):
        leaves = rail_leaves(b, plane, ports[:, :, plane], per_leaf, radix, speed, model="sn5600", cable=split)
        spines_for(b, plane, leaves, per_leaf, per_leaf, radix, speed, model="sn5600", ports_per_cable=planes)
    return b.build()


def b300_superpod_xdr(scalable_units: int) -> Topology:
    b = Builder("b300-superpod-xdr", ("A",))
    nodes = nodes_of(b, "dgx-b300", 72 * scalable_units, first_port=1)
    leaves = rail_leaves(b, 0, nic_ports(b, nodes)[:, :, 0], 72, 144, 800e9, model="q3400", first=1)
    spines_for(b, 0, leaves, 72, 72, 144, 800e9, model="q3400", first=1)
    return b.build()


def hgx(name: str, server: str, nodes: int) -> Topology:
    """Servers with one 400G a GPU on 128-port switches; the shape is the B300 unit's with one plane (derived)."""
    b = Builder(name, ("A",))
    rows = nodes_of(b, server, nodes)
    per_leaf = min(nodes, 64)
    leaves = rail_leaves(b, 0, nic_ports(b, rows)[:, :, 0], per_leaf, 128, 400e9, model="sn5600")
    spines_for(b, 0, leaves, per_leaf, per_leaf, 128, 400e9, model="sn5600", ports_per_cable=2)
    return b.build()


def hgx_b200(nodes: int) -> Topology:
    return hgx("hgx-b200", "hgx-b200", nodes)


def hgx_h100(nodes: int) -> Topology:
    return hgx("hgx-h100", "hgx-h100", nodes)


_POD = 8  # units whose leaves of one rail share spines, where there are three tiers


def dgx_b200_ndr(scalable_units: int) -> Topology:
    """Two tiers up to 8 units, then three: counts are the vendor's, which spine meets which core is derived."""
    b = Builder("dgx-b200-ndr", ("A",))
    nodes = nodes_of(b, "dgx-b200", 32 * scalable_units, first_port=1)
    leaves = rail_leaves(b, 0, nic_ports(b, nodes)[:, :, 0], 32, 64, 400e9, model="mqm9700", first=1)
    if scalable_units <= _POD:
        spines_for(b, 0, leaves, 32, 32, 64, 400e9, model="mqm9700", first=1)
    else:
        _three_tiers(b, leaves, scalable_units // _POD)
    return b.build()


def _three_tiers(b: Builder, leaves: I64, pods: int) -> None:
    """The eight leaves of a rail in a pod meet in eight spines; a core joins 64 spines, of every rail and pod."""
    groups = pods * 8
    each = spines_needed(_POD, 32, 32)  # half of a spine's ports look down
    spines = switches(b, "spine", groups * each, 0, model="mqm9700", radix=64)
    cores = switches(b, "core", len(spines) // 2, 0, model="mqm9700", radix=64)
    for g in range(groups):
        pod, rail = divmod(g, 8)
        low = leaves[8 * (_POD * pod + np.arange(_POD)) + rail]
        join_all(b, low, spines[each * g : each * (g + 1)], 32, 400e9, low_port=33, high_port=1)
    same = 64 // groups  # spines of a group that one set of 32 cores joins
    for j in range(each):
        low = spines[each * np.arange(groups) + j]
        place = 1 + groups * (j % same) + np.arange(groups)
        join_all(
            b, low, cores[32 * (j // same) : 32 * (j // same + 1)], 32, 400e9, low_port=33, high_port=place[:, None]
        )
