"""Checksums that a trace carries, against what the file holds.

MCAP: a CRC-32 of the data section and one of the summary (mcap.dev/spec, Data End and Footer); zstd: XXH64 of the
content of each frame (RFC 8878), where its writer kept one.
"""

from __future__ import annotations

import struct
import zlib
from typing import BinaryIO

import zstandard
from mcap.opcode import Opcode

from replay.layout import MCAP_MAGIC

_RECORD = struct.Struct("<BQ")  # opcode, length of what follows
_FOOTER = struct.Struct("<QQI")  # where the summary and its offsets begin, CRC of the summary
_CRC = struct.Struct("<I")
_BLOCK = 1 << 20


def checksum(format: str, stream: BinaryIO, size: int) -> dict[str, bool] | None:
    """Part of the file -> whether it is what was written; None where no part carries a checksum.

    stream: at its beginning. A file that was cut lost its checksums with its end.
    """
    if format == ".mcap":
        return _mcap(stream, size) or None
    return _zstd(stream) if format == ".jsonl.zst" else None


def _mcap(stream: BinaryIO, size: int) -> dict[str, bool]:
    out: dict[str, bool] = {}
    stream.seek(len(MCAP_MAGIC))
    data, at = zlib.crc32(MCAP_MAGIC), len(MCAP_MAGIC)
    while (head := stream.read(_RECORD.size)) and len(head) == _RECORD.size:
        opcode, length = _RECORD.unpack(head)
        if at + _RECORD.size + length > size:
            return out
        if opcode == Opcode.DATA_END:
            promised = _CRC.unpack(stream.read(length)[: _CRC.size])[0] if length >= _CRC.size else 0
            if promised:
                out["data"] = promised == data
            return out | _summary(stream, size, at + _RECORD.size + length)
        data = zlib.crc32(head, data)
        for _ in range(0, length, _BLOCK):
            data = zlib.crc32(stream.read(min(_BLOCK, at + _RECORD.size + length - stream.tell())), data)
        at += _RECORD.size + length
    return out


def _summary(stream: BinaryIO, size: int, start: int) -> dict[str, bool]:
    """The summary follows the data; the last record is the footer, and after it nothing but the magic."""
    stream.seek(start)
    rest = stream.read(size - start)
    end = len(rest) - len(MCAP_MAGIC)
    footer = end - _RECORD.size - _FOOTER.size
    if end < 0 or rest[end:] != MCAP_MAGIC:
        return {}  # it was cut here
    if footer < 0 or _RECORD.unpack_from(rest, footer) != (Opcode.FOOTER, _FOOTER.size):
        return {"summary": False}
    promised = _FOOTER.unpack_from(rest, footer + _RECORD.size)[2]
    return {"summary": promised == zlib.crc32(rest[: end - _CRC.size])} if promised else {}


def _zstd(stream: BinaryIO) -> dict[str, bool] | None:
    """Whether every frame unpacks to what its checksum says."""
    head = stream.read(18)
    stream.seek(0)
    try:
        if not zstandard.get_frame_parameters(head).has_checksum:
            return None
        with zstandard.ZstdDecompressor().stream_reader(stream, read_across_frames=True) as text:
            while text.read(_BLOCK):
                pass
    except zstandard.ZstdError:
        return {"content": False}
    return {"content": True}
