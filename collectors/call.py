"""One call of a collector's code, under a time limit that holds even where the code ignores being cancelled."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine
from typing import Any, Generic, TypeVar

from collectors.base import Collector, CollectorError, Sample
from twin.errors import FabrictwinError
from twin.frames import Frame

T = TypeVar("T")


class Call(Generic[T]):
    """A coroutine in a task of its own.

    The caller waits beside the task, not in it as with asyncio.timeout, so that a coroutine which swallows
    its cancellation cannot hold the caller.
    """

    def __init__(self, coroutine: Coroutine[Any, Any, T]) -> None:
        self._coroutine = coroutine
        self._task = asyncio.create_task(coroutine)
        self._task.add_done_callback(_look_at)

    async def wait(self, seconds: float) -> bool:
        """True when it has ended within `seconds`."""
        await asyncio.wait({self._task}, timeout=seconds)
        return self._task.done()

    def result(self) -> T:
        """What an ended call gave. Raises an Exception, whatever kind of BaseException it ended with."""
        if self._task.cancelled():
            raise CollectorError("it cancelled itself")
        problem = self._task.exception()
        if problem is not None and not isinstance(problem, Exception):
            raise CollectorError(one_line(problem)) from problem
        return self._task.result()

    async def end(self, grace: float) -> None:
        """Ends it where it has not ended: `grace` seconds after being told to, whether it wants or not."""
        self._task.cancel()
        if await self.wait(grace):
            return
        # It swallowed the cancellation. Closing the coroutine under its task raises GeneratorExit in it, and
        # ends the outermost part even where an inner one ignores that; a last step then ends the task.
        with contextlib.suppress(Exception):
            self._coroutine.close()
        self._task.cancel()
        await self.wait(grace)


async def collected(collector: Collector) -> Sample:
    """A collection whose answer has been looked at."""
    try:
        sample = await collector.collect()
    except SystemExit as problem:  # a library that exits: left alone, it would end the event loop for all
        raise CollectorError(f"{collector.name}: it tried to end the program") from problem
    for frame in sample.frames:
        if not isinstance(frame, Frame):
            raise TypeError(f"{collector.name} gave {type(frame).__name__} for a frame")
    return sample


def one_line(problem: BaseException, length: int = 300) -> str:
    """An exception as one line of at most `length` characters; the type is named where the text is no sentence."""
    try:
        text = " ".join(str(problem).split())
    except Exception:  # a foreign exception may fail at this too
        text = ""
    if not isinstance(problem, FabrictwinError):  # those are sentences already
        text = f"{type(problem).__name__}: {text}" if text else type(problem).__name__
    return text if len(text) <= length else text[: length - 1] + "…"


def _look_at(task: asyncio.Task[Any]) -> None:
    """Marks the exception of an abandoned call as seen, or asyncio would print it over the screen."""
    if not task.cancelled():
        task.exception()
