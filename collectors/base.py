"""What a source looks like to the rest: a protocol, its sample, its error, and a thread for blocking reads."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from twin.errors import FabrictwinError
from twin.frames import Frame

Clock = Callable[[], int]  # nanoseconds since the epoch, like time.time_ns
T = TypeVar("T")


class CollectorError(FabrictwinError):
    """A source gave nothing this time. Its text is one line: what, where, what to do."""


@dataclass(frozen=True, slots=True)
class Sample:
    """What one collection gave. warnings: one line for each part that could not be had."""

    frames: Sequence[Frame] = ()
    warnings: Sequence[str] = ()


class Collector(Protocol):
    """One source. It keeps no schedule and retries nothing: the supervisor does both.

    name: the source of its frames, unique on this host. interval: seconds from one collection to the
    next. deadline: seconds after which a collection has failed. `collect` must not block the event loop
    (files that may block are read in a Worker); it raises CollectorError where there is nothing to give,
    and returns what there is with warnings where only a part is missing.
    """

    @property
    def name(self) -> str: ...

    @property
    def interval(self) -> float: ...

    @property
    def deadline(self) -> float: ...

    async def collect(self) -> Sample: ...

    async def close(self) -> None: ...


def frame_time(clock: Clock) -> int:
    """Now, in nanoseconds rounded to a microsecond: what the text form of a frame can hold."""
    return (clock() + 500) // 1_000 * 1_000


class Worker:
    """Runs blocking work in a thread of its own, one piece at a time.

    Not asyncio.to_thread: its threads are shared by everybody and are waited for when the loop ends, so
    that one read stuck in a driver would starve the other sources and then hold up the exit. Here a stuck
    thread costs itself alone: it is a daemon, and no second one is started beside it.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._busy = False

    async def run(self, work: Callable[[], T]) -> T:
        """What `work` returns or raises. CollectorError while an earlier piece has not come back."""
        if self._busy:
            raise CollectorError(f"{self._what}: an earlier read is still blocked in the kernel")
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()

        def deliver(result: T | None, problem: BaseException | None) -> None:
            if answer.done():  # given up in the meantime
                return
            if problem is not None:
                answer.set_exception(problem)
            else:
                answer.set_result(result)  # type: ignore[arg-type]

        def body() -> None:
            result, problem = None, None
            try:
                result = work()
            except BaseException as raised:
                problem = raised
            self._busy = False
            with contextlib.suppress(RuntimeError):  # the loop has ended: nobody waits
                loop.call_soon_threadsafe(deliver, result, problem)

        self._busy = True
        try:
            threading.Thread(target=body, name=f"collector {self._what}", daemon=True).start()
        except RuntimeError as problem:
            self._busy = False
            raise CollectorError(f"{self._what}: no thread can be started ({problem})") from problem
        return await answer
