"""InfiniBand and RoCE ports of this host, from /sys/class/infiniband.

Fields: Linux Documentation/ABI/stable/sysfs-class-infiniband; `hw_counters` of mlx5: its counters.c and
NVIDIA's "Understanding mlx5 Linux counters and status parameters".
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from collectors.base import Clock, CollectorError, Sample, Worker, frame_time
from collectors.sysfs import Value, check_addresses, entries, port_frame, read, scaled, whole
from twin.address import natural

WORD = 4  # port_xmit_data and port_rcv_data count words of 4 bytes (InfiniBand specification, PortCounters)

# metric -> file below ports/N and factor
_ANY_LINK: dict[str, tuple[str, int]] = {
    "tx_bytes": ("counters/port_xmit_data", WORD),
    "rx_bytes": ("counters/port_rcv_data", WORD),
    "tx_packets": ("counters/port_xmit_packets", 1),
    "rx_packets": ("counters/port_rcv_packets", 1),
    "ecn_marked_packets": ("hw_counters/np_ecn_marked_roce_packets", 1),
    "cnp_sent_packets": ("hw_counters/np_cnp_sent", 1),
    "cnp_handled_packets": ("hw_counters/rp_cnp_handled", 1),
    "out_of_sequence_packets": ("hw_counters/out_of_sequence", 1),
}
# Not given for an Ethernet port: these come from the InfiniBand group of the port's registers (mlx5 mad.c),
# which an Ethernet link does not feed, so their zeros are no knowledge. The network interface has the like.
_INFINIBAND_LINK: dict[str, tuple[str, int]] = {
    "tx_discards": ("counters/port_xmit_discards", 1),
    "rx_errors": ("counters/port_rcv_errors", 1),
    "symbol_errors": ("counters/symbol_error", 1),
    "link_downed": ("counters/link_downed", 1),
    "tx_wait_ticks": ("counters/port_xmit_wait", 1),
}
# mlx5 counts no packets sent again, but each occasion on which a sender starts over: on a "wrong sequence"
# NAK, on a timeout, and on an adaptive timeout (where that feature is on it takes the place of the former:
# a real H100 node shows 3 of these with no timeout). Each misses what the others see, so the sum is given:
# at least so many packets were sent again. Unknown when one is missing, or it would shrink and look restarted.
_STARTED_OVER = ("packet_seq_err", "local_ack_timeout_err", "roce_adp_retrans")
_SENT_AGAIN = "retrans_pkts"  # EFA counts the packets themselves

_COMMON = ("up", "speed_bits_per_second", *_ANY_LINK, "retransmitted_packets")
METRICS = {"InfiniBand": (*_COMMON, *_INFINIBAND_LINK), "Ethernet": _COMMON}

_RATE = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,3})?) Gb/sec\b.*", re.ASCII)
_STATE = re.compile(r"([0-9]):.*", re.ASCII)
_ACTIVE = "4"
_NOT_ACTIVE = frozenset("123")  # down, initialising, armed; 5 is a link in trouble that may yet hold: unknown
_NO_LINK = frozenset("123")  # phys_state: sleep, polling, disabled


@dataclass(frozen=True, slots=True)
class IbPort:
    """One port of one device. link_layer: `InfiniBand`, `Ethernet`, or what else the kernel says."""

    device: str
    port: int
    link_layer: str | None


def is_up(state: str | None, phys_state: str | None) -> int | None:
    """1 for an active port, 0 for one that is not, None where nothing tells.

    The logical state decides: a port with a link but no subnet manager (INIT) carries nothing. The physical
    state is asked only where there is no logical one, and only to say down (one driver prints `4: ACTIVE` in it).
    """
    if (match := _STATE.fullmatch(state or "")) is not None:
        return 1 if match[1] == _ACTIVE else 0 if match[1] in _NOT_ACTIVE else None
    match = _STATE.fullmatch(phys_state or "")
    return 0 if match is not None and match[1] in _NO_LINK else None


def rate(text: str | None) -> float | None:
    """Bits/s of the whole link, from `400 Gb/sec (4X NDR)`."""
    match = _RATE.fullmatch(text or "")
    return float(match[1]) * 1e9 or None if match is not None else None


def read_port(path: Path) -> dict[str, Value]:
    """What the files below `ports/N` say, by metric of a port; empty for a port that is not there."""
    if entries(path) is None:
        return {}
    up = is_up(read(path / "state"), read(path / "phys_state"))
    files = {**_ANY_LINK, **_INFINIBAND_LINK}
    values: dict[str, Value] = {m: scaled(whole(read(path / file)), by) for m, (file, by) in files.items()}
    values["up"] = up
    # a port that is down goes on giving a rate (`10 Gb/sec`): it has none
    values["speed_bits_per_second"] = rate(read(path / "rate")) if up else None
    values["retransmitted_packets"] = _retransmitted(path / "hw_counters")
    return values


def _retransmitted(counters: Path) -> int | None:
    packets = whole(read(counters / _SENT_AGAIN))
    if packets is not None:
        return packets
    occasions = [n for file in _STARTED_OVER if (n := whole(read(counters / file))) is not None]
    return scaled(sum(occasions), 1) if len(occasions) == len(_STARTED_OVER) else None


def list_ports(root: Path = Path("/sys")) -> list[IbPort]:
    """Every port of every RDMA device, in natural order; empty where no driver is loaded."""
    devices = root / "class" / "infiniband"
    return [
        IbPort(device, int(port), read(devices / device / "ports" / port / "link_layer"))
        for device in sorted(entries(devices) or (), key=natural)
        for port in sorted(entries(devices / device / "ports") or (), key=natural)
        if whole(port) is not None
    ]


class InfinibandCollector:
    """Ports of this host as its RDMA devices show them; one pass over the files a sample.

    ports: (device, port number) to port address. Only what is mapped is read: a host has RDMA devices for
    storage and management (`mlx5_bond_0`) that are no part of the fabric. For RoCE the traffic is RDMA alone.
    """

    def __init__(
        self,
        ports: Mapping[tuple[str, int], str],
        *,
        root: Path = Path("/sys"),
        name: str = "infiniband",
        interval: float = 1.0,
        deadline: float = 5.0,
        clock: Clock = time.time_ns,
    ) -> None:
        """Raises InputError for a wrong map."""
        check_addresses("InfiniBand devices", ports.values())
        self.name, self.interval, self.deadline = name, interval, deadline
        self._ports, self._clock = dict(ports), clock
        self._class = root / "class" / "infiniband"
        self._link_layer: dict[str, str] = {}
        self._worker = Worker(str(self._class))

    async def collect(self) -> Sample:
        """One frame a link layer. A port that is gone is unknown, with a warning."""
        return await self._worker.run(self._read)

    async def close(self) -> None:
        """Nothing is kept open between samples."""

    def _read(self) -> Sample:
        if entries(self._class) is None:
            raise CollectorError(f"{self._class}: no such directory; no RDMA driver is loaded on this host")
        if not self._ports:
            raise CollectorError(f"{self._class}: no device is mapped to a port; map devices in the site file")
        rows: dict[str, dict[str, dict[str, Value]]] = {layer: {} for layer in METRICS}
        warnings = []
        for (device, number), address in self._ports.items():
            path = self._class / device / "ports" / str(number)
            values = read_port(path)
            if not values:
                warnings.append(f"{address}: no device {device} with a port {number}")
            layer = read(path / "link_layer")
            if layer in METRICS:  # else the one it had: the columns of a port must not change with a bad read
                self._link_layer[address] = layer
            rows[self._link_layer.get(address, "InfiniBand")][address] = values
        now = frame_time(self._clock)
        frames = [port_frame(now, self.name, METRICS[layer], ports) for layer, ports in rows.items() if ports]
        return Sample(frames, warnings)
