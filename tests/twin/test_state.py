"""State: counters become rates only where that is right."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twin.frames import NS, UNKNOWN_U64
from twin.state import KindState

PATIENCE = np.array([5 * NS, 5 * NS])


class Port:
    """One port of a table, fed one reading at a time."""

    def __init__(self, metric: str = "tx_bytes", ceiling: float | None = None) -> None:
        self.metric = metric
        self.table = KindState("port", 1)
        if ceiling is not None:
            self.table.ceilings = {metric: np.array([ceiling])}

    def read(self, seconds: float, value: float | int | None, source: int = 0) -> float:
        whole = isinstance(value, int) or value is None
        column = np.array([int(UNKNOWN_U64) if value is None else value], np.uint64 if whole else np.float64)
        self.table.update(
            self.metric,
            np.array([0]),
            column,
            np.array([round(seconds * NS)]),
            np.array([round(seconds * NS)]),
            np.array([source], np.int32),
            PATIENCE,
        )
        return float(self.table.value(self.metric)[0])


def test_the_first_reading_of_a_counter_has_no_rate() -> None:
    assert np.isnan(Port().read(1, 1000))


def test_a_rate_is_the_increase_over_the_time_between_readings() -> None:
    port = Port()
    port.read(1, 1000)
    assert port.read(3, 5000) == 2000


def test_a_rate_after_a_gap_is_the_average_over_the_gap() -> None:
    port = Port()
    port.read(1, 0)
    assert port.read(101, 1000) == 10


@pytest.mark.parametrize("bits", [32, 64])
def test_a_wrap_counts_on(bits: int) -> None:
    port = Port()
    port.read(1, 2**bits - 1000)
    assert port.read(2, 500) == 1500


def test_a_restart_gives_no_rate_and_the_next_reading_does() -> None:
    port = Port()
    port.read(1, 5_000_000)
    assert np.isnan(port.read(2, 1000))
    assert port.table.restarts == 1
    assert port.read(3, 3000) == 2000


@pytest.mark.parametrize(
    ("metric", "limit"), [("tx_wait_ticks", 2**32 - 1), ("symbol_errors", 65535), ("link_downed", 255)]
)
def test_a_saturated_counter_has_no_rate_not_a_rate_of_zero(metric: str, limit: int) -> None:
    port = Port(metric)
    port.read(1, limit)
    assert np.isnan(port.read(2, limit))
    saturated = port.table.series[metric].saturated
    assert saturated is not None and saturated[0]


def test_a_counter_that_saturates_does_not_wrap() -> None:
    port = Port("tx_wait_ticks")
    port.read(1, 2**32 - 1000)
    assert np.isnan(port.read(2, 500))


def test_a_rate_above_what_the_link_can_carry_is_discarded() -> None:
    port = Port(ceiling=50e9)  # 400 Gb/s; figures of a switch restart reported for SONiC
    port.read(10, 0)
    assert np.isnan(port.read(20, 300_000_000_000_000))
    assert port.read(30, 300_000_000_000_000 + 400_000_000_000) == 40e9


def test_a_late_or_repeated_reading_changes_nothing() -> None:
    port = Port()
    port.read(1, 0)
    port.read(2, 1000)
    assert port.read(2, 9000) == 1000
    assert port.read(1.5, 9000) == 1000
    assert port.table.late == 2


def test_an_unknown_reading_is_unknown_and_not_zero() -> None:
    port = Port()
    port.read(1, 0)
    port.read(2, 1000)
    assert np.isnan(port.read(3, None))
    assert np.isnan(port.read(4, 5000))
    assert port.read(5, 6000) == 1000


def test_a_second_source_does_not_disturb_the_first_until_that_is_silent() -> None:
    port = Port()
    port.read(1, 0)
    port.read(2, 1000)
    assert port.read(2.5, 77, source=1) == 1000
    assert np.isnan(port.read(20, 77, source=1))
    assert port.read(21, 100, source=1) == 23


@given(st.lists(st.integers(0, 2**40), min_size=2, max_size=20), st.sampled_from([2**32, 2**64]), st.integers(0))
def test_increments_below_half_the_width_are_found_whatever_the_wraps(
    steps: list[int], width: int, start: int
) -> None:
    port, value = Port(), start % width
    port.read(1, value)
    for second, step in enumerate(steps, start=2):
        step %= width // 2
        before, value = value, (value + step) % width
        rate = port.read(second, value)
        if value == int(UNKNOWN_U64) or before == int(UNKNOWN_U64) or value in (2**32 - 1, 4 * (2**32 - 1)):
            return
        wrapped = value < before
        if not wrapped or before >= width // 2:
            assert rate == pytest.approx(step, rel=1e-9)


def test_downs_are_counted_from_readings_and_unknown_is_no_down() -> None:
    port = Port("up")
    for second, value in enumerate([1.0, 0.0, 1.0, np.nan, 1.0, 0.0, 0.0], start=1):
        port.read(second, value)
    series = port.table.series["up"]
    assert series.falls is not None and series.falls[0] == 2
    assert series.since is not None and series.since[0] == 6 * NS
