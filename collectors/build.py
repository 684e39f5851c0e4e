"""From what a site file says to collectors that are ready to run."""

from __future__ import annotations

import platform
import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from collectors.base import Collector
from twin.address import clean
from twin.errors import InputError
from twin.topology.model import Topology

if TYPE_CHECKING:
    from twin.site import HostSpec, InfinibandSpec, NvmlSpec, Site

_IB_DEVICE = re.compile(r"(?P<device>(?:mlx[45]_|ib|rocep|bnxt_re)\w*?)(?::(?P<port>\d+))?")


def this_host() -> str:
    """The name of this machine, without its domain."""
    return clean(platform.node().partition(".")[0] or "localhost")


def build(site: Site) -> list[Collector]:
    """The collectors of a site. Raises InputError where an address is unknown, MissingTool where a tool is."""
    from twin.site import HostSpec, NvmlSpec

    out: list[Collector] = []
    for spec in site.collectors:
        if isinstance(spec, HostSpec):
            out.extend(_host(spec, site.topology))
        elif isinstance(spec, NvmlSpec):
            out.append(_nvml(spec, site.topology))
        else:
            out.append(_fabric(spec, site.topology))
    twice = [name for name, n in Counter(c.name for c in out).items() if n > 1]
    if twice:
        raise InputError(f"two collectors are called {twice[0]!r}: give one of them another name or plane")
    return out


def build_own(root: Path = Path("/sys")) -> tuple[Topology, list[Collector]]:
    """Without a site: this host's own interfaces and RDMA devices, and the wiring of one node."""
    from collectors.infiniband_sysfs import InfinibandCollector
    from collectors.netdev import NetdevCollector
    from collectors.own_ports import own_ports

    host = this_host()
    own = own_ports(host, root=root)
    out: list[Collector] = []
    if own.netdevs:
        out.append(NetdevCollector(host, own.netdevs, root=root, name=host))
    if own.infiniband:
        out.append(InfinibandCollector(own.infiniband, root=root, name=f"{host}:infiniband"))
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


def _nvml(spec: NvmlSpec, topo: Topology) -> Collector:
    from collectors.nvml import FASTEST_S, NvmlCollector

    host = spec.name or this_host()
    links = dict(zip(topo.gpu_names, topo.nvlinks_per_gpu.tolist(), strict=True))
    mine = {gpu: count for gpu, count in links.items() if gpu.startswith(host + "/")}
    if not mine:
        raise InputError(f"collectors: nvml: host {host!r} has no GPUs in the wiring of {topo.name}; set its name")
    if spec.every < FASTEST_S:
        raise InputError(
            f"collectors: nvml: every {spec.every:g} s: expected {FASTEST_S:g} s or more, since a call holds a lock "
            "of the driver that jobs need too"
        )
    unknown = [a for a in spec.gpus.values() if a not in mine]
    if unknown:
        raise InputError(f"collectors: nvml: {unknown[0]!r} is no GPU of {host} in the wiring of {topo.name}")
    return NvmlCollector(
        host, addresses=spec.gpus, gpus=len(mine), links=mine, name=f"{host}:nvml",
        interval=spec.every, deadline=spec.deadline,
    )  # fmt: skip


def _host(spec: HostSpec, topo: Topology) -> list[Collector]:
    from collectors.infiniband_sysfs import InfinibandCollector, list_ports
    from collectors.netdev import NetdevCollector

    host, root = spec.name or this_host(), Path(spec.sys)
    known = topo.rows("port")
    mine = [p for p in known if p.startswith(host + "/")]
    if not mine and not spec.devices:
        raise InputError(
            f"collectors: host {host!r} has no ports in the wiring of {topo.name}; set its name, or devices"
        )
    unknown = [a for a in spec.devices.values() if a not in known]
    if unknown:
        raise InputError(f"collectors: host {host}: {unknown[0]!r} is no port in the wiring of {topo.name}")
    rdma: dict[tuple[str, int], str] = {}
    net: dict[str, str] = {}
    present = {p.device for p in list_ports(root)}
    for device, address in spec.devices.items():
        match = _IB_DEVICE.fullmatch(device)
        if match and (match["device"] in present or match["port"]):
            rdma[match["device"], int(match["port"] or 1)] = address
        else:
            net[device] = address
    if not spec.devices:
        for p in list_ports(root):
            number = re.fullmatch(r"mlx[45]_(\d+)", p.device)
            for ordinal in (p.port, p.port - 1):
                address = f"{host}/nic{number[1] if number else '?'}/p{ordinal}"
                if address in known and address not in rdma.values():
                    rdma.setdefault((p.device, p.port), address)
    out: list[Collector] = []
    if rdma:
        out.append(InfinibandCollector(rdma, root=root, name=f"{host}:infiniband", interval=spec.every))
    if net or not rdma:
        chosen = net or None
        out.append(NetdevCollector(host, chosen, ports=mine, root=root, name=host, interval=spec.every))
    return out


def _fabric(spec: InfinibandSpec, topo: Topology) -> Collector:
    from collectors.infiniband_fabric import InfinibandFabricCollector

    plane = spec.plane
    if plane is not None and plane not in topo.planes:
        raise InputError(
            f"collectors: infiniband: {topo.name} has no plane {plane!r}; it has {', '.join(topo.planes)}"
        )
    if plane is None and len(topo.planes) > 1:
        raise InputError(
            f"collectors: infiniband: {topo.name} has planes {', '.join(topo.planes)}; say which one this fabric is "
            "(plane: A), one collector a plane"
        )
    row = topo.planes.index(plane) if plane is not None else (0 if topo.planes else -1)
    mine = [name for name, p in zip(topo.port_names, topo.ports.plane.tolist(), strict=True) if p == row]
    name = f"infiniband:{plane}" if plane is not None else "infiniband"
    return InfinibandFabricCollector(
        name=name, expected=mine, interval=spec.every, discover_every=spec.discover_every,
        timeout=spec.timeout, ca=spec.ca, port=spec.port, env=spec.env,
    )  # fmt: skip
