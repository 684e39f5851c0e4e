"""What is told of silent planes and unequal uplinks says what the jobs' collectives would have put there."""

from __future__ import annotations

import numpy as np

from replay.drills.file import library, load_drill
from tests.twin.two_leaves import two_leaves
from twin.detectors.foretold import foretold
from twin.incident import Evidence, Incident
from twin.simulator.scenario import Fault, Job, Phase, Scenario
from twin.simulator.simulation import Simulation
from twin.topology.model import Topology
from twin.topology.presets import preset
from twin.twin import Twin


def incidents(scenario: Scenario, topology: Topology | None = None) -> list[Incident]:
    simulation = Simulation(scenario, topology)
    twin = Twin(simulation.topology)
    twin.ingest_all(simulation.frames())
    return list(twin.incidents)


def evidence(found: list[Incident], kind: str, metric: str) -> Evidence:
    return next(e for i in found if i.kind == kind for e in i.evidence if e.metric == metric)


def test_a_plane_that_a_job_left_should_carry_half_of_it() -> None:
    found = incidents(load_drill(library()["job-left-behind"]).scenario)
    seen = evidence(found, "plane_silent", "load_fraction_of_model")
    assert isinstance(seen.value, float)
    assert isinstance(seen.expected, float)
    assert seen.value < 0.01 < 0.4 < seen.expected < 0.55


def test_an_uplink_that_takes_what_all_should_is_told_with_its_fair_share() -> None:
    everyone = Job("train-7", tuple(f"n{i}" for i in range(8)), "alltoall", 0.6)
    jam = Fault("congest", "A-leaf-0/p8", 15, 40, kind="imbalance", level=0.9)
    scenario = Scenario("uplink", "", {}, (Phase("alltoall"),), duration=40, seed=3, jobs=(everyone,), faults=(jam,))
    found = incidents(scenario, two_leaves())
    seen = evidence(found, "congestion", "load_fraction")
    assert isinstance(seen.value, float)
    assert isinstance(seen.expected, float)
    assert seen.value > 0.9
    assert 0.05 < seen.expected < 0.6


def test_where_no_job_is_named_nothing_is_foretold() -> None:
    topo = preset("hgx-h100", nodes=4)
    assert np.isnan(foretold(topo, np.full(len(topo.ports.link), 0.5))).all()
