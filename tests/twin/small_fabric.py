"""A small rail-optimised fabric of two planes as a wiring file that tests may break, one thing at a time."""

from __future__ import annotations

from typing import Any

import yaml

from twin.topology.model import Topology
from twin.topology.wiring import read_wiring
from twin.yamlfile import Document

NODES, NICS, SPINES, EACH = 6, 2, 2, 2


def small_fabric() -> dict[str, Any]:
    """6 nodes of 2 GPUs, a NIC a GPU, a port a plane; a leaf a rail with 2 links to each of 2 spines."""
    planes = ["A", "B"]
    nodes = [
        {"name": f"n{i}", "rack": "r0", "gpu_model": "b300", "gpus": 2, "nics": 2, "ports_per_nic": 2}
        for i in range(NODES)
    ]
    switches = [
        {"name": f"{p}-{tier}-{i}", "tier": tier, "plane": p, "ports": 16}
        for p in planes
        for tier, count in (("leaf", NICS), ("spine", SPINES))
        for i in range(count)
    ]
    links = [
        {"a": f"n{n}/nic{k}/p{q}", "b": f"{p}-leaf-{k}/p{n}", "speed": "400G"}
        for n in range(NODES)
        for k in range(NICS)
        for q, p in enumerate(planes)
    ]
    links += [
        {"a": f"{p}-leaf-{k}/p{8 + s * EACH + i}", "b": f"{p}-spine-{s}/p{k * EACH + i}", "speed": "800G"}
        for p in planes
        for k in range(NICS)
        for s in range(SPINES)
        for i in range(EACH)
    ]
    feeds = [{"name": f"r0/feed{x}", "watts": 33000} for x in "AB"]
    racks = [{"name": "r0", "feeds": feeds, "redundancy": "N+N"}]
    return {"name": "small", "planes": planes, "nodes": nodes, "switches": switches, "links": links, "racks": racks}


def read(wiring: dict[str, Any]) -> Topology:
    return read_wiring(Document("small.yaml", yaml.safe_dump(wiring)))


def link(wiring: dict[str, Any], a: str) -> dict[str, Any]:
    """The link whose lower end is port `a`."""
    (found,) = [entry for entry in wiring["links"] if entry["a"] == a]
    return found


def unplug(wiring: dict[str, Any], *lower: str) -> None:
    """Takes away the links of these lower ports."""
    wiring["links"] = [entry for entry in wiring["links"] if entry["a"] not in lower]


def swap(wiring: dict[str, Any], a: str, b: str) -> None:
    """Swaps the upper ends of two links."""
    one, other = link(wiring, a), link(wiring, b)
    one["b"], other["b"] = other["b"], one["b"]
