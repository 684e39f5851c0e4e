"""Switches that restart are told once and as what they are; late telemetry is told only when it is too late."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from tests.twin.by_hand import seconds, told
from tests.twin.small_fabric import read, small_fabric
from twin.errors import InputError
from twin.frames import NS, Frame
from twin.simulator.scenario import Fault, Scenario
from twin.simulator.simulation import EPOCH, Simulation
from twin.twin import Twin

SPEED = 800e9 / 8  # bytes/s of the fastest port of the fabric


def simulation(*faults: Fault, duration: float = 60) -> Simulation:
    return Simulation(Scenario("small", "", duration=duration, faults=faults), read(small_fabric()))


def judged(*faults: Fault, duration: float = 60) -> Twin:
    run = simulation(*faults, duration=duration)
    twin = Twin(run.topology)
    twin.ingest_all(run.frames())
    twin.finish()
    return twin


def rates(twin: Twin, frames: Iterator[Frame]) -> Iterator[np.ndarray]:
    """Every rate of bytes that is shown while these frames come in."""
    for frame in frames:
        before = twin.time
        twin.ingest(frame)
        if twin.time != before:
            port = twin.snapshot().port
            yield np.concatenate([port[m] for m in ("tx_bytes", "rx_bytes") if m in port] or [np.zeros(0)])


# --- a switch restarts -----------------------------------------------------------------------------


@pytest.mark.parametrize("away", [2.5, 5, 25])
def test_a_switch_that_restarts_is_one_switch_down_that_resolves(away: float) -> None:
    twin = judged(Fault("restart", "A-leaf-1", 20, 20 + away))
    assert told(list(twin.incidents)) == [("switch_down", "A-leaf-1")]
    (incident,) = twin.incidents
    assert incident.count == 1 and 20 + away < seconds(incident.resolved) < 26 + away


def test_counters_that_restart_with_a_switch_give_no_rate_that_its_ports_cannot_carry() -> None:
    run = simulation(Fault("restart", "A-leaf-1", 20, 30))
    twin = Twin(run.topology)
    seen = np.concatenate(list(rates(twin, run.frames())))
    assert np.nanmax(seen) <= SPEED * 1.25 and np.nanmin(seen) >= 0
    assert twin._kinds["port"].restarts > 0, "the counters did begin anew"


def test_the_ports_of_a_switch_go_down_and_up_together_and_begin_to_count_at_zero() -> None:
    frames = [f for f in simulation(Fault("restart", "A-leaf-1", 20, 30)).frames() if f.source == "A-leaf-1"]
    last = max(f.time for f in frames if f.time < EPOCH + 20 * NS)
    first = min(f.time for f in frames if f.time > EPOCH + 30 * NS)
    assert not any(last < f.time < first for f in frames), "it says nothing while it is away"
    before, after = (
        next(f.columns["tx_bytes"] for f in frames if f.kind == "port" and f.time == t) for t in (last, first)
    )
    assert (before > 1e9).all() and (after.astype(np.float64) < SPEED).all()


def test_a_switch_that_restarts_again_and_again_flaps_and_its_restarts_are_part_of_that() -> None:
    twin = judged(*(Fault("restart", "B-spine-0", at, at + 4) for at in (20, 35, 50)), duration=62)
    standing = [i for i in twin.incidents if i.superseded_by is None]
    assert told(standing) == [("link_flapping", "B-spine-0")]
    assert standing[0].count == 3 and "4 of 4 links of spine B-spine-0" in standing[0].summary


def test_a_node_that_loads_its_drivers_again_begins_to_count_at_zero_and_raises_nothing() -> None:
    twin = judged(Fault("restart", "n2", 20))
    assert twin.incidents == () and twin._kinds["port"].restarts >= 4


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (Fault("restart", "A-leaf-1", 20), "'until' is missing"),
        (Fault("restart", "n0/nic0", 20, 30), "has no counters; expected a switch"),
        (Fault("lag", "n0", 20), "'late' is missing"),
        (Fault("lag", "n0/nic0", 20, late=3.0), "is no source"),
        (Fault("silence", "n0", 20, kind="faild"), "expected 'failed' or none"),
    ],
)
def test_a_restart_or_lag_that_cannot_be_is_refused(fault: Fault, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        simulation(fault)


# --- telemetry is late -----------------------------------------------------------------------------


@pytest.mark.parametrize("late", [1.0, 3.0, 4.5])
@pytest.mark.parametrize("source", ["n3", "A-leaf-0", "plane:B", "all"])
def test_readings_that_are_late_for_less_than_the_patience_raise_nothing(source: str, late: float) -> None:
    assert judged(Fault("lag", source, 15, 40, late=late)).incidents == ()


@pytest.mark.parametrize("late", [12.0, 25.0])
def test_readings_that_are_later_are_stale_once_and_nobody_else_is(late: float) -> None:
    twin = judged(Fault("lag", "n3", 15, 45, late=late), duration=80)
    assert told(list(twin.incidents)) == [("telemetry_stale", "n3")]
    assert twin.incidents[0].count == 1 and twin.incidents[0].resolved is not None
    assert twin.time == EPOCH + 80 * NS, "the end of a lag carries event time nowhere"


def test_late_readings_keep_their_time_and_their_order_and_none_is_lost() -> None:
    late, plain = (
        [f for f in simulation(*faults).frames() if f.source == "n3"]
        for faults in ((Fault("lag", "n3", 15, 45, late=8.0),), ())
    )
    assert [f.time for f in late] == [f.time for f in plain]


def test_a_link_that_goes_down_while_its_node_is_late_is_found_by_the_switch() -> None:
    twin = judged(Fault("lag", "n3", 10, late=4.0), Fault("fail", "n3/nic1/p0", 20, 40))
    assert told(list(twin.incidents)) == [("link_down", "n3/nic1/p0")]
    assert seconds(twin.incidents[0].detected) < 24


# --- a collector that fails ------------------------------------------------------------------------


def test_a_collector_that_says_that_it_fails_is_told_as_that_and_not_as_silence() -> None:
    twin = judged(Fault("silence", "n3", 15, 40, kind="failed"))
    assert told(list(twin.incidents)) == [("collector_failed", "n3")]
    assert 40 < seconds(twin.incidents[0].resolved) < 45
