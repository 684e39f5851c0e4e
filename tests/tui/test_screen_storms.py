"""Storms: thousands of keys and sizes in every view of a fabric that breaks and heals, and pauses in the middle."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager

import pytest
from test_screen_keys import text_of
from textual import events
from textual.geometry import Size

from tui.app import FabricApp
from tui.keymap import KEYS, textual_name
from tui.screens.base import ViewScreen
from tui.session import PacedSession, Publish, Spoken
from twin.simulator.scenario import Fault, Phase, Scenario
from twin.simulator.simulation import Simulation
from twin.twin import Twin

NS = 1_000_000_000
STEPS = 2000  # keys in each view
PAGE_STEPS = 500  # and in each page
BURST = 100  # keys that come before the screen has had time for the one before, as from a key held down
SECONDS = 100
STORY = Scenario(
    "storm", "rtx-pro-6000", duration=float(SECONDS), workload=(Phase("allreduce", 0.6),),
    faults=(
        Fault("fail", "A-leaf-00", 10, 40), Fault("fail", "n003/nic0/p0", 20, 60), Fault("silence", "n001", 30, 70),
        Fault("flap", "n002/nic0/p0", 50, 80), Fault("degrade", "n004/nic0/p0", 60, speed_fraction=0.5),
    ),
)  # fmt: skip
NAMED = ["up", "down", "left", "right", "home", "end", "pageup", "pagedown", "enter", "escape", "tab", "shift+tab",
         "backspace", "space", "f1"]  # fmt: skip
TYPED = "".join(c for c in "abcdefghijklmnoprstuvwxyz0123456789/?,.[]<>=-*" if c != "q")  # q leaves
PAGES = {"an incident": "6 enter", "a leaf": "2 enter", "help": "?"}
VIEWS = {name: KEYS[name] for name in FabricApp.MODES if name != "starting"} | PAGES


class Told(Spoken):
    """A simulated fabric and its real twin, a second at a time when the test says so."""

    mode, title, speed, state = "live", "storm", None, ""

    def __init__(self) -> None:
        super().__init__()
        simulation = Simulation(STORY)
        self.twin = Twin(simulation.topology)
        self.publish: Publish | None = None
        self._frames = simulation.frames()
        self._until = simulation.start
        self._next = next(self._frames, None)

    async def run(self, publish: Publish) -> None:
        self.publish = publish
        await asyncio.Event().wait()

    def advance(self) -> None:
        """Takes the next second."""
        self._until += NS
        self.hear(self.twin)
        while self._next is not None and self._next.time < self._until:
            self.twin.ingest(self._next)
            self._next = next(self._frames, None)
        if self.publish is not None:
            self.publish(self.twin.snapshot())


@asynccontextmanager
async def storm(session: Told) -> AsyncIterator[FabricApp]:
    app = FabricApp(session, ascii=False, beat=0.05, clock=lambda: session.twin.time)
    async with app.run_test(size=(100, 30)) as pilot:
        while session.publish is None:
            await pilot.pause(0.01)
        for _ in range(3):
            session.advance()
        yield app


def press(app: FabricApp, key: str) -> None:
    """Hands the app a key without waiting for what comes of it."""
    character = key if len(key) == 1 else {"space": " ", "enter": "\r", "tab": "\t"}.get(key)
    event = events.Key(textual_name(key), character)
    event.set_sender(app)
    app._driver.send_message(event)  # type: ignore[union-attr]


def resize(app: FabricApp, width: int, height: int) -> None:
    app._driver._size = Size(width, height)  # type: ignore[union-attr]
    app.post_message(events.Resize(Size(width, height), Size(width, height)))


async def settled(app: FabricApp) -> None:
    """Waits until keys have gone their way: from the app to what has the focus, and where that leaves them, back."""
    for pump in (app, app.focused, app.screen, app):
        done = asyncio.Event()
        if pump is not None and pump.is_running and pump.call_later(done.set):
            with contextlib.suppress(TimeoutError):  # a page that closes itself answers no more
                await asyncio.wait_for(done.wait(), 1)
    assert app.is_running and app._exception is None and not app._failed


async def comes(app: FabricApp, true: Callable[[], bool]) -> None:
    """Waits for what must come about, 10 s at most."""
    for _ in range(100):
        await settled(app)
        if true():
            return
        await asyncio.sleep(0.1)
    raise AssertionError(text_of(app))


def drawn_whole(app: FabricApp, width: int, height: int) -> bool:
    lines = text_of(app).split("\n")
    full = len(lines) == height and {len(line) for line in lines} == {width}
    return full and "storm" in lines[0] and "quit" in lines[-1]


def ways(choose: random.Random, steps: int, open_with: str) -> Iterator[list[str]]:
    """Bursts of keys; every other begins with the way back to the view that is meant."""
    for burst in range(steps // BURST):
        way = ["escape"] * 5 + open_with.split() if burst % 2 == 0 else []
        yield way + [choose.choice(NAMED if choose.random() < 0.5 else TYPED) for _ in range(BURST - len(way))]


@pytest.mark.parametrize("view", VIEWS)
async def test_no_storm_of_keys_and_sizes_breaks_a_view(view: str) -> None:
    session, choose = Told(), random.Random(view)
    async with storm(session) as app:
        for burst in ways(choose, PAGE_STEPS if view in PAGES else STEPS, VIEWS[view]):
            for key in burst:
                press(app, key)
            if choose.random() < 0.2:
                resize(app, choose.randint(1, 220), choose.randint(1, 70))
            if choose.random() < 0.5:
                session.advance()
            await settled(app)
        resize(app, 100, 30)
        for key in ["escape"] * 6:
            press(app, key)
        press(app, "1")
        await comes(app, lambda: app.current_mode == "overview" and "PLANES" in text_of(app))


async def test_a_terminal_that_is_dragged_about_ends_up_drawn_at_its_last_size() -> None:
    session, choose = Told(), random.Random(5)
    async with storm(session) as app:
        for view in "1267":
            press(app, view)
            for _ in range(150):
                resize(app, choose.randint(1, 240), choose.randint(1, 80))
                if choose.random() < 0.1:
                    session.advance()
                    await settled(app)
            resize(app, 90, 28)
            await comes(app, lambda: drawn_whole(app, 90, 28))


@pytest.mark.parametrize("open_with", ["", "enter", "?"])
async def test_a_size_that_the_terminal_has_left_behind_is_not_taken(
    open_with: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two sizes in the queue of a busy screen would else bring each other back for ever."""
    session, taken, take = Told(), set[Size](), ViewScreen.on_resize
    left_behind = {Size(187, 68), Size(33, 25)}

    def on_resize(screen: ViewScreen, event: events.Resize) -> None:
        taken.add(event.size)
        take(screen)

    async with storm(session) as app:
        for _ in range(12):  # past the first fault: there is an incident to open
            session.advance()
        await settled(app)
        for key in open_with.split():
            press(app, key)
        await settled(app)
        monkeypatch.setattr(ViewScreen, "on_resize", on_resize)
        for size in left_behind:
            for screen in app.screen_stack:
                screen.post_message(events.Resize(size, size))
            await settled(app)
        resize(app, 120, 40)
        await comes(app, lambda: app.screen_stack[0].size == Size(120, 40))
    assert taken & left_behind == set()


async def test_a_pause_freezes_the_view_while_the_twin_goes_on() -> None:
    simulation = Simulation(STORY)
    twin = Twin(simulation.topology)
    session = PacedSession("storm", twin, simulation.frames(), speed=16, ahead=2)
    app = FabricApp(session, ascii=False, beat=0.05)
    async with app.run_test(size=(100, 30)) as pilot:
        while app.shown.snapshot is None:
            await pilot.pause(0.05)
        await pilot.press("space")
        frozen, at = app.shown.snapshot, text_of(app)
        body = at.split("\n")[1:-1]
        while twin.time < frozen.time + 15 * NS:  # past the first fault
            await pilot.pause(0.05)
        assert twin.incidents and app.shown.snapshot is frozen and app.shown.waiting >= 1
        assert text_of(app).split("\n")[1:-1] == body and "PAUSED" in text_of(app)
        await pilot.press("space")
        await comes(app, lambda: app.shown.snapshot is not frozen and "A-leaf-00" in text_of(app))
