"""What this host has, for watching it without a site file: its interfaces, its RDMA devices, and a small wiring."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from pathlib import Path

from collectors.bond import is_bond, members
from collectors.infiniband_sysfs import IbPort, list_ports
from collectors.netdev import match_names
from collectors.netdev import speed as link_speed
from collectors.rdma import Port, interface_of, is_bonded
from collectors.sysfs import SYS, entries, read, whole
from twin.address import clean, natural
from twin.topology.builder import Builder
from twin.topology.model import Topology

_ETHERNET = "1"  # `type`: ARPHRD_ETHER of if_arp.h. 32 is IP over InfiniBand, whose link its RDMA device shows
_SOFTWARE = ("docker", "virbr", "br-", "cni", "flannel", "ifb", "tun", "tap", "vxlan")
_REPRESENTOR = re.compile(r"(?:c[0-9]+)?pf[0-9]+[vs]f[0-9]+")  # `phys_port_name` of a virtual function's end
_NOTE = (
    "no site file: the NICs are this host's own in the order of their device names; which of them belong to the "
    "GPU fabric, and which GPU uses which, is a guess"
)


@dataclass(frozen=True, slots=True)
class OwnPorts:
    """Maps for NetdevCollector and InfinibandCollector, and a topology of one node with those ports."""

    netdevs: dict[str, str]
    infiniband: dict[Port, str]
    topology: Topology


def own_ports(host: str, *, root: Path = SYS, gpus: int = 0, gpu_model: str = "unknown") -> OwnPorts:
    """The ports of this host. It reads files that may block: not for the event loop's thread.

    Interfaces named like `rail0p1` keep that place and then stand alone, the rest being management. Without
    such names RDMA devices come first, since they carry the fabric, then other physical interfaces; each is
    `HOST/nicN/p0`. An RDMA device and the interface on the same hardware are one port. Bonds are for storage or
    management and left out, unless there is no other RDMA device: then each is a port, and its members are none.
    """
    host = clean(host)
    interfaces = physical_interfaces(root)
    rdma, named_by_rdma = _rdma_ports(root)
    bonds = [d for d in named_by_rdma if is_bond(root / "class/net" / d)]
    joined = {member.name for bond in bonds for member in members(root / "class/net" / bond)}
    interfaces = [d for d in interfaces if d not in joined] + bonds
    shared = {d: port for d in interfaces if (port := named_by_rdma.get(d) or _rdma_port(root, d)) in rdma and port}
    netdevs = match_names(interfaces, host)
    named = bool(netdevs)
    infiniband: dict[Port, str] = {}
    for device, address in netdevs.items():
        if device in shared:
            infiniband.setdefault(shared[device], address)
    numbers = itertools.count(1 + max((_nic(address) for address in netdevs.values()), default=-1))
    for port, layer in rdma.items():
        if port not in infiniband and (layer == "InfiniBand" or not named):
            infiniband[port] = f"{host}/nic{next(numbers)}/p0"
    for device in () if named else interfaces:
        if device not in shared:
            netdevs[device] = f"{host}/nic{next(numbers)}/p0"
        elif (address := infiniband[shared[device]]) not in netdevs.values():  # the first of two on one port
            netdevs[device] = address
    return OwnPorts(netdevs, infiniband, _topology(host, netdevs, infiniband, gpus, gpu_model))


def physical_interfaces(root: Path = SYS) -> list[str]:
    """Ethernet interfaces that are hardware, in natural order: those of bonds too, no bridge, no virtual function.

    Where there is none (a container, a network namespace), those with a speed, then veth pairs, then any.
    """
    classes: dict[int, list[str]] = {}
    for device in sorted(entries(root / "class" / "net") or (), key=natural):
        rank = _rank(root / "class" / "net" / device)
        if rank is not None:
            classes.setdefault(rank, []).append(device)
    return classes[min(classes)] if classes else sorted(entries(root / "class" / "net") or (), key=natural)


def _rank(interface: Path) -> int | None:
    """0 hardware, 1 has a speed, 2 has a speed and another interface below or opposite it, None to be left out."""
    inside = set(entries(interface) or ())
    if read(interface / "type") not in (_ETHERNET, None) or inside & {"bridge", "bonding"}:
        return None
    if interface.name == "lo" or interface.name.startswith(_SOFTWARE):
        return None
    if (device := entries(interface / "device")) is not None:
        part = "physfn" in device or _REPRESENTOR.fullmatch(read(interface / "phys_port_name") or "")
        return None if part else 0
    if link_speed(read(interface / "speed")) is None:
        return None
    paired = interface.name.startswith("veth") or read(interface / "iflink") != read(interface / "ifindex")
    return 2 if paired else 1


def _rdma_ports(root: Path) -> tuple[dict[Port, str | None], dict[str, Port]]:
    """The RDMA ports that count, with their link layers, and which of them the interfaces that they name are.

    A RoCE device may show more ports than it has wires (a ConnectX-8 of four planes: 12, scitix/sichek pull request
    98). So where it names an interface for some of them, only those are ports.
    """
    listed = list_ports(root)
    listed = [p for p in listed if not is_bonded(p.device)] or listed
    interfaces = {(p.device, p.port): interface_of(root, p.device, p.port) for p in listed}
    naming = {device for (device, _), interface in interfaces.items() if interface}

    def counts(p: IbPort) -> bool:
        return p.link_layer != "Ethernet" or p.device not in naming or bool(interfaces[p.device, p.port])

    rdma = {(p.device, p.port): p.link_layer for p in listed if counts(p)}
    return rdma, {interface: port for port, interface in interfaces.items() if interface and port in rdma}


def _rdma_port(root: Path, device: str) -> Port | None:
    """The RDMA device and port on the same hardware. `dev_port` counts from 0, RDMA ports from 1."""
    interface = root / "class/net" / device
    devices = sorted(entries(interface / "device" / "infiniband") or (), key=natural)
    return (devices[0], (whole(read(interface / "dev_port")) or 0) + 1) if devices else None


def _nic(address: str) -> int:
    return int(address.split("/")[1].removeprefix("nic"))


def _topology(host: str, netdevs: dict[str, str], infiniband: dict[Port, str], gpus: int, gpu_model: str) -> Topology:
    devices: dict[str, list[str]] = {}
    for (device, port), address in infiniband.items():
        devices.setdefault(address, []).append(f"{device}/{port}")
    for device, address in netdevs.items():
        devices.setdefault(address, []).append(device)
    ports = [int(address.rpartition("/p")[2]) for address in devices]
    builder = Builder(host, planes=())
    builder.node(
        host,
        gpus=gpus,
        gpu_model=gpu_model,
        nics=sorted({_nic(address) for address in devices}),
        first_port=min(ports, default=0),
        ports_per_nic=max(ports, default=0) - min(ports, default=0) + 1,
    )
    builder.labels = {address: " ".join(names) for address, names in devices.items()}
    builder.notes.append(_NOTE)
    return builder.build()
