"""The one list of metrics: what each is called, which kind of entity has it, its unit, and how it counts.

The trace format, the wire, the exporter, the documentation and the screens all read this list.
`limits` are the values at which a hardware counter sticks (InfiniBand PMA counters saturate, they do
not wrap): a reading equal to a limit carries no rate. Widths: InfiniBand specification, PortCounters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["node", "gpu", "nvlink", "port", "link", "psu", "feed", "source"]
KINDS: tuple[Kind, ...] = ("node", "gpu", "nvlink", "port", "link", "psu", "feed", "source")

U4, U8, U16, U32 = 15, 255, 65535, 4294967295


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric of one kind of entity. `counter` values only grow within a source's life."""

    kind: Kind
    name: str
    unit: str
    counter: bool
    help: str
    limits: tuple[int, ...] = ()


def _gauge(kind: Kind, name: str, unit: str, help: str) -> Metric:
    return Metric(kind, name, unit, False, help)


def _counter(kind: Kind, name: str, unit: str, help: str, *limits: int) -> Metric:
    return Metric(kind, name, unit, True, help, limits)


METRICS: tuple[Metric, ...] = (
    _gauge("node", "power_watts", "W", "power drawn by the whole node"),
    _gauge("gpu", "utilization_ratio", "ratio", "share of time in which a kernel ran, 0 to 1"),
    _gauge("gpu", "memory_used_bytes", "bytes", "framebuffer memory in use"),
    _gauge("gpu", "temperature_celsius", "celsius", "GPU core temperature"),
    _gauge("gpu", "power_watts", "W", "power drawn by the GPU"),
    _gauge("gpu", "power_limit_watts", "W", "enforced power limit"),
    _gauge("gpu", "sm_clock_hertz", "Hz", "streaming multiprocessor clock"),
    _gauge("gpu", "throttle_reasons", "bits", "NVML clocks event reasons, bit mask"),
    _gauge("gpu", "xid", "code", "the last XID error, 0 when none"),
    _counter("gpu", "ecc_uncorrected", "errors", "uncorrected memory errors"),
    _counter("gpu", "energy_joules", "J", "energy used since the driver was loaded"),
    _counter("gpu", "pcie_tx_bytes", "bytes", "bytes sent over PCIe"),
    _counter("gpu", "pcie_rx_bytes", "bytes", "bytes received over PCIe"),
    _gauge(
        "gpu",
        "fabric_state",
        "state",
        "NVLink fabric registration: 1 not started, 2 in progress, 3 completed",
    ),
    _gauge("nvlink", "up", "bool", "1 active, 0 inactive"),
    _gauge("nvlink", "speed_bytes_per_second", "bytes/s", "nominal speed of the link, one direction"),
    _counter("nvlink", "tx_bytes", "bytes", "bytes sent"),
    _counter("nvlink", "rx_bytes", "bytes", "bytes received"),
    _counter("nvlink", "crc_errors", "errors", "flits with a CRC error", U32),
    _counter("nvlink", "replay_errors", "errors", "transmissions repeated", U32),
    _counter("nvlink", "recovery_errors", "errors", "link recoveries", U32),
    _counter("nvlink", "symbol_errors", "errors", "symbol errors", U32),
    _gauge("port", "up", "bool", "1 when the port is up and can carry traffic, 0 when it is down"),
    _gauge("port", "speed_bits_per_second", "bits/s", "negotiated speed of the whole port; unknown while down"),
    _counter(
        "port",
        "tx_bytes",
        "bytes",
        "bytes sent (InfiniBand PortXmitData is in 4-byte words: times 4)",
        U32 * 4,
    ),
    _counter("port", "rx_bytes", "bytes", "bytes received", U32 * 4),
    _counter("port", "tx_packets", "packets", "packets sent", U32),
    _counter("port", "rx_packets", "packets", "packets received", U32),
    _counter("port", "tx_discards", "packets", "packets dropped at the output", U16),
    _counter("port", "rx_errors", "packets", "packets received with an error", U16),
    _counter("port", "rx_discards", "packets", "packets dropped at the input for lack of buffers"),
    _counter("port", "tx_wait_ticks", "ticks", "ticks with data waiting and none sent (PortXmitWait)", U32),
    _counter("port", "rx_pause_seconds", "s", "time the peer paused us"),
    _counter("port", "tx_pause_seconds", "s", "time we paused the peer"),
    _counter("port", "ecn_marked_packets", "packets", "RoCE packets received with a congestion mark"),
    _counter("port", "cnp_sent_packets", "packets", "congestion notification packets sent"),
    _counter("port", "cnp_handled_packets", "packets", "congestion notification packets acted on"),
    _counter("port", "out_of_sequence_packets", "packets", "packets received out of order"),
    _counter("port", "retransmitted_packets", "packets", "packets sent again"),
    _counter("port", "fec_corrected", "errors", "blocks repaired by forward error correction"),
    _counter("port", "fec_uncorrected", "errors", "blocks that forward error correction could not repair"),
    _counter("port", "symbol_errors", "errors", "symbol errors", U16),
    _counter("port", "link_downed", "times", "times the link went down", U8),
    _gauge("link", "found", "bool", "1: the last discovery of this source saw this cable; a frame names all it saw"),
    _gauge("psu", "up", "bool", "1 when the supply delivers power"),
    _gauge("psu", "input_watts", "W", "power taken from the feed"),
    _gauge("psu", "output_watts", "W", "power delivered"),
    _gauge("psu", "capacity_watts", "W", "rated power"),
    _gauge("feed", "power_watts", "W", "power drawn from the feed"),
    _gauge("feed", "capacity_watts", "W", "what the feed may carry continuously"),
    _gauge("source", "up", "bool", "1 when the last collection succeeded, 0 when the source fails"),
    _gauge("source", "interval_seconds", "s", "how often the source reports: as asked for, or as it can"),
    _gauge("source", "duration_seconds", "s", "how long the last collection took"),
    _gauge("source", "late", "times", "collections in a row that took longer than their interval"),
    _gauge("source", "clock_offset_seconds", "s", "how far its clock is ahead of ours, at least; behind is below 0"),
    _gauge("source", "failures", "times", "failures in a row"),
    _gauge("source", "frames_dropped", "frames", "frames that could not be read or were thrown away"),
)

REGISTRY: dict[tuple[str, str], Metric] = {(m.kind, m.name): m for m in METRICS}


def metrics_of(kind: str) -> tuple[Metric, ...]:
    """Every metric that entities of `kind` may have."""
    return tuple(m for m in METRICS if m.kind == kind)
