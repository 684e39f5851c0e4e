"""Power of one node or power shelf from its BMC: supplies, and the whole."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from itertools import islice

import numpy as np

from collectors.base import Clock, CollectorError, Sample, frame_time
from collectors.redfish import pages
from collectors.redfish.client import BadPage, Bmc
from collectors.redfish.discovery import Bay, Group, OutOfTime, Reader, discover, whole
from collectors.redfish.pages import Supply
from collectors.redfish.places import Places, Target
from twin.frames import Column, Frame

DISCOVER_EVERY_S = 300.0
DISCOVER_SOON_S = 60.0  # after a page that failed: its supply may have been taken out
WORK_SHARE = 0.7  # of the deadline; the rest is for the page that is under way
MOST_WARNINGS = 5

_METRICS = ("up", "input_watts", "output_watts", "capacity_watts")


class RedfishCollector:
    """The supplies behind one BMC, one request at a time.

    Looking for them is spread over several collections where a BMC is slow, and so is reading them: each collection
    goes on where the last one ran out of time, and gives what it read. An empty bay is a supply that is down where
    the wiring has one there, and nothing elsewhere.
    """

    def __init__(
        self,
        bmc: Bmc,
        target: Target,
        *,
        interval: float = 10.0,
        deadline: float = 20.0,
        discover_every: float = DISCOVER_EVERY_S,
        clock: Clock = time.time_ns,
    ) -> None:
        self.name, self.interval, self.deadline = f"redfish:{target.name}", interval, deadline
        self._bmc, self._target, self._clock = bmc, target, clock
        self._discover_every = discover_every
        self._places = Places(target)
        self._bays: dict[str, Bay] | None = None  # by address; None before they have been looked for
        self._whole: Group | None = None
        self._standing: list[str] = []  # warnings of the last discovery
        self._search: Reader | None = None  # a discovery that is not finished
        self._due = 0.0  # of the next one, by the loop's clock
        self._next = 0  # the supply to begin with
        self._told = False  # whether the power of the whole has ever been known; if not, none is spoken of

    async def collect(self) -> Sample:
        """A frame of supplies, and one of the node or feed. Raises CollectorError where the BMC cannot be used."""
        until = asyncio.get_running_loop().time() + WORK_SHARE * self.deadline
        if self._bays is None:
            await self._discover(until)
            if self._bays is None:
                return Sample(warnings=[f"{self._target.name}: still looking for supplies: the BMC is slow"])
        frames, warnings = await self._read(self._bays, until)
        if asyncio.get_running_loop().time() >= self._due:
            try:
                await self._discover(until)
            except CollectorError as problem:
                warnings.append(f"looking for supplies again: {problem}")
        return Sample(frames, _few([*warnings, *self._standing]))

    async def close(self) -> None:
        """Ends the session at the BMC."""
        await self._bmc.close()

    # --- which ---

    async def _discover(self, until: float) -> None:
        """Looks for supplies; goes on next time where the time does not suffice."""
        reader = self._search = self._search or Reader(self._bmc)
        reader.until = until
        try:
            groups = await discover(reader)
        except OutOfTime:
            return
        except CollectorError:
            self._search = None
            raise
        self._search = None
        bays, self._standing = self._places.of(groups)
        chosen, unclear = whole(groups)
        if self._target.kind == "rack":
            chosen = unclear = None
        if unclear is not None:
            self._standing.append(f"{self._target.name}: {unclear}")
        if not bays and chosen is None and self._bays is None:
            raise CollectorError(f"{self._target.name}: {self._bmc.url} lists no power supply and no power")
        if reader.failed and self._bays is not None:  # what is not listed may be there all the same
            bays, chosen = self._bays | bays, chosen or self._whole
        self._bays, self._whole = bays, chosen
        missing = self._target.expected // self._target.shelves - len(bays)
        again = DISCOVER_SOON_S if reader.failed and (missing > 0 or not bays) else self._discover_every
        self._due = asyncio.get_running_loop().time() + min(again, self._discover_every)
        if bays and missing > 0:
            self._standing.append(f"{self._target.name}: of the wiring's supplies the BMC does not list {missing}")

    # --- readings ---

    async def _read(self, bays: Mapping[str, Bay], until: float) -> tuple[list[Frame], list[str]]:
        reader = Reader(self._bmc)
        reader.until = until
        rows: dict[str, Supply] = {}
        late: list[str] = []
        problems: list[str] = []
        drawn = await self._drawn(reader, problems)
        order = list(bays)
        start = self._next % len(order) if order else 0
        for address in (*order[start:], *order[:start]):
            try:
                rows[address] = await self._supply(reader, bays[address])
            except BadPage as problem:
                rows[address] = Supply()
                problems.append(str(problem))
                self._due = min(self._due, asyncio.get_running_loop().time() + DISCOVER_SOON_S)
            except OutOfTime:
                self._next = order.index(address)
                late = [f"{self._target.name}: {len(rows)} of {len(order)} supplies read in time"]
                break
        if problems and drawn is None and all(row == Supply() for row in rows.values()):
            raise CollectorError(problems[0])
        return self._frames(rows, len(rows) == len(order), drawn), [*late, *problems]

    async def _supply(self, reader: Reader, bay: Bay) -> Supply:
        page = await reader.get(bay.path)
        if bay.listed:
            supplies = pages.parts(page, "PowerSupplies")
            by_number = dict(zip(pages.numbers(supplies), supplies, strict=True))
            return pages.supply(by_number[bay.number]) if bay.number in by_number else Supply()
        if pages.state(page) == "Absent":
            return pages.supply(page)
        metrics = await reader.get(bay.metrics) if bay.metrics is not None else {}
        sensors = dict(bay.sensors)
        for side, key in (("input", "InputPowerWatts"), ("output", "OutputPowerWatts")):
            if (path := pages.unread(metrics.get(key))) is not None:
                sensors[side] = path
        return pages.supply(page, metrics, {side: await reader.find(path) for side, path in sensors.items()})

    async def _drawn(self, reader: Reader, problems: list[str]) -> float | None:
        """What the whole draws, as the BMC says it."""
        if self._whole is None or self._whole.total is None:
            return None
        try:
            page = await reader.get(self._whole.total)
        except BadPage as problem:
            problems.append(str(problem))
            return None
        except OutOfTime:
            return None
        return pages.total(page) or pages.consumed(page)

    # --- frames ---

    def _frames(self, rows: Mapping[str, Supply], complete: bool, drawn: float | None) -> list[Frame]:
        now = frame_time(self._clock)
        kept = {a: s for a, s in rows.items() if not s.absent or self._target.expected}
        values = np.array(
            [(s.up, s.input, s.output, s.capacity) for s in kept.values()], dtype=np.float64
        ).reshape(-1, len(_METRICS))  # fmt: skip
        frames = [Frame(now, self.name, "psu", tuple(kept), dict(zip(_METRICS, values.T.copy(), strict=True)))]
        installed = [s for s in rows.values() if not s.absent] if complete else []
        if drawn is None:
            drawn = _sum([s.input for s in installed])
        self._told |= drawn is not None
        columns: dict[str, Column] = {"power_watts": np.array([drawn], dtype=np.float64)}
        if self._target.kind == "feed":
            columns["capacity_watts"] = np.array([_sum([s.capacity for s in installed])], dtype=np.float64)
        if self._target.kind != "rack" and self._told and (complete or drawn is not None):
            frames.append(Frame(now, self.name, self._target.kind, (self._target.name,), columns))
        return [f for f in frames if f.names]


def _sum(values: list[float | None]) -> float | None:
    """The sum where all are known."""
    known = [v for v in values if v is not None]
    return sum(known) if known and len(known) == len(values) else None


def _few(warnings: list[str]) -> list[str]:
    """The first of them, each once."""
    once = list(dict.fromkeys(warnings))
    more = len(once) - MOST_WARNINGS
    return once if more <= 0 else [*islice(once, MOST_WARNINGS), f"and {more} more"]
