from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path

import pytest

from collectors.base import CollectorError
from collectors.nvml.lane import Lane


def for_ever() -> float:
    return 60.0


def at_once() -> float:
    return 0.0


async def test_all_work_is_done_by_one_thread_that_is_not_the_loops() -> None:
    lane, threads = Lane("x"), set()
    for _ in range(50):
        assert await lane.run(lambda: threads.add(threading.get_ident()), for_ever)
    lane.leave()
    assert len(threads) == 1
    assert threading.get_ident() not in threads


async def test_what_work_raises_comes_to_who_waits() -> None:
    lane = Lane("x")

    def fail() -> None:
        raise KeyError("yes")

    with pytest.raises(KeyError, match="yes"):
        await lane.run(fail, for_ever)
    assert await lane.run(lambda: None, for_ever), "and harms no other"
    lane.leave()


async def test_work_given_up_blocks_its_lane_until_it_comes_back_and_answers_nobody_else() -> None:
    lane, release, order = Lane("x"), threading.Event(), []
    assert not await lane.run(lambda: (release.wait(10), order.append("old"))[0], at_once)  # type: ignore[func-returns-value]
    with pytest.raises(CollectorError, match="x: an earlier call is still blocked in the driver"):
        await lane.run(lambda: order.append("refused"), for_ever)
    release.set()
    while True:
        try:
            assert await lane.run(lambda: order.append("new"), for_ever)
            break
        except CollectorError:
            await asyncio.sleep(0.001)
    assert order == ["old", "new"]
    lane.leave()


async def test_patience_is_asked_for_again_when_it_is_over() -> None:
    lane, release, left = Lane("x"), threading.Event(), [0.01, 0.01, 0.0]
    assert not await lane.run(lambda: release.wait(10), lambda: left.pop(0))  # type: ignore[arg-type,return-value]
    assert left == []
    release.set()
    lane.leave()


async def test_a_lane_that_is_left_ends_its_thread_and_closes_its_descriptor() -> None:
    before, descriptors = threading.active_count(), len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(20):
        lane = Lane("x")
        assert await lane.run(lambda: None, for_ever)
        lane.leave()
    while threading.active_count() > before:
        await asyncio.sleep(0.001)
    assert len(list(Path("/proc/self/fd").iterdir())) <= descriptors


def test_a_lane_serves_one_event_loop_after_the_other() -> None:
    lane, done = Lane("x"), []
    for n in range(3):
        assert asyncio.run(lane.run(lambda n=n: done.append(n), for_ever))  # type: ignore[misc]
    assert done == [0, 1, 2]
    lane.leave()


def test_a_forked_process_has_a_thread_of_its_own() -> None:
    lane = Lane("x")
    assert asyncio.run(lane.run(lambda: None, for_ever))
    child = os.fork()
    if not child:
        try:
            os._exit(0 if asyncio.run(asyncio.wait_for(lane.run(lambda: None, for_ever), 10)) else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert asyncio.run(lane.run(lambda: None, for_ever))
    lane.leave()
