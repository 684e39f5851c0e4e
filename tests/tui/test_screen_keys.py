"""Keys: what each does, and that no order of keys and sizes breaks the screen."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from screen_samples import (
    LINK_SLOW,
    NS,
    PLANE_DOWN,
    STALE,
    T0,
    StillPlayer,
    StillSession,
    broken,
    healthy,
    make_snapshot,
)
from textual.pilot import Pilot
from textual.widgets import Input

from tui.app import FabricApp, ascii_locale
from tui.screens.incident import IncidentScreen
from tui.screens.incidents import IncidentsScreen
from tui.session import Late, ReplaySession, Session
from tui.text import plain
from tui.widgets.incidents import IncidentList
from tui.widgets.keyline import KeyLine


@asynccontextmanager
async def running(
    session: Session, size: tuple[int, int] = (80, 24), **options: Any
) -> AsyncIterator[tuple[FabricApp, Pilot[None]]]:
    app = FabricApp(session, ascii=False, clock=lambda: T0 + NS, beat=0.1, **options)
    async with app.run_test(size=size) as pilot:
        for _ in range(200):
            if app.shown.snapshot is not None and app.current_mode == options.get("view", "overview"):
                break
            await pilot.pause(0.01)
        yield app, pilot


def text_of(app: FabricApp) -> str:
    """What stands on the screen."""
    return "\n".join(strip.text for strip in app.screen._compositor.render_strips())


async def test_digits_go_to_views_and_escape_goes_back() -> None:
    async with running(StillSession(broken())) as (app, pilot):
        views = {"2": "planes", "6": "incidents", "1": "overview", "3": "nvlink", "4": "gpus", "5": "power"}
        for key, mode in views.items():
            await pilot.press(key)
            assert app.current_mode == mode
        await pilot.press("6", "escape")
        assert app.current_mode == "overview"


async def test_enter_opens_the_incident_under_the_cursor_and_y_copies_it() -> None:
    async with running(StillSession(broken())) as (app, pilot):
        await pilot.press("down", "enter")
        assert isinstance(app.screen, IncidentScreen) and app.shown.selected == LINK_SLOW.id
        assert "200Gb/s" in text_of(app)
        await pilot.press("y")
        assert "link slow" in app.clipboard and "sent to the terminal's clipboard" in text_of(app)
        await pilot.press("n")
        assert app.shown.selected == STALE.id
        await pilot.press("escape")
        assert len(app.screen_stack) == 1


async def test_the_cursor_stays_on_its_incident_when_a_worse_one_comes() -> None:
    session = StillSession(make_snapshot(incidents=(LINK_SLOW, STALE)))
    async with running(session) as (app, pilot):
        await pilot.press("j")
        assert session.send is not None
        session.send(make_snapshot(version=2, incidents=(PLANE_DOWN, LINK_SLOW, STALE)))
        await pilot.pause(0.15)
        chosen = app.screen.query_one(IncidentList).chosen()
        assert chosen is not None and chosen.id == STALE.id
        assert "►▲ warning  telemetry stale" in text_of(app)


async def test_slash_filters_and_escape_clears_the_filter_first() -> None:
    async with running(StillSession(broken())) as (app, pilot):
        await pilot.press("slash")
        await pilot.pause()
        assert isinstance(app.screen, IncidentsScreen) and isinstance(app.focused, Input)
        await pilot.press(*"plane", "enter")
        assert [i.id for i in app.screen.query_one(IncidentList).listed()] == [PLANE_DOWN.id]
        await pilot.press("escape")
        assert app.current_mode == "incidents" and len(app.screen.query_one(IncidentList).listed()) == 4
        await pilot.press("escape")
        assert app.current_mode == "overview"


async def test_space_pauses_the_view_and_not_the_intake() -> None:
    session = StillSession(healthy())
    async with running(session) as (app, pilot):
        await pilot.press("space")
        assert session.send is not None
        for version in (2, 3):
            session.send(make_snapshot(version=version, time=T0 + version * NS))
        await pilot.pause(0.15)
        assert (app.shown.snapshot is not None and app.shown.snapshot.version, app.shown.waiting) == (1, 2)
        assert "PAUSED" in text_of(app)
        await pilot.press("space")
        assert app.shown.snapshot is not None and app.shown.snapshot.version == 3


async def test_a_newer_snapshot_replaces_an_older_one_between_two_beats() -> None:
    session = StillSession(healthy())
    async with running(session) as (app, pilot):
        assert session.send is not None
        for version in range(2, 9):
            session.send(make_snapshot(version=version))
        assert app.shown.snapshot is not None and app.shown.snapshot.version == 1
        await pilot.pause(0.15)
        assert app.shown.snapshot.version == 8


async def test_replay_keys_step_jump_and_go_to_a_time() -> None:
    player = StillPlayer(broken())
    async with running(ReplaySession("t", player, playing=False)) as (app, pilot):

        async def at(*keys: str) -> float:
            await pilot.press(*keys)
            await pilot.pause(0.1)
            assert app.shown.snapshot is not None
            return (app.shown.snapshot.time - player.start) / NS

        assert await at("full_stop", "full_stop", "comma") == 1
        assert await at("right_square_bracket") == 600 - 248 + 1
        assert app.shown.selected == player.incidents[3].id
        assert await at("g", *"50%", "enter") == 300
        assert await at("g", *"+10s", "enter") == 310
        await pilot.press("greater_than_sign")
        assert app.session.speed == 2
        assert await at("left_square_bracket") == 310 and "no incident before" in app.note


async def test_keys_of_a_replay_are_dead_and_unsaid_elsewhere() -> None:
    async with running(StillSession(broken()), (200, 60)) as (app, pilot):
        for _ in range(50):  # the line of keys is filled after the first refresh
            hints = {h.key for h in app.screen.query_one(KeyLine).hints}
            if hints:
                break
            await pilot.pause(0.05)
        assert hints == {"1", "2", "3", "4", "5", "6", "7", "enter", "/", "y", "space", "?", "q"}
        await pilot.press("question_mark")
        assert "one second back" not in text_of(app) and "go back" in text_of(app)
        await pilot.press("escape")
        await pilot.press("colon")
        await pilot.pause(0.1)
        assert app.screen.query("CommandInput")
        await pilot.press("escape")
        await pilot.press("q")
        await pilot.pause()
        assert not app.is_running or app._exit


async def test_planes_are_chosen_by_arrows_and_a_leaf_opens() -> None:
    async with running(StillSession(broken())) as (app, pilot):
        await pilot.press("2", "right")
        assert "PLANE B" in text_of(app) and "B-leaf-00" in text_of(app)
        await pilot.press("down", "s")
        assert "state" in text_of(app)
        await pilot.press("enter")
        assert "B-leaf-01" in text_of(app) and "64 uplinks" in text_of(app)
        await pilot.press("n")
        assert "B-leaf-02" in text_of(app)
        await pilot.press("escape", "escape")
        assert app.current_mode == "overview"


async def test_a_session_that_fails_says_why_and_keeps_the_last_view() -> None:
    class Failing(StillSession):
        async def run(self, publish: Any) -> None:
            publish(self.snapshots[0])
            raise OSError("broker.example refused the connection")

    async with running(Failing(broken())) as (app, pilot):
        await pilot.pause(0.1)
        assert "SOURCE ENDED" in text_of(app) and "broker.example refused" in text_of(app)
        assert "plane down" in text_of(app)


async def test_a_late_session_is_made_after_the_first_frame() -> None:
    def make() -> Session:
        return ReplaySession("t.mcap", StillPlayer(broken()), playing=False)

    async with running(Late("t.mcap", "replay", make), (120, 40)) as (app, pilot):
        await pilot.pause(0.1)
        assert isinstance(app.session, ReplaySession)
        assert "RECORDING" in text_of(app)
        assert ", ." in {h.key for h in app.screen.query_one(KeyLine).hints}


async def test_notes_leave_the_key_line_by_themselves() -> None:
    async with running(StillSession(healthy())) as (app, pilot):
        await pilot.press("y")
        line = app.screen.query_one(KeyLine)
        assert "no incident to copy" in plain(line.lines(app.shown, 80, 1)[0])
        app._unsay(app.note)
        assert "overview" in plain(line.lines(app.shown, 80, 1)[0])


NAMED = (
    "1 2 3 4 5 6 7 w t r enter escape up down left right tab home end pageup pagedown slash a space question_mark y "
    "n p s S comma full_stop left_square_bracket right_square_bracket less_than_sign greater_than_sign g colon j k"
)
KEYS = NAMED.split()


async def fuzz(session: Session, seed: int, steps: int) -> None:
    choose = random.Random(seed)
    states = [broken(), healthy(), make_snapshot(unknown=True, sources=0, minutes=0), make_snapshot(down="A")]
    async with running(session, (80, 24)) as (app, pilot):
        for step in range(steps):
            dice = choose.random()
            if dice < 0.08:
                await pilot.resize_terminal(choose.randint(1, 220), choose.randint(1, 70))
            elif dice < 0.2 and isinstance(session, StillSession) and session.send is not None:
                session.send(replace(choose.choice(states), version=step + 10))
            else:
                await pilot.press(choose.choice(KEYS))
            assert app.is_running and not app._failed
        await pilot.resize_terminal(80, 24)
        await pilot.press("escape", "escape", "escape", "escape", "escape")


async def test_no_order_of_keys_and_sizes_breaks_a_live_view() -> None:
    await fuzz(StillSession(broken()), 11, 120)


async def test_no_order_of_keys_and_sizes_breaks_a_replay() -> None:
    await fuzz(ReplaySession("t", StillPlayer(broken())), 12, 80)


def test_ascii_is_for_locales_that_say_they_are_not_utf8() -> None:
    assert ascii_locale({"LC_ALL": "C"}) and ascii_locale({"LANG": "en_US.ISO-8859-1"})
    assert not ascii_locale({"LANG": "en_GB.UTF-8"}) and not ascii_locale({})
    assert not ascii_locale({"LC_CTYPE": "C.UTF-8", "LANG": "C"})
