"""Network interfaces of this host, from /sys/class/net, and what their drivers count besides.

Fields and their meaning: Linux Documentation/ABI/testing/sysfs-class-net and sysfs-class-net-statistics. The metric
`tx_discards` is the file `tx_dropped`, `rx_errors` is `rx_errors`: what driver and device dropped or could not read.
Drops of a queueing discipline (`tc -s qdisc`) are in neither, and no fault of the port: such queues work by them.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from collectors.base import Clock, CollectorError, Sample, Worker, frame_time
from collectors.bond import bond_speed, is_bond, members
from collectors.ethtool_stats import DriverStatistics
from collectors.sysfs import LOOK_AGAIN, SYS, Files, Value, check_addresses, entries, port_frame, whole

TRAFFIC = ("tx_bytes", "rx_bytes", "tx_packets", "rx_packets")
LINK = ("up", "speed_bits_per_second", "tx_discards", "rx_errors", "link_downed")
_STATISTICS = {**{m: m for m in TRAFFIC}, "tx_discards": "tx_dropped", "rx_errors": "rx_errors"}
_WITH_RDMA = frozenset(("ecn_marked_packets",))  # what the RDMA device says of its port, and better

# operstate values of RFC 2863 in which nothing passes; `unknown` (lo, many drivers) says nothing
_DOWN = frozenset(("down", "lowerlayerdown", "dormant", "notpresent", "testing"))
_SPEED_LIMIT = 2**31 - 1  # Mbit/s; -1 (unknown) has been printed as an unsigned number as well
# `nic0p1` is ours; `rail0p1` and `eth_rail0p1` come from the network operator's naming templates
_NAME = re.compile(r"(?:nic|(?P<rail>(?:eth_)?rail))(?P<nic>[0-9]{1,4})p(?P<port>[0-9]{1,4})")


def is_up(operstate: str | None, carrier: str | None) -> int | None:
    """1 where both say so or only one of them says anything, 0 where either says down, None where neither speaks."""
    if operstate in _DOWN or carrier == "0":
        return 0
    return 1 if operstate == "up" or carrier == "1" else None


def speed(text: str | None) -> int | None:
    """Bits/s from the `speed` file (Mbit/s). -1 and 0 stand for unknown."""
    megabits = whole(text)
    return megabits * 1_000_000 if megabits is not None and 0 < megabits < _SPEED_LIMIT else None


def carries_rdma(interface: Path) -> bool:
    """True where an RDMA device shares the hardware. A bond's (`mlx5_bond_0`) is one of the bond, not of a member."""
    if is_bond(interface):
        return any(entries(member / "device" / "infiniband") for member in members(interface))
    return any("bond" not in name for name in entries(interface / "device" / "infiniband") or ())


def read_interface(files: Files) -> dict[str, Value]:
    """What the files of one interface say, by metric of a port; all None where there is no interface."""
    up = is_up(files.read("operstate"), files.read("carrier"))
    downs = files.number("carrier_down_count")
    if downs is None:  # before kernel 4.16 only all changes are counted: every second one is a down
        changes = files.number("carrier_changes")
        downs = None if changes is None else changes // 2
    values: dict[str, Value] = {m: files.number(f"statistics/{f}") for m, f in _STATISTICS.items()}
    values["up"] = up
    values["speed_bits_per_second"] = speed(files.read("speed")) if up else None
    values["link_downed"] = downs
    return values


def match_names(devices: Iterable[str], host: str, ports: Collection[str] | None = None) -> dict[str, str]:
    """Device to address for names like `nic0p1`, `rail0p1`: the NIC and its port.

    `ports`: the addresses that the site gives this host; a name that fits none of them is left out. Some
    kits count rails and planes from 1, ours from 0: `rail` names are shifted when only that fits the site.
    """
    found = {d: m for d in devices if (m := _NAME.fullmatch(d)) is not None}

    def addresses(base: int) -> dict[str, str]:
        shift = {d: base if m["rail"] else 0 for d, m in found.items()}
        return {d: f"{host}/nic{int(m['nic']) - shift[d]}/p{int(m['port']) - shift[d]}" for d, m in found.items()}

    mapped = addresses(0)
    if ports is not None and not set(mapped.values()) <= set(ports):
        from_one = addresses(1)
        if set(from_one.values()) <= set(ports):
            mapped = from_one
    taken: dict[str, str] = {}  # the first of two devices that mean the same port
    for device, address in mapped.items():
        if ports is None or address in ports:
            taken.setdefault(address, device)
    return {device: address for address, device in taken.items()}


class _Interface:
    """One interface: its open files, and what was learnt of it."""

    def __init__(self, path: Path) -> None:
        self.files = Files(path)
        self.shared = self.bond = False
        self._look = 0  # at which reading to see again what it is: an RDMA driver may come later than the interface
        self.metrics: tuple[str, ...] = (*LINK, *TRAFFIC)

    def read(self, counted: Mapping[str, Value]) -> dict[str, Value]:
        """Its values, empty where it is gone. counted: by its driver, which the kernel's files give way to."""
        if not self.files.present():
            return {}
        if self.files.readings >= self._look:
            self._look = self.files.readings + LOOK_AGAIN
            self.shared, self.bond = carries_rdma(self.files.directory), is_bond(self.files.directory)
        values = read_interface(self.files)
        if self.bond and values["up"]:
            values["speed_bits_per_second"] = bond_speed(self.files.directory) or values["speed_bits_per_second"]
        if self.shared:  # the kernel's statistics leave RDMA out
            for metric in TRAFFIC:
                del values[metric]
        dropped = values["tx_discards"]
        values.update(counted)
        if "tx_discards" in counted:  # the device's drops are besides those of the driver's queues
            device = counted["tx_discards"]
            values["tx_discards"] = None if device is None or dropped is None else device + dropped
        if self.shared:
            values = {metric: value for metric, value in values.items() if metric not in _WITH_RDMA}
        self.metrics = tuple(values)
        return values


class NetdevCollector:
    """Ports of this host as its network interfaces show them; one pass over the files a sample.

    devices: interface to port address; without it interfaces are taken by their names (`match_names`), also those
    that appear later. Traffic is what the device counts on the wire where its driver tells (`ethtool_stats`), which
    has RDMA in it; else the kernel's count, and nothing for interfaces that an RDMA device shares: the kernel leaves
    RDMA out (NVIDIA mlx5 driver, Documentation/networking/…/mlx5/counters.rst), so a busy fabric port would look
    idle; InfinibandCollector has that traffic. drivers: where driver statistics come from; by default the kernel's
    own interfaces, asked where `root` is its own /sys and so names the same interfaces.
    """

    def __init__(
        self,
        host: str,
        devices: Mapping[str, str] | None = None,
        *,
        ports: Collection[str] | None = None,
        drivers: DriverStatistics | None = None,
        root: Path = SYS,
        name: str = "netdev",
        interval: float = 1.0,
        deadline: float = 5.0,
        clock: Clock = time.time_ns,
    ) -> None:
        """ports: what the site gives this host, to check names against. Raises InputError for a wrong map."""
        check_addresses("network interfaces", (devices or {}).values())
        self.name, self.interval, self.deadline = name, interval, deadline
        self._host, self._ports, self._clock = host, ports, clock
        self._class = root / "class" / "net"
        self._by_name = devices is None
        self._seen: set[str] = set()
        self._devices = dict(devices or {})
        self._interfaces: dict[str, _Interface] = {}
        self._drivers = drivers or (DriverStatistics() if root == SYS else None)
        self._worker = Worker(str(self._class))

    async def collect(self) -> Sample:
        """One frame for each set of metrics. An interface that is gone is unknown, with a warning."""
        return await self._worker.run(self._read)

    async def close(self) -> None:
        with contextlib.suppress(CollectorError):  # a read that is stuck keeps its files until it comes back
            await self._worker.run(self._close_files)

    def _close_files(self) -> None:
        for interface in self._interfaces.values():
            interface.files.close()
        if self._drivers is not None:
            self._drivers.close()

    def _read(self) -> Sample:
        present = entries(self._class)
        if present is None:
            raise CollectorError(f"{self._class}: no such directory; network interfaces are read on Linux only")
        if self._by_name:
            self._find(present)
        if not self._devices:
            raise CollectorError(
                f"{self._class}: no interface of {self._host} is named like nic0p1 or rail0p1; "
                "map its interfaces to ports in the site file"
            )
        counted = self._drivers.read(self._devices) if self._drivers is not None else {}
        frames: dict[tuple[str, ...], dict[str, dict[str, Value]]] = {}
        warnings = []
        for device, address in self._devices.items():
            interface = self._interfaces.get(device)
            if interface is None:
                interface = self._interfaces[device] = _Interface(self._class / device)
            values = interface.read(counted.get(device, {}))
            if not values:
                warnings.append(f"{address}: no interface {device}")
            frames.setdefault(interface.metrics, {})[address] = values
        now = frame_time(self._clock)
        return Sample([port_frame(now, self.name, metrics, rows) for metrics, rows in frames.items()], warnings)

    def _find(self, present: Iterable[str]) -> None:
        """Maps every interface that was ever seen with a fitting name; one that is gone keeps its place."""
        fitting = {device for device in present if _NAME.fullmatch(device)}
        if not fitting <= self._seen:
            self._seen |= fitting
            self._devices = match_names(sorted(self._seen), self._host, self._ports)
