"""One BMC over HTTP: one request at a time, its session, and what its refusals mean.

Redfish specification, DMTF DSP0266: sessions (X-Auth-Token), basic authentication where a service has none.
"""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import Mapping
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

import msgspec

from collectors.base import CollectorError
from collectors.call import one_line
from collectors.redfish.pages import Page, path_of
from twin.errors import InputError, MissingLibrary

if TYPE_CHECKING:
    import httpx

    from twin.sitespecs import TlsSpec

SESSIONS = "/redfish/v1/SessionService/Sessions"
MOST_BYTES = 8 << 20  # of one page
MOST_REDIRECTS = 3
REFUSED_PAUSE_S = 300.0  # after a refused password: BMCs lock an account after a few, often five
LONGEST_PAUSE_S = 600.0  # that a BMC may ask for
IDLE_S = 4.0  # a connection is given back before the BMC drops it
CLOSING_S = 2.5  # for saying goodbye; the supervisor gives a little more

_REDIRECTS = frozenset((301, 302, 307, 308))


class BadPage(CollectorError):
    """One page could not be had; others may."""


class Bmc:
    """A Redfish service. Raises CollectorError where it cannot be used at all, BadPage where one page cannot.

    name: what users call it. trusted: whom to believe. timeout: seconds for one page. Proxies and ~/.netrc
    are not used. Redirects to another host are refused, so that a token never goes there.
    """

    def __init__(
        self,
        name: str,
        url: str,
        *,
        username: str | None = None,
        password: str = "",
        trusted: ssl.SSLContext | None = None,
        server_name: str | None = None,
        timeout: float = 6.0,
    ) -> None:
        self.url = url.rstrip("/")
        self._name, self._timeout = name, timeout
        self._user = None if username is None else (username, password)
        self._headers: dict[str, str] = {}  # that say who we are; empty before the login
        self._session: str | None = None
        self._makeshift = False  # basic authentication, though there may be sessions again later
        self._closed_until = 0.0  # of the loop's clock: no request before
        self._closed_why = ""
        self._sni = {} if server_name is None else {"sni_hostname": server_name}
        self._trusted = trusted or ssl.create_default_context()
        self._http = self._connection()

    def _connection(self) -> httpx.AsyncClient:
        limits = _library().Limits(max_connections=1, max_keepalive_connections=1, keepalive_expiry=IDLE_S)
        headers = {"Accept": "application/json", "OData-Version": "4.0"}
        client: httpx.AsyncClient = _library().AsyncClient(
            verify=self._trusted, trust_env=False, headers=headers, limits=limits
        )
        return client

    async def get(self, path: str) -> Page:
        """One page."""
        now = asyncio.get_running_loop().time()
        if now < self._closed_until:
            raise CollectorError(f"{self._closed_why}; it is asked again in {self._closed_until - now:.0f} s")
        if self._user is not None and not self._headers:
            await self._login(*self._user)
        status, headers, body = await self._follow(path)
        if status == HTTPStatus.UNAUTHORIZED and self._session is not None and self._user is not None:
            self._headers, self._session = {}, None  # it has expired
            await self._login(*self._user)
            status, headers, body = await self._follow(path)
        self._check(path, status, headers)
        return self._page(path, body)

    async def close(self) -> None:
        """Ends the session, since a BMC has few, and the connection."""
        await self._http.aclose()  # a request that was given up may hold the connection
        if self._session is not None:
            self._http = self._connection()
            with suppress(CollectorError, TimeoutError):
                async with asyncio.timeout(CLOSING_S):
                    await self._send("DELETE", self._session)
            await self._http.aclose()
        self._headers, self._session = {}, None

    # --- who we are ---

    async def _login(self, user: str, password: str) -> None:
        said = msgspec.json.encode({"UserName": user, "Password": password})
        status, headers, _ = await self._send("POST", SESSIONS, said)
        if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            self._refused()
        token = headers.get("x-auth-token")
        if token and status in (HTTPStatus.OK, HTTPStatus.CREATED):
            self._headers = {"X-Auth-Token": token}
            self._session = path_of(urlsplit(headers.get("location", "")).path)
        else:  # no sessions here, or none left for the moment
            plain = base64.b64encode(f"{user}:{password}".encode()).decode("ascii")
            self._headers = {"Authorization": f"Basic {plain}"}
            self._makeshift = status >= HTTPStatus.INTERNAL_SERVER_ERROR

    def _refused(self) -> None:
        self._headers, self._session = {}, None
        user = "this user" if self._user is None else f"user {self._user[0]!r}"
        self._pause(REFUSED_PAUSE_S, f"{self._name}: {self.url} refuses {user}; check username and password")

    def _pause(self, seconds: float, why: str) -> None:
        self._closed_until = asyncio.get_running_loop().time() + seconds
        self._closed_why = why
        raise CollectorError(why)

    # --- requests ---

    def _check(self, path: str, status: int, headers: Mapping[str, str]) -> None:
        if status == HTTPStatus.OK:
            return
        if status == HTTPStatus.UNAUTHORIZED:
            if self._user is None:
                raise CollectorError(f"{self._name}: {self.url} wants a user; give username and password")
            if self._makeshift:
                self._headers = {}
                raise CollectorError(f"{self._name}: {self.url} opens no session for now, and takes nothing else")
            self._refused()
        wait = headers.get("retry-after", "")
        if status in (HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.TOO_MANY_REQUESTS) and wait.isdecimal():
            seconds = min(float(wait[:6]), LONGEST_PAUSE_S)
            self._pause(seconds, f"{self._name}: {self.url} is busy (HTTP {status})")
        raise BadPage(f"{self._name}: {path}: HTTP {status}")

    def _page(self, path: str, body: bytes) -> Page:
        try:
            page = msgspec.json.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
            raise BadPage(
                f"{self._name}: {path}: expected JSON, found {body[:20]!r} ({len(body)} bytes)"
            ) from problem
        if not isinstance(page, dict):
            raise BadPage(f"{self._name}: {path}: expected a JSON object, found {type(page).__name__}")
        return page

    async def _follow(self, path: str) -> tuple[int, Mapping[str, str], bytes]:
        """A GET with its redirects: iLO adds a slash, a front end may send from one path to another."""
        here = path
        for _ in range(MOST_REDIRECTS + 1):
            answer = await self._send("GET", here)
            if answer[0] not in _REDIRECTS:
                return answer
            target = urljoin(self.url + here, answer[1].get("location", ""))
            if not target.startswith(self.url + "/"):
                raise CollectorError(
                    f"{self._name}: {self.url} sends to {target[:80]}; give that as its URL if meant"
                )
            here = target[len(self.url) :]
        raise BadPage(f"{self._name}: {path}: more than {MOST_REDIRECTS} redirects")

    async def _send(self, method: str, path: str, body: bytes | None = None) -> tuple[int, Mapping[str, str], bytes]:
        httpx = _library()
        headers = {**self._headers, **({} if body is None else {"Content-Type": "application/json"})}
        try:
            async with (
                asyncio.timeout(self._timeout),
                self._http.stream(
                    method,
                    self.url + path,
                    content=body,
                    headers=headers,
                    timeout=self._timeout,
                    extensions=self._sni,
                ) as response,
            ):
                return response.status_code, response.headers, await self._body(path, response)
        except httpx.ConnectError as problem:
            raise CollectorError(f"{self._name}: {self.url} cannot be reached: {_why(problem)}") from problem
        except httpx.ConnectTimeout as problem:
            raise CollectorError(f"{self._name}: {self.url} does not answer") from problem
        except (httpx.TimeoutException, TimeoutError) as problem:
            raise BadPage(f"{self._name}: {path}: no answer within {self._timeout:g} s") from problem
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as problem:
            raise BadPage(f"{self._name}: {path}: {one_line(problem, 120)}") from problem

    async def _body(self, path: str, response: httpx.Response) -> bytes:
        body = bytearray()
        async for chunk in response.aiter_bytes():
            body += chunk
            if len(body) > MOST_BYTES:
                raise BadPage(f"{self._name}: {path}: more than {MOST_BYTES >> 20} MiB")
        return bytes(body)


def _why(problem: Exception) -> str:
    text = one_line(problem, 160)
    if "certificate" in text.lower():
        return f"{text}; give its authority as tls: {{ca: FILE}}, or tls: {{insecure: true}}"
    return text


def _library() -> Any:
    try:
        import httpx
    except ImportError as problem:
        raise MissingLibrary("httpx", "redfish", "to read power from BMCs") from problem
    return httpx


def trust(tls: TlsSpec | None, directory: Path) -> ssl.SSLContext:
    """Whom to believe, by a site's `tls`. Raises InputError for a file that cannot be used."""
    if tls is None:
        return ssl.create_default_context()
    try:
        context = ssl.create_default_context(cafile=None if tls.ca is None else str(directory / tls.ca))
        if tls.cert is not None:
            context.load_cert_chain(directory / tls.cert, None if tls.key is None else directory / tls.key)
    except (OSError, ssl.SSLError) as problem:
        files = ", ".join(f for f in (tls.ca, tls.cert, tls.key) if f is not None)
        raise InputError(f"collectors: redfish: tls: {files} cannot be used: {one_line(problem, 120)}") from problem
    if tls.insecure:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context
