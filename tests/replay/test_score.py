"""The scoreboard: random faults over fabrics, what counts as found, and what it says."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from replay.drills import score as board
from replay.drills.file import KINDS
from replay.drills.lottery import LINKS, Ticket, draw
from replay.drills.score import Planned, Score, judge
from tui.main import run
from twin.incident import Incident
from twin.simulator.faults import FaultState
from twin.simulator.scenario import Fault
from twin.topology.presets import preset

TOPO = preset("hgx-h100", nodes=8)
PORT = "n002/nic5/p0"


def planned(kind: str = "link_down", cause: str = PORT) -> Planned:
    return Planned(Ticket(kind, cause, Fault("fail", cause, 0), frozenset()), 10.0, 30.0)


def told(kind: str, cause: str, at: float = 12.0) -> tuple[Incident, float, float]:
    return Incident(kind, cause, "warning", 0, 0), at, 32.0


def test_a_fault_told_by_its_kind_and_cause_in_time_is_found() -> None:
    score = judge(TOPO, [planned()], [told("link_down", PORT)], "t")
    assert (score.found, score.right, score.raised, score.wrong) == (1, 1, 1, [])
    assert score.to_json()["seconds_to_detect"] == {"median": 2.0, "p99": 2.0, "max": 2.0}


@pytest.mark.parametrize(
    "seen", [told("link_down", "n003/nic5/p0"), told("link_slow", PORT), told("link_down", PORT, at=50.0)]
)
def test_another_cause_another_kind_and_another_time_are_wrong_twice(seen: tuple[Incident, float, float]) -> None:
    """A fault that was missed, and an incident that belongs to none."""
    score = judge(TOPO, [planned()], [seen], "t")
    assert (score.found, score.right, len(score.wrong)) == (0, 0, 2)
    found = score.to_json()
    assert (found["precision"], found["recall"], found["f1"]) == (0, 0, None)


def test_an_incident_tells_one_fault_at_most() -> None:
    assert judge(TOPO, [planned(), planned()], [told("link_down", PORT)], "t").found == 1


def test_congestion_of_another_class_is_told_wrong() -> None:
    fault = Fault("congest", PORT, 0, kind="incast")
    jam = Planned(Ticket("congestion", PORT, fault, frozenset(), form="incast"), 10.0, 30.0)
    for form, found in (("incast", 1), ("imbalance", 0)):
        incident = replace(told("congestion", PORT)[0], class_=form)
        score = judge(TOPO, [jam], [(incident, 12.0, 32.0)], "t")
        assert (score.found, score.put_in["congestion incast"]) == (found, 1)


def test_scores_add_up() -> None:
    total = Score()
    for cause in (PORT, "n001/nic0/p0"):
        total.add(judge(TOPO, [planned(cause=cause)], [told("link_down", cause)], "t"))
    assert (total.faults, total.put_in["link_down"], total.got["link_down"]) == (2, 2, 2)
    assert total.to_json()["f1"] == 1


def test_faults_drawn_together_share_no_place() -> None:
    rng = np.random.default_rng(5)
    for _ in range(50):
        one = draw(TOPO, rng, LINKS)
        assert one is not None
        other = draw(TOPO, rng, LINKS, one.place)
        assert other is None or not one.place & other.place


def test_every_kind_of_incident_is_drawn_somewhere() -> None:
    drawn = set()
    for name in ("b300-superpod-ethernet", "gb300-nvl72-ethernet", "rtx-pro-6000", "dgx-b200-ndr"):
        topo = preset(name, **board.SIZES.get(name, {}))
        tickets = (lot.draw(topo, np.random.default_rng(seed)) for lot in board.LOTS for seed in range(6))
        drawn |= {t.kind for t in tickets if t is not None}
    assert drawn == set(KINDS)


def test_a_fabric_without_a_place_for_a_fault_draws_none() -> None:
    pair = preset("dgx-station-pair")
    drawn = {lot.name for lot in board.LOTS if lot.draw(pair, np.random.default_rng(1)) is not None}
    assert not drawn & {"plane_silent", "switch_down", "incast", "imbalance", "feed_down", "power_swing", "miscabled"}


def test_every_fault_drawn_is_one_that_the_simulator_takes() -> None:
    rng = np.random.default_rng(8)
    for name in ("b300-superpod-ethernet", "gb300-nvl72-superpod", "rtx-pro-6000", "mrc-8plane"):
        topo = preset(name, **board.SIZES.get(name, {}))
        tickets = [t for lot in board.LOTS for _ in range(5) if (t := lot.draw(topo, rng)) is not None]
        FaultState(topo, tuple(replace(t.fault, at=1.0, until=2.0) for t in tickets))


def test_the_same_seed_draws_the_same_faults() -> None:
    pieces = board.jobs(10, 3, double=4, healthy_seconds=60.0)
    assert pieces == board.jobs(10, 3, double=4, healthy_seconds=60.0) != board.jobs(10, 4)
    assert sum(piece[3] for piece in pieces if piece[0] == "faults") == 10


@pytest.mark.parametrize("name", ["hgx-h100", "gb300-nvl72-ethernet"])
def test_single_faults_are_all_told_right(name: str) -> None:
    score = board.run(name, 11, 6)
    assert score.wrong == []
    assert score.found == score.faults == 6


def test_the_command_prints_figures_for_people_and_programs(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["drill", "score", "--faults", "2", "--healthy", "60s", "--preset", "hgx-h100", "--jobs", "1"]
    assert run([*options, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["faults"]["recall"], found["healthy"]["false_incidents"]) == (1, 0)
    assert run(["drill", "score", "--preset", "nope"]) == 3
    assert "nope" in capsys.readouterr().err
