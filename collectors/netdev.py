"""Network interfaces of this host, from /sys/class/net.

Fields and their meaning: Linux Documentation/ABI/testing/sysfs-class-net and sysfs-class-net-statistics.
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from collectors.base import Clock, CollectorError, Sample, Worker, frame_time
from collectors.sysfs import Value, check_addresses, entries, port_frame, read, whole

TRAFFIC = ("tx_bytes", "rx_bytes", "tx_packets", "rx_packets")
LINK = ("up", "speed_bits_per_second", "tx_discards", "rx_errors", "link_downed")
_STATISTICS = {**{m: m for m in TRAFFIC}, "tx_discards": "tx_dropped", "rx_errors": "rx_errors"}

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
    """True where an RDMA device shares the hardware. A bond's (`mlx5_bond_0`) is not one of this port alone."""
    return any("bond" not in name for name in entries(interface / "device" / "infiniband") or ())


def read_interface(interface: Path) -> dict[str, Value]:
    """What one interface says, by metric of a port; empty for an interface that is not there."""
    if entries(interface) is None:
        return {}
    up = is_up(read(interface / "operstate"), read(interface / "carrier"))
    downs = whole(read(interface / "carrier_down_count"))
    if downs is None:  # before kernel 4.16 only all changes are counted: every second one is a down
        changes = whole(read(interface / "carrier_changes"))
        downs = None if changes is None else changes // 2
    values: dict[str, Value] = {m: whole(read(interface / "statistics" / f)) for m, f in _STATISTICS.items()}
    values["up"] = up
    values["speed_bits_per_second"] = speed(read(interface / "speed")) if up else None
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


class NetdevCollector:
    """Ports of this host as its network interfaces show them; one pass over the files a sample.

    devices: interface to port address; without it interfaces are taken by their names (`match_names`),
    also those that appear later. Interfaces that an RDMA device shares give no traffic columns: the
    kernel's statistics leave RDMA out (NVIDIA mlx5 driver, Documentation/networking/…/mlx5/counters.rst),
    so a busy fabric port would look idle; InfinibandCollector has that traffic.
    """

    def __init__(
        self,
        host: str,
        devices: Mapping[str, str] | None = None,
        *,
        ports: Collection[str] | None = None,
        root: Path = Path("/sys"),
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
        self._rdma: dict[str, bool] = {}
        self._worker = Worker(str(self._class))

    async def collect(self) -> Sample:
        """One frame or two (with and without traffic). An interface that is gone is unknown, with a warning."""
        return await self._worker.run(self._read)

    async def close(self) -> None:
        """Nothing is kept open between samples."""

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
        plain: dict[str, dict[str, Value]] = {}
        shared: dict[str, dict[str, Value]] = {}
        warnings = []
        for device, address in self._devices.items():
            values = read_interface(self._class / device)
            if values:
                self._rdma[device] = carries_rdma(self._class / device)
            else:
                warnings.append(f"{address}: no interface {device}")
            (shared if self._rdma.get(device) else plain)[address] = values
        now = frame_time(self._clock)
        frames = [port_frame(now, self.name, (*LINK, *TRAFFIC), plain)] if plain else []
        if shared:
            frames.append(port_frame(now, self.name, LINK, shared))
        return Sample(frames, warnings)

    def _find(self, present: Iterable[str]) -> None:
        """Maps every interface that was ever seen with a fitting name; one that is gone keeps its place."""
        fitting = {device for device in present if _NAME.fullmatch(device)}
        if not fitting <= self._seen:
            self._seen |= fitting
            self._devices = match_names(sorted(self._seen), self._host, self._ports)
