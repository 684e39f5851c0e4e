"""An agent's side of MQTT: the newest frames to a broker, and who is speaking, retained and as last will.

Samples go with QoS 0. A second later there is a newer one, and a counter that is read again tells what the lost
reading would have told; QoS 1 would keep old readings in queues and bring them late, out of order or twice. The
status is said once and must arrive: QoS 1, retained.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from types import TracebackType
from typing import Self

import aiomqtt

from collectors.mqtt.connection import Broker, stay_connected, until_lost
from collectors.mqtt.status import STATUS, Status, agent_topic, encode_status
from twin.frames import Frame, encode

GOODBYE_S = 3.0  # for what is left and the offline status, when told to end

Key = tuple[str, str, tuple[str, ...]]  # source, kind, names
Tell = Callable[[str], None]


class Publisher:
    """Publishes frames for as long as it is open: `async with Publisher(…) as publisher: publisher.put(frame)`.

    While the broker is away, or slower than the frames, the newest of each source, kind and set of names waits: an
    old reading tells nothing that a newer one does not, and a heap of late ones can look like a wrong clock.
    """

    def __init__(
        self,
        broker: Broker,
        *,
        site: str,
        pod: str,
        node: str,
        sources: Mapping[str, float],
        client_id: str | None = None,
        tell: Tell = lambda line: None,
    ) -> None:
        """sources: interval of each in seconds. tell: called with a line when connected and when that is lost."""
        self._broker, self._place, self._tell = broker, (site, pod, node), tell
        self._node, self._sources = node, dict(sources)
        self._client_id = client_id or f"fabrictwin-{site}-{node}"
        self._waiting: dict[Key, Frame] = {}
        self._ready = asyncio.Event()
        self._ending = False
        self._lost_told = False
        self._task: asyncio.Task[None] | None = None
        self.connected = False
        self.published = 0
        self.trouble: str | None = None  # why there is no connection

    async def __aenter__(self) -> Self:
        connection = stay_connected(self._client, self._session, self._lost, self._client_id)
        self._task = asyncio.create_task(connection, name="publisher")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Says goodbye where there is a connection, within a few seconds."""
        assert self._task is not None
        self._ending = True
        self._ready.set()
        if self.connected:
            await asyncio.wait({self._task}, timeout=GOODBYE_S)
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task

    def put(self, frame: Frame) -> None:
        """Hands over a frame; never waits."""
        self._waiting[frame.source, frame.kind, frame.names] = frame
        self._ready.set()

    @property
    def idle(self) -> bool:
        """True when all that was handed over has been published."""
        return self.connected and not self._waiting

    @property
    def topic(self) -> str:
        """What its topics begin with."""
        return agent_topic(*self._place, "").rpartition("/")[0]

    def _status(self, **said: str) -> bytes:
        return encode_status(Status(node=self._node, sources=self._sources, version=_version(), **said))  # type: ignore[arg-type]

    def _client(self) -> aiomqtt.Client:
        gone = self._status(state="offline", why="the connection was lost")
        will = aiomqtt.Will(agent_topic(*self._place, STATUS), gone, qos=1, retain=True)
        return self._broker.client(self._client_id, will=will)

    async def _session(self, client: aiomqtt.Client) -> None:
        status = agent_topic(*self._place, STATUS)
        await client.publish(status, self._status(state="online"), qos=1, retain=True)
        self.connected, self._lost_told = True, False
        self._tell(f"connected to {self._broker.name}: {', '.join(self._sources)} to {self.topic}")
        lost = asyncio.create_task(until_lost(client), name="publisher: connection")
        lost.add_done_callback(lambda task: task.cancelled() or task.exception())  # looked at, or asyncio prints it
        try:
            while True:
                await self._send(client)
                if self._ending:
                    await client.publish(status, self._status(state="offline", why="stopped"), qos=1, retain=True)
                    return
                await self._wait(lost)
        finally:
            self.connected = False
            lost.cancel()

    async def _send(self, client: aiomqtt.Client) -> None:
        while self._waiting:
            key = next(iter(self._waiting))
            frame = self._waiting.pop(key)
            try:
                await client.publish(agent_topic(*self._place, frame.kind), encode(frame))
            except aiomqtt.MqttError:
                self._waiting.setdefault(key, frame)  # unless there is a newer one by now
                raise
            self.published += 1

    async def _wait(self, lost: asyncio.Task[None]) -> None:
        """For frames or the end; raises what ended the connection."""
        self._ready.clear()
        if self._waiting or self._ending:
            return
        ready = asyncio.create_task(self._ready.wait())
        try:
            await asyncio.wait({ready, lost}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            ready.cancel()
        if lost.done():
            lost.result()

    def _lost(self, problem: Exception) -> None:
        self.trouble = self._broker.why(problem)
        if not self._lost_told:  # once, not with every try
            self._lost_told = True
            self._tell(f"{self.trouble}; collecting goes on, and so do tries")


def _version() -> str:
    try:
        return version("fabrictwin")
    except PackageNotFoundError:
        return "0"
