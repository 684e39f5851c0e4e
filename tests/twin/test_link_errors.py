"""Errors of links: budgets by the bits carried, which end counts, and what is no error of a link."""

from __future__ import annotations

import numpy as np
import pytest

from tests.twin.counting import Counting, told
from tests.twin.test_congestion_reported import star
from twin.detectors.rules import Rules
from twin.detectors.windows import Window
from twin.errors import InputError
from twin.frames import NS
from twin.simulator.scenario import Fault, Scenario
from twin.simulator.simulation import EPOCH, Simulation
from twin.twin import Twin


def run(*faults: Fault, noise: float = 1.0, duration: float = 40.0, seed: int = 7) -> list:
    scenario = Scenario("test", "rtx-pro-6000", faults=faults, duration=duration, seed=seed)
    simulation = Simulation(scenario, noise=noise)
    twin = Twin(simulation.topology)
    twin.ingest_all(simulation.frames())
    twin.finish()
    return [i for i in twin.incidents if i.superseded_by is None]


@pytest.mark.parametrize("kind", ["symbol", "fec", "crc"])
def test_a_port_whose_errors_grow_is_told_at_once_with_the_end_that_counts(kind: str) -> None:
    (incident,) = run(Fault("corrupt", "n003/nic2/p0", 10, kind=kind, rate=5.0))
    assert (incident.kind, incident.cause, incident.severity) == ("link_errors", "n003/nic2/p0", "warning")
    assert incident.detected - EPOCH <= 14 * NS and incident.affected.names == ("n003/gpu2",)
    metric = {"symbol": "symbol_errors", "fec": "fec_uncorrected", "crc": "rx_errors"}[kind]
    assert incident.evidence[0].metric == metric and incident.evidence[0].entity == "n003/nic2/p0"
    assert "n003/nic2/p0 receives errors from A-leaf-00/" in incident.summary and "transceiver" in incident.advice


def test_errors_at_both_ends_are_one_link_and_point_at_the_cable() -> None:
    (incident,) = run(Fault("corrupt", "A-leaf-01/p40--A-spine-00/p24", 10, kind="symbol", rate=8.0))
    assert (incident.kind, incident.cause) == ("link_errors", "A-leaf-01/p40--A-spine-00/p24")
    assert "both ends" in incident.summary and "cable" in incident.advice


def test_errors_on_all_links_of_a_switch_are_one_incident_of_the_switch() -> None:
    incidents = run(Fault("corrupt", "A-leaf-02", 10, kind="symbol", rate=5.0))
    assert told(incidents) == [("link_errors", "", "A-leaf-02")] and "no cables" in incidents[0].advice


def test_ten_other_seeds_do_as_well() -> None:
    faults = (
        Fault("corrupt", "n003/nic2/p0", 10, 14, kind="crc", rate=5.0),
        Fault("flap", "n005/nic1/p0", 10, 30, period=6.0, down=1.0),
        Fault("corrupt", "A-leaf-01/p40--A-spine-00/p24", 12, 20, kind="fec", rate=4.0),
    )
    for seed in range(100, 110):
        assert sorted(told(run(*faults, seed=seed, duration=50.0))) == [
            ("link_errors", "", "A-leaf-01/p40--A-spine-00/p24"),
            ("link_errors", "", "n003/nic2/p0"),
            ("link_flapping", "", "n005/nic1/p0"),
        ], seed


def test_what_a_leaf_counts_while_its_links_train_is_its_failure_and_no_more() -> None:
    assert told(run(Fault("fail", "A-leaf-02", 10, 20), duration=60.0)) == [("switch_down", "", "A-leaf-02")]


def test_twice_the_noise_and_repairs_by_the_million_raise_nothing() -> None:
    assert run(noise=2.0, duration=240.0) == []


# --- budgets (UFM's port-drain plugin, by the bits that 400 Gb/s carry) ----------------------------


@pytest.mark.parametrize(
    ("speed", "every", "seconds", "raised"),
    [
        ("400G", 23.0, 72, True),  # the third within the short window: over 2.88
        ("800G", 23.0, 72, False),  # of twice as many bits
        ("800G", 11.0, 72, True),
        ("400G", 180.0, 750, True),  # the fourth within the long one: over 3.0
        ("400G", 300.0, 750, False),
        ("100G", 100.0, 360, False),
    ],
)
def test_symbol_errors_are_judged_by_the_bits_carried(speed: str, every: float, seconds: float, raised: bool) -> None:
    """With windows of a tenth of their length, so that two hours pass quickly."""
    rules = Rules.load({"errors_short": 72.0, "errors_long": 750.0})
    hand = Counting(star(speed=speed), rules=rules)
    hand.set("symbol_errors", 0.0)
    hand.run(5)
    count, due = hand.value["symbol_errors"][0], every
    while hand.time < seconds:
        hand.run(hand.time + 1)
        if hand.time >= due:
            count, due = count + 1, due + every
            hand.jump("symbol_errors", count, "h1/nic0/p0")
    hand.run(hand.time + 3)
    assert told(hand.finish()) == ([("link_errors", "", "h1/nic0/p0")] if raised else [])


def test_one_uncorrected_block_is_chance_and_two_are_not() -> None:
    for blocks, raised in ((1, False), (2, True)):
        hand = Counting(star(), interval=5.0)
        hand.set("fec_uncorrected", 0.0)
        hand.set("fec_corrected", 4e6)
        hand.run(50)
        for k in range(blocks):
            hand.jump("fec_uncorrected", 1001.0 + k, "leaf/p2")
            hand.run(hand.time + 60)
        assert told(hand.finish()) == ([("link_errors", "", "h2/nic0/p0")] if raised else [])


def test_discards_are_no_errors_of_the_link() -> None:
    hand = Counting(star())
    hand.set("rx_errors", 0.0)
    hand.set("tx_discards", 20.0)
    hand.run(120)
    assert hand.finish() == []


def test_errors_that_stop_are_over_and_a_trickle_stays_one_incident() -> None:
    hand = Counting(star(), interval=5.0)
    hand.set("symbol_errors", 1 / 20, "h1/nic0/p0", others=0.0)
    hand.run(400)
    hand.set("symbol_errors", 0.0, "h1/nic0/p0")
    hand.run(600)
    (incident,) = hand.finish()
    assert incident.count == 1 and incident.resolved is not None
    assert 400 + 40 < (incident.resolved - EPOCH) / NS < 400 + 90


# --- readings that are none -----------------------------------------------------------------------


def test_counters_that_begin_anew_or_jump_beyond_what_a_link_carries_raise_nothing() -> None:
    hand = Counting(star(), interval=10.0)
    for metric in ("symbol_errors", "rx_errors", "fec_uncorrected"):
        hand.set(metric, 0.0)
    hand.run(60)
    for value in (0.0, 3e13, 5.0):
        for metric in hand.rate:
            hand.jump(metric, value, "leaf/p0", "leaf/p1", "h2/nic0/p0")
        hand.run(hand.time + 30)
    assert hand.finish() == []


def test_a_source_that_falls_silent_does_not_clear_errors() -> None:
    hand = Counting(star())
    hand.set("rx_errors", 2.0, "h1/nic0/p0", others=0.0)
    hand.run(20)
    hand.silent = {"h1"}
    hand.run(200)
    found = [i for i in hand.finish() if i.kind == "link_errors"]
    assert told(found) == [("link_errors", "", "h1/nic0/p0")] and found[0].is_open


def test_what_a_port_counts_while_it_trains_unseen_is_no_error_of_its_link() -> None:
    """It went down and came back between two readings: only its own counter of downs tells."""
    hand = Counting(star())
    hand.set("link_downed", 0.0)
    hand.set("symbol_errors", 0.0)
    hand.run(10)
    hand.jump("link_downed", 1001.0, "h1/nic0/p0")
    hand.jump("symbol_errors", 1040.0, "h1/nic0/p0")
    hand.run(11)
    hand.jump("symbol_errors", 1060.0, "h1/nic0/p0")
    hand.run(40)
    assert hand.finish() == []


def test_a_switch_that_was_away_and_counts_anew_has_no_errors() -> None:
    hand = Counting(star())
    hand.set("symbol_errors", 0.0)
    hand.run(10)
    hand.silent = {"leaf", "h0", "h1", "h2", "h3"}
    hand.run(60)
    hand.silent = set()
    for count in (1040.0, 1060.0):
        hand.jump("symbol_errors", count, "leaf/p0", "leaf/p1")
        hand.run(hand.time + 2)
    hand.run(90)
    assert not [i for i in hand.finish() if i.kind == "link_errors"]


def test_twelve_downs_counted_at_once_are_a_flapping_link() -> None:
    """`link_downed` that rose by more than ten between two readings (Nebius soperator issue 481)."""
    hand = Counting(star())
    hand.set("link_downed", 0.0)
    hand.jump("link_downed", 3.0, *hand.topo.port_names)
    hand.run(10)
    hand.jump("link_downed", 15.0, "h1/nic0/p0")
    hand.run(20)
    (incident,) = hand.finish()
    assert (incident.kind, incident.cause) == ("link_flapping", "h1/nic0/p0")


def test_errors_of_a_kind_that_links_do_not_have_are_refused() -> None:
    with pytest.raises(InputError, match="corrupt: kind is 'replay', expected one of symbol, fec, crc"):
        Simulation(Scenario("t", "rtx-pro-6000", faults=(Fault("corrupt", "n003/nic2/p0", 1, kind="replay"),)))


def test_a_window_forgets_what_is_older_than_its_span() -> None:
    window = Window(3, 120 * NS, 12)
    rows = np.array([1])
    for second in range(0, 300, 10):
        window.add(EPOCH + second * NS, rows, np.array([1.0]))
    assert window.total.tolist() == [0, 12, 0]
    window.add(EPOCH + 10**6 * NS, np.zeros(0, np.intp), np.zeros(0))
    assert window.total.tolist() == [0, 0, 0]
