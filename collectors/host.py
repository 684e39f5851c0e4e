"""The ports of one host, by its network interfaces and its RDMA devices, as a site file gives it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from collectors.base import Collector
from collectors.infiniband_sysfs import InfinibandCollector, list_ports
from collectors.netdev import NetdevCollector
from twin.errors import InputError

if TYPE_CHECKING:
    from twin.site import Site
    from twin.sitespecs import HostSpec

_IB_DEVICE = re.compile(r"(?P<device>(?:mlx[45]_|ib|rocep|bnxt_re)\w*?)(?::(?P<port>\d+))?")


def build(spec: HostSpec, site: Site) -> list[Collector]:
    """One collector or two. Raises InputError where the host or a port is not in the wiring."""
    from collectors.build import this_host

    topo = site.topology
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
