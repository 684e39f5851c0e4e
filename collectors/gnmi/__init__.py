"""Switches by gNMI Subscribe, in the OpenConfig model of interfaces: a collector a switch."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from collectors.base import Collector
from twin.errors import InputError, MissingLibrary

if TYPE_CHECKING:
    from twin.site import Site
    from twin.sitespecs import GnmiSpec

_ADDRESS = re.compile(r"(?:[^\s:/\[\]]+|\[[0-9a-fA-F:.]+\]):(?P<port>[0-9]{1,5})")


def build(spec: GnmiSpec, site: Site) -> list[Collector]:
    """One collector a target, so that each switch fails, waits and recovers by itself.

    Raises InputError where a target is not in the wiring or an option cannot be used, MissingLibrary without grpcio.
    """
    problems = []
    from collectors.portnames import PortNames

    topo = site.topology
    ports = PortNames(topo, spec.ports)
    for device, address in spec.targets.items():
        if not ports.has(device):
            problems.append(f"collectors: gnmi: {device!r} is no switch in the wiring of {topo.name}")
        match = _ADDRESS.fullmatch(address)
        if match is None or not 0 < int(match["port"]) < 65536:
            problems.append(f"collectors: gnmi: {device}: {address!r}: expected host:port, such as 10.0.0.1:57400")
    if problems:
        raise InputError(problems)
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # its core would write over the screen; read when it is loaded
    try:
        from collectors.gnmi.access import access_of
        from collectors.gnmi.collector import GnmiCollector
    except ImportError as problem:
        library = "protobuf" if "google" in str(problem.name) else "grpcio"
        raise MissingLibrary(library, "gnmi", "to subscribe to switches by gNMI") from problem
    access = access_of(spec, site.directory)
    cabled = [name for name, link in zip(topo.port_names, topo.ports.link.tolist(), strict=True) if link >= 0]
    return [
        GnmiCollector(
            device, address, ports, access=access, expected=[p for p in cabled if p.startswith(f"{device}/")],
            interval=spec.every, deadline=spec.deadline,
        )
        for device, address in spec.targets.items()
    ]  # fmt: skip
