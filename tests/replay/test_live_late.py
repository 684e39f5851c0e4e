"""Slow collectors, old frames and wrong clocks through the whole live pipeline: supervisor, twin, what is shown."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import numpy as np
import pytest

from collectors.base import Sample
from replay.live import Live
from twin.frames import NS, Frame
from twin.snapshot import SourceView
from twin.topology.wiring import read_wiring
from twin.yamlfile import Document

WIRING = """
name: one
planes: [A]
nodes: [{name: n0, gpus: 1, nics: 1}]
switches: [{name: leaf, tier: leaf, plane: A}]
links: [{a: n0/nic0/p0, b: leaf/p0, speed: 400G}]
"""
PATIENCE_S = 30.0


class Port:
    """A collector of one port. takes: seconds of an answer; shift: seconds its clock is ahead; source: of frames."""

    deadline = 10.0

    def __init__(
        self, name: str, *, takes: float = 0.0, shift: float = 0.0, interval: float = 0.5, source: str = ""
    ) -> None:
        self.name, self.interval = name, interval
        self._takes, self._shift, self._source = takes, shift, source or name

    async def collect(self) -> Sample:
        asked = time.time_ns() // 1000 * 1000
        await asyncio.sleep(self._takes)
        when = asked + round(self._shift * NS)
        return Sample([Frame(when, self._source, "port", ("n0/nic0/p0",), {"up": np.ones(1)})])

    async def close(self) -> None: ...


async def watched(collector: Port, enough: Callable[[Live], bool]) -> Live:
    live = Live("test", read_wiring(Document("one.yaml", WIRING)), [collector])
    async with asyncio.timeout(PATIENCE_S), live:
        async for frame in live.frames():
            live.twin.ingest(frame)
            if enough(live):
                break
    live.twin.finish()
    return live


def view(live: Live, name: str) -> SourceView | None:
    return next((s for s in live.twin.snapshot().sources if s.name == name), None)


def heard(name: str, frames: int) -> Callable[[Live], bool]:
    return lambda live: (found := view(live, name)) is not None and found.frames >= frames


async def test_a_source_that_answers_slower_than_its_interval_is_late_and_neither_silent_nor_wrong() -> None:
    live = await watched(Port("slow", takes=1.6), heard("slow", 4))
    (health,) = live.health()
    assert health.late >= 3 and health.duration is not None and health.duration >= 1.6
    assert health.clock_offset == 0.0
    source = view(live, "slow")
    assert source is not None and source.state == "late"
    assert source.interval_seconds >= 1.6, "it is not expected to speak more often than it can"
    assert source.age_seconds > 1.2, "as old as the readings, not as their arrival"
    assert live.twin.incidents == () and live.twin.snapshot().link_state.tolist() == [1]


async def test_frames_20_seconds_old_are_late_with_their_age_and_their_link_is_unknown() -> None:
    live = await watched(Port("old", shift=-20.0, interval=0.1), heard("old", 5))
    source = view(live, "old")
    assert source is not None and source.state == "late"
    assert source.age_seconds >= 19.0
    assert live.twin.snapshot().link_state.tolist() == [-1]
    assert live.twin.incidents == ()


@pytest.mark.parametrize("source", ["host7", "ahead"])
async def test_a_clock_that_is_ahead_is_measured_and_shown_also_behind_a_broker(source: str) -> None:
    live = await watched(Port("ahead", shift=2.5, interval=0.2, source=source), heard(source, 12))
    found = view(live, source)
    assert found is not None and found.skewed
    assert found.clock_offset_seconds == pytest.approx(2.5, abs=0.2)
    (health,) = live.health()
    assert health.clock_offset == pytest.approx(2.5, abs=0.2)
    assert health.late == 0
    assert live.twin.incidents == ()
