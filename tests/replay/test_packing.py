"""Packed frames: bit by bit what went in, smaller, and nothing else than an error from what is damaged."""

from __future__ import annotations

import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replay.packing import Packer, Unpacker, round_of
from twin.errors import InputError
from twin.frames import Column, Frame

WORDS = st.integers(0, 2**64 - 1)


@st.composite
def channel(draw: st.DrawFn) -> list[Frame]:
    """Frames of one source and kind, whose names and metrics may change from one to the next."""
    out = []
    for time in range(draw(st.integers(1, 6))):
        names = tuple(f"n0/gpu{i}" for i in range(draw(st.integers(0, 3))))
        metrics = draw(st.lists(st.sampled_from(["power_watts", "xid", "energy_joules"]), unique=True))
        columns: dict[str, Column] = {}
        for metric in metrics:
            words = np.array([draw(WORDS) for _ in names], np.uint64)
            columns[metric] = words if draw(st.booleans()) else words.view(np.float64)
        out.append(Frame(time, "n0", "gpu", names, columns))
    return out


@settings(deadline=None)
@given(frames=channel(), rounds=st.sets(st.integers(0, 5)))
def test_frames_come_back_bit_by_bit(frames: list[Frame], rounds: set[int]) -> None:
    packer, unpacker = Packer(), Unpacker()
    for place, frame in enumerate(frames):
        if place in rounds or place == 0:
            packer.begin_round()
        assert unpacker.unpack(("n0", "gpu"), packer.pack(frame)) == frame


def test_what_was_given_out_stays_as_it_was_when_the_next_frame_comes() -> None:
    packer, unpacker = Packer(), Unpacker()
    packer.begin_round()
    frames = [Frame(t, "n0", "gpu", ("n0/gpu0",), {"xid": np.array([float(t)])}) for t in range(4)]
    assert [unpacker.unpack(("n0", "gpu"), packer.pack(f)) for f in frames] == frames


def test_reading_may_begin_with_any_round() -> None:
    packer = Packer()
    frames = [Frame(t, "n0", "gpu", ("n0/gpu0",), {"xid": np.array([float(t)])}) for t in range(9)]
    packed = []
    for frame in frames:
        if frame.time % 3 == 0:
            packer.begin_round()
        packed.append(packer.pack(frame))
    assert [round_of(data) for data in packed] == [1, 1, 1, 2, 2, 2, 3, 3, 3]
    unpacker = Unpacker()
    assert [unpacker.unpack(("n0", "gpu"), data) for data in packed[3:]] == frames[3:]


def test_a_frame_whose_predecessor_is_missing_is_refused_until_the_next_whole_one() -> None:
    packer, unpacker = Packer(), Unpacker()
    packer.begin_round()
    frames = [Frame(t, "n0", "gpu", ("n0/gpu0",), {"xid": np.array([float(t)])}) for t in range(4)]
    first, _, third, fourth = (packer.pack(f) for f in frames)
    unpacker.unpack(("n0", "gpu"), first)
    for data in (third, fourth):
        with pytest.raises(InputError, match="before it in n0/gpu is missing"):
            unpacker.unpack(("n0", "gpu"), data)
    packer.begin_round()
    assert unpacker.unpack(("n0", "gpu"), packer.pack(frames[0])) == frames[0]


@settings(deadline=None)
@given(
    flips=st.lists(st.tuples(st.integers(0, 400), st.integers(1, 255)), min_size=1, max_size=4),
    cut=st.integers(0, 60),
)
def test_damaged_bytes_are_an_error_or_some_frame_and_never_anything_else(
    flips: list[tuple[int, int]], cut: int
) -> None:
    packer, unpacker = Packer(), Unpacker()
    packer.begin_round()
    data = bytearray(packer.pack(Frame(1, "n0", "gpu", ("n0/gpu0",), {"xid": np.array([7.0])})))
    for place, bits in flips:
        data[place % len(data)] ^= bits
    try:
        frame = unpacker.unpack(("n0", "gpu"), bytes(data[: len(data) - cut]))
    except InputError:
        return
    assert frame.kind == "gpu"


def test_slow_counters_compress_to_a_fraction_of_their_size() -> None:
    rng = np.random.default_rng(1)
    packer = Packer()
    packer.begin_round()
    names = tuple(f"n0/nic0/p{i}" for i in range(64))
    counters = rng.integers(0, 2**50, 64).astype(np.uint64)
    sizes = []
    for time in range(5):
        counters = counters + rng.integers(0, 1000, 64).astype(np.uint64)
        sizes.append(len(zlib.compress(packer.pack(Frame(time, "n0", "port", names, {"tx_bytes": counters})))))
    assert max(sizes[1:]) < 64 * 8 / 3 < sizes[0]
