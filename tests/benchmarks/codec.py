"""Frames to bytes and back."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np

from tests.benchmarks.measure import compare, median_seconds
from twin.frames import Decoder, Frame, encode


def run() -> Iterator[str]:
    """A frame of 4,096 ports with 5 metrics, beside the same values as a MessagePack map."""
    rng = np.random.default_rng(1)
    names = tuple(f"A-leaf-{i // 128:02d}/p{i % 128}" for i in range(4096))
    columns = {
        m: rng.integers(0, 2**60, len(names)).astype(np.uint64) for m in ("tx_bytes", "rx_bytes", "link_downed")
    }
    columns |= {m: rng.random(len(names)) for m in ("up", "speed_bits_per_second")}
    frame = Frame(1, "A", "port", names, columns)
    plain = {"names": list(names), **{k: v.tolist() for k, v in columns.items()}}
    packed, payload, decoder = msgspec.msgpack.encode(plain), encode(frame), Decoder()
    yield f"size {len(payload)} bytes, MessagePack {len(packed)} bytes"
    yield compare(
        "encode",
        median_seconds(lambda: encode(frame)),
        "MessagePack",
        median_seconds(lambda: msgspec.msgpack.encode(plain)),
    )
    yield compare(
        "decode",
        median_seconds(lambda: decoder.decode(payload)),
        "MessagePack",
        median_seconds(lambda: msgspec.msgpack.decode(packed)),
    )
