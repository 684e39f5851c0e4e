"""Sessions: from frames or a recording to snapshots, at the pace they should."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import numpy as np
import pytest
from screen_samples import NS, T0, StillPlayer, broken, make_snapshot

from tui.app import FabricApp
from tui.session import FeedSession, PacedSession, ReplaySession, next_speed
from twin.frames import Frame
from twin.snapshot import Snapshot


class CountingTwin:
    """A twin whose snapshot version is the number of frames it took."""

    def __init__(self) -> None:
        self.time = 0
        self.taken = 0
        self.finished = False

    def ingest(self, frame: Frame) -> None:
        self.time = frame.time
        self.taken += 1

    def finish(self) -> None:
        self.finished = True
        self.taken += 1
        self.time += NS

    def snapshot(self) -> Snapshot:
        return make_snapshot(version=self.taken, time=self.time, minutes=0, sources=0)


def frame(seconds: float) -> Frame:
    return Frame(T0 + round(seconds * NS), "s", "node", ("n000",), {"power_watts": np.array([1.0])})


async def test_a_feed_publishes_what_came_and_ends_with_its_source() -> None:
    async def feed() -> AsyncIterator[Frame]:
        for i in range(5):
            yield frame(i)
            await asyncio.sleep(0)

    twin, seen = CountingTwin(), list[Snapshot]()
    session = FeedSession("s", twin, feed())
    await asyncio.wait_for(session.run(seen.append), 5)
    assert (seen[-1].version, session.state, session.speed) == (5, "ended", None)


async def test_a_feed_that_fails_raises_what_ended_it() -> None:
    async def feed() -> AsyncIterator[Frame]:
        yield frame(0)
        raise OSError("broker gone")

    with pytest.raises(OSError, match="broker gone"):
        await asyncio.wait_for(FeedSession("s", CountingTwin(), feed()).run(lambda s: None), 5)


async def test_a_feed_hands_on_what_its_collectors_say_in_words() -> None:
    async def feed() -> AsyncIterator[Frame]:
        yield frame(0)

    said = {"a": "no such device"}
    session = FeedSession("s", CountingTwin(), feed(), about=("two", "lines"), reasons=lambda: said)
    app = FabricApp(session)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause(0.5)
        app.apply()
        assert app.shown.about == ("two", "lines") and app.shown.reasons == (("a", "no such device"),)
        said.clear()
        app.apply()
        assert app.shown.reasons == ()


async def test_a_demo_runs_at_its_speed_and_leaves_nothing_out() -> None:
    def frames() -> Iterator[Frame]:
        yield from (frame(i) for i in range(40))

    twin, seen = CountingTwin(), list[Snapshot]()
    session = PacedSession("s", twin, frames(), speed=32)
    started = asyncio.get_running_loop().time()
    await asyncio.wait_for(session.run(seen.append), 8)
    took = asyncio.get_running_loop().time() - started
    assert twin.finished and twin.taken == 41 and session.state == "ended"
    assert took > 39 / 32 * 0.8
    assert [s.version for s in seen] == sorted({s.version for s in seen})


async def test_a_replay_steps_jumps_and_stops_at_its_ends() -> None:
    player = StillPlayer(broken())
    session = ReplaySession("t", player, playing=False)
    seen: list[Snapshot] = []
    runner = asyncio.create_task(session.run(seen.append))

    async def settle() -> float:
        await asyncio.sleep(0.1)
        return (seen[-1].time - player.start) / NS

    try:
        assert await settle() == 0
        session.step(1)
        assert await settle() == 1
        session.step(-5)
        assert await settle() == 0
        assert session.jump_incident(1) is not None
        assert (
            await settle() == 600 - 248 + 1
        )  # a second past the first within the recording; an older one was there before
        assert session.jump_incident(1) is not None
        assert await settle() == 600 - 132 + 1
        session.seek(player.end + 99 * NS)
        assert await settle() == 600
        assert session.jump_incident(1) is None and session.state == "end"
        session.toggle()  # from the start again
        session.set_speed(64)
        await asyncio.sleep(0.6)
        assert 10 < (seen[-1].time - player.start) / NS < 120
    finally:
        runner.cancel()


def test_speeds_go_up_and_down_within_their_range() -> None:
    assert [next_speed(1, 1), next_speed(1, -1), next_speed(64, 1), next_speed(0.25, -1)] == [2, 0.5, 64, 0.25]
