"""Detection as fabrics really are: wrong clocks, staged recoveries, partial views, slow sources."""

from __future__ import annotations

import numpy as np
import pytest

from tests.twin.by_hand import ByHand, seconds, told
from twin.frames import NS, Frame
from twin.simulator.scenario import Fault, Scenario
from twin.simulator.simulation import EPOCH, Simulation
from twin.topology.model import Topology
from twin.topology.presets import preset
from twin.topology.wiring import read_wiring
from twin.twin import Twin
from twin.yamlfile import Document


def rtx(servers: int = 16) -> Topology:
    return preset("rtx-pro-6000", servers=servers)


def simulate(*faults: Fault, name: str = "b300-superpod-ethernet", duration: float = 60, **more: object) -> list:
    scenario = Scenario("test", name, faults=faults, duration=duration, **more)  # type: ignore[arg-type]
    simulation = Simulation(scenario)
    twin = Twin(simulation.topology)
    twin.ingest_all(simulation.frames())
    twin.finish()
    return [i for i in twin.incidents if i.superseded_by is None]


# --- clocks ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("ahead", [6.0, 600.0, -6.0, -600.0])
def test_a_source_with_a_wrong_clock_blinds_nobody(ahead: float) -> None:
    hand = ByHand(rtx())
    hand.ahead["n003"] = ahead
    hand.run(20)
    hand.up[hand.links("A-leaf-02")] = 0
    hand.silent = {"A-leaf-02"}
    hand.run(40)
    hand.up[:] = 1
    hand.silent = set()
    hand.run(50)
    assert told(hand.finish()) == [("switch_down", "A-leaf-02")]


def test_one_frame_from_the_future_stops_nothing() -> None:
    hand = ByHand(rtx())
    hand.run(10)
    hand.ahead["n003"] = 3600.0
    hand.run(11)
    hand.ahead.clear()
    hand.run(20)
    hand.up[hand.links("n003/nic0/p0")] = 0
    hand.run(30)
    assert told(hand.finish()) == [("link_down", "n003/nic0/p0")]


def test_an_hour_without_frames_is_blindness_and_not_a_fault() -> None:
    hand = ByHand(rtx())
    hand.run(10)
    hand.ahead = {name: 3600.0 for name, *_ in hand._sources}
    hand.run(30)
    (incident,) = hand.finish()
    assert (incident.kind, incident.cause) == ("telemetry_stale", "sources")
    assert 3600 < seconds(incident.resolved) < 3625


# --- recovery --------------------------------------------------------------------------------------


def test_ports_that_train_for_twelve_seconds_are_still_one_leaf() -> None:
    hand = ByHand(preset("b300-superpod-ethernet", scalable_units=2))
    hand.run(6)
    links = hand.links("A-leaf-02")
    hand.up[links] = 0
    hand.silent = {"A-leaf-02"}
    hand.run(14)
    hand.silent = set()
    for k in range(0, len(links), 8):
        hand.run(14 + 12 * k / len(links))
        hand.up[links[k : k + 8]] = 1
    hand.run(32)
    incidents = hand.finish()
    assert told(incidents) == [("switch_down", "A-leaf-02")] and incidents[0].resolved is not None


def test_a_plane_that_falls_again_at_once_is_the_same_incident_counted() -> None:
    hand = ByHand(rtx())
    links = hand.links("plane:A")
    for until, up in ((10, 0), (30, 1), (32, 0), (50, 1)):
        hand.run(until)
        hand.up[links] = up
    hand.run(60)
    incidents = hand.finish()
    assert told(incidents) == [("plane_down", "plane:A")]
    assert incidents[0].count == 2 and seconds(incidents[0].resolved) > 50


def test_a_dead_nic_stays_one_incident_while_a_plane_comes_and_goes() -> None:
    incidents = simulate(Fault("fail", "n033/nic7", 20, 60), Fault("fail", "plane:A", 30, 45), duration=70)
    assert told(incidents) == [("link_down", "n033/nic7"), ("plane_down", "plane:A")]
    assert seconds(incidents[0].resolved) > 60


def test_a_leaf_and_a_spine_that_die_together_and_return_apart_are_two() -> None:
    faults = Fault("fail", "A-leaf-06", 20, 40), Fault("fail", "A-spine-01", 20, 44)
    assert sorted(told(simulate(*faults, name="b300-superpod-xdr"))) == [
        ("switch_down", "A-leaf-06"),
        ("switch_down", "A-spine-01"),
    ]


def test_what_stays_down_after_a_recovery_is_told_in_its_own_right() -> None:
    hand = ByHand(rtx())
    hand.run(10)
    hand.up[hand.links("A-leaf-01")] = 0
    hand.run(20)
    hand.up[hand.links("A-leaf-01")] = 1
    hand.up[hand.links("n004/nic0/p0")] = 0
    hand.run(60)
    first, second = hand.finish()
    assert told([first, second]) == [("switch_down", "A-leaf-01"), ("link_down", "n004/nic0/p0")]
    assert first.resolved is not None and second.is_open


# --- many at once ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("action", "target", "kind"),
    [
        ("degrade", "A-leaf-02", "link_slow"),
        ("degrade", "n003", "link_slow"),
        ("degrade", "plane:A", "plane_degraded"),
        ("flap", "A-leaf-02", "link_flapping"),
        ("flap", "n003", "link_flapping"),
        ("flap", "plane:A", "link_flapping"),
    ],
)
def test_a_device_that_is_slow_or_flaps_is_one_incident(action: str, target: str, kind: str) -> None:
    half = 0.5 if action == "degrade" else None
    fault = Fault(action, target, 20, 60, speed_fraction=half)  # type: ignore[arg-type]
    assert told(simulate(fault, name="rtx-pro-6000", duration=100)) == [(kind, target)]


def test_half_of_a_leafs_uplinks_that_go_at_once_are_one_incident() -> None:
    (incident,) = simulate(Fault("degrade", "A-leaf-02", 20, 60, capacity_fraction=0.5), duration=80)
    assert (incident.kind, incident.cause) == ("link_down", "A-leaf-02")
    assert "32 of 128 links of leaf A-leaf-02" in incident.summary and incident.affected.gpus == 64


def test_faults_that_only_follow_each_other_stay_apart() -> None:
    faults = [Fault("fail", t, at) for t, at in (("A-leaf-02", 20), ("n001/nic3/p0", 24), ("n011/nic5/p0", 28))]
    assert told(simulate(*faults)) == [
        ("switch_down", "A-leaf-02"),
        ("link_down", "n001/nic3/p0"),
        ("link_down", "n011/nic5/p0"),
    ]


# --- flapping --------------------------------------------------------------------------------------


def test_a_flap_that_ends_in_a_permanent_down_becomes_a_link_that_is_down() -> None:
    faults = Fault("flap", "n003/nic0/p0", 20, 38, period=5, down=1), Fault("fail", "n003/nic0/p0", 41)
    incidents = simulate(*faults, name="rtx-pro-6000", duration=120)
    assert told(incidents) == [("link_down", "n003/nic0/p0")]
    assert incidents[0].severity == "critical" and 41 <= seconds(incidents[0].started) < 43


def test_one_down_long_after_a_flap_is_a_down_and_no_flap() -> None:
    faults = Fault("flap", "n003/nic0/p0", 20, 40, period=5, down=1), Fault("fail", "n003/nic0/p0", 150)
    incidents = simulate(*faults, name="rtx-pro-6000", duration=200)
    assert told(incidents) == [("link_flapping", "n003/nic0/p0"), ("link_down", "n003/nic0/p0")]
    assert 150 <= seconds(incidents[1].started) < 152


def test_downs_that_only_the_ports_own_counter_saw_are_flaps() -> None:
    hand = ByHand(rtx())
    port = "n003/nic0/p0"
    for second in range(40):
        hand.run(second + 1)
        columns = {"link_downed": np.array([2 * second], np.uint64)}
        hand.twin.ingest(Frame(EPOCH + second * NS + NS // 2, "counter", "port", (port,), columns))
    assert told(hand.finish()) == [("link_flapping", port)]


# --- a partial view --------------------------------------------------------------------------------


def test_one_host_that_loses_all_its_links_is_no_dead_plane() -> None:
    hand = ByHand(rtx(), sources=lambda name: name == "n000")
    hand.run(20)
    hand.up[hand.links("n000")] = 0
    hand.run(30)
    assert told(hand.finish()) == [("link_down", "n000")]


def test_two_of_a_nics_four_ports_are_two_links() -> None:
    hand = ByHand(preset("b300-superpod-ethernet", planes=4))
    hand.run(10)
    hand.up[hand.links("n003/nic0/p0", "n003/nic0/p1")] = 0
    hand.run(20)
    assert sorted(told(hand.finish())) == [("link_down", "n003/nic0/p0"), ("link_down", "n003/nic0/p1")]


def test_one_planes_ports_of_a_node_are_part_of_the_node_and_not_all_of_it() -> None:
    topo = preset("b300-superpod-ethernet", planes=4)
    hand = ByHand(topo)
    hand.run(10)
    mine = hand.links("n000")
    hand.up[mine[topo.links.plane[mine] == 1]] = 0
    hand.run(20)
    (incident,) = hand.finish()
    assert (incident.kind, incident.cause) == ("link_down", "n000")
    assert "8 of 32 links of node n000" in incident.summary


@pytest.mark.parametrize("seen", [lambda n: n.startswith("n"), lambda n: not n.startswith("n")])
def test_a_plane_is_found_by_hosts_alone_and_by_switches_of_the_other_kind_alone(seen) -> None:  # type: ignore[no-untyped-def]
    hand = ByHand(preset("b300-superpod-ethernet"), sources=seen)
    hand.run(20)
    hand.up[hand.links("plane:B")] = 0
    hand.silent = {s for s in hand.topo.switches.name if s.startswith("B-spine")}
    hand.run(30)
    assert told(hand.finish()) == [("plane_down", "plane:B")]


def test_links_of_hosts_without_gpus_are_told_too_and_cost_nothing() -> None:
    text = (
        "name: m\nplanes: [A]\nnodes:\n  - {name: n0, nics: 1}\n  - {name: n1, nics: 1}\n"
        "switches:\n  - {name: L0, tier: leaf, plane: A}\nlinks:\n"
        "  - {a: n0/nic0/p0, b: L0/p0, speed: 400G}\n  - {a: n1/nic0/p0, b: L0/p1, speed: 400G}\n"
    )
    hand = ByHand(read_wiring(Document("x.yaml", text)))
    hand.run(10)
    hand.up[:] = 0
    hand.run(30)
    (incident,) = hand.finish()
    assert (incident.kind, incident.cause, incident.affected.gpus) == ("switch_down", "L0", 0)
    assert "nan" not in incident.summary


def test_a_fabric_of_one_plane_is_not_told_that_other_planes_carry_on() -> None:
    (incident,) = simulate(Fault("fail", "plane:A", 20), name="b300-superpod-xdr", duration=30)
    assert "other planes" not in incident.advice and "no other plane" in incident.advice


def test_a_plane_that_is_a_rail_costs_each_node_one_nic_of_eight() -> None:
    fault = Fault("fail", "plane:C", 20)
    (incident,) = simulate(fault, name="deepseek-mpft", duration=30, parameters={"nodes": 128})
    assert (incident.kind, incident.cause, incident.affected.gpus) == ("plane_down", "plane:C", 1024)
    assert incident.effect["bandwidth_fraction"] == 7 / 8 and "NVLink" in incident.advice


def test_a_dead_leaf_under_a_single_spine_is_the_leaf_and_not_the_spine() -> None:
    topo = preset("hgx-b200", nodes=8)
    assert list(np.bincount(topo.switches.tier)) == [8, 1]
    hand = ByHand(topo, sources=lambda name: "-leaf-" in name or "-spine-" in name)
    hand.run(20)
    hand.up[hand.links("A-leaf-03")] = 0
    hand.silent = {"A-leaf-03"}
    hand.run(40)
    assert told(hand.finish()) == [("switch_down", "A-leaf-03")]


def test_a_plane_that_nothing_reports_on_is_unknown_and_not_whole() -> None:
    hand = ByHand(preset("b300-superpod-ethernet"), sources=lambda name: name.startswith("A-"))
    hand.run(10)
    hand.finish()
    a, b = hand.twin.snapshot().planes
    assert (a.capacity_fraction, b.known_fraction) == (1, 0) and np.isnan(b.capacity_fraction)


def test_gpus_that_nothing_reports_on_are_of_unknown_bandwidth() -> None:
    hand = ByHand(rtx(), sources=lambda name: name == "n000")
    hand.run(10)
    hand.finish()
    bandwidth = hand.twin.snapshot().gpu_bandwidth
    assert (bandwidth[:8] == 1).all() and np.isnan(bandwidth[8:]).all()


# --- slow and quiet sources ------------------------------------------------------------------------


@pytest.mark.parametrize("interval", [1.0, 5.0, 10.0, 30.0])
def test_healthy_sources_of_any_interval_raise_nothing(interval: float) -> None:
    hand = ByHand(rtx(), interval=interval)
    hand.run(20 * interval)
    assert hand.finish() == []


@pytest.mark.parametrize("interval", [5.0, 10.0])
def test_a_leaf_seen_by_slow_sources_at_different_moments_is_one_incident(interval: float) -> None:
    hand = ByHand(preset("b300-superpod-ethernet", planes=4), interval=interval)
    hand.run(6 * interval)
    hand.up[hand.links("D-leaf-07")] = 0
    hand.silent = {"D-leaf-07"}
    hand.run(16 * interval)
    hand.up[:] = 1
    hand.silent = set()
    hand.run(24 * interval)
    incidents = hand.finish()
    assert told(incidents) == [("switch_down", "D-leaf-07")]
    assert seconds(incidents[0].detected) <= 6 * interval + 3 * interval


def test_sources_that_fell_silent_at_different_times_are_not_one_trouble() -> None:
    hand = ByHand(rtx())
    hand.run(20)
    hand.silent = {"n001", "n002"}
    hand.run(60)
    hand.silent = {"n001", "n002", "n003"}
    hand.run(80)
    assert sorted(told(hand.finish())) == [("telemetry_stale", n) for n in ("n001", "n002", "n003")]


def test_sources_that_fell_silent_together_are_one() -> None:
    hand = ByHand(rtx())
    hand.run(20)
    hand.silent = {name for name, *_ in hand._sources if name != "n000"}
    hand.run(50)
    assert told(hand.finish()) == [("telemetry_stale", "sources")]


# --- what is said ----------------------------------------------------------------------------------


def test_a_cause_starts_when_it_began_and_not_with_an_older_trouble_inside_it() -> None:
    hand = ByHand(rtx())
    hand.run(10)
    hand.up[hand.links("n003/nic0/p0")] = 0
    hand.run(200)
    hand.up[hand.links("A-leaf-00")] = 0
    hand.run(210)
    (incident,) = hand.finish()
    assert incident.kind == "switch_down" and 200 <= seconds(incident.started) < 202


def test_a_slow_link_of_unknown_speed_stays_slow() -> None:
    hand = ByHand(rtx())
    link = hand.links("n003/nic0/p0")
    hand.run(20)
    hand.speed[link] /= 2
    hand.run(30)
    hand.speed[link] = np.nan
    hand.run(50)
    (incident,) = hand.finish()
    assert incident.kind == "link_slow" and incident.is_open


@pytest.mark.parametrize("speed", [0.0, -1.0])
def test_a_speed_that_is_none_is_unknown_and_not_slow(speed: float) -> None:
    hand = ByHand(rtx())
    hand.speed[:] = speed
    hand.run(20)
    assert hand.finish() == []
