from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from collectors.skew import KEPT, MOST, Skew
from twin.frames import NS, Frame

T0 = 1_764_547_200 * NS


def frame(seconds: float, source: str = "n0") -> Frame:
    return Frame(T0 + round(seconds * NS), source, "port", ("n0/nic0/p0",), {"up": np.ones(1)})


def test_a_reading_made_while_it_was_asked_for_says_nothing_against_the_clock() -> None:
    skew = Skew()
    skew.note([frame(2.0)], T0, T0 + 8 * NS)
    assert skew.seconds() == {"n0": 0.0}


def test_a_clock_that_is_ahead_is_so_by_as_much_as_a_reading_lies_in_the_future() -> None:
    skew = Skew()
    for t in range(5):
        skew.note([frame(t + 12.0 - 0.1 * t)], T0 + (t - 1) * NS, T0 + t * NS)
    assert skew.seconds() == {"n0": 12.0}


def test_a_clock_that_is_behind_is_told_from_one_late_reading() -> None:
    skew = Skew()
    skew.note([frame(-20.0)], T0 - NS, T0)
    assert skew.seconds() == {"n0": -19.0}
    skew.note([frame(0.5)], T0, T0 + NS)
    assert skew.seconds() == {"n0": 0.0}, "the least delayed reading tells"


def test_what_was_long_ago_is_forgotten_when_a_clock_is_put_right() -> None:
    skew = Skew()
    skew.note([frame(60.0)], T0 - NS, T0)
    for t in range(1, KEPT + 1):
        skew.note([frame(t)], T0 + (t - 1) * NS, T0 + t * NS)
    assert skew.seconds() == {"n0": 0.0}


def test_sources_behind_one_collector_are_kept_apart_and_their_number_is_bounded() -> None:
    skew = Skew()
    skew.note([frame(5.0, "a"), frame(0.0, "b")], T0 - NS, T0)
    assert skew.seconds() == {"a": 5.0, "b": 0.0}
    skew.note([frame(0.0, f"x{i}") for i in range(MOST)], T0 - NS, T0)
    assert len(skew.seconds()) == MOST and "a" not in skew.seconds()


@given(
    offset=st.floats(-3600, 3600),
    interval=st.floats(0.1, 60),
    delays=st.lists(st.floats(0, 30), min_size=1, max_size=8),
)
def test_an_offset_is_never_overstated(offset: float, interval: float, delays: list[float]) -> None:
    """Readings made in the interval before they came, or earlier: what is said is at most the truth."""
    skew = Skew()
    for i, delay in enumerate(delays):
        now = i * interval
        skew.note([frame(now - delay + offset)], T0 + round((now - interval) * NS), T0 + round(now * NS))
    (said,) = skew.seconds().values()
    assert said <= max(0.0, offset) + 1e-6
    if min(delays) <= interval:
        assert said >= min(0.0, offset) - 1e-6
