"""Congestion in simulated fabrics: its class, its root and its victims; and nothing where nothing is wrong."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.twin.counting import told
from twin.errors import InputError
from twin.frames import NS
from twin.incident import Incident
from twin.simulator.scenario import Fault, Phase, Scenario
from twin.simulator.simulation import EPOCH, Simulation
from twin.twin import Twin

XDR, ETHERNET = "b300-superpod-xdr", "b300-superpod-ethernet"


ALLREDUCE = Phase("allreduce")


def run(preset: str, *faults: Fault, noise: float = 1.0, work: Phase = ALLREDUCE, **more: object) -> list:
    options = {"duration": 36.0, **more}
    scenario = Scenario("test", preset, faults=faults, workload=(work,), **options)  # type: ignore[arg-type]
    simulation = Simulation(scenario, noise=noise)
    twin = Twin(simulation.topology)
    twin.ingest_all(simulation.frames())
    twin.finish()
    return [i for i in twin.incidents if i.superseded_by is None]


def congest(target: str, kind: str, at: float = 10, until: float | None = 24, level: float | None = None) -> Fault:
    return Fault("congest", target, at, until, kind=kind, level=level)


def after(incident: Incident, at: float = 10) -> float:
    return (incident.detected - EPOCH) / NS - at


@pytest.mark.parametrize(
    ("preset", "kind", "target", "within"),
    [
        (XDR, "incast", "n012/nic3/p1", 4),
        (XDR, "slow_receiver", "n012/nic3/p1", 3),
        (XDR, "oversubscription", "A-leaf-02", 4),
        (XDR, "imbalance", "A-leaf-02/p75", 4),
        ("dgx-b200-ndr", "slow_receiver", "n012/nic3/p1", 4),
        (ETHERNET, "incast", "n012/nic3/p0", 4),
        (ETHERNET, "slow_receiver", "n012/nic3/p0", 4),
        (ETHERNET, "pause_storm", "n012/nic3/p0", 3),
        (ETHERNET, "oversubscription", "A-leaf-02", 8),  # at 60 % ECN leaves a pause of 30 %: ten seconds' worth
        (ETHERNET, "imbalance", "A-leaf-02/p70", 8),
    ],
)
def test_each_class_is_one_incident_at_its_root_that_resolves(
    preset: str, kind: str, target: str, within: float
) -> None:
    incidents = run(preset, congest(target, kind))
    assert told(incidents) == [("congestion", kind, target)]
    (incident,) = incidents
    assert after(incident) <= within and incident.started < EPOCH + 13 * NS
    assert incident.resolved is not None and incident.resolved <= EPOCH + 31 * NS
    assert incident.victims and not any(target.startswith(f"{v}/") for v in incident.victims)
    assert incident.to_json()["class"] == kind and incident.to_json()["victims"] == list(incident.victims)


NDR, RTX = "dgx-b200-ndr", "rtx-pro-6000"


@pytest.mark.parametrize(
    ("preset", "kind", "target", "within"),
    [
        (NDR, "incast", "n012/nic3/p1", 6),
        (NDR, "slow_receiver", "n012/nic3/p1", 4),
        (NDR, "oversubscription", "A-leaf-02", 4),
        (NDR, "imbalance", "A-leaf-02/p40", 6),
        (RTX, "incast", "n003/nic3/p0", 6),
        (RTX, "pause_storm", "n003/nic3/p0", 4),
    ],
)
def test_ten_other_seeds_do_as_well(preset: str, kind: str, target: str, within: float) -> None:
    sizes = {"scalable_units": 1} if preset == NDR else {}
    for seed in range(100, 110):
        incidents = run(preset, congest(target, kind, until=20), seed=seed, parameters=sizes, duration=30.0)
        assert told(incidents) == [("congestion", kind, target)], seed
        assert after(incidents[0]) <= within, seed


@pytest.mark.parametrize("preset", [XDR, ETHERNET])
def test_twice_the_noise_raises_nothing_in_minutes_of_healthy_work(preset: str) -> None:
    assert told(run(preset, noise=2.0, duration=180.0, work=Phase("allreduce", 0.9))) == []


@pytest.mark.parametrize("interval", [0.5, 5.0])
def test_sources_of_other_intervals_tell_the_same(interval: float) -> None:
    at, until = 10 * interval, 24 * interval
    fault = congest("n003/nic3/p0", "slow_receiver", at, until)
    incidents = run("rtx-pro-6000", fault, interval=interval, duration=40 * interval)
    assert told(incidents) == [("congestion", "slow_receiver", "n003/nic3/p0")]
    assert after(incidents[0], at) <= max(4 * interval, 3)


def test_two_slow_receivers_at_once_are_two() -> None:
    faults = congest("n012/nic3/p1", "slow_receiver"), congest("n030/nic6/p1", "slow_receiver")
    assert sorted(told(run(XDR, *faults))) == [
        ("congestion", "slow_receiver", "n012/nic3/p1"),
        ("congestion", "slow_receiver", "n030/nic6/p1"),
    ]


def test_a_source_that_falls_silent_neither_clears_nor_adds_anything() -> None:
    faults = congest("n003/nic3/p0", "slow_receiver", until=None), Fault("silence", "A-leaf-01", 20)
    incidents = run("rtx-pro-6000", *faults, Fault("silence", "n003", 20), duration=60.0)
    found = [i for i in incidents if i.kind == "congestion"]
    assert told(found) == [("congestion", "slow_receiver", "n003/nic3/p0")] and found[0].is_open


def test_a_leaf_whose_uplinks_are_half_gone_explains_that_its_hosts_wait() -> None:
    lost = Fault("degrade", "A-leaf-02", 10, 30, capacity_fraction=0.5)
    incidents = run(XDR, lost, congest("A-leaf-02", "oversubscription", 12, 28))
    assert told(incidents) == [("link_down", "", "A-leaf-02")]


def test_who_cannot_drain_is_told_with_what_he_takes_and_what_to_look_at() -> None:
    (incident,) = run(XDR, congest("n012/nic3/p1", "slow_receiver"))
    assert "n012/nic3/p1 takes only" in incident.summary and "PCIe" in incident.advice
    assert 0.45 < incident.effect["waiting_fraction"] < 0.8
    assert incident.effect["lost_bits_per_second"] == pytest.approx(0.6 * 800e9, rel=0.3)
    assert any(e.metric == "waiting_fraction" and e.entity == "A-leaf-03/p13" for e in incident.evidence)


def test_the_same_frames_give_the_same_incidents_however_they_are_batched() -> None:
    simulation = Simulation(Scenario("t", "rtx-pro-6000", duration=30, faults=(congest("n003/nic3/p0", "incast"),)))
    frames = list(simulation.frames())
    one, other = Twin(simulation.topology), Twin(simulation.topology)
    one.ingest_all(frames)
    for frame in frames[:2000]:
        other.ingest(frame)
    other = other.fork()
    other.ingest_all(frames[2000:])
    assert one.incidents == other.incidents and one.incidents


@pytest.mark.parametrize(
    ("preset", "target", "kind", "level", "problem"),
    [
        (XDR, "n012/nic3/p1", "jam", None, "kind is 'jam', expected one of incast"),
        (XDR, "n012/nic3/p1", "pause_storm", None, "a pause storm needs Ethernet"),
        (XDR, "A-leaf-02", "incast", None, "is not one link"),
        (XDR, "A-leaf-02/p75", "incast", None, "leads to no host"),
        (XDR, "n012/nic3/p1", "imbalance", None, "is no uplink"),
        (XDR, "A-spine-00", "oversubscription", None, "is no leaf with uplinks"),
        (XDR, "n012/nic3/p1", "incast", 1.5, "level is 1.5"),
    ],
)
def test_congestion_that_cannot_be_is_refused(
    preset: str, target: str, kind: str, level: float | None, problem: str
) -> None:
    with pytest.raises(InputError, match=problem):
        Simulation(Scenario("t", preset, faults=(congest(target, kind, level=level),)))


def test_a_fabric_that_reports_no_sign_of_congestion_is_not_looked_at() -> None:
    simulation = Simulation(Scenario("t", "rtx-pro-6000", duration=3))
    twin = Twin(simulation.topology)
    for frame in simulation.frames():
        if frame.kind == "port":
            frame = replace(frame, columns={"up": np.ones(len(frame.names))})
        twin.ingest(frame)
    twin.finish()
    assert twin.incidents == ()
