"""Messages of an MCAP file in file order, up to its end or to where it was cut.

The readers of the `mcap` package need the end of the file, or stop with an error at the cut; this one
gives whatever is whole. Records are walked here, their contents are parsed by the package.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from io import BytesIO
from typing import BinaryIO, NamedTuple

import zstandard
from mcap.data_stream import ReadDataStream
from mcap.exceptions import McapError
from mcap.opcode import Opcode
from mcap.reader import make_reader
from mcap.records import Attachment, Channel, Chunk, Header, Metadata
from mcap.stream_reader import get_chunk_data_stream

from replay.layout import MCAP_MAGIC, TOTALS
from replay.records import Tally

_RECORD = struct.Struct("<BQ")  # opcode, length of what follows
_MESSAGE = struct.Struct("<HIQQ")  # channel, sequence, log time, publish time; the data follow
_CHUNK_HEAD = struct.Struct("<QQQII")  # first and last time, size, CRC, length of the compression's name
_LENGTH = struct.Struct("<Q")
_CRC = struct.Struct("<I")
_DAMAGE = (ValueError, ArithmeticError, struct.error, McapError, zstandard.ZstdError, MemoryError)
_SHOWN_PROBLEMS = 10


class Raw(NamedTuple):
    """One message. offset: of the record or chunk that holds it; place: which one it is there."""

    offset: int
    place: int
    channel: Channel
    data: bytes


class _Piece(NamedTuple):
    """One record: what `length` promises and `body` holds differ where the file was cut."""

    offset: int
    opcode: int
    length: int
    body: bytes

    @property
    def whole(self) -> bool:
        return len(self.body) == self.length


@dataclass(slots=True)
class McapHead:
    """What stands before the first message, as far as the file goes."""

    profile: str | None = None
    attachments: dict[str, bytes] = field(default_factory=dict)
    damaged: list[str] = field(default_factory=list)  # attachments that are not what was written
    metadata: dict[str, dict[str, str]] = field(default_factory=dict)


def read_head(stream: BinaryIO, size: int) -> McapHead:
    """The header, attachments and metadata that precede the messages of a file of `size` bytes."""
    head = McapHead()
    with suppress(*_DAMAGE):
        for piece in _pieces(stream, size, len(MCAP_MAGIC)):
            if not piece.whole or piece.opcode in (Opcode.CHUNK, Opcode.MESSAGE, Opcode.DATA_END):
                break
            body = ReadDataStream(BytesIO(piece.body))
            if piece.opcode == Opcode.HEADER:
                head.profile = Header.read(body).profile
            elif piece.opcode == Opcode.ATTACHMENT:
                attachment = Attachment.read(body)
                crc = _CRC.unpack(piece.body[-_CRC.size :])[0]
                if crc in (0, zlib.crc32(piece.body[: -_CRC.size])):  # 0: the writer kept none
                    head.attachments[attachment.name] = attachment.data
                else:
                    head.damaged.append(attachment.name)
            elif piece.opcode == Opcode.METADATA:
                metadata = Metadata.read(body)
                head.metadata[metadata.name] = metadata.metadata
    return head


def read_totals(stream: BinaryIO) -> dict[str, str] | None:
    """The totals that closing a recording leaves at its end; None where it was never closed."""
    try:
        stream.seek(0)
        reader = make_reader(stream)
        summary = reader.get_summary()
        if summary is None or not any(index.name == TOTALS for index in summary.metadata_indexes):
            return None
        return next((m.metadata for m in reader.iter_metadata() if m.name == TOTALS), None)
    except (*_DAMAGE, OSError):
        return None


def messages(
    stream: BinaryIO, size: int, channels: dict[int, Channel], tally: Tally, offset: int | None = None
) -> Iterator[Raw]:
    """The messages of a file of `size` bytes, from the record at `offset` on.

    `channels` is filled while reading; an `offset` past the start needs the channels of what lies before it.
    What cannot be read is told to `tally`; nothing is raised for it.
    """
    start = len(MCAP_MAGIC) if offset is None else offset
    for piece in _pieces(stream, size, start):
        start = piece.offset + _RECORD.size + piece.length
        if piece.opcode == Opcode.CHUNK:
            content = _chunk_content(piece, tally)
            yield from _split(piece.offset, content, piece.whole, channels, tally)
        elif piece.opcode == Opcode.MESSAGE and piece.whole:
            yield from _split(piece.offset, _RECORD.pack(5, piece.length) + piece.body, True, channels, tally)
        elif piece.opcode == Opcode.CHANNEL and piece.whole:
            _learn(piece.body, channels)
        if not piece.whole:
            tally.lost(f"cut at byte {size}, in the middle of a record that begins at byte {piece.offset}")
            return
        if piece.opcode == Opcode.FOOTER:
            if stream.read(len(MCAP_MAGIC)) != MCAP_MAGIC:
                tally.lost(f"cut at byte {size}, in the last {len(MCAP_MAGIC)} bytes")
            return
    if start == size:
        tally.lost(f"cut at byte {size}: the recording was never closed")
    elif size - start < _RECORD.size:
        tally.lost(f"cut at byte {size}, at the beginning of a record")
    else:
        tally.lost(f"damaged at byte {start}: {size - start} bytes there are not MCAP records")


def _pieces(stream: BinaryIO, size: int, offset: int) -> Iterator[_Piece]:
    """Records from `offset` to the footer, the cut, or the first thing that is not a record."""
    stream.seek(offset)
    while True:
        head = stream.read(_RECORD.size)
        if len(head) < _RECORD.size:
            return
        opcode, length = _RECORD.unpack(head)
        if opcode == 0:
            return
        body = stream.read(min(length, max(0, size - offset - _RECORD.size)))
        yield _Piece(offset, opcode, length, body)
        if opcode == Opcode.FOOTER or len(body) < length:
            return
        offset += _RECORD.size + length


def _chunk_content(piece: _Piece, tally: Tally) -> bytes:
    """The records in a chunk: all where it is whole, else those of the part that is there."""
    try:
        if not piece.whole:
            return _cut_chunk_content(piece.body)
        stream, length = get_chunk_data_stream(Chunk.read(ReadDataStream(BytesIO(piece.body))), validate_crc=True)
        return stream.read(length)
    except _DAMAGE as problem:
        if piece.whole:
            lost(tally, f"damaged at byte {piece.offset}: a chunk of {piece.length} bytes is skipped: {problem}")
        return b""


def _cut_chunk_content(body: bytes) -> bytes:
    *_, name_length = _CHUNK_HEAD.unpack_from(body)
    at = _CHUNK_HEAD.size + name_length
    compression = body[_CHUNK_HEAD.size : at]
    data = body[at + _LENGTH.size :]
    if compression == b"zstd":
        return zstandard.ZstdDecompressor().decompressobj().decompress(data) if data else b""
    return data if compression == b"" else b""


def _split(offset: int, content: bytes, whole: bool, channels: dict[int, Channel], tally: Tally) -> Iterator[Raw]:
    at, index = 0, 0
    while at + _RECORD.size <= len(content):
        opcode, length = _RECORD.unpack_from(content, at)
        at += _RECORD.size
        if at + length > len(content):
            break
        if opcode == Opcode.MESSAGE and length >= _MESSAGE.size:
            channel = channels.get(_MESSAGE.unpack_from(content, at)[0])
            if channel is None:
                lost(tally, f"damaged: message {index} of the chunk at byte {offset} has no channel")
            else:
                yield Raw(offset, index, channel, content[at + _MESSAGE.size : at + length])
            index += 1
        elif opcode == Opcode.CHANNEL:
            _learn(content[at : at + length], channels)
        at += length
    if whole and at != len(content):
        lost(tally, f"damaged: the chunk at byte {offset} does not end with a record")


def _learn(body: bytes, channels: dict[int, Channel]) -> None:
    with suppress(*_DAMAGE):
        channel = Channel.read(ReadDataStream(BytesIO(body)))
        channels[channel.id] = channel


def lost(tally: Tally, problem: str) -> None:
    """As Tally.lost, but many alike are told as one."""
    tally.truncated = True
    if len(tally.problems) < _SHOWN_PROBLEMS:
        tally.problems.append(problem)
    elif len(tally.problems) == _SHOWN_PROBLEMS:
        tally.problems.append("more damage of this kind follows")
