"""Frame: everything that can happen to the twin, with its binary and its text form.

Binary form (all little endian), used for MQTT payloads and trace records alike:

    offset  size  what
    0       4     magic `FTF1`
    4       4     u32, length of the header
    8       8     i64, time in nanoseconds since the epoch
    16      4     u32, number of names N
    20      4     u32, length of the names block
    24      …     header: MessagePack array [source, kind, [metric, …], "fu…"]; one letter a column,
                  f = float64, u = uint64
    …       …     names block: the N names in UTF-8, joined by newlines
    …       …     zero bytes up to a multiple of 8, then the columns, N x 8 bytes each

A column is decoded as a view on the buffer, without copying. Unknown is NaN in a float column and
all ones in an unsigned one.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from twin.address import kind_of
from twin.errors import InputError
from twin.metrics import KINDS, REGISTRY

Column = npt.NDArray[np.float64] | npt.NDArray[np.uint64]

UNKNOWN_U64 = np.uint64(0xFFFF_FFFF_FFFF_FFFF)
NS = 1_000_000_000

_HEAD = struct.Struct("<4sIqII")
_MAGIC = b"FTF1"
_DTYPES: dict[str, Any] = {"f": np.dtype("<f8"), "u": np.dtype("<u8")}
_MAX_NAMES_CACHED = 4096


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """One source, one time, one kind of entity: a column of numbers a metric, one value a name.

    time: nanoseconds since the epoch. names: addresses, each once. columns: float64[names] (NaN where
    unknown) or uint64[names] (all ones where unknown), keyed by metric name.
    """

    time: int
    source: str
    kind: str
    names: tuple[str, ...]
    columns: Mapping[str, Column]

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InputError(
                f"frame of source {self.source!r}: unknown kind {self.kind!r}; one of {', '.join(KINDS)}"
            )
        for metric, column in self.columns.items():
            if column.shape != (len(self.names),):
                raise InputError(
                    f"frame of source {self.source!r}: column {metric} has shape {column.shape}, "
                    f"expected ({len(self.names)},), one value a name"
                )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Frame):
            return NotImplemented
        same = (self.time, self.source, self.kind, self.names) == (
            other.time,
            other.source,
            other.kind,
            other.names,
        )
        return (
            same
            and list(self.columns) == list(other.columns)
            and all(
                a.dtype == b.dtype and a.tobytes() == b.tobytes()
                for a, b in zip(self.columns.values(), other.columns.values(), strict=True)
            )
        )

    __hash__ = None  # type: ignore[assignment]


def column(values: Iterable[float | int | None], *, counter: bool) -> Column:
    """A column from Python values; None is unknown. Counters keep all 64 bits where every value is whole."""
    seen = list(values)
    if counter and all(v is None or (isinstance(v, int) and 0 <= v < 2**64) for v in seen):
        return np.array([int(UNKNOWN_U64) if v is None else v for v in seen], dtype=np.uint64)
    return np.array([np.nan if v is None else v for v in seen], dtype=np.float64)


def as_float(values: Column) -> npt.NDArray[np.float64]:
    """`values` as float64, NaN where unknown."""
    if values.dtype == np.float64:
        return values  # type: ignore[return-value]
    return np.where(values == UNKNOWN_U64, np.nan, values.astype(np.float64))


# --- binary form ---------------------------------------------------------------------------------


def encode(frame: Frame) -> bytes:
    """The binary form of `frame`."""
    dtypes = "".join("u" if c.dtype == np.uint64 else "f" for c in frame.columns.values())
    header = msgspec.msgpack.encode([frame.source, frame.kind, list(frame.columns), dtypes])
    names = "\n".join(frame.names).encode()
    start = _HEAD.size + len(header) + len(names)
    parts = [
        _HEAD.pack(_MAGIC, len(header), frame.time, len(frame.names), len(names)),
        header,
        names,
        bytes(-start % 8),
    ]
    parts.extend(
        np.ascontiguousarray(c, dtype=_DTYPES[d]).tobytes()
        for c, d in zip(frame.columns.values(), dtypes, strict=True)
    )
    return b"".join(parts)


class Decoder:
    """Decodes binary frames; equal name blocks give the same tuple, so that a stream costs no strings."""

    def __init__(self) -> None:
        self._names: dict[bytes, tuple[str, ...]] = {}
        self._header = msgspec.msgpack.Decoder(tuple[str, str, list[str], str])

    def decode(self, payload: bytes | memoryview) -> Frame:
        """The frame in `payload`; its columns are views on it. Raises InputError where it is not one."""
        try:
            return self._decode(payload)
        except (struct.error, ValueError, msgspec.MsgspecError, UnicodeDecodeError, KeyError) as problem:
            if isinstance(problem, InputError):
                raise
            raise InputError(f"not a frame ({len(payload)} bytes): {problem}") from problem

    def _decode(self, payload: bytes | memoryview) -> Frame:
        view = memoryview(payload)
        magic, header_size, time, count, names_size = _HEAD.unpack_from(view)
        if magic != _MAGIC:
            raise InputError(f"not a frame: it begins with {bytes(magic)!r}, expected {_MAGIC!r}")
        at = _HEAD.size + header_size
        source, kind, metrics, dtypes = self._header.decode(view[_HEAD.size : at])
        names = self._intern(bytes(view[at : at + names_size]), count)
        at += names_size
        at += -at % 8
        if len(metrics) != len(dtypes) or len(view) < at + 8 * count * len(metrics):
            raise InputError(f"frame of source {source!r} is cut short: {len(view)} bytes")
        columns: dict[str, Column] = {}
        for metric, letter in zip(metrics, dtypes, strict=True):
            columns[metric] = np.frombuffer(view, _DTYPES[letter], count, at)
            at += 8 * count
        return Frame(time, source, kind, names, columns)

    def _intern(self, block: bytes, count: int) -> tuple[str, ...]:
        names = self._names.get(block)
        if names is None:
            names = tuple(block.decode().split("\n")) if block else ()
            if len(self._names) >= _MAX_NAMES_CACHED:
                self._names.clear()
            self._names[block] = names
        if len(names) != count:
            raise InputError(f"frame says {count} names and holds {len(names)}")
        return names


def decode(payload: bytes | memoryview) -> Frame:
    """The frame in `payload` (one-off; a stream is read with a Decoder)."""
    return Decoder().decode(payload)


# --- text form -----------------------------------------------------------------------------------


class _Line(msgspec.Struct, forbid_unknown_fields=True):
    time: float
    source: str
    samples: dict[str, dict[str, float | int | bool | None]]
    kind: str | None = None


_LINE = msgspec.json.Decoder(_Line)


def time_ns(seconds: float) -> int:
    """Seconds since the epoch as nanoseconds, rounded to a microsecond (what a float64 can hold)."""
    return round(seconds * 1_000_000) * 1_000


def parse_line(text: str | bytes) -> list[Frame]:
    """The frames of one line of the text form, one a kind. Raises InputError saying what is wrong with it."""
    try:
        line = _LINE.decode(text)
    except (msgspec.MsgspecError, UnicodeDecodeError) as problem:
        raise InputError(f"not a text frame: {problem}") from problem
    if not np.isfinite(line.time) or not 0 <= line.time < 2**33:
        raise InputError(f"not a text frame: time {line.time!r}, expected seconds since the epoch")
    if line.kind is not None and line.kind not in KINDS:
        raise InputError(f"not a text frame: unknown kind {line.kind!r}; one of {', '.join(KINDS)}")
    groups: dict[str, dict[str, dict[str, Any]]] = {}
    for name, values in line.samples.items():
        kind = line.kind or kind_of(name)
        groups.setdefault(kind, {})[name] = values
    return [_from_samples(line, kind, samples) for kind, samples in groups.items()]


def _from_samples(line: _Line, kind: str, samples: dict[str, dict[str, Any]]) -> Frame:
    metrics = dict.fromkeys(metric for values in samples.values() for metric in values)
    columns: dict[str, Column] = {}
    for metric in metrics:
        known = REGISTRY.get((kind, metric))
        if known is None:
            raise InputError(f"not a text frame: {kind} has no metric {metric!r} (source {line.source!r})")
        columns[metric] = column((v.get(metric) for v in samples.values()), counter=known.counter)
    return Frame(time_ns(line.time), line.source, kind, tuple(samples), columns)


def to_line(frame: Frame) -> str:
    """The text form of `frame`, one line without its newline. Unknown values are left out."""
    samples: dict[str, dict[str, float | int]] = {name: {} for name in frame.names}
    for metric, values in frame.columns.items():
        if values.dtype == np.uint64:
            for name, v in zip(frame.names, values.tolist(), strict=True):
                if v != int(UNKNOWN_U64):
                    samples[name][metric] = v
        else:
            for name, v in zip(frame.names, values.tolist(), strict=True):
                if v == v:
                    samples[name][metric] = int(v) if v.is_integer() and abs(v) < 2**53 else v
    line: dict[str, Any] = {"time": frame.time / NS, "source": frame.source, "samples": samples}
    if any(kind_of(name) != frame.kind for name in frame.names):
        line["kind"] = frame.kind
    return msgspec.json.encode(line).decode()
