"""One switch by gNMI: what its subscription has brought since the last collection, as frames."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection

import numpy as np

from collectors.base import Clock, CollectorError, Sample, Worker, frame_time
from collectors.gnmi.access import Access, dial
from collectors.gnmi.interfaces import Interfaces, Rows
from collectors.gnmi.session import Session
from collectors.portnames import PortNames
from twin.frames import Frame

_OWN_SHARE = 0.9  # of the deadline: so that what took too long is said here, and not by the supervisor
_PATIENCE = 3.0  # intervals without a message, after which the stream is taken for dead
_US = 1_000


class GnmiCollector:
    """The ports of one switch. The stream is opened by the first collection, and by the next one when it has ended.

    A collection waits for news up to an interval, so that a link that goes down is told at once. It gives two frames:
    the counters that came, at the time of the switch's sample, so that rates do not depend on the way they took; and
    state and speed of all ports, as of now. expected: ports of the wiring that it should have.
    """

    def __init__(
        self,
        device: str,
        address: str,
        ports: PortNames,
        *,
        access: Access | None = None,
        expected: Collection[str] = (),
        interval: float = 1.0,
        deadline: float = 10.0,
        clock: Clock = time.time_ns,
    ) -> None:
        self.name, self.interval, self.deadline = f"gnmi:{device}", interval, deadline
        self._device, self._address, self._ports = device, address, ports
        self._access, self._expected, self._clock = access or Access(), frozenset(expected), clock
        self._patience = deadline * _OWN_SHARE
        self._interfaces = Interfaces()
        self._session: Session | None = None
        self._worker = Worker(self.name)
        self._placed_of = 0  # how many interfaces `_names` and `_rows` were made from
        self._names: tuple[str, ...] = ()
        self._rows: Rows = np.zeros(0, np.intp)

    async def collect(self) -> Sample:
        """Two frames, or none with a warning where nothing came. CollectorError where there is no stream."""
        session = self._session if self._session is not None else await self._open()
        came = await session.news(min(self.interval, self._patience))
        if not came and session.failure is not None:  # it may be back already
            session = await self._open()
            came = await session.news(0)
        silent = time.monotonic() - session.heard
        if silent > max(_PATIENCE * self.interval, self.deadline):
            await self.close()
            raise CollectorError(f"{self._who}: nothing heard for {silent:.0f} s, though subscribed")
        self._place()
        if not came:
            slow = (
                f"nothing new from it for {silent:.1f} s; does it sample less often than every {self.interval:g} s?"
            )
            return Sample((), [slow] if silent > 2 * self.interval else [])
        return Sample(self._frames(), self._warnings(session))

    async def close(self) -> None:
        """Ends the stream."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    @property
    def _who(self) -> str:
        return f"{self.name} ({self._address})"

    async def _open(self) -> Session:
        await self.close()
        self._interfaces.forget()
        try:
            async with asyncio.timeout(self._patience):
                channel = await dial(self._address, self._access.tls, self._worker, self._patience)
                self._session = await Session.open(
                    channel, self._interfaces, self._clock, metadata=self._access.metadata, interval=self.interval
                )
        except TimeoutError:
            raise CollectorError(f"{self._who}: no values within {self._patience:g} s") from None
        except CollectorError as problem:
            raise CollectorError(f"{self._who}: {problem}") from problem
        return self._session

    def _place(self) -> None:
        """Interfaces to ports, anew where a name has been added. Raises CollectorError where none is a port."""
        names = self._interfaces.names
        if len(names) == self._placed_of:
            return
        placed = self._ports.place(self._device, names)
        if not placed:
            raise CollectorError(
                f"{self._who}: none of its {len(names)} interfaces ({', '.join(names[:3])}) is a port of "
                f"{self._device} in the wiring; say which is which under `ports`"
            )
        rows = {name: row for row, name in enumerate(names)}
        self._names = tuple(placed.values())
        self._rows = np.array([rows[name] for name in placed], dtype=np.intp)
        self._placed_of = len(names)

    def _frames(self) -> list[Frame]:
        now, seen = frame_time(self._clock), self._interfaces
        frames = []
        fresh = seen.fresh(self._rows)
        if fresh.any():
            rows, names = self._rows, self._names
            if not fresh.all():  # the rest keeps what it had: told again, it would look as if it stood still
                rows = rows[fresh]
                names = tuple(name for name, is_fresh in zip(names, fresh.tolist(), strict=True) if is_fresh)
            if columns := seen.counts(rows):
                counted = min(seen.counted // _US * _US or now, now)
                frames.append(Frame(counted, self.name, "port", names, columns))
        frames.append(Frame(now, self.name, "port", self._names, seen.states(self._rows)))
        seen.settle()
        return frames

    def _warnings(self, session: Session) -> list[str]:
        out = []
        if missing := sorted(self._expected.difference(self._names)):
            out.append(f"{len(missing)} cabled ports are not among its interfaces ({', '.join(missing[:3])})")
        if session.unreadable:
            out.append(f"{session.unreadable} messages could not be read")
        if self._interfaces.full:
            out.append(f"it names more than {len(self._interfaces.names)} interfaces; the rest is left out")
        return out
