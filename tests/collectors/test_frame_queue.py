from __future__ import annotations

import asyncio

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from collectors.frame_queue import FrameQueue
from twin.frames import Frame


def frame(source: str, time: int) -> Frame:
    return Frame(time, source, "port", ("n0/nic0/p0",), {"up": np.ones(1)})


async def everything(queue: FrameQueue) -> list[tuple[str, int]]:
    queue.close()
    found = []
    while (got := await queue.get()) is not None:
        found.append((got.source, got.time))
    return found


@given(st.lists(st.sampled_from("abc"), max_size=60), st.integers(1, 5))
def test_each_source_keeps_its_newest_frames_and_order_of_arrival_holds(sources: list[str], capacity: int) -> None:
    queue = FrameQueue(capacity)
    arrived = []
    for time, source in enumerate(sources):
        queue.put(source, frame(source, time))
        arrived.append((source, time))
    kept = {s: [a for a in arrived if a[0] == s][-capacity:] for s in "abc"}
    expected = [a for a in arrived if a in kept[a[0]]]
    assert asyncio.run(everything(queue)) == expected
    assert sum(queue.dropped.values()) == len(arrived) - len(expected)


async def test_a_reader_waits_for_a_frame_and_is_told_of_the_end() -> None:
    queue = FrameQueue(2)
    waiting = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    queue.put("a", frame("a", 1))
    assert await waiting == frame("a", 1)
    waiting = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    queue.close()
    assert await waiting is None
