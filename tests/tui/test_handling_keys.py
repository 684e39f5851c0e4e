"""Taking care of incidents from the screen: who may, what the twin hears, and how it shows."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from screen_samples import (
    FLAP,
    LINK_SLOW,
    NS,
    PLANE_DOWN,
    STALE,
    T0,
    StillPlayer,
    StillSession,
    broken,
    make_snapshot,
)
from test_screen_keys import running, text_of

from tui.rows.detail import detail_lines, effect_rows
from tui.rows.incidents import incident_line
from tui.rows.verdict import status, verdict_lines
from tui.rows.words import state_word
from tui.session import FeedSession, ReplaySession
from tui.text import plain
from twin.frames import Frame
from twin.incident import Incident, JobEffect, Word
from twin.simulator.scenario import Fault, Scenario
from twin.simulator.simulation import EPOCH, Simulation
from twin.snapshot import Snapshot
from twin.twin import Twin

WORD = Word("ops", T0, T0 + 1800 * NS)


class Listening(StillSession):
    """Notes what an operator says."""

    takes_words = True

    def __init__(self, *snapshots: Snapshot) -> None:
        super().__init__(*snapshots)
        self.heard: list[tuple[str, str, int]] = []

    def acknowledge(self, id: str, who: str, until: int) -> bool:
        self.heard.append(("acknowledge", id, until))
        return True

    def silence(self, what: str, who: str, until: int) -> None:
        self.heard.append(("silence", what, until))

    def say(self, word) -> None:  # type: ignore[no-untyped-def]
        word(self)


@pytest.mark.parametrize("opened", [False, True])
async def test_a_acknowledges_and_s_silences_the_incident_under_the_cursor(opened: bool) -> None:
    session = Listening(broken())
    async with running(session) as (app, pilot):
        await pilot.press("down", *(["enter"] if opened else []))
        await pilot.press("a")
        assert "acknowledged until 20:00:00 UTC: link_slow" in text_of(app)
        await pilot.press("s")
        assert "silenced until 12:30:00 UTC" in text_of(app)
    assert session.heard == [
        ("acknowledge", LINK_SLOW.id, T0 + 8 * 3600 * NS),
        ("silence", LINK_SLOW.cause, T0 + 1800 * NS),
    ]


async def test_what_is_resolved_is_not_taken_care_of() -> None:
    session = Listening(make_snapshot(incidents=(FLAP,)))
    async with running(session) as (app, pilot):
        await pilot.press("a")
        assert "it is resolved" in text_of(app)
    assert session.heard == []


async def test_the_keys_are_told_where_they_do_something_and_only_there() -> None:
    async with running(Listening(broken()), (160, 40)) as (app, pilot):
        await pilot.press("6")
        assert "a ack" in text_of(app) and "s silence" in text_of(app)
        await pilot.press("question_mark")
        assert "acknowledge: you take care" in text_of(app)
    for session in (StillSession(broken()), ReplaySession("t", StillPlayer(broken()), playing=False)):
        async with running(session, (160, 40)) as (app, pilot):
            await pilot.press("6", "a", "s")
            assert "a ack" not in text_of(app) and "silenced" not in text_of(app)


async def test_a_live_twin_hears_it_with_its_next_frames_and_shows_it() -> None:
    fault = Fault("fail", "n001/nic0/p0", 2)
    simulation = Simulation(Scenario("t", "rtx-pro-6000", duration=12.0, faults=(fault,)))
    twin, published = Twin(simulation.topology), list[Snapshot]()
    until = EPOCH + 600 * NS

    async def speak() -> None:
        while not twin.incidents:
            await asyncio.sleep(0.01)
        (incident,) = twin.incidents
        session.say(lambda t: t.acknowledge(incident.id, "ops", until))
        session.say(lambda t: t.silence("n001", "ops", until))

    async def feed() -> AsyncIterator[Frame]:
        frames = list(simulation.frames())
        late = next(k for k, frame in enumerate(frames) if frame.time > EPOCH + 8 * NS)
        for frame in frames[:late]:
            yield frame
        await speak()
        for frame in frames[late:]:
            yield frame

    session = FeedSession("t", twin, feed())
    await asyncio.wait_for(session.run(published.append), 60)
    assert [e.what for e in twin.events] == ["opened", "acknowledged", "silenced"]
    assert published[-1].incidents[0].acknowledged is not None and published[-1].incidents[0].is_muted


# --- how it shows --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({}, "critical"),
        ({"acknowledged": WORD}, "acked"),
        ({"acknowledged": WORD, "state": "recovering"}, "ending"),
        ({"silenced": WORD}, "silenced"),
        ({"maintenance": WORD}, "work"),
        ({"maintenance": WORD, "resolved": T0, "state": "resolved"}, "resolved"),
    ],
)
def test_one_word_says_what_became_of_an_incident(changes: dict[str, object], word: str) -> None:
    incident: Incident = replace(PLANE_DOWN, **changes)  # type: ignore[arg-type]
    assert state_word(incident)[1] == word
    assert word in plain(incident_line(incident, T0, 80, selected=False))


def test_what_is_muted_counts_in_no_verdict_and_is_told_apart() -> None:
    muted = tuple(replace(i, silenced=WORD) for i in (PLANE_DOWN, LINK_SLOW))
    snapshot = make_snapshot(down="B", incidents=muted)
    assert status(snapshot) == "ok"
    assert "no open incidents" in plain(verdict_lines(snapshot, 80)[0])
    assert "2 muted" in plain(verdict_lines(snapshot, 80)[0])
    assert status(make_snapshot(incidents=(*muted, STALE))) == "warning"


def test_the_page_of_an_incident_says_who_said_what_and_what_jobs_lose() -> None:
    work = Word("maintenance", T0, T0 + 3600 * NS, "new optics")
    incident = replace(PLANE_DOWN, acknowledged=WORD, maintenance=work, jobs=(JobEffect("train-7", 0.5),))
    text = "\n".join(plain(line) for line in detail_lines(incident, T0, 100))
    assert "by ops, until 2025-12-01 12:30:00 UTC" in text
    assert "new optics, until 2025-12-01 13:00:00 UTC" in text
    assert ("job train-7", "runs at 50 %") in effect_rows(incident)
