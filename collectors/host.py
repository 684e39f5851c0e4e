"""The ports of one host, by its network interfaces and its RDMA devices, as a site file gives it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from collectors.base import Collector
from collectors.ethtool_stats import DriverStatistics
from collectors.infiniband_sysfs import IbPort, InfinibandCollector, list_ports
from collectors.netdev import NetdevCollector, match_names
from collectors.rdma import Port, interface_of, is_bonded
from collectors.rdma_port import TRAFFIC
from collectors.sysfs import SYS, entries
from twin.errors import InputError

if TYPE_CHECKING:
    from twin.site import Site
    from twin.sitespecs import HostSpec

_NUMBERED = re.compile(r"mlx[45]_([0-9]{1,4})")
_RDMA_NAME = re.compile(r"(?P<device>[^:/\s]+):(?P<port>[0-9]{1,3})")
_ONLY_RDMA = re.compile(r"mlx[45]_\w+|bnxt_re\w*|irdma\w*|rdmap\w+|rocep\w+")  # no interface is called so


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
    listed = list_ports(root)
    if spec.devices:
        net, rdma = _said(spec.devices, {p.device for p in listed})
        return port_collectors(host, net, rdma, root=root, every=spec.every)
    named = match_names(sorted(entries(root / "class/net") or ()), host, mine)
    rdma = _guessed(host, listed, named, mine, root)
    by_name: dict[str, str] | None = None if named or not rdma else {}  # None: also interfaces that come later
    return port_collectors(host, by_name, rdma, ports=mine, root=root, every=spec.every)


def port_collectors(
    host: str,
    net: Mapping[str, str] | None,
    rdma: Mapping[Port, str],
    *,
    ports: Collection[str] | None = None,
    drivers: DriverStatistics | None = None,
    root: Path = SYS,
    every: float = 1.0,
) -> list[Collector]:
    """The collectors of a host's interfaces and RDMA devices, each metric of a port given by one of them alone.

    net: interface to address, None to take interfaces by their names; ports: the addresses such names may mean. For a
    RoCE port the interface says whether it is up and how fast, and its traffic where the driver counts the wire: that
    has all of it, of containers and virtual machines too. The RDMA device says the rest. drivers: as for
    NetdevCollector.
    """
    drivers = drivers or (DriverStatistics() if root == SYS else None)
    out: list[Collector] = []
    if rdma:
        named = match_names(sorted(entries(root / "class/net") or ()), host, ports) if net is None else net
        elsewhere = _given_by_interfaces(named, rdma, root, drivers)
        name = f"{host}:infiniband"
        out.append(InfinibandCollector(rdma, elsewhere=elsewhere, root=root, name=name, interval=every))
    if net or net is None:
        out.append(NetdevCollector(host, net, ports=ports, drivers=drivers, root=root, name=host, interval=every))
    return out


def _given_by_interfaces(
    net: Mapping[str, str], rdma: Mapping[Port, str], root: Path, drivers: DriverStatistics | None
) -> dict[str, set[str]]:
    """Address to the metrics that its interface gives, for RoCE ports that have one here."""
    roce = {(p.device, p.port) for p in list_ports(root) if p.link_layer == "Ethernet"}
    addresses = {address for port, address in rdma.items() if port in roce}
    here = {d: a for d, a in net.items() if a in addresses and entries(root / "class/net" / d) is not None}
    counted = drivers.read(here) if drivers is not None and here else {}
    return {a: {"up", "speed_bits_per_second", *(set(counted.get(d, {})) & set(TRAFFIC))} for d, a in here.items()}


def _said(devices: Mapping[str, str], present: Collection[str]) -> tuple[dict[str, str], dict[Port, str]]:
    """What a site maps, as interfaces and as RDMA ports: `mlx5_3`, `mlx5_bond_0`, `ibp3s0:2`."""
    net: dict[str, str] = {}
    rdma: dict[Port, str] = {}
    for name, address in devices.items():
        match = _RDMA_NAME.fullmatch(name)
        if match:
            rdma[match["device"], int(match["port"])] = address
        elif name in present or _ONLY_RDMA.fullmatch(name):
            rdma[name, 1] = address
        else:
            net[name] = address
    return net, rdma


def _guessed(
    host: str, listed: Iterable[IbPort], named: Mapping[str, str], ports: Collection[str], root: Path
) -> dict[Port, str]:
    """RDMA ports to addresses: that of the interface on the same port, else by the number in the device's name.

    A bond serves storage or management as a rule, so only a site can say that one belongs to the fabric.
    """
    rdma: dict[Port, str] = {}
    for p in listed:
        if is_bonded(p.device):
            continue
        interface = interface_of(root, p.device, p.port) or _interface_on(root, p, named)
        number = _NUMBERED.fullmatch(p.device)
        guesses = [named[interface]] if interface is not None and interface in named else []
        if number and not guesses and not (named and p.link_layer == "Ethernet"):
            guesses = [f"{host}/nic{int(number[1])}/p{ordinal}" for ordinal in (p.port, p.port - 1)]
        for address in guesses:
            if address in ports and address not in rdma.values():
                rdma.setdefault((p.device, p.port), address)
    return rdma


def _interface_on(root: Path, port: IbPort, named: Iterable[str]) -> str | None:
    """The named interface whose hardware has this RDMA device, for devices of one port."""
    net = root / "class/net"
    return next((d for d in named if port.device in (entries(net / d / "device/infiniband") or ())), None)
