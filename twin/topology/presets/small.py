"""Fabrics of PCIe servers without NVLink, and of two desktops."""

from __future__ import annotations

import numpy as np

from twin.catalog import hardware, switch_ports
from twin.errors import InputError
from twin.topology.builder import Builder
from twin.topology.model import NONE, Topology
from twin.topology.presets.parts import fill, nic_ports, numbered, spines_for, switches


def rtx_pro_6000(servers: int, gpus_per_server: int) -> Topology:
    """One 400G NIC a GPU: a single 64-port leaf up to 64 GPUs, then leaves with half their ports up."""
    b = Builder("rtx-pro-6000", ("A",))
    endpoints = servers * gpus_per_server
    if endpoints > 2048:
        raise InputError(f"rtx-pro-6000: {endpoints} GPUs; two tiers of 64-port switches end at 2048 (k^2/2)")
    facts = hardware()["server"]["rtx-pro-6000"]
    rack, nodes = NONE, []
    for i in range(servers):
        if i % 16 == 0:
            rack = b.rack(numbered("r", i // 16, -(-servers // 16), 2))
        node = b.node(
            numbered("n", i, servers, 3), gpus=gpus_per_server, nics=gpus_per_server, gpu_model=facts["gpu"],
            rack=rack, psus=facts["psus"], psu_watts=float(facts["psu_watts"]),
        )  # fmt: skip
        nodes.append(node)
    fill(b, 0, nic_ports(b, np.array(nodes)).ravel(), 64, 400e9, model="sn5400")
    return b.build()


_GROUP = 96  # nodes on one set of four leaves: 96 of their rail and 24 storage ports, of 128 that look down


def rtx_pro_ai_factory(nodes: int) -> Topology:
    """Four 200G adapters for eight GPUs, a leaf for each of these rails; the fifth, for storage and users, shares
    the leaves (derived: the vendor says converged and rail-optimised, and prints no counts here)."""
    b = Builder("rtx-pro-ai-factory", ("A",))
    radix = switch_ports("sn5600", "200G")
    facts = hardware()["server"]["rtx-pro-ai-factory"]
    rails = facts["nics"] - 1
    rack, rows = NONE, []
    for i in range(nodes):
        if i % 4 == 0:
            rack = b.rack(numbered("r", i // 4, -(-nodes // 4), 2))
        row = b.node(
            numbered("n", i, nodes, 3), gpus=facts["gpus"], nics=facts["nics"], gpu_model=facts["gpu"], rack=rack,
            nic_of_gpu=[g * rails // facts["gpus"] for g in range(facts["gpus"])],
        )  # fmt: skip
        rows.append(row)
    ports = nic_ports(b, np.array(rows))[:, :, 0]
    group, place = np.divmod(np.arange(nodes), _GROUP)
    leaf_rails = [i % rails for i in range(rails * (int(group[-1]) + 1))]
    leaves = switches(b, "leaf", len(leaf_rails), 0, model="sn5600", radix=radix, rails=leaf_rails)
    size = min(nodes, _GROUP)
    own = leaves[rails * group[:, None] + np.arange(rails)]
    b.links(ports[:, :rails].ravel(), own.ravel(), np.repeat(place, rails), 200e9)
    b.links(ports[:, rails], leaves[rails * group + place % rails], size + place // rails, 200e9)
    down = size + -(-size // rails)
    spines_for(b, 0, leaves, down, down, radix, 200e9, model="sn5600", ports_per_cable=2)
    return b.build()


def dgx_station_pair() -> Topology:
    """Two desktops, two direct cables, one a rail, no switch."""
    b = Builder("dgx-station-pair", ())
    facts = hardware()["server"]["dgx-station"]
    rows = [
        b.node(name, gpus=facts["gpus"], nics=facts["nics"], ports_per_nic=2, gpu_model=facts["gpu"])
        for name in ("n000", "n001")
    ]
    for port in range(2):
        b.direct_link(b.nic_port(rows[0], 0, port), b.nic_port(rows[1], 0, port), 400e9)
    return b.build()
