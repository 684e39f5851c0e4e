"""InfiniBand and RoCE ports of this host, from /sys/class/infiniband."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from collectors.base import Clock, CollectorError, Sample, Worker, frame_time
from collectors.rdma import Port, ask_kernel, find_planes, interface_of, is_bonded, ports_of
from collectors.rdma_port import METRICS, add_bond, add_planes, read_port
from collectors.sysfs import SYS, Files, Value, check_addresses, entries, port_frame, read
from twin.address import natural


@dataclass(frozen=True, slots=True)
class IbPort:
    """One port of one device. link_layer: `InfiniBand`, `Ethernet`, or what else the kernel says."""

    device: str
    port: int
    link_layer: str | None


def planes_of(root: Path) -> dict[Port, tuple[Port, ...]]:
    """The planes of every port that has some. The kernel is asked only about its own tree, not about a copy."""
    return find_planes(root, ask_kernel() if root == SYS and entries(root / "class/infiniband") else None)


def list_ports(root: Path = SYS) -> list[IbPort]:
    """Every port of every RDMA device, in natural order; empty where no driver is loaded.

    A device that only shows the planes of another one (`smi1`) has no port of its own.
    """
    planes = {device for mine in planes_of(root).values() for device, _ in mine}
    devices = root / "class/infiniband"
    return [
        IbPort(device, port, read(devices / device / "ports" / str(port) / "link_layer"))
        for device in sorted(entries(devices) or (), key=natural)
        if device not in planes
        for port in ports_of(root, device)
    ]


@dataclass(slots=True)
class _Port:
    """What is read for one address. layer: as last told, so that a bad read does not change the columns."""

    device: str
    number: int
    files: Files
    left_out: frozenset[str]
    layer: str = "InfiniBand"
    planes: tuple[Files, ...] = ()

    def metrics(self) -> tuple[str, ...]:
        return tuple(metric for metric in METRICS[self.layer] if metric not in self.left_out)


class InfinibandCollector:
    """Ports of this host as its RDMA devices show them; one pass over the files a sample.

    ports: (device, port number) to port address. Only what is mapped is read: a host has RDMA devices for
    storage and management (`mlx5_bond_0`) that are no part of the fabric. For RoCE the traffic is RDMA alone.
    elsewhere: address to the metrics that another collector of this host gives of it. A port of several planes is
    up with the speed of those that are active (`rdma_port.add_planes`), a bond with that of its active members.
    """

    def __init__(
        self,
        ports: Mapping[Port, str],
        *,
        elsewhere: Mapping[str, Collection[str]] | None = None,
        root: Path = SYS,
        name: str = "infiniband",
        interval: float = 1.0,
        deadline: float = 5.0,
        clock: Clock = time.time_ns,
    ) -> None:
        """Raises InputError for a wrong map."""
        check_addresses("InfiniBand devices", ports.values())
        self.name, self.interval, self.deadline = name, interval, deadline
        self._root, self._clock = root, clock
        self._class = root / "class/infiniband"
        self._ports = {
            address: _Port(device, number, self._files(device, number), frozenset((elsewhere or {}).get(address, ())))
            for (device, number), address in ports.items()
        }
        self._devices: frozenset[str] = frozenset()
        self._worker = Worker(str(self._class))

    async def collect(self) -> Sample:
        """One frame for each set of metrics. A port that is gone is unknown, with a warning."""
        return await self._worker.run(self._read)

    async def close(self) -> None:
        with contextlib.suppress(CollectorError):  # a read that is stuck keeps its files until it comes back
            await self._worker.run(self._close_files)

    def _close_files(self) -> None:
        for port in self._ports.values():
            for files in (port.files, *port.planes):
                files.close()

    def _files(self, device: str, number: int) -> Files:
        return Files(self._class / device / "ports" / str(number))

    def _read(self) -> Sample:
        present = entries(self._class)
        if present is None:
            raise CollectorError(f"{self._class}: no such directory; no RDMA driver is loaded on this host")
        if not self._ports:
            raise CollectorError(f"{self._class}: no device is mapped to a port; map devices in the site file")
        if self._devices != frozenset(present):
            self._devices = frozenset(present)
            self._find_planes()
        frames: dict[tuple[str, ...], dict[str, dict[str, Value]]] = {}
        warnings: list[str] = []
        for address, port in self._ports.items():
            values = self._values(address, port, warnings)
            frames.setdefault(port.metrics(), {})[address] = values
        now = frame_time(self._clock)
        return Sample([port_frame(now, self.name, metrics, rows) for metrics, rows in frames.items()], warnings)

    def _find_planes(self) -> None:
        """Notes which planes each port has. Planes that were once seen and are gone are missed, not forgotten."""
        found = planes_of(self._root)
        for port in self._ports.values():
            if planes := found.get((port.device, port.number)):
                port.planes = tuple(self._files(device, number) for device, number in planes)

    def _values(self, address: str, port: _Port, warnings: list[str]) -> dict[str, Value]:
        if not port.files.present():
            warnings.append(f"{address}: no device {port.device} with a port {port.number}")
            return {}
        layer = port.files.read("link_layer")
        if layer in METRICS:
            port.layer = layer
        values = read_port(port.files, port.layer)
        if port.planes:
            if lost := [plane.directory for plane in port.planes if not plane.present()]:
                warnings.append(f"{address}: {lost[0]} is gone, which shows a plane of {port.device}")
            add_planes(values, port.planes)
        if is_bonded(port.device) and (interface := interface_of(self._root, port.device, port.number)):
            add_bond(values, self._root / "class/net" / interface)
        return values
