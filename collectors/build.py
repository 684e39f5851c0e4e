"""From what a site file says to collectors that are ready to run.

Each kind of collector has a module with `build(spec, site) -> list[Collector]`, imported when a site names that kind,
so that optional libraries are needed by those alone who use them.
"""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from collectors.base import Collector
from twin.address import clean
from twin.errors import InputError
from twin.topology.model import Topology

if TYPE_CHECKING:
    from twin.site import Site

# kind of a site file (twin.sitespecs.KINDS) -> module
MODULES = {
    "host": "collectors.host",
    "infiniband": "collectors.infiniband_fabric",
    "nvml": "collectors.nvml.build",
    "gnmi": "collectors.gnmi",
    "snmp": "collectors.snmp",
    "prometheus": "collectors.prometheus.query",
    "exporter": "collectors.prometheus.scrape",
    "redfish": "collectors.redfish",
    "mqtt": "collectors.mqtt",
}


def this_host() -> str:
    """The name of this machine, without its domain."""
    return clean(platform.node().partition(".")[0] or "localhost")


def build(site: Site, specs: Iterable[Any] | None = None) -> list[Collector]:
    """The collectors of a site, or those of `specs` alone.

    Raises InputError where an address is unknown, MissingTool where a tool or an optional library is.
    """
    from twin.sitespecs import KINDS

    modules = {KINDS[kind]: module for kind, module in MODULES.items()}
    out: list[Collector] = []
    for spec in site.collectors if specs is None else specs:
        out.extend(import_module(modules[type(spec)]).build(spec, site))
    twice = [name for name, n in Counter(c.name for c in out).items() if n > 1]
    if twice:
        raise InputError(f"two collectors are called {twice[0]!r}: give one of them another name or plane")
    return out


def build_own(root: Path = Path("/sys")) -> tuple[Topology, list[Collector]]:
    """Without a site: this host's own interfaces and RDMA devices, and the wiring of one node."""
    from collectors.host import port_collectors
    from collectors.own_ports import own_ports

    host = this_host()
    own = own_ports(host, root=root)
    out = port_collectors(host, own.netdevs, own.infiniband, root=root)
    topology, gpus = _own_gpus(host, own.topology)
    return topology, out + gpus


def _own_gpus(host: str, topology: Topology) -> tuple[Topology, list[Collector]]:
    """The wiring with this host's GPUs and NVLinks, and their collector, where there is NVML."""
    from collectors.nvml import NvmlCollector, own_gpus

    found = own_gpus(host)
    if found is None:
        return topology, []
    from twin.topology.importers.hostfacts import refine
    from twin.topology.importers.sketch import Sizes

    topology = refine(topology, {host: found.facts()}, Sizes(gpu_model=found.model))
    return topology, [NvmlCollector(host, gpus=len(found.gpus), name=f"{host}:nvml")]
