"""NVLink: the right cause at once, and nothing where nothing is wrong."""

from __future__ import annotations

import numpy as np
import pytest

from tests.twin.by_hand import seconds, told
from tests.twin.scale_up import Boards, boards
from twin.errors import InputError
from twin.frames import NS, Frame
from twin.incident import Incident
from twin.simulator.scenario import Fault, Scenario
from twin.simulator.simulation import EPOCH, Simulation
from twin.topology.presets import preset
from twin.twin import Twin

NVL72 = ("gb300-nvl72-ethernet", {"racks": 2})
HGX = ("hgx-b200", {"nodes": 8})


def simulate(
    *faults: Fault, fabric: tuple[str, dict[str, int]] = HGX, duration: float = 40, noise: float = 1.0, **more: object
) -> list[Incident]:
    scenario = Scenario("test", *fabric, faults=faults, duration=duration, **more)  # type: ignore[arg-type]
    simulation = Simulation(scenario, noise=noise)
    twin = Twin(simulation.topology)
    twin.ingest_all(simulation.frames())
    twin.finish()
    return [i for i in twin.incidents if i.superseded_by is None]


# --- down ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fabric", "fault", "kind", "cause", "gpus", "left"),
    [
        (HGX, Fault("fail", "n003/gpu2/nvlink7", 10), "nvlink_down", "n003/gpu2/nvlink7", 1, 17 / 18),
        (HGX, Fault("hurt", "n003/gpu2", 10, kind="nvlink"), "nvlink_down", "n003/gpu2", 1, 0),
        (HGX, Fault("fail", "n003/nvsw1", 10), "nvswitch_down", "n003/nvsw1", 8, 1 / 2),
        (HGX, Fault("fail", "domain:n003", 10), "nvlink_domain_split", "domain:n003", 8, 0),
        (HGX, Fault("hurt", "n003/gpu2", 10, kind="fabric"), "nvlink_domain_split", "n003/gpu2", 1, 0),
        (NVL72, Fault("fail", "r01/nvsw04", 10), "nvswitch_down", "r01/nvsw04", 72, 17 / 18),
        (NVL72, Fault("hurt", "n003", 10, kind="nvlink"), "nvlink_down", "n003", 4, 0),
        (NVL72, Fault("hurt", "domain:r01", 10, kind="fabric"), "nvlink_domain_split", "domain:r01", 72, 0),
    ],
)
def test_one_fault_is_one_incident_with_its_cause_and_what_is_left(
    fabric: tuple[str, dict[str, int]], fault: Fault, kind: str, cause: str, gpus: int, left: float
) -> None:
    (incident,) = simulate(fault, fabric=fabric, duration=20)
    assert (incident.kind, incident.cause, incident.affected.gpus) == (kind, cause, gpus)
    assert incident.effect["nvlink_fraction"] == pytest.approx(left)
    assert 10 <= seconds(incident.started) < 12 and seconds(incident.detected) <= 13  # a report may be lost


def test_three_links_of_one_gpu_are_the_gpu_and_one_of_each_of_two_are_two() -> None:
    hand = Boards(boards())
    hand.run(10)
    hand.nvlink["up"][[hand.row(f"n0/gpu3/nvlink{k}") for k in (1, 5, 16)]] = 0
    hand.nvlink["up"][[hand.row("n1/gpu0/nvlink2"), hand.row("n1/gpu4/nvlink2")]] = 0
    hand.run(20)
    assert told(hand.finish()) == [
        ("nvlink_down", "n0/gpu3"),
        ("nvlink_down", "n1/gpu0/nvlink2"),
        ("nvlink_down", "n1/gpu4/nvlink2"),
    ]


@pytest.mark.parametrize("interval", [1.0, 10.0])
def test_a_chip_seen_by_slow_sources_at_different_moments_is_one_incident(interval: float) -> None:
    faults = Fault("fail", "r01/nvsw04", 6 * interval, 14 * interval)
    (incident,) = simulate(faults, fabric=NVL72, duration=24 * interval, interval=interval)
    assert (incident.kind, incident.cause) == ("nvswitch_down", "r01/nvsw04") and incident.resolved is not None
    assert seconds(incident.detected) <= 6 * interval + max(3, 2 * interval)


def test_an_old_trouble_on_a_chip_does_not_hide_that_it_fails() -> None:
    faults = Fault("fail", "n003/gpu2/nvlink1", 5), Fault("fail", "r00/nvsw01", 40)
    (incident,) = simulate(*faults, fabric=NVL72, duration=50)
    assert (incident.kind, incident.cause) == ("nvswitch_down", "r00/nvsw01")
    assert 40 <= seconds(incident.started) < 42


def test_chips_of_different_trays_are_two_incidents() -> None:
    faults = Fault("fail", "r00/nvsw01", 10), Fault("fail", "r00/nvsw02", 10)
    assert sorted(told(simulate(*faults, fabric=NVL72, duration=20))) == [
        ("nvswitch_down", "r00/nvsw01"),
        ("nvswitch_down", "r00/nvsw02"),
    ]


def test_a_link_that_stays_down_when_its_chip_returns_is_told_in_its_own_right() -> None:
    faults = Fault("fail", "n003/nvsw1", 10, 20), Fault("fail", "n003/gpu2/nvlink12", 10)
    first, second = simulate(*faults)
    assert told([first, second]) == [("nvswitch_down", "n003/nvsw1"), ("nvlink_down", "n003/gpu2/nvlink12")]
    assert first.resolved is not None and second.is_open


def test_all_links_of_one_gpu_inactive_is_that_gpu_and_its_peers_are_healthy() -> None:
    """One B200 of eight reports no NVLink; 149 on it, 145 on its peers (gpud 1085, open-gpu-kernel-modules 1150)."""
    hand = Boards(boards())
    hand.run(10)
    hand.nvlink["up"][hand.links_of("n0/gpu2")] = 0
    hand.gpu["xid"][:8] = 145
    hand.gpu["xid"][2] = 149
    hand.run(20)
    (incident,) = hand.finish()
    assert (incident.kind, incident.cause, incident.severity) == ("nvlink_down", "n0/gpu2", "critical")
    assert incident.affected.names == ("n0/gpu2",) and "0 of 18 NVLinks" in incident.summary


def test_links_that_are_down_when_we_first_look_are_a_fault_by_design() -> None:
    hand = Boards(boards())
    hand.nvlink["up"][hand.links_of("n0/gpu2")] = 0
    hand.run(10)
    assert told(hand.finish()) == [("nvlink_down", "n0/gpu2")]


def test_where_the_design_says_little_healthy_readings_decide_that_a_link_is_there() -> None:
    hand = Boards(boards(chips=0))
    hand.nvlink["up"][:144] = 0  # of n0: bridges that are not fitted
    hand.nvlink["up"][hand.links_of("n1/gpu2")] = 0  # but its seven peers have theirs
    hand.run(10)
    assert told(hand.finish()) == [("nvlink_down", "n1/gpu2")]
    hand.nvlink["up"][5] = 1
    hand.run(20)
    hand.nvlink["up"][5] = 0
    hand.run(30)
    assert told(hand.finish()) == [("nvlink_down", "n1/gpu2"), ("nvlink_down", "n0/gpu0/nvlink5")]


def test_a_part_without_nvlink_has_none_that_could_be_down() -> None:
    """A100 PCIe without bridge: twelve links "down", state not supported (NVSentinel pull 1481, DCGM issue 49)."""
    hand = Boards(boards(links=0))
    names = tuple(f"n0/gpu0/nvlink{k}" for k in range(12))
    for second in range(15):
        hand.run(second)
        up = np.zeros(12) if second % 2 else np.full(12, np.nan)
        hand.twin.ingest(Frame(EPOCH + second * NS, "n0", "nvlink", names, {"up": up}))
    assert hand.finish() == []


@pytest.mark.parametrize("unknown", ["up", "all"])
def test_unknown_neither_raises_nor_clears(unknown: str) -> None:
    hand = Boards(boards())
    hand.run(5)
    for metric in hand.nvlink if unknown == "all" else ("up",):
        hand.nvlink[metric][:144] = np.nan
    hand.run(15)
    assert hand.finish() == []
    hand.nvlink["up"][:] = 1
    hand.nvlink["up"][hand.row("n0/gpu1/nvlink3")] = 0
    hand.run(20)
    hand.nvlink["up"][:144] = np.nan
    hand.run(30)
    (incident,) = hand.finish()
    assert (incident.kind, incident.cause) == ("nvlink_down", "n0/gpu1/nvlink3") and incident.is_open


def test_a_silent_source_clears_nothing_and_raises_no_nvlink_fault() -> None:
    hand = Boards(boards())
    hand.run(5)
    hand.nvlink["up"][hand.row("n0/gpu1/nvlink3")] = 0
    hand.run(10)
    hand.silent = {"n0"}
    hand.run(40)
    incidents = hand.finish()
    assert told(incidents) == [("nvlink_down", "n0/gpu1/nvlink3"), ("telemetry_stale", "n0")]
    assert incidents[0].is_open


def test_traffic_that_reads_zero_under_load_or_in_one_direction_is_no_fault() -> None:
    """NVSwitch throughput reads 0 on H100 under load (DCGM issue 236); a one-sided reading is never half."""
    hand = Boards(boards())
    hand.nvlink["rx_bytes"][:] = np.nan
    hand.run(20)
    assert hand.finish() == []


def test_registration_in_progress_is_a_fault_at_once_after_it_was_complete_and_else_after_a_while() -> None:
    hand = Boards(boards())
    hand.gpu["fabric_state"][1] = 2
    hand.run(50)
    assert hand.finish() == []
    hand.gpu["fabric_state"][9] = 2
    hand.run(70)
    incidents = hand.finish()
    assert told(incidents) == [("nvlink_domain_split", "n1/gpu1"), ("nvlink_domain_split", "n0/gpu1")]
    assert seconds(incidents[0].detected) < 54 and 60 <= seconds(incidents[1].detected) < 63


def test_boards_whose_registration_never_starts_are_no_fault() -> None:
    hand = Boards(boards())
    hand.gpu["fabric_state"][:] = 1
    hand.run(90)
    assert hand.finish() == []


# --- errors ----------------------------------------------------------------------------------------


def test_the_only_link_of_thousands_that_recovers_now_and_then_is_told_before_it_fails() -> None:
    """5,760 links, all zero but one: 505 in its life, 3 more in 21 min; it failed 5 days later (marin issue 9086)."""
    hand = Boards(boards(40), interval=1260.0)
    row = hand.row("n7/gpu0/nvlink14")
    hand.nvlink["recovery_errors"][row] = 505
    hand.run(1260)
    hand.nvlink["recovery_errors"][row] = 508
    hand.run(4 * 1260)
    (incident,) = [i for i in hand.finish() if i.kind != "telemetry_stale"]  # so rare a source seems silent at first
    assert (incident.kind, incident.cause, incident.severity) == ("nvlink_errors", "n7/gpu0/nvlink14", "warning")
    assert "3 recoveries in 21 min; of 5760 links no others" in incident.summary and "prediction" in incident.advice


def test_recoveries_minutes_apart_are_found_at_the_third() -> None:
    hand = Boards(boards(4))
    row = hand.row("n1/gpu0/nvlink14")
    for minute in range(1, 10):
        hand.run(minute * 60)
        hand.nvlink["recovery_errors"][row] += minute % 3 == 0
    hand.run(600)
    (incident,) = hand.finish()
    assert (incident.kind, incident.cause) == ("nvlink_errors", "n1/gpu0/nvlink14")
    assert 540 <= seconds(incident.detected) <= 543 and seconds(incident.started) < 184


def test_recoveries_on_most_links_are_no_links_fault() -> None:
    hand = Boards(boards(4))
    for minute in range(1, 10):
        hand.run(minute * 60)
        hand.nvlink["recovery_errors"] += 1
    assert hand.finish() == []


def test_a_burst_as_when_a_link_is_trained_predicts_nothing() -> None:
    hand = Boards(boards(4))
    hand.run(20)
    hand.nvlink["recovery_errors"][hand.row("n1/gpu0/nvlink14")] += 25
    hand.run(200)
    assert hand.finish() == []


def test_errors_counted_long_ago_that_do_not_move_are_history() -> None:
    """A lifetime check flipped healthy H100 nodes on one old CRC event (eks-node-monitoring-agent pull 261)."""
    hand = Boards(boards())
    hand.nvlink["crc_errors"][hand.row("n0/gpu1/nvlink5")] = 3
    hand.nvlink["replay_errors"][:] = 12345
    hand.run(120)
    assert hand.finish() == []


@pytest.mark.parametrize("value", [2**32 - 1, np.nan])
def test_a_counter_that_saturates_or_turns_unknown_has_no_rate(value: float) -> None:
    hand = Boards(boards())
    hand.run(10)
    hand.nvlink["replay_errors"][5] = value
    hand.run(30)
    hand.nvlink["replay_errors"][5] = 7
    hand.run(60)
    assert hand.finish() == []


def test_counters_that_begin_anew_raise_nothing() -> None:
    hand = Boards(boards())
    hand.nvlink["crc_errors"][:] = 10**6
    hand.gpu["ecc_uncorrected"][:] = 9
    hand.run(10)
    hand.nvlink["crc_errors"][:] = 3
    hand.gpu["ecc_uncorrected"][:] = 0
    hand.run(30)
    assert hand.finish() == []


@pytest.mark.parametrize(
    ("target", "kind", "rate"),
    [("n001/gpu3/nvlink7", "replay", 10), ("n001/gpu3", "symbol", 60), ("n001/nvsw1", "crc", 400)],
)
@pytest.mark.parametrize("seed", [1, 2])
def test_errors_above_the_budget_are_one_incident_at_their_cause(
    target: str, kind: str, rate: float, seed: int
) -> None:
    incidents = simulate(Fault("corrupt", target, 10, 20, kind=kind, rate=rate), seed=seed)
    assert told(incidents) == [("nvlink_errors", target)]
    assert seconds(incidents[0].detected) <= 14 and incidents[0].resolved is not None


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (Fault("corrupt", "n001/nvsw1", 1, kind="fec", rate=1.0), "kind is 'fec', expected one of crc, replay"),
        (Fault("corrupt", "n001/nvsw1", 1, kind="crc"), "'rate' is missing"),
        (Fault("hurt", "n001/gpu1", 1, kind="cold"), "kind is 'cold', expected one of xid"),
        (Fault("hurt", "n001/gpu1", 1, kind="xid"), "'code' is missing"),
        (Fault("hurt", "n001/nic1", 1, kind="ecc"), "is no GPU"),
        (Fault("hurt", "n001/gpu1", 1, kind="thermal", level=2), "expected a share"),
    ],
)
def test_a_fault_that_makes_no_sense_is_refused(fault: Fault, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        Simulation(Scenario("test", *HGX, faults=(fault,)))


# --- healthy ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("fabric", [HGX, NVL72, ("rtx-pro-6000", {"servers": 4})])
@pytest.mark.parametrize("noise", [1.0, 2.0])
def test_healthy_gpus_and_nvlinks_raise_nothing(fabric: tuple[str, dict[str, int]], noise: float) -> None:
    assert simulate(fabric=fabric, duration=200, noise=noise, seed=4) == []


def test_a_simulation_gives_every_metric_of_gpus_and_nvlinks_that_a_detector_reads() -> None:
    simulation = Simulation(Scenario("test", *HGX, duration=2.0))
    seen = {f.kind: set(f.columns) for f in simulation.frames()}
    assert {"up", "speed_bytes_per_second", "tx_bytes", "recovery_errors"} <= seen["nvlink"]
    assert {"sm_clock_hertz", "throttle_reasons", "xid", "ecc_uncorrected", "fabric_state"} <= seen["gpu"]


def test_the_links_of_a_lost_gpu_are_unknown_and_its_counters_go_on_when_it_is_back() -> None:
    simulation = Simulation(Scenario("test", *HGX, duration=6.0, faults=(Fault("fail", "n000/gpu1", 2, 4),)))
    frames = [f for f in simulation.frames() if f.source == "n000" and f.kind == "nvlink"]
    up = [f.columns["up"][18] for f in frames]
    assert np.isnan(up[2:4]).all() and up[0] == up[5] == 1
    sent = [int(f.columns["tx_bytes"][18]) for f in frames]
    assert sent[2] == 2**64 - 1 and sent[4] > sent[1]


def test_nvlinks_of_a_topology_without_any_cost_nothing_and_say_nothing() -> None:
    topo = preset("rtx-pro-6000", servers=2)
    frames = list(Simulation(Scenario("test", "rtx-pro-6000", {"servers": 2}, duration=2.0)).frames())
    assert len(topo.nvlink_gpu) == 0 and not any(f.kind == "nvlink" for f in frames)
