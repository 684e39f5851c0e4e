"""Keeps every source alive and apart from the others, and says once a second which of them fail."""

from __future__ import annotations

import asyncio
import time
import zlib
from collections import Counter, deque
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from collectors.base import Clock, Collector, CollectorError, Sample, frame_time
from collectors.call import Call, collected, one_line
from collectors.frame_queue import FrameQueue
from collectors.skew import Skew
from twin.errors import InputError
from twin.frames import NS, Frame, column
from twin.sources import SUPERVISOR as OWN_SOURCE

FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 60.0
JITTER = 0.1  # of a pause, so that sources which fail together are not asked again together
GRACE_S = 1.0  # how long something cancelled may take to end
CLOSING = 3  # graces to say goodbye in: a BMC has few sessions, and takes a second to end one
CAPACITY = 4096  # frames of one source that may wait for a slow reader; a broker can deliver 2,000 at once
SHORTEST_SLEEP_S = 0.001  # a source that is always late must not spin


@dataclass(frozen=True, slots=True)
class SourceHealth:
    """How one source does. ok: None before its first result. failures: in a row. last_success: ns.

    duration: seconds that its last collection took. late: collections in a row that took longer than its interval.
    clock_offset: seconds that the clock of its frames is ahead of ours, behind below zero; the worst of several.
    """

    name: str
    ok: bool | None
    failures: int
    last_error: str | None
    last_success: int | None
    warnings: tuple[str, ...]
    frames_dropped: int
    duration: float | None = None
    late: int = 0
    clock_offset: float | None = None


class Supervisor:
    """Runs collectors and hands out their frames, in order of arrival.

        async with Supervisor(collectors) as supervisor:
            async for frame in supervisor.frames():
                twin.ingest(frame)

    Every collector has its own task, interval and deadline; whatever it raises stays with it, and it is
    tried again after 1, 2, 4 … 60 seconds. Once a heartbeat there is a frame of kind `source` that names
    every collector: the twin has no clock, so this is how it sees time pass when all else is silent. It also tells
    how long each took and how far the clocks of all sources are off: only here is it known when a frame came in.
    One thing no supervisor can prevent: a collector that blocks the event loop itself.
    """

    def __init__(
        self,
        collectors: Sequence[Collector],
        *,
        clock: Clock = time.time_ns,
        heartbeat: float = 1.0,
        capacity: int = CAPACITY,
        first_pause: float = FIRST_PAUSE_S,
        longest_pause: float = LONGEST_PAUSE_S,
        grace: float = GRACE_S,
    ) -> None:
        """Raises InputError where two collectors share a name or one has a name that cannot be used."""
        self._names = tuple(collector.name for collector in collectors)
        _check_names(self._names)
        self._clock, self._heartbeat = clock, heartbeat
        self._queue = FrameQueue(capacity)
        self._runners = [_Runner(c, self._queue, clock, (first_pause, longest_pause), grace) for c in collectors]
        self._tasks: list[asyncio.Task[None]] = []
        self._closing: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def start(self) -> None:
        """Starts collecting; needs a running event loop. Again, or after `close`, it does nothing."""
        if not self._tasks and self._closing is None:
            self._tasks = [asyncio.create_task(self._beat(), name="supervisor heartbeat")]
            self._tasks += [asyncio.create_task(r.run(), name=f"source {r.name}") for r in self._runners]

    def frames(self) -> AsyncIterator[Frame]:
        """Every frame until `close`, and then those that wait; starts collecting. For one reader."""
        self.start()
        return _Frames(self._queue)

    def health(self) -> list[SourceHealth]:
        """How every source does, in the order given."""
        return [r.health(self._queue.dropped.get(r.name, 0)) for r in self._runners]

    async def close(self) -> None:
        """Ends every task and closes every collector, within a few times the grace. Frames that wait remain."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._close(), name="supervisor close")
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.gather(*(r.close() for r in self._runners))
        self._queue.close()

    async def _beat(self) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time()
        while True:
            self._queue.put(OWN_SOURCE, self._source_frame())
            due = max(due + self._heartbeat, loop.time())  # beats missed while the host slept stay missed
            await asyncio.sleep(max(due - loop.time(), SHORTEST_SLEEP_S))

    def _source_frame(self) -> Frame:
        """One row a collector, and one a further source of theirs, of which only the clock is known."""
        health = self.health()
        offsets: dict[str, float | None] = dict.fromkeys(self._names)
        for runner in self._runners:
            offsets |= {n: s for n, s in runner.skew.seconds().items() if n and n.isprintable()}
        rest = [None] * (len(offsets) - len(health))
        columns = {
            "up": column((*(h.ok for h in health), *rest), counter=False),
            "interval_seconds": column((*(r.pace for r in self._runners), *rest), counter=False),
            "duration_seconds": column((*(h.duration for h in health), *rest), counter=False),
            "late": column((*(h.late for h in health), *rest), counter=False),
            "failures": column((*(h.failures for h in health), *rest), counter=False),
            "frames_dropped": column((*(h.frames_dropped for h in health), *rest), counter=False),
            "clock_offset_seconds": column(offsets.values(), counter=False),
        }
        return Frame(frame_time(self._clock), OWN_SOURCE, "source", tuple(offsets), columns)


class _Frames(AsyncIterator[Frame]):
    """Not an async generator: one that is left half read would be closed at some later time, in another task."""

    def __init__(self, queue: FrameQueue) -> None:
        self._queue = queue

    async def __anext__(self) -> Frame:
        frame = await self._queue.get()
        if frame is None:
            raise StopAsyncIteration
        return frame


class _Runner:
    """One collector: when it is asked, what it answered, and that it ends."""

    def __init__(
        self, collector: Collector, queue: FrameQueue, clock: Clock, pauses: tuple[float, float], grace: float
    ) -> None:
        self.name, self.interval, self._deadline = collector.name, collector.interval, collector.deadline
        self._collector, self._queue, self._clock, self._pauses, self._grace = collector, queue, clock, pauses, grace
        self._call: Call[Sample] | None = None
        self._ok: bool | None = None
        self._failures = 0
        self._last_error: str | None = None
        self._last_success: int | None = None
        self._warnings: tuple[str, ...] = ()
        self._durations: deque[float] = deque(maxlen=2)  # of the last collections, seconds
        self._late = 0
        self.skew = Skew()

    @property
    def pace(self) -> float:
        """Seconds from one answer to the next: the interval, or longer where the last answers took longer."""
        return max(self.interval, min(self._durations, default=0.0))

    def health(self, dropped: int) -> SourceHealth:
        offsets = self.skew.seconds().values()
        return SourceHealth(
            self.name, self._ok, self._failures, self._last_error, self._last_success, self._warnings, dropped,
            self._durations[-1] if self._durations else None, self._late, max(offsets, key=abs, default=None),
        )  # fmt: skip

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time()
        while True:
            began = loop.time()
            try:
                self._accept(await self._ask(), loop.time() - began)
                due = max(due + self.interval, loop.time())  # a slow source is asked again at once, but once
            except Exception as problem:
                self._ok, self._failures, self._last_error = False, self._failures + 1, one_line(problem)
                due = loop.time() + pause_after(self._failures, self.name, *self._pauses)
            await asyncio.sleep(max(due - loop.time(), SHORTEST_SLEEP_S))

    async def _ask(self) -> Sample:
        call = self._call = Call(collected(self._collector))
        if not await call.wait(self._deadline):
            await call.end(self._grace)
            raise CollectorError(f"{self.name}: no answer within {self._deadline:g} s")
        return call.result()

    def _accept(self, sample: Sample, duration: float) -> None:
        for frame in sample.frames:
            self._queue.put(self.name, frame)
        now = self._clock()
        self.skew.note(sample.frames, self._last_success or now - round(duration * NS), now)
        self._durations.append(duration)
        self._late = self._late + 1 if duration > self.interval else 0
        self._ok, self._failures, self._last_success = True, 0, frame_time(lambda: now)
        self._warnings = tuple(sample.warnings)

    async def close(self) -> None:
        """Ends what is under way, then closes the collector. Raises nothing: one source never stops the rest."""
        if self._call is not None:
            await self._call.end(self._grace)
        closing = Call(_closed(self._collector))
        try:
            if await closing.wait(CLOSING * self._grace):
                closing.result()
            else:
                await closing.end(self._grace)
                raise CollectorError(f"not closed within {CLOSING * self._grace:g} s")
        except Exception as problem:
            self._last_error = f"on closing {self.name}: {one_line(problem)}"


def pause_after(failures: int, name: str, first: float, longest: float) -> float:
    """Seconds before another try: doubled with each failure. The jitter follows from the name, the same every run."""
    part = zlib.crc32(f"{name} {failures}".encode()) / 2**32
    return min(first * 2.0 ** min(failures - 1, 30) * (1 + JITTER * part), longest)


def _check_names(names: Sequence[str]) -> None:
    problems = [f"two sources are named {name!r}" for name, count in Counter(names).items() if count > 1]
    problems += [
        f"a source cannot be named {name!r}"
        for name in names
        if name in ("", OWN_SOURCE) or not name.isprintable()  # a newline would split the names of a binary frame
    ]
    if problems:
        raise InputError(problems)


async def _closed(collector: Collector) -> None:
    try:
        await collector.close()
    except SystemExit as problem:
        raise CollectorError("it tried to end the program") from problem
