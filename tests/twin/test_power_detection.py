"""psu_down, feed_down, redundancy_lost, power_headroom, power_swing: the right cause, at once, and no false alarm."""

from __future__ import annotations

import numpy as np
import pytest

from tests.twin.power_fabric import DOWN, UNKNOWN, UP, WIRING, Meters, read, run, seconds, told
from twin.errors import InputError
from twin.incident import Incident
from twin.simulator.scenario import Fault, Phase
from twin.topology.model import Topology

SEEDS = range(10)


def host(psus: int = 2, watts: float = 800, gpus: int = 0) -> Topology:
    return read(f"name: one\nnodes: [{{name: n0, gpus: {gpus}, psus: {psus}, psu_watts: {watts}}}]\n")


def soon(incident: Incident, at: float, within: float = 3) -> bool:
    return at <= seconds(incident.detected) <= at + within


# --- reported cases --------------------------------------------------------------------------------


def test_one_of_two_supplies_lost_is_lost_redundancy_told_once_and_missing_power_is_no_reading() -> None:
    meters = Meters(host(2, 800))
    meters.set("psu", "up", {"n0/psu0": UP, "n0/psu1": UP})
    meters.set("psu", "output_watts", {"n0/psu0": 145.0, "n0/psu1": 142.0})
    meters.run(5)
    meters.set("psu", "up", {"n0/psu1": DOWN})
    meters.set("psu", "output_watts", {"n0/psu0": 287.0, "n0/psu1": UNKNOWN})
    meters.run(10)
    (incident,) = meters.incidents()
    assert (incident.kind, incident.cause, incident.severity) == ("psu_down", "n0/psu1", "warning")
    assert incident.effect["load_watts"] == pytest.approx(287, abs=1)
    assert (
        "1 of 2 of node n0 are left: 800 W for 287 W; redundancy is lost, the next loss leaves 0 W"
        in incident.summary
    )


def test_a_supply_that_cannot_carry_the_load_alone_is_critical() -> None:
    meters = Meters(host(2, 250))
    meters.set("psu", "up", {"n0/psu0": UP, "n0/psu1": DOWN})
    meters.set("psu", "output_watts", {"n0/psu0": 287.0, "n0/psu1": UNKNOWN})
    meters.run(10)
    (incident,) = meters.incidents()
    assert (incident.kind, incident.severity) == ("psu_down", "critical")
    assert "250 W for 287 W: too little, it will trip" in incident.summary


def test_a_host_that_draws_more_than_its_supply_gives_will_trip_until_its_limits_come_down() -> None:
    meters = Meters(host(1, 490, gpus=2))
    meters.set("node", "power_watts", {"n0": 695.0})
    meters.set("gpu", "power_watts", {"n0/gpu0": 290.0, "n0/gpu1": 170.0})
    meters.run(10)
    meters.set("node", "power_watts", {"n0": 475.0})
    meters.run(10)
    (incident,) = meters.incidents()
    assert (incident.kind, incident.cause, incident.severity) == ("power_headroom", "n0", "critical")
    assert incident.effect["headroom_watts"] == pytest.approx(-205)
    assert "Set the limit of its 2 GPUs to 128 W" in incident.advice
    assert incident.resolved is not None


# --- unknown ---------------------------------------------------------------------------------------


def supplies(value: float) -> dict[str, float]:
    return {f"n0/psu{i}": value for i in range(2)}


def test_supplies_that_nobody_can_read_are_not_lost() -> None:
    meters = Meters(host())
    meters.set("psu", "up", supplies(UNKNOWN))
    meters.set("node", "power_watts", {"n0": 700.0})
    meters.run(20)
    assert told(meters.incidents()) == []


def test_a_bay_that_the_wiring_does_not_have_is_no_fault() -> None:
    meters = Meters(host())
    meters.set("psu", "up", {**supplies(UP), "n0/psu2": DOWN, "n0/psu3": DOWN})
    meters.run(20)
    assert told(meters.incidents()) == []


@pytest.mark.parametrize("silence", ["source", "reading"])
def test_a_supply_that_falls_silent_is_neither_lost_nor_mended_by_that(silence: str) -> None:
    meters = Meters(host())
    meters.set("psu", "up", {"n0/psu0": DOWN, "n0/psu1": UP})
    meters.run(5)
    if silence == "source":
        meters.silent = {"n0"}
        meters.set("node", "power_watts", {"other": 1.0})  # time goes on
    else:
        meters.set("psu", "up", supplies(UNKNOWN))
    meters.run(30)
    power = [i for i in meters.incidents() if i.kind == "psu_down"]
    assert told(power) == [("psu_down", "n0/psu0")] and power[0].is_open and power[0].state == "open"


def test_a_load_that_is_not_known_any_more_keeps_its_incident() -> None:
    meters = Meters(host(1, 490))
    meters.set("node", "power_watts", {"n0": 600.0})
    meters.run(5)
    meters.set("node", "power_watts", {"n0": UNKNOWN})
    meters.run(20)
    (incident,) = meters.incidents()
    assert incident.kind == "power_headroom" and incident.state == "open"


# --- feeds -----------------------------------------------------------------------------------------


def feeds(a: float, b: float) -> dict[str, float]:
    return {"r0/feedA": a, "r0/feedB": b}


def test_a_feed_without_load_is_down_when_it_carried_one_and_its_sibling_carries_it_now() -> None:
    meters = Meters(read())
    meters.set("feed", "power_watts", feeds(20e3, 20e3))
    meters.run(5)
    meters.set("feed", "power_watts", feeds(0, 40e3))
    meters.run(10)
    (incident,) = meters.incidents()
    assert (incident.kind, incident.cause, incident.severity) == ("feed_down", "r0/feedA", "critical")
    assert soon(incident, 5) and incident.affected.gpus == 64


def test_a_feed_that_stands_by_without_load_is_not_down() -> None:
    meters = Meters(read())
    meters.set("feed", "power_watts", feeds(0, 40e3))
    meters.run(20)
    assert ("feed_down", "r0/feedA") not in told(meters.incidents())


def test_a_feed_without_load_whose_supplies_are_all_up_is_not_down() -> None:
    meters = Meters(read())
    meters.set("psu", "up", {f"n{i}/psu{k}": UP for i in range(8) for k in range(4)})
    meters.set("feed", "power_watts", feeds(20e3, 20e3))
    meters.run(5)
    meters.set("feed", "power_watts", feeds(0, 5e3))
    meters.run(20)
    assert told(meters.incidents()) == []


def test_all_supplies_of_a_feed_are_one_incident_without_a_meter_on_the_feed() -> None:
    meters = Meters(read())
    meters.set("psu", "up", {f"n{i}/psu{k}": UP for i in range(8) for k in range(4)})
    meters.run(5)
    meters.set("psu", "up", {f"n{i}/psu{k}": DOWN for i in range(8) for k in (0, 1)})
    meters.run(10)
    assert told(meters.incidents()) == [("feed_down", "r0/feedA")]


def test_supplies_plugged_in_otherwise_than_in_blocks_are_still_one_feed() -> None:
    meters = Meters(read())
    meters.set("psu", "up", {f"n{i}/psu{k}": UP for i in range(8) for k in range(4)})
    meters.set("feed", "power_watts", feeds(20e3, 20e3))
    meters.run(5)
    meters.set("psu", "up", {f"n{i}/psu{k}": DOWN for i in range(8) for k in (0, 2)})
    meters.set("feed", "power_watts", feeds(0, 40e3))
    meters.run(10)
    assert told(meters.incidents()) == [("feed_down", "r0/feedA")]


def test_supplies_of_a_rack_without_feeds_that_go_at_once_name_the_rack() -> None:
    meters = Meters(read(WIRING[: WIRING.index("racks:")]))
    meters.set("psu", "up", {f"n{i}/psu{k}": UP for i in range(8) for k in range(4)})
    meters.run(5)
    meters.set("psu", "up", {f"n{i}/psu{k}": DOWN for i in range(8) for k in (0, 1)})
    meters.run(10)
    assert told(meters.incidents()) == [("feed_down", "r0")]


def test_a_slow_source_does_not_turn_a_feed_into_supplies() -> None:
    meters = Meters(read())
    meters.set("psu", "up", {f"n{i}/psu{k}": UP for i in range(8) for k in range(4)})
    meters.run(50, interval=10)
    meters.set("psu", "up", {f"n{i}/psu{k}": DOWN for i in range(8) for k in (0, 1)})
    meters.run(40, interval=10)
    meters.twin.finish()
    assert told(meters.twin.incidents) == [("feed_down", "r0/feedA")]  # none was raised before either


def test_a_rack_without_any_power_explains_links_and_silence_of_its_nodes() -> None:
    faults = [Fault("fail", f"r0/feed{side}", 20, until=40) for side in "AB"]
    (incident,) = run(*faults, duration=70)
    assert (incident.kind, incident.cause) == ("feed_down", "r0")
    assert incident.affected.gpus == 64 and incident.affected.nodes == 8 and soon(incident, 20)
    assert seconds(incident.resolved) <= 45


def test_the_second_feed_takes_over_the_incident_of_the_first() -> None:
    incidents = run(Fault("fail", "r0/feedA", 20), Fault("fail", "r0/feedB", 40), duration=60)
    assert told(incidents) == [("feed_down", "r0")]


def test_faults_beside_a_lost_feed_are_told_for_themselves() -> None:
    incidents = run(
        Fault("fail", "r0/feedA", 20, until=40),
        Fault("fail", "n3/nic0/p0", 22, until=40),
        Fault("fail", "n9/psu2", 21, until=40),
    )
    assert sorted(told(incidents)) == [
        ("feed_down", "r0/feedA"),
        ("link_down", "n3/nic0/p0"),
        ("psu_down", "n9/psu2"),
    ]


# --- loads -----------------------------------------------------------------------------------------


def test_a_supply_that_fails_takes_over_what_was_told_of_its_node() -> None:
    incidents = run(Fault("draw", "n3", 10, level=1.4), Fault("fail", "n3/psu0", 30), duration=50)
    assert told(incidents) == [("psu_down", "n3/psu0")]


def test_a_load_that_goes_on_growing_is_one_incident_at_a_time() -> None:
    incidents = run(Fault("draw", "n3", 10, level=1.4), Fault("draw", "n3", 30, level=2.5), duration=50)
    assert told(incidents) == [("power_headroom", "n3")]


def test_many_nodes_of_a_rack_without_reserve_are_one_incident() -> None:
    incidents = run(Fault("draw", "r0", 20, level=1.3), duration=50)
    assert told(incidents) == [("redundancy_lost", "r0")]
    assert incidents[0].affected.gpus == 64 and soon(incidents[0], 20, 4)


def test_a_feed_that_may_carry_less_costs_its_rack_the_reserve() -> None:
    (incident,) = run(Fault("degrade", "r0/feedA", 20, until=40, capacity_fraction=0.5), duration=60)
    assert (incident.kind, incident.cause) == ("redundancy_lost", "r0")
    assert "No supply is down" in incident.advice


def test_a_trend_is_told_with_the_time_that_is_left_and_a_step_is_no_trend() -> None:
    meters = Meters(host(4, 3200, gpus=8))
    for t in range(150):
        meters.set("node", "power_watts", {"n0": 5000 + 30.0 * t})
        meters.run(1)
    incidents = meters.incidents()
    assert told(incidents)[0] == ("power_headroom", "n0")
    assert "limit of 9.6 kW, at this pace in 14 s (9.17 kW drawn, 430 W left)" in incidents[0].summary
    step = Meters(host(4, 3200, gpus=8))
    step.set("node", "power_watts", {"n0": 5000.0})
    step.run(40)
    step.set("node", "power_watts", {"n0": 9500.0})
    step.run(80)
    assert told(step.incidents()) == []


def test_one_sample_above_a_limit_is_no_overload() -> None:
    meters = Meters(host(1, 490))
    meters.set("node", "power_watts", {"n0": 400.0})
    meters.run(10)
    meters.set("node", "power_watts", {"n0": 600.0})
    meters.run(1)
    meters.set("node", "power_watts", {"n0": 400.0})
    meters.run(20)
    assert told(meters.incidents()) == []


def test_racks_that_swing_together_are_one_incident_of_the_site() -> None:
    faults = [Fault("draw", r, 20, level=0.7, kind="swing", period=4) for r in ("r0", "r1")]
    (incident,) = run(*faults, duration=50)
    assert (incident.kind, incident.cause, incident.affected.gpus) == ("power_swing", "site", 128)


# --- healthy, noisy, many seeds --------------------------------------------------------------------

PHASES = (
    Phase("allreduce", 0.9),
    Phase("idle", at=60),
    Phase("alltoall", 0.7, at=75),
    Phase("idle", at=90),
    Phase("allreduce", 0.8, at=110),
)


@pytest.mark.parametrize("noise", [1.0, 2.0])
@pytest.mark.parametrize("seed", [1, 2])
def test_a_healthy_fabric_raises_nothing_of_power(seed: int, noise: float) -> None:
    incidents = run(duration=240, seed=seed, noise=noise, workload=PHASES)
    assert told(incidents) == []


def test_counters_that_begin_anew_and_readings_that_stop_raise_nothing_of_power() -> None:
    faults = (Fault("restart", "n3", 10), Fault("silence", "n4", 20, until=40), Fault("silence", "n12", 20, until=40))
    incidents = run(*faults, duration=60)
    assert {i.kind for i in incidents} <= {"telemetry_stale"}


@pytest.mark.parametrize("seed", SEEDS)
def test_every_kind_is_found_in_time_with_nothing_beside_it(seed: int) -> None:
    incidents = run(
        Fault("fail", "n3/psu1", 15, until=30),
        Fault("draw", "n12", 16, until=30, level=1.4),
        Fault("fail", "r0/feedB", 45, until=60),
        Fault("draw", "n9", 46, until=60, level=2.6),
        Fault("draw", "r1", 80, until=100, level=0.7, kind="swing", period=4),
        duration=105,
        seed=seed,
    )
    expected = {
        ("psu_down", "n3/psu1"): (15, 3),
        ("redundancy_lost", "n12"): (16, 4),
        ("feed_down", "r0/feedB"): (45, 3),
        ("power_headroom", "n9"): (46, 4),
        ("power_swing", "r1"): (80, 12),
    }
    assert sorted(told(incidents)) == sorted(expected)
    for i in incidents:
        at, within = expected[i.kind, i.cause]
        assert soon(i, at, within), (i.kind, seconds(i.detected))


def test_the_twin_shows_what_every_rack_and_feed_has_left() -> None:
    meters = Meters(read())
    meters.set("feed", "power_watts", feeds(22e3, 20e3))
    meters.run(5)
    meters.twin.finish()
    power = meters.twin.snapshot().power
    rows = {name: i for i, name in enumerate(power.names)}
    rack, feed, site = rows["r0"], rows["r0/feedA"], rows["site"]
    assert power.kinds[rack] == "rack" and power.kinds[feed] == "feed"
    assert (power.watts[rack], power.headroom[rack], power.after_loss[rack]) == (42e3, 78e3, 18e3)
    assert (power.watts[feed], power.headroom[feed], power.after_loss[feed]) == (22e3, 38e3, 18e3)
    assert power.watts[site] == 42e3 and np.isnan(power.headroom[site])


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (Fault("draw", "n3", 1, level=2, kind="zigzag"), "kind 'zigzag'"),
        (Fault("draw", "n3", 1), "level None"),
        (Fault("draw", "n3", 1, level=2, kind="swing"), "level 2"),
        (Fault("draw", "r0/feedA", 1, level=2), "expected a node or a rack"),
        (Fault("degrade", "n3/psu0", 1, speed_fraction=0.5), "capacity_fraction"),
    ],
)
def test_faults_of_power_that_make_no_sense_are_refused(fault: Fault, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        run(fault, duration=1)
