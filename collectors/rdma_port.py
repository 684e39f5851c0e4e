"""What one port of an RDMA device says: the files below `ports/N`, as metrics of a port.

Fields: Linux Documentation/ABI/stable/sysfs-class-infiniband; `hw_counters` of mlx5: its counters.c and
NVIDIA's "Understanding mlx5 Linux counters and status parameters"; of the others: their drivers' hw_counters.c.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from collectors.bond import bond_speed
from collectors.sysfs import Files, Value, scaled, whole
from twin.metrics import REGISTRY

WORD = 4  # port_xmit_data and port_rcv_data count words of 4 bytes (InfiniBand specification, PortCounters)

Sources = tuple[tuple[str, int], ...]  # files below ports/N and their factors; the first that is there counts

TRAFFIC: dict[str, Sources] = {
    "tx_bytes": (("counters/port_xmit_data", WORD), ("hw_counters/tx_bytes", 1)),
    "rx_bytes": (("counters/port_rcv_data", WORD), ("hw_counters/rx_bytes", 1)),
    "tx_packets": (("counters/port_xmit_packets", 1), ("hw_counters/tx_pkts", 1)),
    "rx_packets": (("counters/port_rcv_packets", 1), ("hw_counters/rx_pkts", 1)),
}
# mlx5, bnxt_re, irdma
_ANY_LINK: dict[str, Sources] = {
    **TRAFFIC,
    "ecn_marked_packets": (
        ("hw_counters/np_ecn_marked_roce_packets", 1),
        ("hw_counters/rx_ecn_marked_pkts", 1),
        ("hw_counters/RxECNMrkd", 1),
    ),
    "cnp_sent_packets": (
        ("hw_counters/np_cnp_sent", 1),
        ("hw_counters/tx_cnp_pkts", 1),
        ("hw_counters/cnpSent", 1),
    ),
    "cnp_handled_packets": (
        ("hw_counters/rp_cnp_handled", 1),
        ("hw_counters/rx_cnp_pkts", 1),
        ("hw_counters/cnpHandled", 1),
    ),
    "out_of_sequence_packets": (("hw_counters/out_of_sequence", 1),),
}
# Not given for an Ethernet port: these come from the InfiniBand group of the port's registers (mlx5 mad.c),
# which an Ethernet link does not feed, so their zeros are no knowledge. The network interface has the like.
_INFINIBAND_LINK: dict[str, Sources] = {
    "tx_discards": (("counters/port_xmit_discards", 1),),
    "rx_errors": (("counters/port_rcv_errors", 1),),
    "symbol_errors": (("counters/symbol_error", 1),),
    "link_downed": (("counters/link_downed", 1),),
    "tx_wait_ticks": (("counters/port_xmit_wait", 1),),
}
# mlx5 counts no packets sent again, but each occasion on which a sender starts over: on a "wrong sequence"
# NAK, on a timeout, and on an adaptive timeout (where that feature is on it takes the place of the former:
# a real H100 node shows 3 of these with no timeout). Each misses what the others see, so the sum is given:
# at least so many packets were sent again. Unknown when one is missing, or it would shrink and look restarted.
_STARTED_OVER = ("packet_seq_err", "local_ack_timeout_err", "roce_adp_retrans")
_SENT_AGAIN = "retrans_pkts"  # EFA counts the packets themselves

_COMMON = ("up", "speed_bits_per_second", *_ANY_LINK, "retransmitted_packets")
METRICS = {"InfiniBand": (*_COMMON, *_INFINIBAND_LINK), "Ethernet": _COMMON}
_FILES = {"InfiniBand": {**_ANY_LINK, **_INFINIBAND_LINK}, "Ethernet": _ANY_LINK}
_SUMMED = (*TRAFFIC, *_INFINIBAND_LINK)  # what planes have of their own

_RATE = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,3})?) Gb/sec\b.*", re.ASCII)
_NO_RATE = re.compile(r".*\([0-9]+X(?: SDR)?\)", re.ASCII)
_STATE = re.compile(r"([0-9]):.*", re.ASCII)
_ACTIVE = "4"
_NOT_ACTIVE = frozenset("123")  # down, initialising, armed; 5 is a link in trouble that may yet hold: unknown
_NO_LINK = frozenset("123")  # phys_state: sleep, polling, disabled


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


def read_port(files: Files, layer: str = "InfiniBand") -> dict[str, Value]:
    """What the files below `ports/N` say, by metric of a port with that link layer; all None for one that is gone."""
    up = _up(files)
    values: dict[str, Value] = {metric: _counter(files, sources) for metric, sources in _FILES[layer].items()}
    values["up"] = up
    # a port that is down goes on giving a rate (`10 Gb/sec`): it has none
    values["speed_bits_per_second"] = rate(files.read("rate")) if up else None
    values["retransmitted_packets"] = _retransmitted(files)
    return values


def _up(files: Files) -> int | None:
    state = files.read("state")
    up = is_up(state, None)
    return is_up(state, files.read("phys_state")) if up is None else up


def _counter(files: Files, sources: Sources) -> int | None:
    for file, factor in sources:
        if (text := files.read(file)) is not None:
            return scaled(whole(text), factor)
    return None


def _retransmitted(files: Files) -> int | None:
    packets = files.number(f"hw_counters/{_SENT_AGAIN}")
    if packets is not None:
        return packets
    total = 0
    for file in _STARTED_OVER:
        occasions = files.number(f"hw_counters/{file}")
        if occasions is None:
            return None
        total += occasions
    return scaled(total, 1)


# --- ports of several planes -----------------------------------------------------------------------


def add_planes(values: dict[str, Value], planes: Sequence[Files]) -> None:
    """Makes of a logical port's values those of the port with these planes: its speed is that of its active planes.

    No dump of such a host is public, so this rests on the driver's source (mlx5 main.c, mad.c; core/sysfs.c):
    a plane's `state` is that of the whole port, its `rate` is its own, and of a plane without link it names no
    generation or SDR, which stands for "not told". So a plane whose rate is such counts for nothing while others
    have theirs; where none has one, the driver does not tell planes apart, and the logical port's word stands.
    The speed is unknown while a plane cannot be read: the rest would look like a loss, the logical port like none.
    Counters that the logical port lacks are the sums of its planes', or the limit where one of them stands at it.
    """
    if values.get("up"):
        speeds = [_plane_speed(plane) for plane in planes]
        known = [speed for speed in speeds if speed is not None]
        if len(known) < len(speeds):
            values["speed_bits_per_second"] = None
        elif total := sum(known):
            own = values.get("speed_bits_per_second")
            values["speed_bits_per_second"] = total if own is None else min(own, total)
    for metric in _SUMMED:
        if values.get(metric) is None:
            values[metric] = _total(metric, [_counter(plane, _FILES["InfiniBand"][metric]) for plane in planes])


def _plane_speed(plane: Files) -> float | None:
    """Bits/s of one plane, 0 for one without link, None where it cannot be read."""
    up, text = _up(plane), plane.read("rate")
    if up == 0:
        return 0.0
    speed = rate(text)
    if up is None or text is None or speed is None:
        return None
    return 0.0 if _NO_RATE.fullmatch(text) else speed


def _total(metric: str, values: Sequence[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return None
    stuck = [limit for limit in REGISTRY["port", metric].limits if limit in known]
    return stuck[0] if stuck else scaled(sum(known), 1)


# --- bonds -----------------------------------------------------------------------------------------


def add_bond(values: dict[str, Value], interface: Path) -> None:
    """Gives the port of an `mlx5_bond_N` the speed of the bond's active members: its `rate` may be one member's."""
    if values.get("up") and (speed := bond_speed(interface)) is not None:
        values["speed_bits_per_second"] = speed
