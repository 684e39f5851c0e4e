"""How a switch is reached: its channel, credentials and certificates."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grpc  # type: ignore[import-untyped]
import grpc.aio  # type: ignore[import-untyped]

from collectors.base import Worker
from collectors.gnmi.pinning import shown
from twin.errors import InputError

if TYPE_CHECKING:
    from twin.sitespecs import GnmiSpec, TlsSpec

LARGEST = 64 * 2**20  # bytes of one message; a whole switch as JSON is about one MiB
_OPTIONS = (
    ("grpc.max_receive_message_length", LARGEST),
    ("grpc.enable_http_proxy", 0),
    ("grpc.use_local_subchannel_pool", 1),  # or a new channel would wait out the back-off of the last one
    ("grpc.enable_retries", 0),  # the supervisor does that
)


@dataclass(frozen=True)
class Tls:
    """PEM texts. insecure: whatever certificate the switch shows is taken (see pinning)."""

    ca: bytes | None = None
    cert: bytes | None = None
    key: bytes | None = None
    server_name: str | None = None
    insecure: bool = False


@dataclass(frozen=True)
class Access:
    """metadata: who we are, with every call. tls: None for a plain connection."""

    metadata: tuple[tuple[str, str], ...] = ()
    tls: Tls | None = None


def access_of(spec: GnmiSpec, directory: Path) -> Access:
    """What a site says. directory: of the site file. Raises InputError where a secret or file cannot be had."""
    tls = None if spec.tls is None else _tls(spec.tls, directory)
    if spec.username is None and spec.password is None:
        return Access((), tls)
    if spec.username is None or spec.password is None:
        raise InputError("collectors: gnmi: username and password belong together, and one of them is missing")
    user, password = spec.username, spec.password.value(directory, "collectors: gnmi: password")
    if not (user + password).isascii() or not (user + password).isprintable():
        raise InputError("collectors: gnmi: username and password: gRPC carries printable ASCII characters only")
    basic = base64.b64encode(f"{user}:{password}".encode()).decode()
    # most switches read the first two, Cumulus Linux the third (docs.nvidia.com, gNMI Streaming)
    return Access((("username", user), ("password", password), ("authorization", f"Basic {basic}")), tls)


def _tls(spec: TlsSpec, directory: Path) -> Tls:
    if (spec.cert is None) != (spec.key is None):
        raise InputError("collectors: gnmi: tls: cert and key belong together, and one of them is missing")
    if spec.insecure and spec.ca is not None:
        raise InputError("collectors: gnmi: tls: with insecure any certificate is taken, so ca has no use; drop one")

    def text(what: str, name: str | None) -> bytes | None:
        if name is None:
            return None
        try:
            return (directory / name).read_bytes()
        except OSError as problem:
            raise InputError(f"collectors: gnmi: tls: {what}: {directory / name} cannot be read: {problem}") from None

    ca, cert, key = text("ca", spec.ca), text("cert", spec.cert), text("key", spec.key)
    return Tls(ca, cert, key, spec.server_name, spec.insecure)


async def dial(address: str, tls: Tls | None, worker: Worker, seconds: float) -> Any:
    """A grpc.aio.Channel to `host:port`; it connects with the first call. seconds: limit for fetching a certificate.

    Raises CollectorError where a certificate is to be fetched and is not to be had.
    """
    if tls is None:
        return grpc.aio.insecure_channel(address, options=_OPTIONS)
    ca, name = tls.ca, tls.server_name
    if tls.insecure:
        ca, its_name = await worker.run(lambda: shown(address, seconds))
        name = name or its_name
    credentials = grpc.ssl_channel_credentials(ca, tls.key, tls.cert)
    options = (*_OPTIONS, ("grpc.ssl_target_name_override", name)) if name else _OPTIONS
    return grpc.aio.secure_channel(address, credentials, options=options)
