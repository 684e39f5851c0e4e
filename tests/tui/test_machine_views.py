"""Views 3, 4 and 5 and the pages below them: in pictures, then by key."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from machine_samples import Machines, ill, many, racks, silent, unheard, well
from screen_samples import NS, T0, StillSession
from test_screen_keys import fuzz, running, text_of
from test_screen_snapshots import SIZES, after, app_of
from test_whatif_screen import press
from textual.pilot import Pilot

from tui.rows.gputable import gpu_index, gpu_table
from tui.screens.domain import DomainScreen
from tui.screens.entity import EntityScreen
from tui.screens.gpus import GpusScreen
from tui.screens.incident import IncidentScreen
from tui.screens.nvlink import NvlinkScreen
from tui.screens.power import PowerScreen
from tui.session import ReplaySession
from tui.theme import to_ascii
from twin.snapshot import Snapshot
from twin.topology.presets import preset

Compare = Callable[..., bool]
VIEWS = ["3", "4", "5"]
NAMES = {"3": "nvlink", "4": "gpus", "5": "power"}
PAGES = {"domain": "domain:r01", "gpu": "n004/gpu2", "node": "n010", "rack": "r01"}


@pytest.mark.parametrize("size", SIZES, ids=lambda s: f"{s[0]}x{s[1]}")
@pytest.mark.parametrize("state", [well, ill], ids=["healthy", "broken"])
@pytest.mark.parametrize("key", VIEWS, ids=NAMES.get)
def test_pictures(snap_compare: Compare, key: str, state: Callable[[], Snapshot], size: tuple[int, int]) -> None:
    """Each view at each size, of two racks where all is well and where much is broken."""
    assert snap_compare(app_of(StillSession(state())), terminal_size=size, run_before=after(key))


@pytest.mark.parametrize("state", [silent, unheard], ids=["stale", "empty"])
@pytest.mark.parametrize("key", VIEWS, ids=NAMES.get)
def test_pictures_of_what_is_not_known(snap_compare: Compare, key: str, state: Callable[[], Snapshot]) -> None:
    """What was last heard, as old as it is; and nothing at all."""
    assert snap_compare(app_of(StillSession(state())), terminal_size=(80, 24), run_before=after(key))


@pytest.mark.parametrize("key", VIEWS, ids=NAMES.get)
def test_pictures_without_colour(snap_compare: Compare, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Glyphs and words say what colours say."""
    monkeypatch.setenv("NO_COLOR", "1")
    assert snap_compare(app_of(StillSession(ill())), terminal_size=(80, 24), run_before=after(key))


@pytest.mark.parametrize("key", VIEWS, ids=NAMES.get)
def test_pictures_in_ascii(snap_compare: Compare, key: str) -> None:
    """The same where the terminal knows no other characters."""
    assert snap_compare(app_of(StillSession(ill()), ascii=True), terminal_size=(80, 24), run_before=after(key))


@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=lambda s: f"{s[0]}x{s[1]}")
@pytest.mark.parametrize("address", PAGES.values(), ids=PAGES)
def test_pictures_of_pages(snap_compare: Compare, address: str, size: tuple[int, int]) -> None:
    """A domain, a GPU, a node, a rack, each with something that is broken."""

    async def run(pilot: Pilot[None]) -> None:
        await after("4")(pilot)
        pilot.app.open_entity(address)  # type: ignore[attr-defined]
        await pilot.pause()

    assert snap_compare(app_of(StillSession(ill())), terminal_size=size, run_before=run)


def test_picture_of_a_filter_that_makes_no_sense(snap_compare: Compare) -> None:
    """Why, below what was typed; the table stays."""
    keys = ("4", "slash", *"temp>hot")
    assert snap_compare(app_of(StillSession(ill())), terminal_size=(80, 24), run_before=after(*keys))


# --- view 4 ---


async def test_gpus_are_sorted_by_their_state_and_by_each_column_in_turn_both_ways() -> None:
    async with running(StillSession(ill())) as (app, pilot):
        await press(pilot, "4", "home")
        assert app.screen.entity() == "n004/gpu2" and "lost" in text_of(app)
        readings = app.shown.snapshot.gpu  # type: ignore[union-attr]
        await press(pilot, "s", "s")
        names = racks().gpu_names
        assert app.screen.entity() == "n004/gpu2"  # the cursor stays; the order changes around it
        await press(pilot, "home")
        assert app.screen.entity() == names[int(np.nanargmax(readings["power_watts"]))]
        await press(pilot, "S", "home")
        assert app.screen.entity() == names[int(np.nanargmin(readings["power_watts"]))]
        await press(pilot, "end")
        assert app.screen.entity() == "n033/gpu1"  # unknown comes last either way


async def test_the_cursor_stays_on_its_gpu_when_the_order_changes() -> None:
    session = StillSession(ill())
    async with running(session) as (app, pilot):
        await press(pilot, "4", "s", "s", "s", "home")
        assert app.screen.entity() == "n020/gpu1" and session.send is not None  # the hottest
        cooler = {**ill().gpu, "temperature_celsius": np.full(144, 60.0)}
        cooler["temperature_celsius"][:100] = 70
        session.send(replace(ill(), version=99, gpu=cooler))
        app.apply()
        await pilot.pause()
        assert app.screen.entity() == "n020/gpu1"


async def test_a_filter_narrows_the_gpus_and_escape_clears_it_before_it_leaves() -> None:
    async with running(StillSession(ill())) as (app, pilot):
        await press(pilot, "4", "slash", *"plane:B down", "enter")
        assert "1 of 144" in text_of(app) and app.screen.entity() == "n010/gpu1"
        await press(pilot, "slash", *" lost", "enter")
        assert "nothing matches" in text_of(app) and app.screen.entity() == ""
        await press(pilot, "enter", "w")
        assert app.current_mode == "gpus" and isinstance(app.screen, GpusScreen)
        await press(pilot, "escape")
        assert "144" in text_of(app) and app.current_mode == "gpus"
        await press(pilot, "escape")
        assert app.current_mode == "overview"


async def test_a_filter_that_makes_no_sense_says_why_and_keeps_the_last_good_one() -> None:
    async with running(StillSession(ill())) as (app, pilot):
        await press(pilot, "4", "slash", *"lost", "enter")
        await press(pilot, "slash", *" powr>3")
        assert "there is no 'powr' here" in text_of(app) and "power" in text_of(app)
        await press(pilot, "enter")
        assert "there is no 'powr' here" in text_of(app)  # it stays open: nobody has read why yet
        await press(pilot, "escape")
        assert "there is no" not in text_of(app)


async def test_only_the_rows_in_sight_are_made_however_many_there_are() -> None:
    snapshot = many()
    table = gpu_table(snapshot, gpu_index(snapshot.topology))
    made: list[int] = []

    def counting(row: int) -> str:
        made.append(row)
        return table.name(row)

    async with running(StillSession(snapshot), (120, 40)) as (app, pilot):
        await press(pilot, "4")
        panel = app.screen.panel  # type: ignore[attr-defined]
        panel._table = replace(table, name=counting)
        await press(pilot, "end")
        assert "99,977–100,008 of 100,008" in text_of(app)
        assert panel.size.height - 2 <= len(made) <= panel.size.height + 4  # a page, and the one under the cursor


# --- view 3 ---


async def test_domains_in_trouble_come_first_and_open_as_a_matrix() -> None:
    async with running(StillSession(ill()), (120, 40)) as (app, pilot):
        await press(pilot, "3")
        assert isinstance(app.screen, NvlinkScreen) and app.screen.entity() == "domain:r01"
        assert "2 of 18 chips dark" in text_of(app)
        await press(pilot, "enter")
        assert isinstance(app.screen, DomainScreen) and "nvswitch down" in text_of(app)
        await press(pilot, "down", "enter")
        assert isinstance(app.screen, EntityScreen) and app.screen.entity() == "n018/gpu1"
        assert "16 of 18 links of this GPU up" in text_of(app)
        await press(pilot, "escape", "escape", "escape")
        assert app.current_mode == "overview"


async def test_healthy_domains_are_cells_that_the_arrows_go_through() -> None:
    topo = preset("hgx-b200", nodes=200)
    session = StillSession(Machines(topo, 3).run(3).snapshot())
    async with running(session, (80, 24)) as (app, pilot):
        await press(pilot, "3")
        assert app.screen.entity() == "domain:n000" and "200 healthy" in text_of(app)
        await press(pilot, "right", "right")
        assert app.screen.entity() == "domain:n002"
        await press(pilot, "down", "up", "end")
        assert app.screen.entity() == "domain:n199"
        await press(pilot, "home", "up")
        assert app.screen.entity() == "domain:n000"


async def test_a_fabric_without_nvlink_says_so() -> None:
    async with running(StillSession(healthy_without_nvlink())) as (app, pilot):
        await press(pilot, "3", "down", "enter", "w")
        assert "no NVLink in this fabric" in text_of(app) and app.current_mode == "nvlink"


def healthy_without_nvlink() -> Snapshot:
    return Machines(preset("rtx-pro-6000", servers=4), 3).run(3).snapshot()


# --- view 5 ---


async def test_power_shows_the_site_and_what_each_part_has_to_spare_the_worst_first() -> None:
    async with running(StillSession(ill()), (120, 40)) as (app, pilot):
        await press(pilot, "5")
        assert isinstance(app.screen, PowerScreen) and app.screen.entity() == "r01/feedB1"
        shown = text_of(app)
        assert "SITE" in shown and "GPUs at their limits" in shown and "down" in shown
        await press(pilot, "enter")
        assert isinstance(app.screen, EntityScreen) and app.screen.entity() == "r01"
        assert "feed down" in text_of(app) and "left after one more loss" in text_of(app)


async def test_swing_is_what_the_screen_has_seen_since_it_looks() -> None:
    session = StillSession(well())
    async with running(session, (120, 40)) as (app, pilot):
        await press(pilot, "5", "slash", *"r00", "enter")
        assert session.send is not None
        power = well().power
        at = power.names.index("r00")
        for version, watts in ((90, 100e3), (91, 70e3), (92, 95e3)):
            load = power.watts.copy()
            load[at] = watts
            session.send(replace(well(), version=version, time=T0 + version * NS, power=replace(power, watts=load)))
            app.apply()
            await pilot.pause()
        panel = app.screen.panel  # type: ignore[attr-defined]
        r = panel.readings
        assert r.swing[r.layout.find["r00"]] == max(100e3, power.watts[at]) - min(70e3, power.watts[at])


# --- pages and what-ifs ---


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        (("3",), "what if domain:r01"),
        (("4", "slash", *"n020/gpu1", "enter"), "what if n020/gpu1 fails"),
        (("5", "slash", *"kind=rack r00", "enter"), "what if r00 fails"),
        (("4", "slash", *"n020/gpu1", "enter", "enter"), "what if n020/gpu1 fails"),
    ],
)
async def test_w_asks_about_what_is_under_the_cursor(keys: tuple[str, ...], says: str) -> None:
    async with running(StillSession(ill())) as (app, pilot):
        await press(pilot, *keys, "w")
        assert app.current_mode == "whatif" and says in text_of(app)


async def test_pages_lead_to_neighbours_and_to_incidents_and_none_is_opened_twice() -> None:
    async with running(StillSession(ill()), (120, 40)) as (app, pilot):
        await press(pilot, "4", "enter")
        assert app.screen.entity() == "n004/gpu2"
        await press(pilot, "enter")
        assert isinstance(app.screen, IncidentScreen) and "gpu lost" in text_of(app)
        await press(pilot, "escape", "down", "enter")
        assert app.screen.entity() == "n004"
        depth = len(app.screen_stack)
        app.open_entity("n004/gpu2")
        await pilot.pause()
        assert app.screen.entity() == "n004/gpu2" and len(app.screen_stack) == depth - 1


async def test_enter_opens_only_what_is_in_sight() -> None:
    async with running(StillSession(well())) as (app, pilot):
        await press(pilot, "4", "enter")
        assert app.screen.entity() == "n000/gpu0" and "►node" not in text_of(app)
        await press(pilot, "enter")
        assert app.screen.entity() == "n000/gpu0" and "►node" in text_of(app)
        await press(pilot, "enter")
        assert app.screen.entity() == "n000"


async def test_the_line_of_a_filter_says_what_may_be_asked_until_something_is_typed() -> None:
    async with running(StillSession(well())) as (app, pilot):
        await press(pilot, "4", "slash")
        assert "rail job model plane; words: ok" in text_of(app)
        await press(pilot, "o")
        assert "words: ok" not in text_of(app)


async def test_what_has_no_page_of_its_own_says_so() -> None:
    async with running(StillSession(ill())) as (app, pilot):
        app.open_entity("A-leaf-00")
        await pilot.pause()
        assert "has no page of its own" in text_of(app)


async def test_a_page_keeps_the_last_readings_of_its_part_while_it_is_open() -> None:
    session = StillSession(well())
    async with running(session, (120, 40)) as (app, pilot):
        await press(pilot, "4", "slash", *"n000/gpu0", "enter", "enter")
        assert session.send is not None
        for version in range(20, 26):
            watts = well().gpu["power_watts"].copy()
            watts[0] = 1400 * (version - 19) / 6
            session.send(
                replace(well(), version=version, time=T0 + version * NS, gpu={**well().gpu, "power_watts": watts})
            )
            app.apply()
            await pilot.pause()
        line = next(line for line in text_of(app).splitlines() if line.startswith(" power"))
        assert "▂▃▄▅▆▇"[-4:] in line.replace(" ", "") and "0–1.40 kW, 25 s" in line


async def test_views_of_a_recording_go_back_in_time_with_it() -> None:
    class Player:
        start, end, time, topology, incidents, notes = T0 - 9 * NS, T0, T0 - 9 * NS, racks(), (), ()

        def step_to(self, time: int) -> Snapshot:
            return replace(well(), time=time, version=time // NS)

    async with running(ReplaySession("t", Player(), playing=False)) as (app, pilot):
        await press(pilot, "5", "g", *"100%", "enter")
        panel = app.screen.panel  # type: ignore[attr-defined]
        await pilot.pause(0.2)
        later = panel.readings.seconds
        await press(pilot, "g", *"0%", "enter")
        await pilot.pause(0.2)
        assert later > 0 and panel.readings.seconds == 0


@pytest.mark.parametrize("key", VIEWS, ids=NAMES.get)
async def test_every_key_of_a_view_is_told_in_its_help(key: str) -> None:
    async with running(StillSession(well()), (120, 40)) as (app, pilot):
        await press(pilot, key, "question_mark")
        shown = text_of(app)
        assert all(word in shown for word in ("open", "move: a row", "go back"))
        assert ("sort by the next column" in shown and "filter: power>90%" in shown) == (key in "45")


async def test_no_order_of_keys_and_sizes_breaks_these_views_not_even_with_another_wiring() -> None:
    await fuzz(StillSession(ill()), 13, 100)


@pytest.mark.parametrize("state", [ill, unheard])
async def test_no_size_breaks_a_view_and_all_of_it_can_be_told_in_ascii(state: Callable[[], Snapshot]) -> None:
    async with running(StillSession(state())) as (app, pilot):
        for place in (*VIEWS, *PAGES.values()):
            if place in VIEWS:
                await press(pilot, place)
            else:
                app.open_entity(place)
                await pilot.pause()
            for size in ((300, 90), (40, 12), (20, 6)):
                await pilot.resize_terminal(*size)
                assert app.is_running and not app._failed
                assert "?" not in to_ascii("".join(c for c in text_of(app) if not c.isascii()))
