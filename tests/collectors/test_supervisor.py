from __future__ import annotations

import asyncio
import contextlib
import itertools
import threading
import time
from collections.abc import Awaitable, Callable

import numpy as np
import pytest

from collectors.base import CollectorError, Sample, Worker, frame_time
from collectors.supervisor import Supervisor, pause_after
from twin.errors import InputError, MissingTool
from twin.frames import Frame

LONG = 30.0  # seconds; a generous bound for whatever must happen, so that a fault fails and does not hang


class Fake:
    """A collector that does what the test says; it counts its calls."""

    def __init__(
        self, name: str, collect: Callable[[int], Awaitable[Sample]], interval: float = 0.01, deadline: float = 5.0
    ) -> None:
        self.name, self.interval, self.deadline = name, interval, deadline
        self._collect = collect
        self.calls = 0
        self.closed = 0

    async def collect(self) -> Sample:
        self.calls += 1
        return await self._collect(self.calls)

    async def close(self) -> None:
        self.closed += 1


def frame(source: str, time: int = 0) -> Frame:
    return Frame(time, source, "port", ("n0/nic0/p0",), {"up": np.ones(1)})


def steady(name: str, **options: float) -> Fake:
    async def collect(call: int) -> Sample:
        return Sample([frame(name, call)])

    return Fake(name, collect, **options)


def raising(name: str, problem: BaseException) -> Fake:
    async def collect(_: int) -> Sample:
        raise problem

    return Fake(name, collect)


async def forever(_: int) -> Sample:
    await asyncio.Event().wait()
    raise AssertionError


async def swallowing(_: int) -> Sample:
    while True:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(3600)


async def unstoppable(_: int) -> Sample:
    while True:
        with contextlib.suppress(BaseException):  # GeneratorExit too
            await asyncio.sleep(3600)


def supervise(*collectors: object, **options: object) -> Supervisor:
    quick = {"heartbeat": 0.02, "first_pause": 0.01, "longest_pause": 0.05, "grace": 0.1}
    return Supervisor(collectors, **{**quick, **options})  # type: ignore[arg-type]


async def take(supervisor: Supervisor, enough: Callable[[list[Frame]], object]) -> list[Frame]:
    """Frames until `enough` of them, closed afterwards; fails after a generous time."""
    seen: list[Frame] = []
    async with asyncio.timeout(LONG), supervisor:
        async for one in supervisor.frames():
            seen.append(one)
            if enough(seen):
                break
    return seen


def of(frames: list[Frame], source: str) -> list[Frame]:
    return [f for f in frames if f.source == source]


def beat(frames: list[Frame], metric: str, name: str) -> list[float]:
    """One column of the supervisor's own frames, for one collector."""
    return [float(f.columns[metric][f.names.index(name)]) for f in of(frames, "fabrictwin")]


async def test_frames_of_every_source_arrive_and_each_collector_is_closed_once() -> None:
    a, b = steady("a"), steady("b")
    frames = await take(supervise(a, b), lambda seen: len(of(seen, "a")) > 3 and len(of(seen, "b")) > 3)
    assert [f.time for f in of(frames, "a")][:4] == [1, 2, 3, 4]
    assert (a.closed, b.closed) == (1, 1)
    assert not [t for t in asyncio.all_tasks() if t is not asyncio.current_task()]


async def test_the_heartbeat_goes_on_with_the_injected_clock_and_names_every_collector() -> None:
    ticks = itertools.count(1_000_000_000_000_000_499, 1_000_000_000)
    supervisor = supervise(Fake("a", forever, interval=7.0), Fake("b", forever), clock=lambda: next(ticks))
    frames = await take(supervisor, lambda seen: len(seen) == 3)
    assert [f.time for f in frames] == [10**18, 10**18 + 10**9, 10**18 + 2 * 10**9]
    assert {(f.kind, f.source, f.names) for f in frames} == {("source", "fabrictwin", ("a", "b"))}
    assert frames[0].columns["interval_seconds"].tolist() == [7.0, 0.01]


async def test_how_long_an_answer_took_and_how_often_in_a_row_it_was_late_is_told() -> None:
    async def collect(call: int) -> Sample:
        await asyncio.sleep(0.05 if call < 4 else 0)
        return Sample([frame("a")])

    supervisor = supervise(Fake("a", collect, interval=0.02), Fake("b", forever))
    frames = await take(
        supervisor, lambda seen: 0.0 in beat(seen, "late", "a")[-1:] and 2.0 in beat(seen, "late", "a")
    )
    took = beat(frames, "duration_seconds", "a")
    assert np.isnan(took[0]) and max(t for t in took if t == t) >= 0.05
    assert np.isnan(beat(frames, "duration_seconds", "b")).all()
    assert max(beat(frames, "interval_seconds", "a")) >= 0.05, "it is expected as often as it can answer"
    assert beat(frames, "interval_seconds", "a")[-1] < 0.05
    assert supervisor.health()[0].late == 0 and supervisor.health()[1].duration is None


async def test_one_slow_answer_among_quick_ones_does_not_change_how_often_a_source_is_expected() -> None:
    async def collect(call: int) -> Sample:
        await asyncio.sleep({4: 0.9, 5: 0.2}.get(call, 0))
        return Sample([frame("a")])

    supervisor = supervise(Fake("a", collect, interval=0.4))
    frames = await take(supervisor, lambda seen: len(of(seen, "a")) > 5)
    assert max(beat(frames, "late", "a")) == 1.0
    assert max(beat(frames, "interval_seconds", "a")) < 0.9


async def test_clocks_of_sources_are_measured_where_their_frames_come_in() -> None:
    async def collect(_: int) -> Sample:
        now = time.time_ns()
        names = {"a": 0, "far": 3_000_000_000, "two\nlines": 0}
        return Sample([frame(name, now + ahead) for name, ahead in names.items()])

    supervisor = supervise(Fake("a", collect))
    frames = await take(supervisor, lambda seen: "far" in of(seen, "fabrictwin")[-1].names)
    last = of(frames, "fabrictwin")[-1]
    assert last.names == ("a", "far"), "a name that cannot be written is left out"
    assert beat([last], "clock_offset_seconds", "a") == [0.0]
    assert beat([last], "clock_offset_seconds", "far") == [pytest.approx(3.0, abs=0.5)]
    assert np.isnan(beat([last], "up", "far")).all(), "only its clock is known of what is no collector"
    assert supervisor.health()[0].clock_offset == pytest.approx(3.0, abs=0.5)


async def test_up_is_unknown_before_the_first_result_then_says_how_the_last_one_went() -> None:
    release = asyncio.Event()

    async def collect(call: int) -> Sample:
        await release.wait()
        if call == 2:
            raise CollectorError("a: gone")
        return Sample([frame("a")])

    def enough(seen: list[Frame]) -> bool:
        if len(of(seen, "fabrictwin")) == 2:
            release.set()
        return beat(seen, "up", "a")[-1:] == [1.0] and 0.0 in beat(seen, "up", "a")

    supervisor = supervise(Fake("a", collect), heartbeat=0.005, first_pause=0.1, longest_pause=0.1)
    frames = await take(supervisor, enough)
    up = beat(frames, "up", "a")
    assert np.isnan(up[0])
    assert up[-1] == 1.0
    assert max(beat(frames, "failures", "a")) == 1.0
    health = supervisor.health()[0]
    assert (health.ok, health.failures, health.last_error) == (True, 0, "a: gone")


@pytest.mark.parametrize(
    ("problem", "text"),
    [
        (CollectorError("x: no such device"), "x: no such device"),
        (MissingTool("ibstat", "infiniband-diags", "to read"), "ibstat not found"),
        (ValueError("two\nlines"), "ValueError: two lines"),
        (SystemExit(3), "tried to end the program"),
        (asyncio.CancelledError(), "cancelled itself"),
        (BaseExceptionGroup("several", [GeneratorExit()]), "BaseExceptionGroup: several"),
        (StopAsyncIteration(), "StopAsyncIteration"),
        (MemoryError(), "MemoryError"),
    ],
)
async def test_whatever_a_collector_raises_stays_with_it(problem: BaseException, text: str) -> None:
    supervisor = supervise(raising("bad", problem), steady("good"))
    frames = await take(supervisor, lambda seen: len(of(seen, "good")) > 3 and max(beat(seen, "failures", "bad")) > 1)
    bad, good = supervisor.health()
    assert (bad.ok, good.ok) == (False, True)
    assert text in str(bad.last_error)
    assert beat(frames, "up", "good")[-1] == 1.0


@pytest.mark.parametrize("answer", [None, Sample([None]), [frame("a")], Sample(None)])  # type: ignore[list-item, arg-type]
async def test_an_answer_that_is_no_sample_is_a_failure(answer: Sample) -> None:
    async def collect(_: int) -> Sample:
        return answer

    supervisor = supervise(Fake("bad", collect), steady("good"))
    await take(supervisor, lambda seen: of(seen, "good") and max(beat(seen, "failures", "bad"), default=0) > 0)
    assert supervisor.health()[0].ok is False


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("hanging", [forever, swallowing, unstoppable])
async def test_a_hanging_collector_fails_at_its_deadline_and_holds_nobody(
    hanging: Callable[[int], Awaitable[Sample]],
) -> None:
    supervisor = supervise(Fake("stuck", hanging, deadline=0.05), steady("good"))
    frames = await take(supervisor, lambda seen: max(beat(seen, "failures", "stuck"), default=0) > 1)
    assert "no answer within 0.05 s" in str(supervisor.health()[0].last_error)
    assert len(of(frames, "good")) > 3
    assert not [t for t in asyncio.all_tasks() if t is not asyncio.current_task()], "even the stubborn ones ended"


async def test_a_collector_that_comes_back_after_hanging_is_collected_again() -> None:
    async def collect(call: int) -> Sample:
        return await forever(call) if call == 1 else Sample([frame("a")])

    supervisor = supervise(Fake("a", collect, deadline=0.05))
    await take(supervisor, lambda seen: of(seen, "a") and beat(seen, "up", "a")[-1] == 1.0)
    assert supervisor.health()[0].failures == 0


async def test_a_slow_collector_does_not_slow_another() -> None:
    async def collect(_: int) -> Sample:
        await asyncio.sleep(0.3)
        return Sample([frame("slow")])

    slow, quick = Fake("slow", collect), steady("quick")
    frames = await take(supervise(slow, quick), lambda seen: of(seen, "slow"))
    assert len(of(frames, "quick")) > 3


async def test_a_flood_costs_only_the_flooding_source_its_oldest_frames() -> None:
    async def collect(call: int) -> Sample:
        return Sample([frame("flood", 1000 * call + i) for i in range(1000)])

    flood, calm = Fake("flood", collect), steady("calm")
    supervisor = supervise(flood, calm, capacity=50, heartbeat=0.05)
    seen: list[Frame] = []
    async with asyncio.timeout(LONG), supervisor:
        async for one in supervisor.frames():
            seen.append(one)
            if len(of(seen, "calm")) > 3 and max(beat(seen, "frames_dropped", "flood")) > 0:
                break
            await asyncio.sleep(0.001)  # a reader that cannot keep up
    assert [f.time for f in of(seen, "calm")] == list(range(1, len(of(seen, "calm")) + 1)), (
        "none of its frames is lost"
    )
    assert supervisor.health()[0].frames_dropped > 0
    assert supervisor.health()[1].frames_dropped == 0
    assert all(f.time % 1000 >= 950 for f in of(seen, "flood")), "the newest of each burst are kept"


async def test_warnings_of_a_partial_sample_are_kept_and_go_when_the_next_is_whole() -> None:
    async def collect(call: int) -> Sample:
        return Sample([frame("a", call)], ["one port missing"] if call == 1 else [])

    supervisor = supervise(Fake("a", collect))
    warned: list[tuple[str, ...]] = []

    def enough(seen: list[Frame]) -> bool:
        warned.append(supervisor.health()[0].warnings)
        return len(of(seen, "a")) > 2

    await take(supervisor, enough)
    assert ("one port missing",) in warned
    assert warned[-1] == ()


async def test_close_ends_the_stream_and_the_frames_that_wait_are_still_read() -> None:
    supervisor = supervise(steady("a"))
    supervisor.start()
    await asyncio.sleep(0.1)
    async with asyncio.timeout(LONG):
        await supervisor.close()
        await supervisor.close()
        frames = [one async for one in supervisor.frames()]
    assert of(frames, "a")


async def test_a_reader_that_is_cancelled_leaves_nothing_running() -> None:
    collector = steady("a")

    async def read() -> None:
        async with supervise(collector, Fake("stuck", swallowing)) as supervisor:
            async for _ in supervisor.frames():
                pass

    reader = asyncio.create_task(read())
    await asyncio.sleep(0.05)
    reader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reader
    assert collector.closed == 1
    assert not [t for t in asyncio.all_tasks() if t is not asyncio.current_task()]


async def test_a_collector_that_fails_or_hangs_on_closing_does_not_stop_the_others_from_closing() -> None:
    class Failing(Fake):
        async def close(self) -> None:
            raise OSError("socket gone")

    class Hanging(Fake):
        async def close(self) -> None:
            await asyncio.Event().wait()

    failing, hanging, good = Failing("f", forever), Hanging("h", forever), steady("good")
    supervisor = supervise(failing, hanging, good)
    await take(supervisor, lambda seen: of(seen, "good"))
    assert good.closed == 1
    assert supervisor.health()[0].last_error == "on closing f: OSError: socket gone"
    assert "not closed within" in str(supervisor.health()[1].last_error)


async def test_without_collectors_time_still_passes() -> None:
    frames = await take(supervise(), lambda seen: len(seen) == 3)
    assert [f.names for f in frames] == [(), (), ()]


@pytest.mark.parametrize("names", [["a", "a"], ["fabrictwin"], [""], ["two\nlines"]])
def test_names_that_cannot_be_told_apart_or_written_are_refused(names: list[str]) -> None:
    with pytest.raises(InputError):
        Supervisor([steady(name) for name in names])


def test_pauses_double_up_to_the_longest_and_are_the_same_every_time() -> None:
    pauses = [pause_after(n, "netdev", 1.0, 60.0) for n in range(1, 12)]
    for n, pause in enumerate(pauses):
        assert min(2.0**n, 60.0) <= pause <= min(1.1 * 2.0**n, 60.0)
    assert pauses == [pause_after(n, "netdev", 1.0, 60.0) for n in range(1, 12)]
    assert pause_after(10**6, "netdev", 1.0, 60.0) == 60.0


def test_frame_times_are_rounded_to_a_microsecond() -> None:
    assert frame_time(lambda: 1_500) == 2_000
    assert frame_time(lambda: 1_499) == 1_000


async def test_a_worker_gives_what_its_work_returns_or_raises() -> None:
    worker = Worker("files")
    assert await worker.run(lambda: threading.current_thread().daemon)
    with pytest.raises(ZeroDivisionError):
        await worker.run(lambda: 1 // 0)


async def test_a_blocked_worker_starts_no_second_thread_and_works_again_when_it_is_free() -> None:
    worker, release = Worker("/sys/class/net"), threading.Event()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await worker.run(release.wait)
    with pytest.raises(CollectorError, match="still blocked"):
        await worker.run(lambda: 1)
    release.set()
    limit = time.monotonic() + LONG
    while time.monotonic() < limit:
        try:
            assert await worker.run(lambda: 2) == 2
            return
        except CollectorError:
            await asyncio.sleep(0.01)
    raise AssertionError("it never became free")


def test_a_read_that_never_returns_does_not_hold_up_the_end_of_the_loop() -> None:
    worker = Worker("stuck")
    never = threading.Event()

    async def main() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await worker.run(never.wait)

    started = time.monotonic()
    asyncio.run(main())
    assert time.monotonic() - started < LONG
    never.set()
