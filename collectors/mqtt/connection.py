"""One broker: how it is reached, what is said when it is not, and a connection that comes back by itself.

aiomqtt is the library of today; its old name asyncio-mqtt breaks on a current paho.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiomqtt
from aiomqtt.exceptions import MqttConnectError
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from collectors.call import one_line
from collectors.mqtt.inbox import Message
from collectors.supervisor import pause_after
from twin.errors import InputError

if TYPE_CHECKING:
    from twin.sitespecs import MqttSpec, TlsSpec

PORT, TLS_PORT = 1883, 8883
KEEPALIVE_S = 10  # the broker tells the last will of a host that lost its power after one and a half of these
TIMEOUT_S = 5.0  # for an answer of the broker
LARGEST = 16 * 2**20  # bytes of a packet that a version 5 broker may send us
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 15.0
STEADY_S = 10.0  # a connection that held so long was a good one: the next pause is short again

_WRONG_USER = (0x86, 0x87, 4, 5)  # bad user name or password, not authorized: MQTT 5, then MQTT 3.1.1
_UNTRUSTED = re.compile(r"certificate verify failed: ([^(]+?)\.? *(?:\(_ssl|$)")


@dataclass(frozen=True, slots=True)
class Broker:
    """Where a broker is and as whom we come. tls: None for a plain connection."""

    host: str
    port: int
    version: str = "5"
    username: str | None = None
    password: str | None = None
    tls: ssl.SSLContext | None = None

    @classmethod
    def of(cls, spec: MqttSpec, directory: Path, where: str = "collectors: mqtt") -> Broker:
        """The broker of a site file. Raises InputError where a password or certificate cannot be read."""
        password = spec.password.value(directory, f"{where}: password") if spec.password else None
        tls = _tls_context(spec.tls, directory, f"{where}: tls") if spec.tls else None
        port = spec.port or (TLS_PORT if tls else PORT)
        return cls(spec.host, port, spec.version, spec.username, password, tls)

    @property
    def name(self) -> str:
        return f"{self.host}:{self.port}"

    def client(
        self,
        client_id: str | None,
        *,
        deliver: Callable[[Message], None] | None = None,
        will: aiomqtt.Will | None = None,
    ) -> aiomqtt.Client:
        """A client for one connection; needs a running event loop. deliver: called with every message.

        Incoming messages go to `deliver` instead of the client's own queue, which would either grow without bound
        or drop the newest; `client.messages` then gives nothing until it raises on the loss of the connection.
        """
        five = self.version == "5"
        properties = Properties(PacketTypes.CONNECT) if five else None  # type: ignore[no-untyped-call]
        if properties is not None:
            properties.MaximumPacketSize = LARGEST
        return aiomqtt.Client(
            self.host,
            self.port,
            username=self.username,
            password=self.password,
            identifier=client_id,
            protocol=aiomqtt.ProtocolVersion.V5 if five else aiomqtt.ProtocolVersion.V311,
            properties=properties,
            keepalive=KEEPALIVE_S,
            timeout=TIMEOUT_S,
            will=will,
            queue_type=_handing_to(deliver) if deliver else None,
            tls_context=self.tls,
            tls_insecure=True if self.tls is not None and not self.tls.check_hostname else None,
        )

    def why(self, problem: BaseException) -> str:
        """What went wrong with this broker, one line that says what to do."""
        if isinstance(problem.__cause__, aiomqtt.MqttCodeError):  # it stood, and the broker gives no reason
            return f"broker {self.name}: the connection was lost; if that goes on, has another client our client_id?"
        text = one_line(problem).removeprefix(f"{type(problem).__name__}: ")
        if isinstance(problem, MqttConnectError) and code(problem.rc) in _WRONG_USER:
            who = f"user {self.username!r}" if self.username else "a client without a user name"
            return f"broker {self.name} refuses {who}: check username and password, and whom it lets in"
        if found := _UNTRUSTED.search(text):
            return f"broker {self.name}: its certificate is not trusted ({found[1]}): check tls: ca and server_name"
        if "ALERT" in text or "WRONG_VERSION_NUMBER" in text:
            return f"broker {self.name}: TLS failed ({text}): check tls: cert and key, and the port"
        if "timed out" in text:
            return (
                f"broker {self.name} does not answer: check host and port, and tls: a client certificate may be due"
            )
        return f"broker {self.name} cannot be reached: {text}"


async def stay_connected(
    client: Callable[[], aiomqtt.Client],
    session: Callable[[aiomqtt.Client], Awaitable[None]],
    lost: Callable[[Exception], None],
    name: str,
) -> None:
    """Connects and runs `session`, again and again with longer pauses, until a session ends by itself.

    lost: told of every connection that was lost or could not be made. name: pauses differ by it, so that
    clients which lost one broker do not all come back at the same moment.
    """
    loop = asyncio.get_running_loop()
    failures = 0
    while True:
        began = loop.time()
        try:
            async with client() as connected:
                await session(connected)
                return
        except (aiomqtt.MqttError, OSError, ValueError) as problem:  # ValueError: a host name that is none
            lost(problem)
        failures = 1 if loop.time() - began > STEADY_S else failures + 1
        await asyncio.sleep(pause_after(failures, name, FIRST_PAUSE_S, LONGEST_PAUSE_S))


async def until_lost(client: aiomqtt.Client) -> None:
    """Waits for the end of a connection, and raises what ended it."""
    async for _ in client.messages:
        pass


def code(rc: Any) -> int:
    """The number of a reason code, which paho gives as an object or as the number itself."""
    return int(getattr(rc, "value", rc))


def _handing_to(deliver: Callable[[Message], None]) -> type[asyncio.Queue[aiomqtt.Message]]:
    class Handing(asyncio.Queue[aiomqtt.Message]):
        def put_nowait(self, item: aiomqtt.Message) -> None:
            deliver(Message(str(item.topic), item.payload, item.retain))

    return Handing


def _tls_context(spec: TlsSpec, directory: Path, where: str) -> ssl.SSLContext:
    """Raises InputError for a file that cannot be used."""
    if (spec.cert is None) != (spec.key is None):
        raise InputError(f"{where}: cert and key belong together; expected both or none")
    context: ssl.SSLContext = (
        _named(spec.server_name) if spec.server_name else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    )
    try:
        what = f"ca {spec.ca}"
        if spec.ca is None:
            context.load_default_certs()
        else:
            context.load_verify_locations(directory / spec.ca)
        what = f"cert {spec.cert} with key {spec.key}"
        if spec.cert is not None and spec.key is not None:
            context.load_cert_chain(directory / spec.cert, directory / spec.key)
    except (OSError, ssl.SSLError) as problem:
        reason = problem.strerror if not isinstance(problem, ssl.SSLError) else "not PEM, or they do not match"
        raise InputError(f"{where}: {what} cannot be used: {reason}") from problem
    if spec.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _named(server_name: str) -> ssl.SSLContext:
    """A context that expects this name in the certificate, whatever host was dialled."""

    class Named(ssl.SSLContext):
        def wrap_socket(self, *args: Any, **options: Any) -> ssl.SSLSocket:
            return super().wrap_socket(*args, **{**options, "server_hostname": server_name})

    return Named(ssl.PROTOCOL_TLS_CLIENT)
