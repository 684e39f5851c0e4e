"""The screens as pictures: three sizes, a healthy and a broken fabric, without colour, in ASCII."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from screen_samples import (
    ABOUT,
    NS,
    NVML_REASON,
    T0,
    StillPlayer,
    StillSession,
    broken,
    congested,
    empty,
    healthy,
    own_host,
)
from textual.pilot import Pilot

from tui.app import FabricApp
from tui.session import ReplaySession, Session
from twin.snapshot import Snapshot

Compare = Callable[..., bool]
SIZES = [(80, 24), (120, 40), (200, 60)]


def app_of(session: Session, **options: Any) -> FabricApp:
    return FabricApp(session, ascii=options.pop("ascii", False), clock=lambda: T0 + NS, **options)


def after(*keys: str) -> Callable[[Pilot[None]], Any]:
    """Waits for the first data, then presses keys."""

    async def run(pilot: Pilot[None]) -> None:
        for _ in range(200):
            if pilot.app.shown.snapshot is not None and pilot.app.current_mode == "overview":  # type: ignore[attr-defined]
                break
            await pilot.pause(0.01)
        for key in keys:
            await pilot.press(key)
            await pilot.pause()
        await pilot.pause()

    return run


@pytest.mark.parametrize("size", SIZES, ids=lambda s: f"{s[0]}x{s[1]}")
@pytest.mark.parametrize("state", [healthy, broken], ids=["healthy", "broken"])
@pytest.mark.parametrize("keys", [(), ("2",), ("6",)], ids=["overview", "planes", "incidents"])
def test_views(
    snap_compare: Compare, keys: tuple[str, ...], state: Callable[[], Snapshot], size: tuple[int, int]
) -> None:
    """Each view at each size, of a healthy fabric and of one that lost a plane."""
    assert snap_compare(app_of(StillSession(state())), terminal_size=size, run_before=after(*keys))


@pytest.mark.parametrize(
    ("keys", "size"),
    [(("enter",), (80, 24)), (("2", "down", "enter"), (80, 24)), (("question_mark",), (80, 24)), ((), (60, 15))],
    ids=["incident", "leaf", "help", "small"],
)
def test_pages(snap_compare: Compare, keys: tuple[str, ...], size: tuple[int, int]) -> None:
    """An incident's page, a leaf's page, the keys, and a terminal smaller than it should be."""
    assert snap_compare(app_of(StillSession(broken())), terminal_size=size, run_before=after(*keys))


@pytest.mark.parametrize("size", [(80, 24), (200, 60)], ids=lambda s: f"{s[0]}x{s[1]}")
@pytest.mark.parametrize("keys", [("6",), ("6", "enter")], ids=["list", "page"])
def test_congestion(snap_compare: Compare, keys: tuple[str, ...], size: tuple[int, int]) -> None:
    """Its class stands in the list; on its page the root stands apart from those who wait because of it."""
    assert snap_compare(app_of(StillSession(congested())), terminal_size=size, run_before=after(*keys))


@pytest.mark.parametrize("size", SIZES, ids=lambda s: f"{s[0]}x{s[1]}")
@pytest.mark.parametrize("failing", [False, True], ids=["bare", "failing"])
def test_own_host(snap_compare: Compare, size: tuple[int, int], failing: bool) -> None:
    """Without a site: what was found here, a row an interface, and why a source fails."""
    reasons = {"me:nvml": NVML_REASON} if failing else {}
    session = StillSession(own_host(failing=failing), title="this host", about=ABOUT, reasons=reasons)
    assert snap_compare(app_of(session), terminal_size=size, run_before=after())


def test_why_a_source_fails(snap_compare: Compare) -> None:
    """The page of a failed source says what it said."""
    session = StillSession(own_host(failing=True), title="this host", about=ABOUT, reasons={"me:nvml": NVML_REASON})
    assert snap_compare(app_of(session), terminal_size=(80, 24), run_before=after("enter"))


def test_without_colour(snap_compare: Compare, monkeypatch: pytest.MonkeyPatch) -> None:
    """NO_COLOR takes the hue away; words and glyphs say the same."""
    monkeypatch.setenv("NO_COLOR", "1")
    assert snap_compare(app_of(StillSession(broken())), terminal_size=(80, 24), run_before=after("2"))


def test_ascii(snap_compare: Compare) -> None:
    """Where the locale is not UTF-8 every glyph is ASCII."""
    assert snap_compare(app_of(StillSession(broken()), ascii=True), terminal_size=(80, 24), run_before=after())


def test_nothing_heard(snap_compare: Compare) -> None:
    """Unknown is shown as unknown."""
    assert snap_compare(app_of(StillSession(empty())), terminal_size=(80, 24), run_before=after())


def test_light(snap_compare: Compare) -> None:
    """The light colours."""

    async def light(pilot: Pilot[None]) -> None:
        await after()(pilot)
        pilot.app.action_colours()  # type: ignore[attr-defined]
        await pilot.pause()

    assert snap_compare(app_of(StillSession(broken())), terminal_size=(80, 24), run_before=light)


def test_replay(snap_compare: Compare) -> None:
    """A recording: position, speed, and the whole of it on the timeline."""
    session = ReplaySession("prod-su1.mcap", StillPlayer(broken()), playing=False)
    assert snap_compare(app_of(session), terminal_size=(80, 24), run_before=after("right_square_bracket"))
