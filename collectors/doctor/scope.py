"""What each entry of a site file should read of the wiring."""

from __future__ import annotations

from typing import Any

import numpy as np

from collectors.doctor.coverage import KINDS, Bool, cabled
from twin.site import Site
from twin.sitespecs import HostSpec, InfinibandSpec, NvmlSpec
from twin.topology.model import Topology

# kinds of entities that a kind of collector is for; of the others nobody can say beforehand
_MEANT: dict[str, tuple[str, ...]] = {
    "host": ("port",), "infiniband": ("port",), "gnmi": ("port",), "snmp": ("port",), "nvml": ("gpu", "nvlink"),
    "redfish": ("psu",),
}  # fmt: skip


def scope(entry: str, spec: Any, source: str, site: Site) -> dict[str, Bool | None]:
    """Kind -> bool[rows] that a source should read; None: of this kind whatever it can.

    A kind that an entry is not known to be for (`is_meant`) counts only once something of it is read. source: its
    name, which tells the target where an entry has several.
    """
    topo, owners = site.topology, _owners(spec, source)
    meant = _MEANT.get(entry)
    if meant is None and owners is None:
        return dict.fromkeys(KINDS)
    out: dict[str, Bool | None] = {}
    for kind in meant or KINDS:
        rows = _owned(topo, kind, owners) if owners is not None else np.ones(len(topo.names(kind)), bool)
        if kind == "port":
            rows &= cabled(topo)
            if isinstance(spec, InfinibandSpec):
                rows &= topo.ports.plane == (
                    topo.planes.index(spec.plane) if spec.plane else 0 if topo.planes else -1
                )
            if isinstance(spec, HostSpec) and spec.devices:
                given = set(spec.devices.values())
                rows &= np.fromiter((n in given for n in topo.port_names), bool, len(topo.port_names))
        out[kind] = rows
    return out


def is_meant(entry: str) -> bool:
    """Whether it is known beforehand which kinds of entities a kind of collector reads."""
    return entry in _MEANT


def _owners(spec: Any, source: str) -> set[str] | None:
    """The devices whose entities a source reads; None: not told by device."""
    from collectors.build import this_host

    if isinstance(spec, HostSpec | NvmlSpec):
        return {spec.name or this_host()}
    targets = set(getattr(spec, "targets", ()))
    named = targets & {source, *source.split(":")}
    return named or targets or None


def _owned(topo: Topology, kind: str, owners: set[str]) -> Bool:
    names = topo.names(kind)
    return np.fromiter((n.partition("/")[0] in owners for n in names), bool, len(names))
