"""Session: what stands between the screen and a source of data. Live, a demo, or a recording.

A session runs beside the screen and publishes immutable snapshots. The twin works in a thread, one batch
at a time, so that a slow evaluation never holds up a key.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from twin.frames import Frame
    from twin.incident import Incident
    from twin.snapshot import Snapshot
    from twin.topology.model import Topology

Mode = Literal["live", "demo", "replay"]
Publish = Callable[["Snapshot"], None]
NS = 1_000_000_000
SPEEDS: tuple[float, ...] = (0.25, 0.5, 1, 2, 4, 8, 16, 32, 64)
BEAT = 0.25  # seconds between looks at what came in
SNAPSHOT_EVERY = 0.5  # seconds, at most two snapshots a second leave a session
BATCH_SECONDS = 0.2  # how long one batch may keep the twin before the session looks up


class TwinLike(Protocol):
    """What a session needs of the twin."""

    @property
    def time(self) -> int: ...
    def ingest(self, frame: Frame) -> None: ...
    def acknowledge(self, id: str, who: str, until: int) -> bool: ...
    def silence(self, what: str, who: str, until: int) -> None: ...
    def finish(self) -> None: ...
    def snapshot(self) -> Snapshot: ...


class Player(Protocol):
    """What a session needs of a recording. `step_to` goes forward or back and is exact; times in ns."""

    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...
    @property
    def time(self) -> int: ...
    @property
    def topology(self) -> Topology: ...
    @property
    def incidents(self) -> Sequence[Incident]: ...
    @property
    def notes(self) -> Sequence[object]: ...
    def step_to(self, time: int) -> Snapshot: ...


Said = Callable[[TwinLike], object]  # what an operator has the twin do


class Told:
    """What a session knows in words, which frames do not carry; a recording knows nothing of the kind."""

    about: tuple[str, ...] = ()  # what is being watched, where no site says it
    takes_words = False  # whether incidents can be acknowledged and silenced here

    def say(self, word: Said) -> None:
        """Hands an operator's word to the twin, before the next frame that it takes."""

    def reasons(self) -> Mapping[str, str]:
        """Source -> why it fails, or what of it cannot be had."""
        return {}


class Session(Protocol):
    """A source of snapshots. speed: how fast event time runs, None where nobody can set it.

    about, reasons, takes_words, say: as of Told.
    """

    mode: Mode
    title: str
    speed: float | None
    state: str  # `seeking`, `ended`, or nothing
    about: tuple[str, ...]
    takes_words: bool

    def reasons(self) -> Mapping[str, str]: ...
    def say(self, word: Said) -> None: ...

    async def run(self, publish: Publish) -> None:
        """Publishes snapshots until the source ends. Raises where the source cannot be read."""
        ...


@dataclass
class Late(Told):
    """A session that is made after the first frame, in a thread: its twin and its input take time to come up."""

    title: str
    mode: Mode
    make: Callable[[], Session]
    speed: float | None = None
    state: str = "starting"

    async def run(self, publish: Publish) -> None:
        raise NotImplementedError("a late session is made first, then run")


def next_speed(speed: float, step: int) -> float:
    """The next speed up or down."""
    nearest = min(range(len(SPEEDS)), key=lambda i: abs(SPEEDS[i] - speed))
    return SPEEDS[min(len(SPEEDS) - 1, max(0, nearest + step))]


class Fresh:
    """The twin's snapshot where it has judged anew since the last one; a snapshot costs copies."""

    def __init__(self, twin: TwinLike) -> None:
        self._twin = twin
        self._time = 0
        self._version = 0  # the twin's first evaluation is 1

    def snapshot(self) -> Snapshot | None:
        if self._twin.time == self._time:
            return None
        self._time = self._twin.time
        snapshot = self._twin.snapshot()
        if snapshot.version <= self._version:
            return None
        self._version = snapshot.version
        return snapshot


class Spoken(Told):
    """A session whose twin an operator can speak to: it listens where it takes frames, in that thread."""

    takes_words = True

    def __init__(self) -> None:
        self._words: deque[Said] = deque()

    def say(self, word: Said) -> None:
        self._words.append(word)

    def hear(self, twin: TwinLike) -> None:
        while self._words:
            self._words.popleft()(twin)


class FeedSession(Spoken):
    """Live: frames as they come, from an async iterator. reasons: asks the collectors why they fail."""

    mode: Mode = "live"
    speed: float | None = None

    def __init__(
        self,
        title: str,
        twin: TwinLike,
        frames: AsyncIterator[Frame],
        *,
        about: tuple[str, ...] = (),
        reasons: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        super().__init__()
        self.title, self.about = title, about
        self._reasons = reasons
        self.state = ""
        self._frames = frames
        self._twin = twin
        self._fresh = Fresh(twin)
        self._waiting: deque[Frame] = deque()

    def reasons(self) -> Mapping[str, str]:
        return self._reasons()

    async def run(self, publish: Publish) -> None:
        reader = asyncio.create_task(self._read())
        try:
            while not (reader.done() and not self._waiting):
                await asyncio.wait([reader], timeout=BEAT)
                if self._waiting:
                    snapshot = await asyncio.to_thread(self._take)
                    if snapshot is not None:
                        publish(snapshot)
            reader.result()  # raises what ended it, once all that came before is in
            self.state = "ended"
        finally:
            reader.cancel()

    async def _read(self) -> None:
        async for frame in self._frames:
            self._waiting.append(frame)

    def _take(self) -> Snapshot | None:
        """Ingests what waits, for a while at most; a snapshot where it shows something new."""
        self.hear(self._twin)
        stop = time.monotonic() + BATCH_SECONDS
        while self._waiting and time.monotonic() < stop:
            self._twin.ingest(self._waiting.popleft())
            self.hear(self._twin)
        return self._fresh.snapshot()


class PacedSession(Spoken):
    """Frames played against the wall clock at a speed: a simulated fabric, or any finite list.

    ahead: seconds of them that are taken at once, so that there is something to see.
    """

    mode: Mode = "demo"

    def __init__(
        self, title: str, twin: TwinLike, frames: Iterator[Frame], *, speed: float = 1.0, ahead: float = 0.0
    ) -> None:
        super().__init__()
        self.title = title
        self.state = ""
        self.speed: float | None = speed
        self._twin = twin
        self._frames = frames
        self._next: Frame | None = None
        self._fresh = Fresh(twin)
        self._ahead = ahead * NS
        self._target: float | None = None  # event time, ns, that the wall clock has come to; the first frame sets it

    def set_speed(self, speed: float) -> None:
        self.speed = speed

    async def run(self, publish: Publish) -> None:
        last = time.monotonic()
        told = -1.0
        while True:
            now = time.monotonic()
            if self._target is not None:
                self._target += (now - last) * (self.speed or 1.0) * NS
            last = now
            due = now - told >= SNAPSHOT_EVERY
            more, snapshot = await asyncio.to_thread(self._play, due)
            if snapshot is not None:
                told = now
                publish(snapshot)
            if not more:
                self.state = "ended"
                return
            await asyncio.sleep(BEAT)

    def _play(self, due: bool) -> tuple[bool, Snapshot | None]:
        """Ingests the frames that are due, for a while at most. False where there are no more."""
        self.hear(self._twin)
        stop = time.monotonic() + BATCH_SECONDS
        while True:
            if self._next is None:
                self._next = next(self._frames, None)
            frame = self._next
            if frame is None:
                self._twin.finish()
                return False, self._fresh.snapshot()
            if self._target is None:
                self._target = float(frame.time) + self._ahead
            if frame.time > self._target:
                break
            self._twin.ingest(frame)
            self._next = None
            if time.monotonic() > stop:
                # The machine can't keep up with the speed: event time waits for it, nothing is left out.
                self._target = min(self._target, float(frame.time + NS))
                break
        return True, self._fresh.snapshot() if due else None


class ReplaySession(Told):
    """A recording: played, stepped, and jumped about in."""

    mode: Mode = "replay"

    def __init__(self, title: str, player: Player, *, speed: float = 1.0, playing: bool = True) -> None:
        self.title = title
        self.state = ""
        self.speed: float | None = speed
        self.playing = playing
        self._player = player
        self._goal: int | None = player.start
        self._wake = asyncio.Event()
        self._at = player.start
        self._closed = False

    @property
    def span(self) -> tuple[int, int]:
        return self._player.start, self._player.end

    @property
    def incidents(self) -> Sequence[Incident]:
        """All incidents of the recording, as far as they are known by now."""
        return self._player.incidents

    @property
    def at(self) -> int:
        """The event time the screen is at, or is going to, ns."""
        return self._at

    def set_speed(self, speed: float) -> None:
        self.speed = speed

    def toggle(self) -> None:
        """Plays or pauses; at the end, from the start again."""
        if not self.playing and self._at >= self._player.end:
            self.seek(self._player.start)
        self.playing = not self.playing
        self._wake.set()

    def seek(self, time: int) -> None:
        """Goes to a time within the recording; the newest wish wins."""
        start, end = self.span
        self._goal = self._at = min(end, max(start, time))
        self._wake.set()

    def step(self, seconds: float) -> None:
        """Pauses and moves by some seconds."""
        self.playing = False
        self.seek(self._at + round(seconds * NS))

    def jump_incident(self, way: int) -> Incident | None:
        """Goes to where the next (1) or previous (-1) incident was detected; None where there is none."""
        start, end = self.span
        told = (
            (i.detected + NS, i) for i in self.incidents if i.superseded_by is None and start <= i.detected <= end
        )
        known = sorted(told, key=lambda place: place[0])  # a second later: the frames of that moment are judged then
        found = [(at, i) for at, i in known if (at > self._at if way > 0 else at < self._at)]
        if not found:
            return None
        at, target = found[0] if way > 0 else found[-1]
        self.playing = False
        self.seek(at)
        return target

    async def run(self, publish: Publish) -> None:
        last = time.monotonic()
        while True:
            self._wake.clear()
            now = time.monotonic()
            elapsed, last = now - last, now
            goal = self._take_goal(elapsed)
            if goal is not None:
                publish(await self._go(goal))
            if self._goal is None:
                await self._pause_or_beat()

    def _take_goal(self, elapsed: float) -> int | None:
        if self._goal is not None:
            goal, self._goal = self._goal, None
            return goal
        if not self.playing:
            return None
        end = self._player.end
        self._at = min(end, self._at + round(elapsed * (self.speed or 1.0) * NS))
        if self._at >= end:
            self.playing = False
        return self._at

    async def _go(self, goal: int) -> Snapshot:
        work = asyncio.ensure_future(asyncio.to_thread(self._player.step_to, goal))
        done, _ = await asyncio.wait([work], timeout=0.3)
        if not done:
            self.state = "seeking"
        snapshot = await work
        self.state = "end" if goal >= self._player.end else ""
        return snapshot

    async def _pause_or_beat(self) -> None:
        try:
            await asyncio.wait_for(self._wake.wait(), BEAT if self.playing else None)
        except TimeoutError:
            return
