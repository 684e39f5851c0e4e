"""A thread that stays, for calls into a driver that may not come back.

To start a thread for each sample, or to answer through the event loop's own queue, costs more CPU than reading eight
GPUs does: so the thread says by an eventfd, which the loop watches, that it is done.
"""

from __future__ import annotations

import asyncio
import os
import queue
import threading
from collections.abc import Callable

from collectors.base import CollectorError

Work = Callable[[], None]
_Jobs = queue.SimpleQueue[Work | None]


class Lane:
    """Runs one piece of work at a time. Its thread is started when it is first needed, and again after a fork."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._pid = 0  # of the process that has the thread
        self._jobs: _Jobs = queue.SimpleQueue()
        self._done = -1  # the eventfd
        self._loop: asyncio.AbstractEventLoop | None = None  # that watches it
        self._busy = False
        self._problem: BaseException | None = None
        self._answer: asyncio.Future[bool] | None = None

    async def run(self, work: Work, patience: Callable[[], float]) -> bool:
        """True when `work` has ended, False when it was given up. Raises what it raises.

        patience: for how many more seconds it may go on; it is asked again when they are over. CollectorError while
        earlier work that was given up has not come back.
        """
        if self._pid != os.getpid():
            self._start()
        if self._busy and not self._came_back():
            raise CollectorError(f"{self._name}: an earlier call is still blocked in the driver")
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop = loop
            loop.add_reader(self._done, self._ended)
        answer: asyncio.Future[bool] = loop.create_future()
        self._answer = answer
        timer: asyncio.TimerHandle | None = None

        def look() -> None:
            nonlocal timer
            left = patience()
            if left > 0:
                timer = loop.call_later(left, look)
            elif not answer.done():
                answer.set_result(False)

        def job() -> None:
            self._problem = None
            try:
                work()
            except BaseException as raised:
                self._problem = raised

        self._busy = True
        look()
        self._jobs.put(job)
        try:
            return await answer
        finally:
            self._answer = None
            if timer is not None:
                timer.cancel()

    def _came_back(self) -> bool:
        try:
            os.eventfd_read(self._done)
        except BlockingIOError:
            return False
        self._busy = False
        return True

    def _ended(self) -> None:
        if not self._came_back() or self._answer is None or self._answer.done():  # or given up in the meantime
            return
        if self._problem is None:
            self._answer.set_result(True)
        else:
            self._answer.set_exception(self._problem)

    def leave(self) -> None:
        """Lets its thread end as soon as it has come back; a later `run` starts another."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.remove_reader(self._done)
        if self._pid == os.getpid():
            self._jobs.put(None)
        self._pid, self._loop = 0, None

    def _start(self) -> None:
        self._jobs, self._busy, self._loop = queue.SimpleQueue(), False, None  # a parent process has its own
        self._done = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        thread = threading.Thread(
            target=_serve, args=(self._jobs, self._done), name=f"collector {self._name}", daemon=True
        )
        try:
            thread.start()
        except RuntimeError as problem:
            os.close(self._done)
            raise CollectorError(f"{self._name}: no thread can be started ({problem})") from problem
        self._pid = os.getpid()


def _serve(jobs: _Jobs, done: int) -> None:
    try:
        while (job := jobs.get()) is not None:
            job()
            del job  # it holds what it worked for
            os.eventfd_write(done, 1)
    finally:
        os.close(done)
