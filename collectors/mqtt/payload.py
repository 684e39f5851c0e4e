"""What a message may hold: our own frames, in binary or text form, and what agents say of themselves."""

from __future__ import annotations

from typing import Protocol

from collectors.mqtt.inbox import Message
from collectors.mqtt.status import is_status, may_be_called, status_frame
from twin.errors import InputError
from twin.frames import NS, Decoder, Frame, parse_line

_BINARY = b"FTF1"
_LATEST = 2**33 * NS  # as far as the text form goes
_NOT_TOLD = "clock_offset_seconds"  # of a source: measured against the agent's clock, not against ours


class Reader(Protocol):
    """Makes frames of messages. It keeps what it has made until it is asked for it."""

    def take(self, message: Message, now: int) -> list[str]:
        """Reads one message that came at `now` (ns); what of it cannot be used, one line each."""
        ...

    def frames(self) -> list[Frame]:
        """The frames made since the last call."""
        ...

    def warnings(self) -> list[str]:
        """What the user should know: one line each."""
        ...


class FrameReader:
    """Our own frames. own: the source of what is said here about others' sources.

    A frame of kind `source` is what an agent says of its collectors. The twin believes the clock of such frames,
    and a far host's may be wrong: they are told anew, in our name and as of now. Retained frames are left out:
    how old they are nobody knows, and a minute later there are fresh ones.
    """

    def __init__(self, own: str) -> None:
        self._own = own
        self._decoder = Decoder()
        self._frames: list[Frame] = []

    def take(self, message: Message, now: int) -> list[str]:
        if is_status(message.topic):
            return self._guarded(self._status, message.payload, now)
        if message.retained:
            return []
        if message.payload.startswith(_BINARY):
            return self._guarded(self._binary, message.payload, now)
        problems = []
        for line in message.payload.splitlines():
            if line.strip():
                problems += self._guarded(self._text, line, now)
        return problems

    def frames(self) -> list[Frame]:
        made, self._frames = self._frames, []
        return made

    def warnings(self) -> list[str]:
        return []

    def _guarded(self, read: _Read, payload: bytes, now: int) -> list[str]:
        try:
            read(payload, now)
        except InputError as problem:
            return [str(problem)]
        return []

    def _status(self, payload: bytes, now: int) -> None:
        frame = status_frame(payload, now, self._own)
        if frame is not None:
            self._frames.append(frame)

    def _binary(self, payload: bytes, now: int) -> None:
        self._accept(self._decoder.decode(payload), now)

    def _text(self, payload: bytes, now: int) -> None:
        for frame in parse_line(payload):
            if not all(map(str.isprintable, frame.names)):  # a recording joins names by newlines
                raise InputError("not a text frame: an address with a character that cannot be printed")
            self._accept(frame, now)

    def _accept(self, frame: Frame, now: int) -> None:
        if frame.kind == "source":
            if not all(map(may_be_called, frame.names)):
                raise InputError("frame about sources: one of them cannot be named so")
            told = {metric: values for metric, values in frame.columns.items() if metric != _NOT_TOLD}
            frame = Frame(now, self._own, frame.kind, frame.names, told)
        elif not may_be_called(frame.source):
            raise InputError(f"frame: a source cannot be named {frame.source!r}")
        elif not 0 <= frame.time < _LATEST:
            raise InputError(f"frame of source {frame.source!r}: its time {frame.time} is no time of ours")
        self._frames.append(frame)


class _Read(Protocol):
    def __call__(self, payload: bytes, now: int) -> None: ...
