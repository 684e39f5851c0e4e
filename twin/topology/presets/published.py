"""Fabrics that their operators described in papers: DeepSeek, Alibaba, Meta."""

from __future__ import annotations

import numpy as np

from twin.topology.builder import Builder
from twin.topology.model import Topology
from twin.topology.presets.parts import PLANES, fill, join_all, nic_ports, nodes_of, rail_leaves, switches


def deepseek_mpft(nodes: int) -> Topology:
    """Rail as plane: NIC i of every node sits in plane i alone; planes meet inside the node, over NVLink."""
    b = Builder("deepseek-mpft", tuple(PLANES))
    ports = nic_ports(b, nodes_of(b, "hgx-h800", nodes, first_port=1))
    for plane in range(8):
        fill(b, plane, ports[:, plane, 0], 64, 400e9, model="mqm9700", first=1)
    return b.build()


def alibaba_hpn(segments: int) -> Topology:
    """Both ports of a NIC go to the two switches of its rail's dual ToR, each in a plane of its own.

    A ToR has 128 hosts at 200G, 8 spare ports, 60 uplinks at 400G, one to each of the plane's 60 aggregation
    switches; those keep 8 ports for a core (15:1) that lies outside the pod and is left out here.
    """
    b = Builder("alibaba-hpn", ("A", "B"))
    ports = nic_ports(b, nodes_of(b, "hpn-server", 128 * segments, ports_per_nic=2))
    for plane in range(2):
        leaves = rail_leaves(b, plane, ports[:, :, plane], 128, 196, 200e9, model="hpn-51t")
        spines = switches(b, "spine", 60, plane, model="hpn-51t", radix=128)
        join_all(b, leaves, spines, 60, 400e9, low_port=136)
    return b.build()


def meta_24k_roce(pods: int) -> Topology:
    """Racks of two servers with a switch of their own; 192 of them are a pod without oversubscription.

    Published: 8 pods of 3,072 GPUs, full bisection inside a pod, 1:7 above. Counts of cluster (spine) and
    aggregation (core) switches are not: 16 and 27 give these ratios with the ports of the switches named.
    """
    racks, spines_a_pod, cores = 192, 16, 27
    b = Builder("meta-24k-roce", ("A",))
    nodes = nodes_of(b, "hgx-h100", 2 * racks * pods, per_rack=2)
    ports = nic_ports(b, nodes).reshape(racks * pods, 16)
    leaves = switches(b, "leaf", racks * pods, 0, model="minipack2", radix=64)
    b.links(ports.ravel(), np.repeat(leaves, 16), np.tile(np.arange(16), len(leaves)), 400e9)
    spines = switches(b, "spine", spines_a_pod * pods, 0, model="arista-7808r3", radix=288)
    for pod in range(pods):
        low, high = leaves[racks * pod : racks * (pod + 1)], spines[spines_a_pod * pod : spines_a_pod * (pod + 1)]
        join_all(b, low, high, 16, 400e9, low_port=16)
    if pods > 1:
        tops = switches(b, "core", cores, 0, model="arista-7808r3", radix=288)
        join_all(b, spines, tops, cores, 400e9, low_port=racks)
    return b.build()
