"""The ports of one switch by SNMP: a frame a sample, and a second one where counters began anew."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping

import numpy as np

from collectors.base import Clock, CollectorError, Sample, frame_time
from collectors.portnames import PortNames
from collectors.snmp.agent import Agent, Cells
from collectors.snmp.interfaces import (
    COUNTER_COLUMNS,
    COUNTERS,
    DISCONTINUITY,
    F64,
    IN_OCTETS,
    OUT_OCTETS,
    SPEED,
    STATUS,
    U64,
    counters,
    speeds,
    unsigned,
    ups,
)
from collectors.snmp.table import State, Table, learn
from twin.frames import NS, UNKNOWN_U64, Column, Frame

LEARN_EVERY_S = 60.0  # names and speeds, though nothing says that they changed
READS = 2  # a table that changes under two readings in a row is not read
SHARE = 0.95  # of the deadline: so that it is this collector which says what took so long
CACHE_S = 10.0  # for as long an agent may repeat one reading: net-snmp does for 3 s, others for some seconds more
NO_64_BITS = (
    "it has no 64-bit octet counters (ifHCInOctets): its traffic is unknown, for 32-bit ones wrap within a second"
)


class SnmpCollector:
    """One switch. Ports that were seen once stay in its frames and are unknown while their interface is gone.

    Agents answer from a cache: where no counter of any port has moved, the reading is the one before (a switch with
    no packet at all within CACHE_S is idle). Counters are then left out, so that the next rate is over the time in
    which they were counted and not over a shorter one.
    """

    def __init__(
        self,
        device: str,
        agent: Agent,
        names: PortNames,
        cabled: frozenset[str],
        *,
        interval: float = 5.0,
        deadline: float = 10.0,
        learn_every: float = LEARN_EVERY_S,
        clock: Clock = time.time_ns,
    ) -> None:
        """cabled: addresses that ought to be among its interfaces. learn_every: seconds between looks at names."""
        self.name, self.interval, self.deadline = f"snmp:{device}", interval, deadline
        self._device, self._agent, self._names, self._cabled = device, agent, names, cabled
        self._learn_every, self._clock = learn_every, clock
        self._table: Table | None = None
        self._known: dict[str, None] = {}  # every address ever placed, in the order found
        self._state: State | None = None  # of the last sample
        self._lives: dict[str, tuple[str, int]] = {}  # address -> index and discontinuity time of its counters
        self._up: F64 | None = None
        self._speed: F64 | None = None
        self._counters: dict[str, U64] | None = None
        self._moved = 0  # when they last differed from the reading before, ns

    async def collect(self) -> Sample:
        """One frame over all ports; half a reading is none, cells that are missing are unknown."""
        try:
            async with asyncio.timeout(self.deadline * SHARE):
                return await self._collect()
        except TimeoutError as problem:
            self._agent.forget()
            raise CollectorError(
                f"{self._agent.where} is too slow: its table took longer than the deadline of {self.deadline:g} s"
            ) from problem
        except CollectorError:
            self._agent.forget()
            raise

    async def close(self) -> None:
        """Closes the socket."""
        self._agent.forget()

    async def _collect(self) -> Sample:
        await self._agent.greet()
        table = self._table
        if table is None or not 0 <= self._seconds() - table.state.taken < self._learn_every:
            table = await self._learn()
        for _ in range(READS):
            columns = {STATUS: await self._walk(STATUS, table)}
            now = frame_time(self._clock)
            for column in (*COUNTER_COLUMNS, DISCONTINUITY):
                columns[column] = await self._walk(column, table)
            state = await State.ask(self._agent, self._seconds())
            if await table.holds(self._agent, state):
                return await self._sample(now, columns, table, state)
            table = await self._learn()
        self._table = None
        raise CollectorError(f"{self._agent.where}: its interface table changes while it is read")

    async def _learn(self) -> Table:
        table = await learn(self._agent, self._device, self._names, self._cabled, self._seconds())
        self._known.update(dict.fromkeys(table.index))
        self._table, self._speed = table, None
        return table

    async def _walk(self, column: str, table: Table) -> Cells:
        return await self._agent.walk(column, table.rows, last=table.last)

    async def _sample(self, now: int, columns: Mapping[str, Cells], table: Table, state: State) -> Sample:
        names = tuple(self._known)
        indices = [table.index.get(name, "") for name in names]
        up = ups(columns[STATUS], indices)
        if self._speed is None or self._up is None or not np.array_equal(up, self._up, equal_nan=True):
            self._speed = speeds(await self._walk(SPEED, table), indices)
        self._up = up
        lives = zip(indices, unsigned(columns[DISCONTINUITY], indices).tolist(), strict=True)
        values = counters(columns, indices)
        frames = self._breaks(now, dict(zip(names, lives, strict=True)), state)
        shown: dict[str, Column] = {"up": up, "speed_bits_per_second": np.where(up == 1, self._speed, np.nan)}
        if self._renewed(now, values) or frames:
            shown.update(values)
        frames.append(Frame(now, self.name, "port", names, shown))
        warnings = list(table.warnings)
        if not (columns[IN_OCTETS] or columns[OUT_OCTETS]):
            warnings.append(f"{self._agent.where}: {NO_64_BITS}")
        return Sample(frames, warnings)

    def _breaks(self, now: int, lives: dict[str, tuple[str, int]], state: State) -> list[Frame]:
        """A frame of unknown counters just before `now` for ports whose counters are not those of the last sample.

        A counter that fell is seen to be anew by itself; one that has overtaken its old value is not.
        """
        anew = self._state is not None and state.restarted_since(self._state)
        before, self._lives, self._state = self._lives, lives, state
        names = tuple(name for name, life in lives.items() if name in before and (anew or before[name] != life))
        if not names:
            return []
        unknown = np.full(len(names), UNKNOWN_U64)
        return [Frame(now - 1000, self.name, "port", names, dict.fromkeys(COUNTERS, unknown))]

    def _renewed(self, now: int, values: dict[str, U64]) -> bool:
        """False where the agent has repeated its last reading."""
        before = self._counters
        still = before is not None and all(np.array_equal(values[m], before[m]) for m in COUNTERS)
        if still and now - self._moved < CACHE_S * NS:
            return False
        self._counters, self._moved = values, now
        return True

    def _seconds(self) -> float:
        return self._clock() / NS
