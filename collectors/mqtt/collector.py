"""Frames from an MQTT broker: a connection in the background, an inbox, and a reader of what came."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterable, Sequence
from functools import partial

import aiomqtt

from collectors.base import Clock, CollectorError, Sample, Worker, frame_time
from collectors.call import one_line
from collectors.mqtt.connection import Broker, code, stay_connected, until_lost
from collectors.mqtt.inbox import Inbox, Message, wait_for
from collectors.mqtt.payload import Reader
from twin.frames import Frame

USED = 0.8  # of the interval and of the deadline: so long is waited for a message, and for the broker
REMEMBERED_S = 60.0  # a bad message is told this long after the last one
QUIET_S = 30.0  # without any message before that is told
_REFUSED = 0x80


class MqttCollector:
    """Subscribes to topics of one broker; the sources of its frames are their senders.

    The connection lives in a task of its own and comes back by itself; `collect` gives what has come since, after
    waiting for something to come, and fails while there is no connection.
    """

    def __init__(
        self,
        broker: Broker,
        topics: Sequence[str],
        reader: Reader,
        *,
        name: str = "mqtt",
        client_id: str | None = None,
        interval: float = 1.0,
        deadline: float = 10.0,
        clock: Clock = time.time_ns,
        inbox: Inbox | None = None,
    ) -> None:
        self.name, self.interval, self.deadline = name, interval, deadline
        self._broker, self._topics, self._reader = broker, list(topics), reader
        self._client_id, self._clock = client_id, clock
        self._inbox = inbox or Inbox()
        self._task: asyncio.Task[None] | None = None
        self._connected = asyncio.Event()
        self._trouble = f"broker {broker.name}: no connection yet"
        self._failures = 0
        self._heard = 0.0  # when something last came, monotonic seconds
        self._worker = Worker(name)
        self._bad = 0
        self._worst, self._bad_until = "", 0.0

    async def collect(self) -> Sample:
        """The frames that came since the last call, at most a little before the next is due.

        Raises CollectorError while there is no connection: after one interval at first, then after twice as
        long each time, so that of a long outage the end is seen at once.
        """
        self._start()
        await self._inbox.wait(USED * self.interval)
        if not self._inbox and not self._connected.is_set():
            await wait_for(self._connected, min(self.interval * 2**self._failures, USED * self.deadline))
            self._check()
        self._failures = 0
        messages = self._inbox.take()
        if not messages:
            return Sample((), self._warnings())
        self._heard = time.monotonic()
        frames = await self._worker.run(partial(self._read, messages))
        return Sample(frames, self._warnings())

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError, aiomqtt.MqttError):
                await self._task

    # --- the connection ---

    def _start(self) -> None:
        if self._task is None:
            self._heard = time.monotonic()
            connection = stay_connected(self._client, self._session, self._lost, self.name)
            self._task = asyncio.create_task(connection, name=f"connection {self.name}")

    def _client(self) -> aiomqtt.Client:
        return self._broker.client(self._client_id, deliver=self._inbox.put)

    async def _session(self, client: aiomqtt.Client) -> None:
        answers = await client.subscribe([(topic, 1) for topic in self._topics])
        refused = [t for t, a in zip(self._topics, answers, strict=False) if code(a) >= _REFUSED]
        if refused:
            raise aiomqtt.MqttError(f"it refuses to let us subscribe to {refused[0]}")
        self._connected.set()
        await until_lost(client)

    def _lost(self, problem: Exception) -> None:
        self._connected.clear()
        self._trouble = self._broker.why(problem)

    def _check(self) -> None:
        if self._task is not None and self._task.done() and not self._task.cancelled():
            problem = self._task.exception()  # a fault of ours: told, and begun anew next time
            self._task = None
            self._connected.clear()
            self._trouble = one_line(problem) if problem else "the connection ended"
        if not self._connected.is_set():
            self._failures += 1
            raise CollectorError(self._trouble)

    # --- what came ---

    def _read(self, messages: Iterable[Message]) -> list[Frame]:
        """In a thread: a batch of Telegraf can take a tenth of a second, which all other sources would wait for."""
        now = frame_time(self._clock)
        for message in messages:
            problems = self._reader.take(message, now)
            if problems:
                self._bad += len(problems)
                self._worst = f"{message.topic!r}: {' '.join(problems[-1].split())[:200]}"
                self._bad_until = time.monotonic() + REMEMBERED_S
        return self._reader.frames()

    def _warnings(self) -> list[str]:
        now = time.monotonic()
        out = list(self._reader.warnings())
        if now < self._bad_until:
            out.append(
                f"{self._bad} parts of {self._inbox.received} messages could not be read, the last {self._worst}"
            )
        if self._inbox.dropped:
            out.append(f"{self._inbox.dropped} messages came faster than they could be read: the oldest were dropped")
        if now - self._heard > max(QUIET_S, 3 * self.interval):
            out.append(f"connected, but nothing has come on {', '.join(self._topics)} for {now - self._heard:.0f} s")
        return out
