"""One SNMP agent: gets and bulk walks that are asked again when an answer is lost, and what failed in words."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field
from ipaddress import ip_address
from math import ceil
from typing import TYPE_CHECKING, TypeVar

from collectors.base import CollectorError

if TYPE_CHECKING:
    from gufo.snmp import User
    from gufo.snmp.aio import SnmpSession

Value = None | str | bytes | int | float  # of a cell, as the library hands it over
Cells = dict[str, Value]  # of one column: index -> cell
T = TypeVar("T")

TRIES = 3  # of one request or walk: a datagram may be lost, and nobody says so
# Cells asked for at once. An answer must fit 4,080 bytes (the library's buffer) and should fit one Ethernet frame: a
# number takes up to 35 bytes with its name, a text (DisplayString, RFC 2579) up to 280.
NUMBERS, TEXTS = 40, 12


_KEYS = {  # protocol of a site file -> the library's class
    "md5": "Md5Key", "sha": "Sha1Key", "sha224": "Sha224Key", "sha256": "Sha256Key", "sha384": "Sha384Key",
    "sha512": "Sha512Key", "des": "DesKey", "aes": "Aes128Key", "aes192": "Aes192Key", "aes256": "Aes256Key",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Login:
    """Who asks: a community (version 2c), or a user (version 3). auth, priv: (protocol, key)."""

    community: str | None = field(default=None, repr=False)
    user: str | None = None
    auth: tuple[str, str] | None = field(default=None, repr=False)
    priv: tuple[str, str] | None = field(default=None, repr=False)


class Agent:
    """Requests to one agent, one at a time. Every method raises CollectorError with one line for a person.

    patience: seconds within which TRIES of one request must have had their answer.
    """

    def __init__(self, host: str, port: int, login: Login, *, patience: float = 10.0) -> None:
        self.where = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        self._host, self._port, self._login = host, port, login
        self._timeout = patience / (TRIES + 1)
        self._session: SnmpSession | None = None
        self._heard = False  # it has answered more than a greeting, so that what we say of ourselves is right

    def forget(self) -> None:
        """Closes the socket; the next request opens another and, in version 3, learns anew what agent this is."""
        self._session, self._heard = None, False

    async def get(self, oids: Collection[str]) -> dict[str, Value]:
        """The objects that the agent has, by OID."""
        session = await self._open()
        return await self._ask(lambda: session.get_many(oids))

    async def walk(self, column: str, rows: int = 0, *, most: int = NUMBERS, last: str | None = None) -> Cells:
        """The cells of one column by index, up to index `last` where that is among them.

        rows: how many are expected, 0 unknown: they are asked for in as few, equal parts as `most` a part allows.
        """
        session = await self._open()
        cells = session.getbulk(column, repetitions(rows, most))
        found: Cells = {}

        async def take() -> None:  # asked again, it goes on where an answer was lost
            async for oid, value in cells:
                index = oid[len(column) + 1 :]
                if index in found:
                    raise CollectorError(f"{self.where} answers in circles: {oid} came twice; its agent is broken")
                found[index] = value
                if index == last:
                    return

        await self._ask(take)
        return found

    async def _open(self) -> SnmpSession:
        if self._session is None:
            from gufo.snmp import SnmpVersion
            from gufo.snmp.aio import SnmpSession

            version = SnmpVersion.v2c if self._login.user is None else SnmpVersion.v3
            try:
                self._session = SnmpSession(
                    await self._resolved(), self._port, community=self._login.community or "", user=self._user(),
                    version=version, timeout=self._timeout,
                )  # fmt: skip
            except OSError as problem:
                raise CollectorError(f"{self.where} cannot be reached: {problem}") from problem
        return self._session

    async def greet(self) -> None:
        """To be called before a row of requests: in version 3 we learn the agent's engine, boots and time.

        They are good for 150 s and until it restarts (RFC 3414, 2.2.3); one round trip is cheaper than to be refused.
        An engine that came back under another name is silent to those who call it by the old one.
        """
        if self._login.user is None:
            return
        if self._session is not None:
            try:
                return await self._ask(self._session.refresh, tries=1)
            except CollectorError:
                self.forget()
        session = await self._open()
        await self._ask(session.refresh, tries=TRIES - 1)
        self._heard = False

    async def _resolved(self) -> str:
        """The address of the host: the library takes no names."""
        try:
            return str(ip_address(self._host))
        except ValueError:
            pass
        try:
            found = await asyncio.get_running_loop().getaddrinfo(self._host, self._port)
        except (OSError, UnicodeError) as problem:
            raise CollectorError(f"{self._host}: no such host ({problem})") from problem
        return str(found[0][4][0])

    def _user(self) -> User | None:
        if self._login.user is None:
            return None
        from gufo.snmp import user as keys

        auth, priv = self._login.auth, self._login.priv
        return keys.User(
            self._login.user,
            auth_key=getattr(keys, _KEYS[auth[0]])(auth[1].encode()) if auth else None,
            priv_key=getattr(keys, _KEYS[priv[0]])(priv[1].encode()) if priv else None,
        )

    async def _ask(self, ask: Callable[[], Awaitable[T]], *, tries: int = TRIES) -> T:
        """What `ask` gives; it is called again when an answer is lost."""
        from gufo.snmp import SnmpAuthError, SnmpDecodeError, SnmpError

        for left in reversed(range(tries)):
            try:
                answer = await ask()
            except TimeoutError as problem:
                if "refused" in str(problem.__cause__):
                    raise CollectorError(f"{self.where}: nothing listens there; is SNMP enabled on it?") from problem
                if not left:
                    raise CollectorError(self._silent()) from problem
            except SnmpAuthError as problem:
                raise CollectorError(
                    f"{self.where} refuses user {self._login.user!r}: it is not known there, its auth protocol or "
                    f"key is another, or it must (or must not) use priv ({problem})"
                ) from problem
            except SnmpDecodeError as problem:  # also of an answer that came too late and mutilated
                if not left:
                    raise CollectorError(f"{self.where} answers what is not SNMP: {problem}") from problem
            except (SnmpError, OSError) as problem:
                raise CollectorError(f"{self.where}: {problem}") from problem
            except BaseException as problem:
                # the library panics on some mutilated answers, and a panic is no Exception
                if type(problem).__name__ != "PanicException":
                    raise
                raise CollectorError(f"{self.where} answers what is not SNMP: {problem}") from problem
            else:
                self._heard = True
                return answer
        raise AssertionError("the last try has returned or raised")

    def _silent(self) -> str:
        if self._heard:
            return f"{self.where} has stopped answering"
        if self._login.user is None:
            return (
                f"{self.where} does not answer: it cannot be reached, it does not admit this host, or the community "
                "is wrong (a wrong one gets no answer)"
            )
        also = ", or its priv protocol or key is another (a wrong one gets no answer)" if self._login.priv else ""
        return f"{self.where} does not answer user {self._login.user!r}: it cannot be reached{also}"


def repetitions(rows: int, most: int) -> int:
    """How many cells to ask for at once to have `rows` in as few requests as `most` allows, none of them in vain."""
    return ceil(rows / ceil(rows / most)) if rows > 0 else most
