"""View 7: what would break next, what a failure would do; from any entity with one key. In pictures, then by key."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from screen_samples import PLANE_DOWN, StillSession, broken, empty, healthy
from test_screen_keys import running, text_of
from test_screen_snapshots import SIZES, app_of
from textual.pilot import Pilot

from tui.app import FabricApp
from tui.questions import about, question, swept
from tui.rows.keys import KeyHint, keys_line
from tui.screens.whatif import WhatIfScreen
from tui.text import plain
from twin.errors import InputError
from twin.snapshot import Snapshot
from twin.topology.presets import preset
from twin.whatif import Change, WhatIf

Compare = Callable[..., bool]


async def press(pilot: Pilot[Any], *keys: str) -> None:
    """Presses keys one by one; waits for what each has worked out."""
    for key in keys:
        await pilot.press(key)
        for _ in range(300):
            await pilot.pause(0.01)
            screen = pilot.app.screen
            if not isinstance(screen, WhatIfScreen) or not screen.busy:
                break
        await pilot.pause()


def after(*keys: str) -> Callable[[Pilot[None]], Any]:
    async def run(pilot: Pilot[None]) -> None:
        app = pilot.app
        assert isinstance(app, FabricApp)
        for _ in range(200):
            if app.shown.snapshot is not None and app.current_mode == "overview":
                break
            await pilot.pause(0.01)
        await press(pilot, *keys)

    return run


@pytest.mark.parametrize("size", SIZES, ids=lambda s: f"{s[0]}x{s[1]}")
@pytest.mark.parametrize("state", [healthy, broken], ids=["healthy", "broken"])
@pytest.mark.parametrize("keys", [("7",), ("7", "enter")], ids=["sweep", "answer"])
def test_pictures(
    snap_compare: Compare, keys: tuple[str, ...], state: Callable[[], Snapshot], size: tuple[int, int]
) -> None:
    """What would break next, and the answer for the costliest of it."""
    assert snap_compare(app_of(StillSession(state())), terminal_size=size, run_before=after(*keys))


def test_picture_of_a_repair_without_colour(snap_compare: Compare, monkeypatch: pytest.MonkeyPatch) -> None:
    """The plane that is down, asked about from the list of incidents."""
    monkeypatch.setenv("NO_COLOR", "1")
    assert snap_compare(app_of(StillSession(broken())), terminal_size=(80, 24), run_before=after("w"))


def test_picture_of_a_question_that_makes_no_sense(snap_compare: Compare) -> None:
    """Why there is no answer, above the sweep."""
    keys = ("7", "slash", *"B-leaf-9", "enter")
    assert snap_compare(app_of(StillSession(healthy())), terminal_size=(80, 24), run_before=after(*keys))


async def test_w_asks_about_the_incident_under_the_cursor_and_what_is_down_is_repaired() -> None:
    async with running(StillSession(broken())) as (app, pilot):
        assert app.shown.selected in ("", PLANE_DOWN.id)
        await press(pilot, "w")
        assert app.current_mode == "whatif"
        assert "what if plane:B is repaired" in text_of(app) and "512 gain" in text_of(app)


async def test_w_asks_about_the_leaf_under_the_cursor_on_its_plane_and_on_its_page() -> None:
    async with running(StillSession(healthy())) as (app, pilot):
        await press(pilot, "2", "down", "w")
        assert "what if A-leaf-01 fails" in text_of(app) and "64 of 512 GPUs lose" in text_of(app)
        await press(pilot, "2", "down", "enter", "w")
        assert "what if A-leaf-02 fails" in text_of(app)


async def test_w_without_anything_under_the_cursor_says_so() -> None:
    async with running(StillSession(healthy())) as (app, pilot):
        await press(pilot, "w")
        assert app.current_mode == "overview" and "nothing here to ask about" in text_of(app)


async def test_enter_asks_about_the_row_under_the_cursor_and_escape_goes_back_step_by_step() -> None:
    async with running(StillSession(healthy())) as (app, pilot):
        await press(pilot, "7")
        assert "A-leaf-00" in text_of(app) and "A-spine-00" in text_of(app)
        await press(pilot, "down", "enter")
        assert "what if A-spine-00 fails" in text_of(app)
        await press(pilot, "escape")
        assert "what would it cost if one of these failed now?" in text_of(app)
        await press(pilot, "escape")
        assert app.current_mode == "overview"


async def test_a_question_can_be_typed_with_several_parts() -> None:
    async with running(StillSession(healthy()), (120, 40)) as (app, pilot):
        await press(pilot, "7", "slash", *"plane:B A-leaf-03=0.5", "enter")
        assert "what if plane:B fails, A-leaf-03 goes at 50 % of its speed" in text_of(app)
        assert "25 %" in text_of(app) and "link slow  A-leaf-03" in text_of(app)


async def test_the_next_class_of_parts_is_one_key_away() -> None:
    async with running(StillSession(healthy())) as (app, pilot):
        await press(pilot, "7", "right")
        assert "EVERY ONE OF PLANES" in text_of(app)
        await press(pilot, "left", "left")
        assert "EVERY ONE OF RACKS" in text_of(app)


async def test_an_answer_stays_as_of_its_time_until_it_is_asked_anew() -> None:
    session = StillSession(healthy())
    async with running(session) as (app, pilot):
        await press(pilot, "7", "enter")
        assert "448 GPUs" in text_of(app) and session.send is not None
        session.send(broken())
        app.apply()
        await press(pilot, "down")
        assert "448 GPUs" in text_of(app)
        await press(pilot, "r")
        assert "448 GPUs" not in text_of(app)


async def test_without_data_there_is_nothing_to_ask() -> None:
    async with running(StillSession(empty())) as (app, pilot):
        await press(pilot, "7", "enter")
        assert app.current_mode == "whatif"


async def test_t_shows_where_traffic_goes_against_where_it_should() -> None:
    async with running(StillSession(healthy())) as (app, pilot):
        await press(pilot, "7", "t")
        assert "does traffic go where it should?" in text_of(app) and "TRAFFIC OF JOBS BY PLANE" in text_of(app)
        await press(pilot, "escape")
        assert "what would it cost if one of these failed now?" in text_of(app)


@pytest.mark.parametrize(
    ("text", "change"),
    [
        ("plane:B n012", Change(fail=("plane:B", "n012"))),
        ("+n013 A-leaf-03", Change(fail=("A-leaf-03",), repair=("n013",))),
        ("A-leaf-03=0.5", Change(degrade=(("A-leaf-03", 0.5),))),
        ("<450", Change(limit=450)),
        ("<450W n012/psu0", Change(fail=("n012/psu0",), limit=450)),
    ],
)
def test_questions_as_people_type_them(text: str, change: Change) -> None:
    assert question(text) == change


@pytest.mark.parametrize("text", ["<warm", "A-leaf-03=half"])
def test_a_number_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="is not a number"):
        question(text)


def test_what_is_up_fails_and_what_is_down_is_repaired() -> None:
    whatif = WhatIf(preset("b300-superpod-ethernet"))
    assert about(whatif, "plane:B") == Change(fail=("plane:B",))
    for change in (Change(fail=("plane:B",)), Change(degrade=(("B-leaf-03", 0.5),))):
        assert about(whatif.after(change), "B-leaf-03") == Change(repair=("B-leaf-03",))


def test_classes_with_too_many_parts_are_not_swept_on_the_screen() -> None:
    assert "links" not in swept(preset("b300-superpod-ethernet", scalable_units=2))
    assert swept(preset("rtx-pro-6000"))[-1] == "psus"


def test_where_keys_do_not_fit_views_go_by_their_digits_before_other_keys_go() -> None:
    views = [KeyHint(str(n), "view", "", 1, n == 2, n != 2) for n in (1, 2, 7)]
    hints = [*views, KeyHint("/", "filter", "", 1), KeyHint("q", "quit", "", 0)]

    def words(hints: list[KeyHint], width: int) -> str:
        return " ".join(plain(keys_line(hints, width)).split())

    assert words(hints, 80) == "1 view 2 view 7 view / filter q quit"
    assert words(hints, 36) == "1 2 view 7 / filter q quit"
    elsewhere = [replace(h, active=False, shorten=True) for h in views]
    assert words([*elsewhere, *hints[3:]], 36) == "1 2 7 views / filter q quit"
