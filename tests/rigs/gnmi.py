"""A switch with a gNMI server on loopback, as the makers of switches build them, from a second copy of the messages.

The messages are those that pygnmi brings, generated from the published gnmi.proto.
"""

from __future__ import annotations

import asyncio
import datetime
import json
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Self

import grpc
import grpc.aio
import pygnmi.spec.v080.gnmi_pb2 as pb
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

BATCH = 32  # leaves a notification, as Arista sends them


@dataclass
class Port:
    """One interface. rate: bytes/s that its octet counters grow by."""

    status: str = "UP"
    speed: str = "SPEED_400GB"
    counters: dict[str, int] = field(default_factory=dict)
    rate: float = 0.0

    def counts(self, seconds: float) -> dict[str, int]:
        grown = round(self.rate * seconds)
        return {n: v + (grown if n.endswith("octets") else 0) for n, v in self.counters.items()}


Maker = Callable[[dict[str, Port], float, int, bool], Iterator[pb.Notification]]


# --- paths and values ---


def path(text: str, **outer: str) -> pb.Path:
    """`interfaces/interface[Ethernet0]/state` as a Path; the brackets hold the name. outer: origin, target."""
    made = pb.Path(**outer)
    depth, part = 0, ""
    for letter in f"{text}/":
        depth += (letter == "[") - (letter == "]")
        if letter == "/" and not depth:
            name, _, key = part.partition("[")
            if name:
                made.elem.add(name=name, key={"name": key[:-1]} if key else {})
            part = ""
        else:
            part += letter
    return made


def typed(value: Any) -> pb.TypedValue:
    """A value in the field that its Python type is for."""
    if isinstance(value, bool):
        return pb.TypedValue(bool_val=value)
    if isinstance(value, int):
        return pb.TypedValue(uint_val=value)
    return pb.TypedValue(string_val=value)


def ietf(value: Any) -> pb.TypedValue:
    """JSON of RFC 7951: whole numbers as text."""
    return pb.TypedValue(json_ietf_val=json.dumps(str(value) if isinstance(value, int) else value).encode())


def _leaves(port: Port, seconds: float, states: bool) -> Iterator[tuple[str, Any]]:
    for name, value in port.counts(seconds).items():
        yield f"state/counters/{name}", value
    if states:
        yield "state/oper-status", port.status
        yield "ethernet/state/port-speed", port.speed


# --- the habits of switches ---


def sonic(ports: dict[str, Port], seconds: float, stamp: int, states: bool) -> Iterator[pb.Notification]:
    """One notification an interface, named in the prefix; leaves are JSON, numbers text, words have a module."""
    for name, port in ports.items():
        out = pb.Notification(timestamp=stamp, prefix=path(f"interfaces/interface[{name}]", target="OC-YANG"))
        for leaf, value in _leaves(port, seconds, states):
            module = "openconfig-if-ethernet:" if leaf.startswith("ethernet") else ""
            out.update.add(path=path(leaf), val=ietf(value if isinstance(value, int) else module + value))
        yield out


def arista(ports: dict[str, Port], seconds: float, stamp: int, states: bool) -> Iterator[pb.Notification]:
    """Typed values at whole paths, 32 a notification whatever they belong to."""
    leaves = [(n, leaf, value) for n, port in ports.items() for leaf, value in _leaves(port, seconds, states)]
    for start in range(0, len(leaves), BATCH):
        out = pb.Notification(timestamp=stamp, prefix=pb.Path(origin="openconfig"))
        for name, leaf, value in leaves[start : start + BATCH]:
            out.update.add(path=path(f"interfaces/interface[{name}]/{leaf}"), val=typed(value))
        yield out


def tree(ports: dict[str, Port], seconds: float, stamp: int, states: bool) -> Iterator[pb.Notification]:
    """All interfaces as one JSON value."""
    listed = []
    for name, port in ports.items():
        counters = {n: str(v) for n, v in port.counts(seconds).items()}
        one: dict[str, Any] = {"name": name, "config": {"name": name, "mtu": 9100}, "state": {"counters": counters}}
        if states:
            one["state"] |= {"name": name, "oper-status": port.status, "enabled": True}
            one["openconfig-if-ethernet:ethernet"] = {
                "state": {"port-speed": f"openconfig-if-ethernet:{port.speed}", "mac-address": "00:00:00:00:00:01"}
            }
        one["subinterfaces"] = {"subinterface": [{"index": 0, "state": {"oper-status": "DOWN"}}]}
        listed.append(one)
    out = pb.Notification(timestamp=stamp)
    value = {"openconfig-interfaces:interface": listed}
    out.update.add(path=path("interfaces"), val=pb.TypedValue(json_ietf_val=json.dumps(value).encode()))
    yield out


# --- the server ---


class Switch:
    """A switch that streams. Change `ports` and call `tell` for what a switch sends on change.

    refuses: path endings (`port-speed`) or `ON_CHANGE` that Subscribe answers with INVALID_ARGUMENT. silent: it
    accepts calls and says nothing. user: name and password it asks for. ahead: of its clock, seconds. late_sync:
    False for a switch that says first that all has been said. once: it ends the stream when all has been said.
    pause: between the first notifications, seconds.
    """

    def __init__(
        self,
        make: Maker,
        ports: dict[str, Port],
        *,
        refuses: Iterable[str] = (),
        user: tuple[str, str] | None = None,
        silent: bool = False,
        late_sync: bool = True,
        once: bool = False,
        pause: float = 0.0,
        ahead: float = 0.0,
        encodings: Iterable[str] = ("JSON", "JSON_IETF", "PROTO"),
        tls: Certificates | None = None,
    ) -> None:
        self.make, self.ports, self.refuses, self.user, self.silent = make, ports, tuple(refuses), user, silent
        self.late_sync, self.once, self.ahead, self.encodings, self.tls = (
            late_sync,
            once,
            ahead,
            tuple(encodings),
            tls,
        )
        self.pause, self.port = pause, 0
        self.requests: list[pb.SubscribeRequest] = []
        self.extra: list[pb.SubscribeResponse | bytes] = []  # sent once, to the next that subscribes
        self.metadata: dict[str, Any] = {}
        self._server: Any = None
        self._changed = asyncio.Condition()
        self._began = time.time()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.kill()

    async def start(self) -> None:
        """Listens, after a `kill` on the port it had."""
        self._server = grpc.aio.server(options=(("grpc.so_reuseport", 0),))
        self._server.add_generic_rpc_handlers((self._service(),))
        where = f"127.0.0.1:{self.port}"
        if self.tls is None:
            self.port = self._server.add_insecure_port(where)
        else:
            self.port = self._server.add_secure_port(where, self.tls.server_credentials())
        await self._server.start()

    def _service(self) -> grpc.GenericRpcHandler:
        def raw(answer: Any) -> bytes:
            return answer if isinstance(answer, bytes) else answer.SerializeToString()

        ask, subscribe = pb.CapabilityRequest.FromString, pb.SubscribeRequest.FromString
        methods = {
            "Capabilities": grpc.unary_unary_rpc_method_handler(self.capabilities, ask, raw),
            "Subscribe": grpc.stream_stream_rpc_method_handler(self.subscribe, subscribe, raw),
        }
        return grpc.method_handlers_generic_handler("gnmi.gNMI", methods)

    async def kill(self) -> None:
        await self._server.stop(None)

    async def tell(self) -> None:
        """Sends states to those who asked for changes."""
        async with self._changed:
            self._changed.notify_all()

    async def capabilities(self, request: Any, context: Any) -> pb.CapabilityResponse:
        await self._check(context)
        return pb.CapabilityResponse(
            supported_encodings=[pb.Encoding.Value(e) for e in self.encodings], gNMI_version="0.10.0"
        )

    async def subscribe(self, requests: Any, context: Any) -> AsyncIterator[pb.SubscribeResponse | bytes]:
        await self._check(context)
        asked = await anext(aiter(requests))
        self.requests.append(asked)
        wanted = asked.subscribe.subscription
        for one in wanted:
            words = (one.path.elem[-1].name, pb.SubscriptionMode.Name(one.mode))
            if any(word in self.refuses for word in words):
                await context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"not supported: {words}")
        sync = pb.SubscribeResponse(sync_response=True)
        if not self.late_sync:
            yield sync
        for notification in self._now(True):
            yield pb.SubscribeResponse(update=notification)
            await asyncio.sleep(self.pause)
        if self.late_sync:
            yield sync
        for answer in self.extra:
            yield answer
        self.extra = []
        if self.once:
            return
        interval = min(one.sample_interval for one in wanted if one.sample_interval) / 1e9
        sampled = all(one.mode == pb.SAMPLE for one in wanted)
        due = time.monotonic()
        while True:
            due += interval
            while (left := due - time.monotonic()) > 0:
                if await self._change(left) and not sampled:
                    for notification in self._now(True):
                        yield pb.SubscribeResponse(update=notification)
            for notification in self._now(sampled):
                yield pb.SubscribeResponse(update=notification)

    async def _change(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds), self._changed:
                await self._changed.wait()
        except TimeoutError:
            return False
        return True

    def _now(self, states: bool) -> Iterator[pb.Notification]:
        now = time.time()
        return self.make(self.ports, now - self._began, round((now + self.ahead) * 1e9), states)

    async def _check(self, context: Any) -> None:
        self.metadata = dict(context.invocation_metadata())
        if self.silent:
            await asyncio.Event().wait()
        if self.user is not None and self.user != (self.metadata.get("username"), self.metadata.get("password")):
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, "authentication failed")


# --- certificates ---


class Certificates:
    """An authority and what it has signed: the server's certificate for `name`, and a client's."""

    def __init__(self, directory: Path, name: str = "localhost", *, ask_client: bool = False) -> None:
        directory.mkdir(exist_ok=True)
        self.ca, self.cert, self.key = (directory / f"{what}.pem" for what in ("ca", "cert", "key"))
        self.client_cert, self.client_key = directory / "client.pem", directory / "client-key.pem"
        self._ask_client = ask_client
        signer = ec.generate_private_key(ec.SECP256R1())
        self.ca.write_bytes(_pem(_signed("Test authority", signer, "Test authority", signer, ca=True)))
        for subject, cert, key in ((name, self.cert, self.key), ("monitor", self.client_cert, self.client_key)):
            own = ec.generate_private_key(ec.SECP256R1())
            cert.write_bytes(_pem(_signed(subject, own, "Test authority", signer)))
            form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
            key.write_bytes(own.private_bytes(*form))

    def server_credentials(self) -> grpc.ServerCredentials:
        pair = (self.key.read_bytes(), self.cert.read_bytes())
        authority = self.ca.read_bytes() if self._ask_client else None
        return grpc.ssl_server_credentials([pair], authority, self._ask_client)


def _signed(subject: str, key: Any, issuer: str, signer: Any, *, ca: bool = False) -> x509.Certificate:
    now = datetime.datetime.now(datetime.UTC)
    names = [x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, n)]) for n in (subject, issuer)]
    builder = (
        x509.CertificateBuilder()
        .subject_name(names[0])
        .issuer_name(names[1])
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=2))
        .add_extension(x509.BasicConstraints(ca, None), critical=True)
    )
    if not ca:
        is_ip = subject[0].isdigit()
        name = x509.IPAddress(ip_address(subject)) if is_ip else x509.DNSName(subject)
        builder = builder.add_extension(x509.SubjectAlternativeName([name]), critical=False)
    return builder.sign(signer, hashes.SHA256())


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
