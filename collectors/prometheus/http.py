"""HTTP for the Prometheus collectors, on aiohttp: who we are, whom we trust, and failures in words."""

from __future__ import annotations

import ssl
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from collectors.base import CollectorError
from twin.errors import InputError, MissingLibrary

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession

    from twin.sitespecs import ExporterSpec, PrometheusSpec, TlsSpec

LARGEST = 1 << 30  # bytes of an answer, unpacked; more is a mistake or an attack
_CHUNK = 1 << 20
_USED = 0.9  # of the collector's deadline: the reason is told before the supervisor gives up


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    content_type: str
    body: bytes


class Http:
    """One server. Its connection is kept between requests and opened by the first.

    spec: credentials and TLS; where: how errors name the site's entry. Raises MissingLibrary without aiohttp,
    InputError for a URL, secret or certificate that cannot be used.
    """

    def __init__(self, url: str, spec: PrometheusSpec | ExporterSpec, directory: Path, where: str) -> None:
        try:
            import aiohttp
        except ImportError as problem:
            raise MissingLibrary("aiohttp", "prometheus", "to read Prometheus and its exporters") from problem
        self._aiohttp = aiohttp
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InputError(f"{where}: {url!r}: expected a URL such as http://host:9090")
        if "@" in parts.netloc:
            raise InputError(f"{where}: a URL with a password in it; give username and password beside it")
        self.url, self.host = url, parts.netloc
        self._headers: dict[str, str] = {}
        if spec.token is not None:
            self._headers["Authorization"] = "Bearer " + spec.token.value(directory, f"{where}: token")
        elif spec.username is not None:
            password = "" if spec.password is None else spec.password.value(directory, f"{where}: password")
            self._headers["Authorization"] = "Basic " + b64encode(f"{spec.username}:{password}".encode()).decode()
        self._options: dict[str, Any] = {"allow_redirects": False}
        if parts.scheme == "https":
            self._options["ssl"] = _context(spec.tls, directory, where)
            if spec.tls is not None and spec.tls.server_name:
                self._options["server_hostname"] = spec.tls.server_name
        self._seconds = spec.deadline * _USED
        self._session: ClientSession | None = None

    async def get(self, url: str, headers: Mapping[str, str] | None = None) -> Reply:
        """Raises CollectorError where there is no whole answer within the time."""
        return await self._ask("GET", url, headers=headers)

    async def post(self, url: str, form: Mapping[str, str]) -> Reply:
        return await self._ask("POST", url, data=form)

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _ask(self, method: str, url: str, **request: Any) -> Reply:
        if self._session is None:
            limit = self._aiohttp.ClientTimeout(total=self._seconds)
            self._session = self._aiohttp.ClientSession(headers=self._headers, timeout=limit)
        try:
            async with self._session.request(method, url, **self._options, **request) as response:
                reply = Reply(response.status, response.content_type, await _body(response, self.host))
                self._refuse(reply, response.headers.get("Location"))
                return reply
        except TimeoutError as problem:
            raise CollectorError(f"{self.host}: no answer within {self._seconds:.3g} s") from problem
        except self._aiohttp.ClientConnectorCertificateError as problem:
            text = f"{self.host}: its certificate is not trusted ({problem.certificate_error}); set tls: {{ca: FILE}}"
            raise CollectorError(text) from problem
        except (self._aiohttp.ClientConnectorError, self._aiohttp.ClientConnectorSSLError) as problem:
            reason = problem.os_error.strerror or problem.os_error
            raise CollectorError(f"{self.host}: cannot be reached: {reason}") from problem
        except (self._aiohttp.ClientError, OSError) as problem:
            text = f"{self.host}: the answer broke off ({problem or type(problem).__name__})"
            raise CollectorError(text) from problem

    def _refuse(self, reply: Reply, location: str | None) -> None:
        """What no caller can use; other statuses are told by whom asked, who may know the body."""
        if 300 <= reply.status < 400:
            text = f"{self.host}: it redirects to {location or 'elsewhere'}: give that URL in the site file"
            raise CollectorError(text)
        if reply.status in (401, 403):
            text = f"{self.host}: access refused (HTTP {reply.status}); check username, password or token"
            raise CollectorError(text)


async def _body(response: ClientResponse, host: str) -> bytes:
    """The answer, unpacked; a small one that unpacks to more than LARGEST is given up on the way."""
    parts, size = [], 0
    async for part in response.content.iter_chunked(_CHUNK):
        size += len(part)
        if size > LARGEST:
            raise CollectorError(f"{host}: its answer is larger than {LARGEST >> 20} MiB; narrow it with a selector")
        parts.append(part)
    return b"".join(parts)


def _context(tls: TlsSpec | None, directory: Path, where: str) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=None if tls is None or tls.ca is None else directory / tls.ca)
        if tls is not None and tls.cert is not None:
            context.load_cert_chain(directory / tls.cert, None if tls.key is None else directory / tls.key)
    except (OSError, ValueError) as problem:  # ssl.SSLError is an OSError
        raise InputError(f"{where}: tls: a certificate or key cannot be used: {problem}") from problem
    if tls is not None and tls.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
