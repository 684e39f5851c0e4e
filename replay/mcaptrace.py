"""McapTrace: a recording, read back."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
from mcap.records import Channel

from replay import mcapfile
from replay.layout import (
    FORMAT_VERSION,
    FRAME_ENCODING,
    INCIDENTS_TOPIC,
    METADATA,
    NOTES_TOPIC,
    PACKED_ENCODING,
    PROFILE,
    SITE,
    TOPOLOGY,
)
from replay.packing import Unpacker, round_of
from replay.records import Mark, Note, Record, Said, Tally
from replay.trace import Trace
from twin.errors import InputError
from twin.frames import Decoder
from twin.topology.model import Topology
from twin.topology.wiring import read_wiring
from twin.yamlfile import Document


class McapTrace(Trace):
    """A recording: one MCAP file as `replay.layout` describes it, whole or cut."""

    format = ".mcap"

    def __init__(self, path: Path, size: int, topology: Topology | None) -> None:
        super().__init__(path, size, topology)
        with self.open() as stream:
            self._head = mcapfile.read_head(stream, size)
            self._totals = mcapfile.read_totals(stream)
        self._channels: dict[int, Channel] = {}
        self._rounds: list[Mark] = []  # where each round of packed frames begins, as far as it was read
        profile, version = self._head.profile, self.metadata.get("format_version", "1")
        if profile is not None and profile != PROFILE:
            raise InputError(f"{path}: an MCAP file that fabrictwin did not record (its profile is {profile!r})")
        if not version.isdigit() or int(version) > FORMAT_VERSION:
            raise InputError(f"{path}: trace format {version}; this program reads up to {FORMAT_VERSION}: update it")

    @property
    def metadata(self) -> dict[str, str]:
        return self._head.metadata.get(METADATA, {})

    @property
    def site(self) -> dict[str, Any] | None:
        data = self._head.attachments.get(SITE)
        found = None if data is None else _decode_json(f"{self.path}, its site", data)
        return found if isinstance(found, dict) else None

    @cached_property
    def _recorded_topology(self) -> Topology | None:
        data = self._head.attachments.get(TOPOLOGY)
        return None if data is None else read_wiring(_JsonDocument(f"{self.path}, its topology", data))

    def _why_no_topology(self) -> str:
        if TOPOLOGY in self._head.damaged:
            return "its wiring is damaged"
        return "the recording was cut before its wiring" if self._totals is None else "it holds no wiring"

    @property
    def start(self) -> int | None:
        return super().start if self._tally else self._total("start")

    @property
    def end(self) -> int | None:
        return super().end if self._tally else self._total("end")

    def _total(self, key: str) -> int | None:
        """A figure of the closing record; a pass over the file where it has none."""
        value = (self._totals or {}).get(key, "")
        if value.isdigit():
            return int(value)
        return self.tally.start if key == "start" else self.tally.end

    def _read(self, mark: Mark | None, tally: Tally) -> Iterator[tuple[Mark, Record]]:
        decoder, unpacker = Decoder(), Unpacker()
        start = None if mark is None else self._round_before(mark)
        latest = 0
        with self.open() as stream:
            offset = None if start is None else start.offset
            for raw in mcapfile.messages(stream, self.size, self._channels, tally, offset):
                here = Mark(raw.offset, raw.place)
                if start is not None and here < start:
                    continue
                packed = raw.channel.message_encoding == PACKED_ENCODING
                if packed and (number := round_of(raw.data)) > latest:
                    latest = number
                    self._learn(here)
                early = mark is not None and here < mark
                if early and not packed:
                    continue
                try:
                    record = _record(raw.channel, raw.data, decoder, unpacker)
                except InputError as problem:
                    if not early:
                        mcapfile.lost(tally, f"damaged: message {raw.place} at byte {raw.offset}: {problem}")
                    continue
                if record is not None and not early:
                    yield here, record
        promised = (self._totals or {}).get("frames", "")
        if mark is None and promised.isdigit() and int(promised) != tally.frames and not tally.truncated:
            tally.lost(f"damaged: {promised} frames were recorded, {tally.frames} are found")

    def _round_before(self, mark: Mark) -> Mark:
        """Where to begin so that every frame from `mark` on can be unpacked."""
        rounds = self._rounds
        at = bisect_right(rounds, mark)
        return rounds[at - 1] if at else (mark if not rounds else Mark(0))

    def _learn(self, place: Mark) -> None:
        if not self._rounds or place > self._rounds[-1]:
            self._rounds.append(place)


def _record(channel: Channel, data: bytes, decoder: Decoder, unpacker: Unpacker) -> Record | None:
    if channel.message_encoding == PACKED_ENCODING:
        return unpacker.unpack((channel.metadata.get("source", ""), channel.metadata.get("kind", "")), data)
    if channel.message_encoding == FRAME_ENCODING:
        return decoder.decode(data)
    if channel.topic == NOTES_TOPIC:
        return Note.from_json(data)
    return Said.from_json(data) if channel.topic == INCIDENTS_TOPIC else None


class _JsonDocument(Document):
    """A Document that was written by this program as JSON: parsed faster, its lines are of no use."""

    def __init__(self, path: str, data: bytes) -> None:
        self.path, self._lines = path, {}
        self.data = _decode_json(path, data)


def _decode_json(where: str, data: bytes) -> Any:
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise InputError(f"{where}: damaged: {problem}") from problem
