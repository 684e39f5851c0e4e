"""Frames ready for compression: of each channel the differences to its frame before, bytes of equal weight together.

Counters and gauges change little from one reading to the next, so their differences are mostly zeros in the upper
bytes. The chunk around them is compressed as a whole, since most frames are small. Every few seconds a round begins
in which each channel gives a whole frame, so that reading can start there.

    offset  size  what
    0       4     magic `FTP1`
    4       4     u32, the number of the round, from 1
    8       4     u32, 0: a whole frame; k: the difference to the k-1th frame after the last whole one of its channel
    12      4     zero
    16      8     i64, time in nanoseconds since the epoch
    24      …     of a whole frame u32 length and the header and names of its binary form (`twin.frames`), then
                  its columns; of a difference the columns alone. Columns are u64, modulo 2**64, byte 0 of all
                  values first, then byte 1, …
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from twin.errors import InputError
from twin.frames import Decoder, Frame, encode

_HEAD = struct.Struct("<4sIIIq")
_MAGIC = b"FTP1"
_LENGTH = struct.Struct("<I")
U64 = npt.NDArray[np.uint64]
Key = tuple[str, str]  # source and kind: a channel


@dataclass(slots=True)
class _Before:
    """The last frame of a channel. dtypes: of its columns, one a metric."""

    names: tuple[str, ...]
    metrics: tuple[str, ...]
    dtypes: tuple[Any, ...]
    words: U64  # [metrics, names]
    count: int  # since its whole frame


class Packer:
    """The writing end. One for a file."""

    def __init__(self) -> None:
        self._before: dict[Key, _Before] = {}
        self._round = 0

    def begin_round(self) -> None:
        """From here on each channel gives a whole frame first."""
        self._before.clear()
        self._round += 1

    def pack(self, frame: Frame) -> bytes:
        columns = frame.columns.values()
        metrics, dtypes = tuple(frame.columns), tuple(c.dtype for c in columns)
        words = _words(frame)
        key = (frame.source, frame.kind)
        before = self._before.get(key)
        same = before is not None and (
            (before.names is frame.names or before.names == frame.names)
            and before.metrics == metrics
            and before.dtypes == dtypes
        )
        if not same or before is None:
            self._before[key] = _Before(frame.names, metrics, dtypes, words, 0)
            head = _without_columns(frame, words.nbytes)
            return self._pack(0, frame.time, _LENGTH.pack(len(head)) + head + _shuffled(words))
        change = words - before.words
        before.words, before.count = words, before.count + 1
        return self._pack(before.count, frame.time, _shuffled(change))

    def _pack(self, count: int, time: int, body: bytes) -> bytes:
        return _HEAD.pack(_MAGIC, self._round, count, 0, time) + body


class Unpacker:
    """The reading end: frames of a channel in the order in which they were packed, from a whole one on."""

    def __init__(self) -> None:
        self._decoder = Decoder()
        self._before: dict[Key, _Before] = {}

    def unpack(self, key: Key, data: bytes | memoryview) -> Frame:
        """Raises InputError for what is no packed frame, or one of which the frame before is missing."""
        try:
            return self._unpack(key, data)
        except (struct.error, ValueError) as problem:
            self._before.pop(key, None)
            raise InputError(f"not a packed frame: {problem}") from problem

    def _unpack(self, key: Key, data: bytes | memoryview) -> Frame:
        magic, _, count, _, time = _HEAD.unpack_from(data)
        if magic != _MAGIC:
            raise ValueError(f"it begins with {bytes(magic)!r}, expected {_MAGIC!r}")
        body = bytes(memoryview(data)[_HEAD.size :])
        if count == 0:
            return self._whole(key, body)
        before = self._before.get(key)
        if before is None or before.count != count - 1:
            self._before.pop(key, None)
            raise InputError(f"the frame before it in {key[0]}/{key[1]} is missing")
        if len(body) != before.words.nbytes:
            raise ValueError(f"{len(body)} bytes of differences, expected {before.words.nbytes}")
        before.words = before.words + _unshuffled(body, before.words.shape)
        before.count = count
        columns = {
            metric: words.view(dtype)
            for metric, dtype, words in zip(before.metrics, before.dtypes, before.words, strict=True)
        }
        return Frame(time, key[0], key[1], before.names, columns)

    def _whole(self, key: Key, body: bytes) -> Frame:
        (length,) = _LENGTH.unpack_from(body)
        head, packed = body[_LENGTH.size : _LENGTH.size + length], body[_LENGTH.size + length :]
        if len(packed) % 8:
            raise ValueError("its columns are cut")
        words = _unshuffled(packed, (len(packed) // 8,))
        frame = self._decoder.decode(head + words.tobytes())
        if (frame.source, frame.kind) != key:
            raise ValueError(f"it is of {frame.source}/{frame.kind}")
        columns = frame.columns.values()
        self._before[key] = _Before(
            frame.names, tuple(frame.columns), tuple(c.dtype for c in columns), _words(frame), 0
        )
        return frame


def round_of(data: bytes | memoryview) -> int:
    """The round that a packed frame belongs to, 0 where it is none."""
    return int(_HEAD.unpack_from(data)[1]) if len(data) >= _HEAD.size and data[:4] == _MAGIC else 0


def _words(frame: Frame) -> U64:
    """uint64[metrics, names], a copy of the columns."""
    words = np.empty((len(frame.columns), len(frame.names)), np.uint64)
    for row, column in zip(words, frame.columns.values(), strict=True):
        row[:] = column.view(np.uint64) if column.flags.c_contiguous else np.ascontiguousarray(column).view(np.uint64)
    return words


def _without_columns(frame: Frame, size: int) -> bytes:
    whole = encode(frame)
    return whole[: len(whole) - size]


def _shuffled(words: U64) -> bytes:
    return np.ascontiguousarray(words.view(np.uint8).reshape(-1, 8).T).tobytes()


def _unshuffled(data: bytes, shape: tuple[int, ...]) -> U64:
    planes = np.frombuffer(data, np.uint8).reshape(8, -1)
    return np.ascontiguousarray(planes.T).view(np.uint64).reshape(shape)
