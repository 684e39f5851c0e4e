"""A demo story for any preset: the faults of the shipped demo, on parts that the fabric has."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from twin.simulator.scenario import Fault, Scenario
from twin.topology.model import HOST_LEAF, LEAF_SPINE, Topology
from twin.topology.presets import preset


def story_for(name: str, sizes: Mapping[str, int]) -> Scenario:
    """A plane (or, in a fabric of one plane, its first leaf) fails, another leaf dies, links run slow and drop."""
    topo = preset(name, **sizes)
    first, faults = _switched(topo) if len(topo.switches.name) else _direct(topo)
    return Scenario(
        name="demo",
        about=f"{first} fails and recovers, {'a leaf dies, ' if len(faults) > 3 else ''}links run slow and drop",
        preset=name,
        parameters=sizes,
        duration=75.0,
        faults=tuple(faults),
    )


def _switched(topo: Topology) -> tuple[str, list[Fault]]:
    leaves = np.flatnonzero(topo.switches.tier == 0)
    host = np.flatnonzero(topo.links.tier == HOST_LEAF)
    uplinks = np.flatnonzero(topo.links.tier == LEAF_SPINE)
    first = f"plane:{topo.planes[-1]}" if len(topo.planes) > 1 else topo.switches.name[leaves[0]]
    ports = topo.port_names
    faults = [
        Fault("fail", first, at=10, until=26),
        Fault("degrade", ports[topo.links.a[host[len(host) // 3]]], at=40, until=60, speed_fraction=0.5),
    ]
    in_first_plane = leaves[topo.switches.plane[leaves] == 0]
    if len(in_first_plane) > 1:
        faults.append(Fault("fail", topo.switches.name[in_first_plane[-1]], at=34, until=50))
    dropped = (
        topo.link_name(int(uplinks[len(uplinks) // 5])) if len(uplinks) else ports[topo.links.a[host[len(host) // 5]]]
    )
    faults.append(Fault("fail", dropped, at=56, until=66))
    return first, faults


def _direct(topo: Topology) -> tuple[str, list[Fault]]:
    """Nodes joined without switches: a cable fails, another runs slow, later that one drops."""
    first, last = topo.link_name(0), topo.link_name(len(topo.links.a) - 1)
    return first, [
        Fault("fail", first, at=10, until=26),
        Fault("degrade", last, at=34, until=48, speed_fraction=0.5),
        Fault("fail", last, at=56, until=66),
    ]
