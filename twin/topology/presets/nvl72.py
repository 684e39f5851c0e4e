"""Fabrics of racks that are one NVLink domain of 72 GPUs."""

from __future__ import annotations

import numpy as np

from twin.catalog import switch_ports as ports_of
from twin.errors import InputError
from twin.topology.builder import Builder
from twin.topology.model import Topology
from twin.topology.presets.parts import PLANES, fill, nic_ports, nvl72_racks, rail_leaves, spines_for, switches


def gb300_nvl72_superpod(scalable_units: int, spare_shelves: int) -> Topology:
    """Racks of 18 compute trays with 4 GPUs and 18 NVLink switch chips; 8 racks are one 576-GPU unit."""
    b = Builder("gb300-nvl72-superpod", ("A",))
    racks = 8 * scalable_units
    count = 8 * scalable_units
    rails = [i // 2 % 4 for i in range(count)]
    leaves = switches(b, "leaf", count, 0, model="q3400", radix=144, rails=rails)
    nodes = nvl72_racks(b, "gb300-nvl72", racks, first_port=1, spare_shelves=spare_shelves)
    ports = nic_ports(b, nodes)[:, :, 0]
    rack, tray = np.divmod(np.arange(nodes.size), 18)
    unit, in_unit = np.divmod(rack, 8)
    half, in_half = np.divmod(in_unit, 4)  # four racks fill the 72 host ports of a leaf
    leaf = leaves[(8 * unit + half)[:, None] + 2 * np.arange(4)]
    b.links(ports.ravel(), leaf.ravel(), np.repeat(1 + 18 * in_half + tray, 4), 800e9)
    spines_for(b, 0, leaves, 72, 72, 144, 800e9, model="q3400", first=1)
    return b.build()


_SPINES = {2: 2, 4: 4, 8: 6}  # a plane, by racks: the vendor's table, both planes together 4, 8 and 12


def gb300_nvl72_ethernet(racks: int, spare_shelves: int) -> Topology:
    """Every 800G NIC split over two planes; two racks share a leaf for each rail."""
    b = Builder("gb300-nvl72-ethernet", ("A", "B"))
    nodes = nvl72_racks(b, "gb300-nvl72", racks, ports_per_nic=2, spare_shelves=spare_shelves)
    ports = nic_ports(b, nodes)
    split = b.cables(nodes.size * 4)
    for plane in range(2):
        leaves = rail_leaves(b, plane, ports[:, :, plane], 36, 128, 400e9, model="sn5600", cable=split)
        spines_for(b, plane, leaves, 36, 36, 128, 400e9, model="sn5600", ports_per_cable=2, count=_SPINES[racks])
    return b.build()


_SPECTRUM_6 = {256: "sn6810", 1024: "sn6800"}  # by ports at 400G


def vera_rubin_spectrum6(racks: int, switch_ports: int) -> Topology:
    """The adapters of a GPU, 1.6 Tb/s, over four planes of 400G. Seven racks share a leaf for each rail, 28 on the
    larger switch: the whole racks that fit the half of its ports that look down (estimated)."""
    together = switch_ports // 2 // 18
    if racks > together * switch_ports // 4:
        most = together * switch_ports // 4
        raise InputError(f"vera-rubin-spectrum6: {racks} racks; two tiers of {switch_ports} ports end at {most}")
    b = Builder("vera-rubin-spectrum6", tuple(PLANES[:4]))
    model = _SPECTRUM_6[switch_ports]
    nodes = nvl72_racks(b, "vera-rubin-nvl72", racks, ports_per_nic=4, spare_shelves=1)
    ports = nic_ports(b, nodes)
    per_leaf = 18 * min(racks, together)
    split = b.cables(nodes.size * 4)
    for plane in range(4):
        leaves = rail_leaves(b, plane, ports[:, :, plane], per_leaf, switch_ports, 400e9, model=model, cable=split)
        spines_for(b, plane, leaves, per_leaf, per_leaf, switch_ports, 400e9, model=model, ports_per_cable=2)
    return b.build()


def mrc_8plane(racks: int) -> Topology:
    """An 800G interface a GPU as eight of 100G, one a plane; GPUs fill the leaves of a plane in their order."""
    b = Builder("mrc-8plane", tuple(PLANES))
    radix = ports_of("mrc-512", "100G")
    nodes = nvl72_racks(b, "gb200-nvl72", racks, ports_per_nic=8)
    ports = nic_ports(b, nodes)
    split = b.cables(nodes.size * 4)
    for plane in range(8):
        fill(b, plane, ports[:, :, plane].ravel(), radix, 100e9, model="mrc-512", cable=split)
    return b.build()
