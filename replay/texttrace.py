"""TextTrace: frames as lines of JSON, plain or compressed with zstd, up to the end or to where they were cut."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

import msgspec
import zstandard

from replay.records import Mark, Record, Tally
from replay.trace import Trace
from twin.errors import InputError
from twin.frames import parse_line
from twin.topology.model import Topology

_BLOCK = 1 << 20
_BOM = b"\xef\xbb\xbf"
_PACKED_BLOCK = 1 << 16  # a small block of zstd can hold much text


class TextTrace(Trace):
    """Text frames, one JSON object a line (twin.frames); a line of several kinds gives a frame of each."""

    def __init__(self, path: Path, size: int, topology: Topology | None, format: str) -> None:
        super().__init__(path, size, topology)
        self.format = format

    def _read(self, mark: Mark | None, tally: Tally) -> Iterator[tuple[Mark, Record]]:
        begin = mark or Mark(0)
        number = begin.line - 1
        with self.open() as stream:
            if self.format == ".jsonl":
                blocks = plain(stream, begin.offset)
            else:
                blocks = decompressed(stream, tally, begin.offset)
            for line in lines(blocks, begin.offset):
                number += 1
                text = line.text.removeprefix(_BOM) if line.offset == 0 else line.text
                if not text or text.isspace():
                    continue
                try:
                    frames = parse_line(text)
                except InputError as problem:
                    if line.last and (tally.truncated or is_cut(text)):
                        if not tally.truncated:
                            tally.lost(f"cut in the middle of line {number}")
                        return
                    raise InputError(f"{self.path}:{number}: {problem}") from problem
                for i, frame in enumerate(frames):
                    if line.offset != begin.offset or i >= begin.skip:
                        yield Mark(line.offset, i, number), frame


class TextLine(NamedTuple):
    """One line without its newline. offset: of its first byte in the text; last: no newline follows it."""

    offset: int
    text: bytes
    last: bool


def plain(stream: BinaryIO, offset: int = 0, block_size: int = _BLOCK) -> Iterator[bytes]:
    """The bytes of `stream` from `offset` on, block by block."""
    stream.seek(offset)
    while block := stream.read(block_size):
        yield block


def decompressed(stream: BinaryIO, tally: Tally, offset: int = 0) -> Iterator[bytes]:
    """The text in a zstd stream from byte `offset` of the text on. A cut or damage ends it and is told to `tally`."""
    inflate = zstandard.ZstdDecompressor().decompressobj()
    seen, begun = 0, False
    for block in plain(stream, block_size=_PACKED_BLOCK):
        rest = block
        while rest:
            if inflate.eof:
                inflate = zstandard.ZstdDecompressor().decompressobj()
            begun = True
            try:
                text = inflate.decompress(rest)
            except zstandard.ZstdError as problem:
                tally.lost(f"damaged zstd data after {seen} bytes of text: {problem}")
                return
            rest = inflate.unused_data if inflate.eof else b""
            seen += len(text)
            wanted = text[max(0, len(text) - (seen - offset)) :] if seen > offset else b""
            if wanted:
                yield wanted
    if begun and not inflate.eof:
        tally.lost(f"cut: the zstd data end after {seen} bytes of text, in the middle of a frame")


def lines(blocks: Iterator[bytes], offset: int = 0) -> Iterator[TextLine]:
    """Splits blocks into lines. offset: of the first block in the text."""
    rest = b""
    for block in blocks:
        *whole, rest = (rest + block).split(b"\n")
        for line in whole:
            yield TextLine(offset, line, False)
            offset += len(line) + 1
    if rest:
        yield TextLine(offset, rest, True)


def is_cut(line: bytes) -> bool:
    """Whether `line` is the beginning of a JSON object whose rest is missing."""
    if not line.lstrip().startswith(b"{"):
        return False
    try:
        msgspec.json.decode(line)
    except msgspec.DecodeError as problem:
        return "truncated" in str(problem) or str(problem).endswith(f"(byte {len(line)})")
    except UnicodeDecodeError:
        return True
    return False
