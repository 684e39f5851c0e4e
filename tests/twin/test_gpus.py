"""GPUs: lost, in error, throttled or slow; and what looks like it and is none."""

from __future__ import annotations

import numpy as np
import pytest

from tests.twin.by_hand import seconds, told
from tests.twin.scale_up import Boards, boards
from tests.twin.test_nvlink import HGX, NVL72, simulate
from twin.detectors.stragglers import _medians
from twin.detectors.xids import CLASSES, catalog, xid
from twin.simulator.scenario import Fault, Phase

VITALS = ("utilization_ratio", "power_watts", "temperature_celsius", "sm_clock_hertz")


def lose(hand: Boards, gpu: str) -> None:
    """As NVML answers for a lost GPU: nothing."""
    for values in hand.gpu.values():
        values[hand.row(gpu)] = np.nan
    for values in hand.nvlink.values():
        values[hand.links_of(gpu)] = np.nan


# --- lost ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["unknown", "gone"])
def test_one_lost_gpu_is_lost_and_the_other_seven_are_healthy(how: str) -> None:
    hand = Boards(boards())
    hand.run(10)
    if how == "gone":
        hand.gone = {"n0/gpu3"}
    else:
        lose(hand, "n0/gpu3")
    hand.run(30)
    (incident,) = hand.finish()
    assert (incident.kind, incident.cause, incident.affected.names) == ("gpu_lost", "n0/gpu3", ("n0/gpu3",))
    assert incident.severity == "critical" and incident.is_open
    assert 10 <= seconds(incident.started) < 11.2 and seconds(incident.detected) <= 13


def test_a_gpu_that_is_read_again_is_no_longer_lost() -> None:
    hand = Boards(boards())
    hand.run(10)
    hand.gone = {"n0/gpu3"}
    hand.run(20)
    hand.gone = set()
    hand.run(30)
    (incident,) = hand.finish()
    assert seconds(incident.resolved) <= 24


def test_the_driver_that_says_why_is_believed_at_once() -> None:
    hand = Boards(boards())
    hand.run(10)
    lose(hand, "n0/gpu3")
    hand.gpu["xid"][3] = 79
    hand.run(20)
    (incident,) = hand.finish()
    assert (incident.kind, incident.cause) == ("gpu_lost", "n0/gpu3") and "XID 79" in incident.summary
    assert seconds(incident.detected) <= 12


def test_a_gpu_lost_before_we_looked_is_told_by_its_xid() -> None:
    hand = Boards(boards())
    lose(hand, "n0/gpu3")
    hand.gpu["xid"][3] = 79
    hand.run(10)
    assert told(hand.finish()) == [("gpu_lost", "n0/gpu3")]


@pytest.mark.parametrize("interval", [1.0, 10.0])
def test_a_node_that_says_nothing_of_all_its_gpus_lost_none_of_them(interval: float) -> None:
    hand = Boards(boards(), interval=interval)
    hand.run(6 * interval)
    for values in hand.gpu.values():
        values[:8] = np.nan
    hand.run(20 * interval)
    assert hand.finish() == []


def test_a_value_that_a_gpu_does_not_support_makes_it_not_lost() -> None:
    """DCGM's sentinel for what is not supported arrives as unknown."""
    hand = Boards(boards())
    hand.gpu["power_watts"][3] = np.nan
    hand.run(5)
    for metric in ("sm_clock_hertz", "utilization_ratio", "xid", "throttle_reasons", "fabric_state"):
        hand.gpu[metric][3] = np.nan
    hand.run(30)
    assert hand.finish() == []


# --- errors ----------------------------------------------------------------------------------------


def test_every_xid_has_a_class_and_a_meaning_and_an_unlisted_one_says_so() -> None:
    assert {e.what for e in catalog().values()} <= set(CLASSES) and all(e.means for e in catalog().values())
    assert xid(79).what == "lost" and xid(95).what == "fatal" and xid(45).what == "cleanup"
    assert xid(999).what == "unlisted"


@pytest.mark.parametrize(
    ("code", "severity", "word"),
    [
        (95, "critical", "reset n0/gpu3"),
        (94, "warning", "Start the program again"),
        (31, "info", "the program"),
        (149, "warning", "NVLinks of n0/gpu3"),
        (999, "warning", "catalog"),
    ],
)
def test_a_new_xid_is_told_with_what_to_do(code: int, severity: str, word: str) -> None:
    hand = Boards(boards())
    hand.run(10)
    hand.gpu["xid"][3] = code
    hand.run(20)
    (incident,) = hand.finish()
    assert (incident.kind, incident.cause, incident.severity) == ("gpu_error", "n0/gpu3", severity)
    assert f"XID {code}" in incident.summary and word in incident.advice
    assert seconds(incident.detected) <= 12


def test_the_last_xid_that_was_there_when_we_first_looked_is_no_event_unless_it_is_fatal() -> None:
    hand = Boards(boards())
    hand.gpu["xid"][:4] = (31, 43, 94, 79)
    hand.gpu["xid"][7] = 119
    hand.run(30)
    assert told(hand.finish()) == [("gpu_error", "n0/gpu7")]


def test_what_needs_no_repair_is_told_for_a_minute_and_what_does_until_the_driver_is_loaded_again() -> None:
    hand = Boards(boards())
    hand.run(10)
    hand.gpu["xid"][3], hand.gpu["xid"][9] = 94, 95
    hand.run(120)
    hand.gpu["xid"][9] = 154  # it only says which recovery the driver asks for
    hand.run(140)
    first, second = sorted(hand.finish(), key=lambda i: i.cause)
    assert 70 <= seconds(first.resolved) <= 75 and second.is_open
    hand.gpu["xid"][9] = 0
    hand.run(150)
    assert all(i.resolved for i in hand.finish())


def test_an_unknown_xid_between_two_equal_ones_is_no_event() -> None:
    hand = Boards(boards())
    hand.gpu["xid"][3] = 13
    hand.run(10)
    hand.gpu["xid"][3] = np.nan
    hand.run(15)
    hand.gpu["xid"][3] = 13
    hand.run(20)
    assert hand.finish() == []


def test_a_gpu_that_was_away_and_is_back_was_reset_whatever_its_last_xid_says() -> None:
    hand = Boards(boards())
    hand.run(10)
    hand.gpu["xid"][3] = 95
    hand.run(20)
    hand.gone = {"n0/gpu3"}
    hand.run(30)
    hand.gone = set()
    hand.run(60)
    assert all(i.resolved for i in hand.finish())


def test_cleanup_of_a_job_on_many_gpus_is_one_note_and_no_fault_of_any_node() -> None:
    """XID 45 on all GPUs of a rack as jobs end; no node of it is an outlier (NVSentinel 1748, 1710, pull 1629)."""
    hand = Boards(boards(17))
    hand.run(10)
    hand.gpu["xid"][:] = 45
    hand.run(90)
    (incident,) = hand.finish()
    assert (incident.severity, incident.affected.nodes) == ("info", 17)
    assert "no fault" in incident.summary and incident.resolved is not None


def test_cleanup_after_another_error_is_not_told() -> None:
    hand = Boards(boards())
    hand.run(10)
    hand.gpu["xid"][:8] = 45
    hand.gpu["xid"][3] = 48
    hand.run(30)
    assert told(hand.finish()) == [("gpu_error", "n0/gpu3")]


def test_nvlink_xids_of_many_gpus_of_a_domain_are_one_trouble() -> None:
    hand = Boards(boards())
    hand.run(10)
    hand.gpu["xid"][:8] = 145
    hand.gpu["xid"][8:16] = 145
    hand.gpu["xid"][10] = 149
    hand.run(30)
    incidents = hand.finish()
    assert sorted(told(incidents)) == [("gpu_error", "domain:n0"), ("gpu_error", "n1/gpu2")]


def test_an_uncorrected_memory_error_is_told_and_those_counted_before_are_not() -> None:
    hand = Boards(boards())
    hand.gpu["ecc_uncorrected"][:] = 4
    hand.run(10)
    hand.gpu["ecc_uncorrected"][3] += 2
    hand.run(90)
    (incident,) = hand.finish()
    assert (incident.kind, incident.cause) == ("gpu_error", "n0/gpu3") and "2 new uncorrected" in incident.summary
    assert incident.resolved is not None


# --- throttled and slow ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bits", "bad"), [(0x8, True), (0x20, True), (0x40, True), (0x80 | 0x8, True), (0x1 | 0x2 | 0x4 | 0x10, False)]
)
def test_heat_brake_and_board_throttle_and_power_limit_clock_setting_and_idleness_do_not(
    bits: int, bad: bool
) -> None:
    hand = Boards(boards())
    hand.run(10)
    hand.gpu["throttle_reasons"][3] = bits
    hand.run(20)
    assert told(hand.finish()) == ([("gpu_throttled", "n0/gpu3")] if bad else [])


def test_one_sample_of_slowdown_is_nothing_and_one_that_flickers_but_prevails_is_one_incident() -> None:
    hand = Boards(boards())
    for second in range(1, 60):
        hand.run(second)
        hand.gpu["throttle_reasons"][3] = 0x40 if second % 5 else 0
        hand.gpu["throttle_reasons"][9] = 0x40 if second % 20 == 0 else 0
    (incident,) = hand.finish()
    assert incident.cause == "n0/gpu3" and incident.count == 1


def test_a_node_that_is_hot_is_one_incident_that_takes_over_its_gpus() -> None:
    hand = Boards(boards())
    hand.run(10)
    hand.gpu["throttle_reasons"][0] = 0x40
    hand.run(20)
    hand.gpu["throttle_reasons"][:8] = 0x40
    hand.run(30)
    assert told(hand.finish()) == [("gpu_throttled", "n0")]


def test_unknown_reasons_neither_raise_nor_clear() -> None:
    hand = Boards(boards())
    hand.run(10)
    hand.gpu["throttle_reasons"][3] = 0x40
    hand.run(20)
    hand.gpu["throttle_reasons"][:] = np.nan
    hand.run(40)
    (incident,) = hand.finish()
    assert incident.cause == "n0/gpu3" and incident.is_open


@pytest.mark.parametrize(
    ("metric", "value", "slow"),
    [
        ("sm_clock_hertz", 1.4e9, True),
        ("sm_clock_hertz", 1.8e9, False),
        ("power_watts", 500.0, True),
        ("power_watts", 800.0, False),
        ("utilization_ratio", 0.5, True),
        ("sm_clock_hertz", np.nan, False),
    ],
)
def test_a_gpu_far_below_its_busy_peers_for_ten_seconds_is_a_straggler(metric: str, value: float, slow: bool) -> None:
    hand = Boards(boards())
    hand.run(10)
    hand.gpu[metric][3] = value
    hand.run(30)
    incidents = hand.finish()
    assert told(incidents) == ([("gpu_straggler", "n0/gpu3")] if slow else [])
    assert all(20 <= seconds(i.detected) <= 22 and "lockstep" in i.summary for i in incidents)


def test_a_gpu_that_does_nothing_is_no_straggler_nor_is_one_among_idle_peers() -> None:
    hand = Boards(boards())
    idle = {"utilization_ratio": 0.0, "power_watts": 150.0, "sm_clock_hertz": 0.345e9}
    for metric, value in idle.items():
        hand.gpu[metric][3] = value
        hand.gpu[metric][9:16] = value
    hand.run(40)
    assert hand.finish() == []


def test_gpus_that_serve_different_work_are_not_compared_by_power() -> None:
    hand = Boards(boards())
    hand.gpu["power_watts"][:] = np.tile([300.0, 450, 520, 600, 700, 760, 820, 900], 2)
    hand.gpu["utilization_ratio"][:] = np.tile([0.3, 0.5, 0.55, 0.6, 0.7, 0.8, 0.85, 0.95], 2)
    hand.run(40)
    assert hand.finish() == []


def test_a_throttled_gpu_is_told_as_throttled_and_not_as_a_straggler_too() -> None:
    incidents = simulate(Fault("hurt", "n003/gpu2", 10, 40, kind="thermal"), duration=60)
    assert told(incidents) == [("gpu_throttled", "n003/gpu2")]
    assert incidents[0].effect["clock_fraction"] == pytest.approx(0.6, abs=0.05)


def test_medians_are_those_of_known_values_of_each_group() -> None:
    values = np.array([1.0, 9.0, 4.0, np.nan, 7.0, np.nan])
    medians, count = _medians(values, np.array([0, 0, 0, 0, 1, 2]))
    assert medians[:5].tolist() == [4.0] * 4 + [7.0] and np.isnan(medians[5])
    assert count.tolist() == [3, 3, 3, 3, 1, 0]


# --- simulated -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "kind", "within"),
    [
        (Fault("fail", "n003/gpu2", 10), "gpu_lost", 4),
        (Fault("hurt", "n003/gpu2", 10, kind="xid", code=79), "gpu_lost", 3),
        (Fault("hurt", "n003/gpu2", 10, kind="xid", code=119), "gpu_error", 3),
        (Fault("hurt", "n003/gpu2", 10, kind="ecc"), "gpu_error", 3),
        (Fault("hurt", "n003/gpu2", 10, kind="brake"), "gpu_throttled", 5),
        (Fault("hurt", "n003/gpu2", 10, kind="straggle", level=0.3), "gpu_straggler", 13),
    ],
)
@pytest.mark.parametrize("fabric", [HGX, NVL72, ("rtx-pro-6000", {"servers": 4})])
def test_one_fault_of_a_gpu_is_one_incident(
    fault: Fault, kind: str, within: float, fabric: tuple[str, dict[str, int]]
) -> None:
    (incident,) = simulate(fault, fabric=fabric, duration=26)
    assert (incident.kind, incident.cause, incident.affected.gpus) == (kind, "n003/gpu2", 1)
    assert 10 <= seconds(incident.started) < 12 and seconds(incident.detected) <= 10 + within


def test_a_node_that_dies_is_not_eight_lost_gpus() -> None:
    assert told(simulate(Fault("fail", "n003", 10, 20))) == [("link_down", "n003")]


def test_counters_that_restart_and_work_that_comes_and_goes_raise_nothing() -> None:
    work = (Phase("allreduce", 0.9), Phase("idle", at=15), Phase("alltoall", 0.5, at=30))
    assert simulate(Fault("restart", "n003", 20, 21), workload=work, duration=60) == []
