"""Writes a /sys as tests need it, and reads samples and files by other means than the code under test.

A tree is a dict of names to text, bytes, dicts (directories) or None (no such file).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Union

from hypothesis import strategies as st

from collectors.base import Sample
from twin.frames import as_float

Tree = Mapping[str, Union[str, bytes, "Tree", None]]


def write(root: Path, tree: Tree) -> Path:
    root.mkdir(parents=True, exist_ok=True)
    for name, content in tree.items():
        path = root / name
        if isinstance(content, Mapping):
            write(path, content)
        elif isinstance(content, bytes):
            path.write_bytes(content)
        elif content is not None:
            path.write_text(content)
    return root


def interface(**files: str | bytes | Tree | None) -> Tree:
    """A healthy Ethernet interface at 400 Gbit/s, with `files` in place of its own."""
    statistics = {
        "tx_bytes": "1000\n", "rx_bytes": "2000\n", "tx_packets": "10\n", "rx_packets": "20\n",
        "tx_dropped": "3\n", "rx_errors": "4\n",
    }  # fmt: skip
    base: dict[str, str | bytes | Tree | None] = {
        "operstate": "up\n", "carrier": "1\n", "speed": "400000\n", "type": "1\n", "ifindex": "2\n", "iflink": "2\n",
        "carrier_changes": "6\n", "carrier_down_count": "2\n", "statistics": statistics,
    }  # fmt: skip
    return {**base, **files}


def ib_port(**files: str | bytes | Tree | None) -> Tree:
    """An active port at 400 Gb/s of an mlx5 device, with `files` in place of its own; no newlines."""
    counters = {
        "port_xmit_data": "1000", "port_rcv_data": "2000", "port_xmit_packets": "10", "port_rcv_packets": "20",
        "port_xmit_discards": "3", "port_rcv_errors": "4", "symbol_error": "5", "link_downed": "6",
        "port_xmit_wait": "7",
    }  # fmt: skip
    hw = {
        "out_of_sequence": "11", "packet_seq_err": "1", "local_ack_timeout_err": "2", "roce_adp_retrans": "4",
        "lifespan": "12",
    }  # fmt: skip
    base: dict[str, str | bytes | Tree | None] = {
        "state": "4: ACTIVE", "phys_state": "5: LinkUp", "rate": "400 Gb/sec (4X NDR)", "link_layer": "InfiniBand",
        "counters": counters, "hw_counters": hw,
    }  # fmt: skip
    return {**base, **files}


def roce_port(**files: str | bytes | Tree | None) -> Tree:
    hw = {
        "np_ecn_marked_roce_packets": "21", "np_cnp_sent": "22", "rp_cnp_handled": "23", "out_of_sequence": "11",
        "packet_seq_err": "1", "local_ack_timeout_err": "2", "roce_adp_retrans": "4",
    }  # fmt: skip
    return ib_port(**{"link_layer": "Ethernet", "hw_counters": hw, **files})


def device(*ports: Tree) -> Tree:
    return {"ports": {str(i): port for i, port in enumerate(ports, 1)}}


def rows(sample: Sample) -> dict[str, dict[str, float]]:
    """Address to known values."""
    found: dict[str, dict[str, float]] = {}
    for frame in sample.frames:
        for metric, column in frame.columns.items():
            for name, value in zip(frame.names, as_float(column).tolist(), strict=True):
                found.setdefault(name, {})
                if value == value:
                    found[name][metric] = value
    return found


TEXT = st.one_of(
    st.none(),
    st.binary(max_size=30),
    st.text(max_size=12).map(lambda t: t.encode()),
    st.integers(-5, 2**66).map(lambda n: b"%d\n" % n),
    st.sampled_from([b"up\n", b"down", b"dormant\n", b"N/A (no PMA)", b"-1\n", b" 12 13 ", b"0x10", b"1_0", b""]),
)


def number(text: bytes | None) -> int | None:
    """What a file holds, by other means than the code under test: digits alone, below all ones."""
    match = re.fullmatch(rb"\s*(\d+)\s*", text or b"")
    return int(match[1]) if match and int(match[1]) < 2**64 - 1 else None
