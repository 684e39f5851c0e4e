"""Messages between their arrival and their reading: as many as fit, and of those the newest."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import NamedTuple

MESSAGES = 16_384
BYTES = 64 * 2**20


class Message(NamedTuple):
    """One message. retained: the broker kept it from before we asked, so nobody knows how old it is."""

    topic: str
    payload: bytes
    retained: bool = False


class Inbox:
    """A queue that never makes the sender wait: what is too much costs the oldest, which is counted.

    The oldest go because a newer reading of the same counters says more.
    """

    def __init__(self, messages: int = MESSAGES, size: int = BYTES) -> None:
        self._most, self._most_bytes = messages, size
        self._messages: deque[Message] = deque()
        self._bytes = 0
        self._ready = asyncio.Event()
        self.dropped = 0
        self.received = 0

    def __len__(self) -> int:
        return len(self._messages)

    def put(self, message: Message) -> None:
        self._messages.append(message)
        self._bytes += len(message.payload)
        self.received += 1
        while len(self._messages) > self._most or (self._bytes > self._most_bytes and len(self._messages) > 1):
            self._bytes -= len(self._messages.popleft().payload)
            self.dropped += 1
        self._ready.set()

    async def wait(self, seconds: float) -> None:
        """Until there is a message, for at most `seconds`."""
        if not self._messages:
            self._ready.clear()
            await wait_for(self._ready, seconds)

    def take(self) -> deque[Message]:
        """All that wait, in order of arrival."""
        taken, self._messages, self._bytes = self._messages, deque(), 0
        return taken


async def wait_for(event: asyncio.Event, seconds: float) -> None:
    """Until the event is set, for at most `seconds`."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        pass
