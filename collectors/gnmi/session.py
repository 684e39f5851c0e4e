"""One Subscribe stream: opened, read by a task of its own, ended."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import Any, Self

import grpc.aio  # type: ignore[import-untyped]

from collectors.base import Clock, CollectorError
from collectors.call import one_line
from collectors.gnmi import messages as m
from collectors.gnmi.clock import DeviceClock
from collectors.gnmi.complaint import REFUSALS, why
from collectors.gnmi.interfaces import Interfaces
from collectors.gnmi.subscription import WISHES, best_encoding, request

PAUSE_S = 0.03  # without a message: what belongs together has come
LONGEST_BURST_S = 0.3
FIRST_PAUSE_S = 0.2  # the same for the first values of a switch that does not say when it has told all
LONGEST_START_S = 1.0


class Session:
    """Writes into `interfaces` what a switch says, until it ends.

    failure: why it ended, None while it runs. heard: time.monotonic() of its last values. unreadable: messages that
    were none.
    """

    def __init__(self, channel: Any, interfaces: Interfaces, clock: Clock) -> None:
        self.failure: str | None = None
        self.unreadable = 0
        self.heard = time.monotonic()
        self._channel, self._interfaces, self._clock = channel, interfaces, clock
        self._device = DeviceClock()
        self._wake = asyncio.Event()
        self._began = 0.0  # time.monotonic() of the first values, 0 before them
        self._unread = self._synced = False
        self._call: Any = None
        self._task: asyncio.Task[None] | None = None

    # --- open and close ---

    @classmethod
    async def open(
        cls, channel: Any, interfaces: Interfaces, clock: Clock, *, metadata: Any, interval: float
    ) -> Self:
        """A stream whose first values have come; the channel is the session's from now on.

        Waits as long as it takes. Raises CollectorError where the switch does not want to.
        """
        session = cls(channel, interfaces, clock)
        try:
            encoding = await session._encoding(metadata)
            await session._subscribe(encoding, metadata, interval)
            await session._first_values()
        except BaseException:
            await session.close()
            raise
        return session

    async def close(self) -> None:
        """Ends stream and connection."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
        if self._call is not None:
            self._call.cancel()
        await self._channel.close()

    async def _encoding(self, metadata: Any) -> int:
        ask = self._channel.unary_unary(m.CAPABILITIES)
        try:
            answer = await ask(m.CapabilityRequest().SerializeToString(), metadata=metadata)
            return best_encoding(list(m.CapabilityResponse.FromString(answer).supported_encodings))
        except m.Unreadable as problem:
            raise CollectorError(f"what it answers is not gNMI ({problem})") from problem
        except grpc.aio.AioRpcError as problem:
            if problem.code() is grpc.StatusCode.UNIMPLEMENTED:  # Subscribe may work without
                return best_encoding([])
            raise CollectorError(why(problem)) from problem

    async def _subscribe(self, encoding: int, metadata: Any, interval: float) -> None:
        """Subscribes to as much as the switch lets us, and starts reading."""
        for wish in range(len(WISHES)):
            self._call = self._channel.stream_stream(m.SUBSCRIBE)(metadata=metadata)
            try:
                with contextlib.suppress(asyncio.InvalidStateError):  # it has ended; reading says why
                    await self._call.write(request(wish, encoding, interval).SerializeToString())
                first = await self._call.read()  # the stream is left open: its end would end the subscription
            except grpc.aio.AioRpcError as problem:
                if problem.code() in REFUSALS and wish < len(WISHES) - 1:
                    continue
                raise CollectorError(why(problem)) from problem
            if first is grpc.aio.EOF:
                raise CollectorError("it ended the subscription before it said anything")
            self._take(first)
            self._task = asyncio.create_task(self._read(), name="gnmi stream")
            return

    async def _first_values(self) -> None:
        """Waits until all interfaces have been named, as far as one can tell."""
        while not (self._unread and self._interfaces.names):
            if self.failure is not None:
                raise CollectorError(self.failure)
            await asyncio.sleep(PAUSE_S)
        while not self._synced and self.failure is None:
            now = time.monotonic()
            if now - self.heard > FIRST_PAUSE_S or now - self._began > LONGEST_START_S:
                return
            await asyncio.sleep(PAUSE_S)

    # --- read ---

    async def _read(self) -> None:
        try:
            while (message := await self._call.read()) is not grpc.aio.EOF:
                self._take(message)
            self.failure = "it ended the subscription"
        except grpc.aio.AioRpcError as problem:
            self.failure = why(problem)
        except Exception as problem:
            self.failure = one_line(problem)
        finally:
            self._wake.set()

    def _take(self, message: bytes) -> None:
        try:
            answer = m.SubscribeResponse.FromString(message)
        except m.Unreadable:
            self.unreadable += 1
            return
        kind = answer.WhichOneof("response")
        if kind == "update":
            notification = answer.update
            self._interfaces.take(notification, self._device.ours(notification.timestamp, self._clock()))
            self.heard = time.monotonic()
            self._began = self._began or self.heard
            self._unread = True
            self._wake.set()
        elif kind == "sync_response":
            self._synced = bool(self._began)  # Cumulus Linux says so before the first value

    async def news(self, seconds: float) -> bool:
        """Waits for something new, at most so long, and then until what comes with it has come. False for nothing."""
        came = await self._more(seconds)
        end = time.monotonic() + LONGEST_BURST_S
        more = came
        while more and time.monotonic() < end:
            more = await self._more(PAUSE_S)
        return came

    async def _more(self, seconds: float) -> bool:
        """Waits for a message, at most so long. False where none came."""
        if not self._unread and self.failure is None:
            self._wake.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._wake.wait()
        came, self._unread = self._unread, False
        return came
