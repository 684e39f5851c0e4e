"""The life of an incident beyond its finding: taken care of, silenced, within announced work, gone by itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from replay.player import Player
from replay.recorder import Recorder
from replay.trace import open_trace
from tests.twin.by_hand import ByHand, seconds, told
from twin.detectors.rules import Rules
from twin.errors import InputError
from twin.frames import NS
from twin.incident import Incident, Word
from twin.maintenance import event_time, window, windows
from twin.simulator.scenario import Fault, Job, Scenario
from twin.simulator.simulation import EPOCH, Simulation
from twin.site import load_site
from twin.topology.model import Topology
from twin.topology.presets import preset
from twin.twin import Twin

PORT = "n003/nic0/p0"


def rtx() -> Topology:
    return preset("rtx-pro-6000", servers=16)


def broken(*addresses: str, at: float = 10.0) -> ByHand:
    hand = ByHand(rtx())
    hand.run(at)
    hand.up[hand.links(*addresses)] = 0
    hand.run(at + 5)
    return hand


def said(twin: Twin) -> list[tuple[str, str]]:
    return [(e.what, e.incident.cause) for e in twin.events]


def only(hand: ByHand) -> Incident:
    (incident,) = hand.twin.incidents
    return incident


# --- acknowledged ------------------------------------------------------------------------------------


def test_an_acknowledged_incident_says_by_whom_and_until_when_and_counts_all_the_same() -> None:
    hand = broken(PORT)
    now = hand.twin.time
    assert hand.twin.acknowledge(only(hand).id, "ops", now + 10 * NS)
    assert only(hand).to_json()["acknowledged"] == {"by": "ops", "at": now / NS, "until": now / NS + 10}
    assert not only(hand).is_muted
    hand.run(30)
    assert only(hand).acknowledged is None
    assert said(hand.twin) == [(w, PORT) for w in ("opened", "acknowledged", "unacknowledged")]
    assert not hand.twin.acknowledge("no such id", "ops", now)


def test_an_acknowledged_incident_that_ends_keeps_the_word_in_its_history() -> None:
    hand = broken(PORT)
    hand.twin.acknowledge(only(hand).id, "ops", hand.twin.time + 3600 * NS)
    hand.up[:] = 1
    hand.run(25)
    assert only(hand).resolved is not None and only(hand).acknowledged is not None
    assert not hand.twin.acknowledge(only(hand).id, "ops", hand.twin.time + NS)


# --- silenced ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", [PORT, "n003", "link_down"])
def test_a_silence_holds_for_what_is_there_and_what_comes_until_it_ends(what: str) -> None:
    hand = broken(PORT)
    now = hand.twin.time
    hand.twin.silence(what, "ops", now + 20 * NS)
    assert only(hand).is_muted and only(hand).state == "open"
    hand.up[hand.links("n003/nic1/p0")] = 0
    hand.run(25)
    _, second = hand.twin.incidents
    assert second.is_muted == (what != PORT)
    hand.run(50)
    assert [i.is_muted for i in hand.twin.incidents] == [False, False]
    assert ("unsilenced", PORT) in said(hand.twin)


def test_what_is_muted_stands_behind_what_is_not() -> None:
    hand = broken("A-leaf-02")
    hand.up[hand.links(PORT)] = 0
    hand.run(25)
    assert [i.cause for i in hand.twin.snapshot().incidents] == ["A-leaf-02", PORT]
    hand.twin.silence("A-leaf-02", "ops", hand.twin.time + 60 * NS)
    assert [i.cause for i in hand.twin.snapshot().incidents] == [PORT, "A-leaf-02"]


# --- recorded, and shown again ---------------------------------------------------------------------------


def test_a_replay_shows_what_people_said_when_they_said_it(tmp_path: Path) -> None:
    faults = Fault("fail", "n001/nic0/p0", 4), Fault("fail", "n002/nic1/p0", 4)
    simulation = Simulation(Scenario("t", "rtx-pro-6000", duration=24.0, faults=faults))
    twin, path, told_so_far = Twin(simulation.topology), tmp_path / "t.mcap", 0
    with Recorder(path, simulation.topology, live=False) as recorder:
        for frame in simulation.frames():
            if frame.time > EPOCH + 10 * NS and len(twin.events) == 2:
                first = next(i for i in twin.incidents if i.cause == "n001/nic0/p0")
                twin.acknowledge(first.id, "ops", EPOCH + 15 * NS)
                twin.silence("n002", "night shift", EPOCH + 3600 * NS)
            for event in twin.events[told_so_far:]:
                recorder.event(event)
            told_so_far = len(twin.events)
            recorder.write(frame)
            twin.ingest(frame)
    player = Player(open_trace(path))

    def at(second: float) -> dict[str, tuple[bool, bool]]:
        incidents = player.step_to(EPOCH + round(second * NS)).incidents
        return {i.cause: (i.acknowledged is not None, i.silenced is not None) for i in incidents}

    assert at(22) == {"n001/nic0/p0": (False, False), "n002/nic1/p0": (False, True)}
    assert at(12) == {"n001/nic0/p0": (True, False), "n002/nic1/p0": (False, True)}
    assert at(8) == {"n001/nic0/p0": (False, False), "n002/nic1/p0": (False, False)}
    again = open_trace(path)
    replayed = again.twin()
    replayed.ingest_all(again.frames_for(replayed))
    assert [i.silenced for i in replayed.incidents] == [i.silenced for i in twin.incidents]
    assert replayed.incidents[1].silenced == Word("night shift", EPOCH + 9 * NS, EPOCH + 3600 * NS)


def test_a_recorded_word_that_is_none_is_no_word() -> None:
    hand = broken(PORT)
    for strange in (None, 5, "soon", {}, {"by": "x", "at": "?", "until": 1}, {"by": "x", "at": 1, "until": 1e999}):
        assert not hand.twin.recall({"id": only(hand).id, "acknowledged": strange, "silenced": strange})
    assert not only(hand).is_muted


# --- announced work ----------------------------------------------------------------------------------


def working(what: str, start: float, until: float) -> ByHand:
    topo = rtx()
    hand = ByHand(topo)
    span = EPOCH + round(start * NS), EPOCH + round(until * NS)
    hand.twin = Twin(topo, maintenance=[window(topo, what, *span, "new optics")])
    return hand


def test_incidents_within_announced_work_are_kept_apart_while_it_lasts() -> None:
    hand = working("A-leaf-02", 8, 30)
    hand.run(10)
    hand.up[hand.links("A-leaf-02")] = 0
    hand.run(20)
    incident = only(hand)
    assert incident.is_muted and incident.to_json()["state"] == "maintenance"
    assert incident.to_json()["maintenance"]["why"] == "new optics"
    hand.run(40)
    assert not only(hand).is_muted and only(hand).is_open
    assert [w for w, _ in said(hand.twin)] == ["opened", "work over"]


@pytest.mark.parametrize(
    ("what", "fails", "muted"),
    [
        ("A-leaf-02", PORT, False),
        ("n003", PORT, True),
        ("n003/nic0", PORT, True),
        ("plane:A", "A-leaf-02", True),
        ("plane:A", PORT, True),
        ("A-leaf-00", PORT, True),
        ("r00", PORT, True),
        ("n004", PORT, False),
    ],
)
def test_work_covers_what_lies_in_it_and_nothing_else(what: str, fails: str, muted: bool) -> None:
    hand = working(what, 0, 100)
    hand.run(10)
    hand.up[hand.links(fails)] = 0
    hand.run(20)
    assert only(hand).cause == fails and only(hand).is_muted == muted


def test_what_began_before_the_work_is_part_of_it_and_what_outlasts_it_counts() -> None:
    hand = working(PORT, 20, 30)
    hand.run(10)
    hand.up[hand.links(PORT)] = 0
    for until, muted in ((18, False), (25, True), (35, False)):
        hand.run(until)
        assert only(hand).is_muted == muted


SITE = """\
topology: {preset: rtx-pro-6000}
maintenance:
  - {what: "A-leaf-02", from: 2026-01-01T00:00Z, until: "2026-01-01 02:00", why: new optics}
  - {what: n003, from: 2026-01-02, until: 1767320000}
"""


def test_a_site_file_announces_work(tmp_path: Path) -> None:
    path = tmp_path / "site.yaml"
    path.write_text(SITE)
    first, second = load_site(path).maintenance
    assert (first.what, first.start, first.until, first.why) == (
        "A-leaf-02",
        EPOCH,
        EPOCH + 7200 * NS,
        "new optics",
    )
    assert (second.start, second.until) == (EPOCH + 86400 * NS, 1767320000 * NS)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("what: n003", "what: n903", r"site\.yaml:4: maintenance\[1\]\.what: .*no 'n903'"),
        ("from: 2026-01-02", "from: soon", r"site\.yaml:4: .*'soon' is not a time"),
        ("until: 1767320000", "until: 2026-01-01", r"site\.yaml:4: .*until must come after from"),
        ("why: new", "wy: new", r"site\.yaml:3: maintenance\[0\]\.wy: unknown key"),
    ],
)
def test_announced_work_that_makes_no_sense_is_refused_with_its_line(
    tmp_path: Path, old: str, new: str, reason: str
) -> None:
    path = tmp_path / "site.yaml"
    path.write_text(SITE.replace(old, new))
    with pytest.raises(InputError, match=reason):
        load_site(path)


def test_announced_work_is_read_from_a_recording_and_what_is_damaged_there_is_left_out() -> None:
    good = {"what": "n003", "from": "2026-01-01T00:00:00Z", "until": "2026-01-01T01:00:00+00:00"}
    strange = [5, {}, {**good, "what": "n903"}, {**good, "from": "soon"}, {**good, "until": None}]
    assert [w.what for w in windows(rtx(), [good, *strange])] == ["n003"]
    assert windows(rtx(), "none") == () and windows(rtx(), None) == ()


def test_times_are_utc_where_they_have_no_zone() -> None:
    assert event_time("2026-01-01T01:00+01:00") == event_time("2026-01-01 00:00") == EPOCH


# --- gone by itself ------------------------------------------------------------------------------------


def test_a_port_that_fails_in_bring_up_is_told_and_clears_by_itself_once_it_is_stable() -> None:
    hand = ByHand(rtx())
    hand.up[hand.links(PORT)] = 0
    for until, up in ((6, 1), (7, 0), (12, 1)):
        hand.run(until)
        hand.up[hand.links(PORT)] = up
    hand.run(30)
    incident = only(hand)
    assert (incident.kind, incident.cause, incident.count) == ("link_down", PORT, 2)
    assert 12 < seconds(incident.resolved) <= 12 + Rules.load().recovery + 2


def test_a_port_that_drops_and_recovers_stays_in_sight_as_long_as_the_site_wants() -> None:
    """A port down for 8 min 31 s; raised after 240 s, recovering for 600 s, kept in history (gpud scenarios)."""
    topo = rtx()
    hand = ByHand(topo, interval=5.0)
    hand.twin = Twin(topo, Rules.load({"link_debounce": 240.0, "recovery": 600.0}))
    drop, up = 60.0, 60.0 + 8 * 60 + 31
    hand.run(drop)
    hand.up[hand.links(PORT)] = 0
    hand.run(up)
    assert 240 <= seconds(only(hand).detected) - drop <= 240 + 6
    hand.up[:] = 1
    hand.run(up + 500)
    assert only(hand).state == "recovering" and only(hand).is_open
    hand.run(up + 700)
    assert told(list(hand.twin.incidents)) == [("link_down", PORT)]
    assert 600 <= seconds(only(hand).resolved) - up <= 600 + 12


# --- what it costs each job ------------------------------------------------------------------------------

JOBS = (Job("train-7", tuple(f"n{i:03d}" for i in range(4))), Job("train-8", ("n010", "n011")))


def job_effects(fault: Fault, name: str = "b300-superpod-ethernet", **sizes: int) -> dict[str, float]:
    simulation = Simulation(Scenario("t", name, duration=14.0, faults=(fault,), jobs=JOBS, parameters=sizes))
    twin = Twin(simulation.topology)
    twin.ingest_all(simulation.frames())
    twin.finish()
    (incident,) = [i for i in twin.incidents if i.kind.startswith(("link", "switch", "plane"))]
    if incident.jobs:
        assert f"job {incident.jobs[0].name} " in incident.summary
    return {j.name: j.bandwidth_fraction for j in incident.jobs}


@pytest.mark.parametrize(
    ("fault", "effects"),
    [
        (Fault("fail", "n002/nic3/p1", 5), {"train-7": 0.5}),
        (Fault("fail", "n002/nic3", 5), {"train-7": 0.0}),
        (Fault("degrade", "n010/nic0/p0", 5, speed_fraction=0.5), {"train-8": 0.75}),
        (Fault("fail", "plane:A", 5), {"train-7": 0.5, "train-8": 0.5}),
        (Fault("fail", "A-spine-01", 5), {"train-7": 0.875, "train-8": 0.875}),
        (Fault("fail", "n040/nic3/p1", 5), {}),
    ],
)
def test_a_job_in_lockstep_goes_at_the_pace_of_its_slowest_gpu(fault: Fault, effects: dict[str, float]) -> None:
    assert job_effects(fault) == effects


def test_a_rail_that_is_a_plane_costs_a_job_one_nic_of_eight() -> None:
    assert job_effects(Fault("fail", "plane:C", 5), "deepseek-mpft", nodes=32) == {"train-7": 7 / 8, "train-8": 7 / 8}
