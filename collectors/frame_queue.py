"""The one queue between the sources and the twin: in order of arrival, and fair when it overflows."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque

from twin.frames import Frame


class FrameQueue:
    """A queue in which every source may have `capacity` frames waiting.

    `put` never waits: a source that has its share waiting loses its own oldest frame, which is counted,
    so a flood or a slow reader never costs another source a frame. The oldest goes because a newer
    reading of the same counters says more.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._frames: OrderedDict[int, tuple[str, Frame]] = OrderedDict()
        self._held: dict[str, deque[int]] = {}
        self._arrivals = 0
        self._ready = asyncio.Event()
        self._closed = False
        self.dropped: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._frames)

    def put(self, source: str, frame: Frame) -> None:
        """Appends a frame of `source`, which may cost that source its oldest."""
        held = self._held.setdefault(source, deque())
        if len(held) >= self._capacity:
            del self._frames[held.popleft()]
            self.dropped[source] = self.dropped.get(source, 0) + 1
        self._arrivals += 1
        held.append(self._arrivals)
        self._frames[self._arrivals] = (source, frame)
        self._ready.set()

    async def get(self) -> Frame | None:
        """The oldest frame; waits for one. None once the queue is closed and empty."""
        while not self._frames:
            if self._closed:
                return None
            self._ready.clear()
            await self._ready.wait()
        _, (source, frame) = self._frames.popitem(last=False)
        self._held[source].popleft()
        return frame

    def close(self) -> None:
        """What waits can still be read; then readers are told that it is over."""
        self._closed = True
        self._ready.set()
