"""Late is not wrong: old readings keep their age, and only a steady lag is put down to a clock."""

from __future__ import annotations

import numpy as np
import pytest

from twin.frames import NS, Frame
from twin.snapshot import SourceView
from twin.topology.model import Topology
from twin.topology.wiring import read_wiring
from twin.twin import Twin
from twin.yamlfile import Document

T0 = 1_764_547_200 * NS
WIRING = """
name: pair
planes: [A]
nodes:
  - {name: n0, gpus: 1, nics: 1}
  - {name: n1, gpus: 1, nics: 1}
switches:
  - {name: leaf, tier: leaf, plane: A}
links:
  - {a: n0/nic0/p0, b: leaf/p0, speed: 400G}
  - {a: n1/nic0/p0, b: leaf/p1, speed: 400G}
"""


def pair() -> Topology:
    return read_wiring(Document("pair.yaml", WIRING))


def at(seconds: float) -> int:
    return T0 + round(seconds * 1e6) * 1000


class Stream:
    """A twin with a supervisor whose clock is right, and a host n1 that always reports on time."""

    def __init__(self) -> None:
        self.twin = Twin(pair())
        self.now = 0

    def second(self, **source_columns: float) -> None:
        """The next second: the supervisor speaks (of n0, where anything is said), then n1."""
        self.now += 1
        if source_columns:
            columns = {m: np.array([v]) for m, v in source_columns.items()}
        else:
            columns = {"up": np.array([1.0]), "interval_seconds": np.array([1.0])}
        self.twin.ingest(Frame(at(self.now), "fabrictwin", "source", ("n0",), columns))
        self.port("n1", self.now + 0.1)

    def port(self, source: str, time: float, up: float = 1.0) -> None:
        self.twin.ingest(Frame(at(time), source, "port", (f"{source}/nic0/p0",), {"up": np.array([up])}))

    def source(self, name: str = "n0") -> SourceView:
        return next(s for s in self.twin.snapshot().sources if s.name == name)

    def link(self) -> int:
        """State of the link of n0: 1 up, 0 down, -1 unknown."""
        return int(self.twin.snapshot().link_state[0])


def test_a_frame_whose_own_time_is_20_seconds_old_is_late_with_its_age_and_not_fresh() -> None:
    stream = Stream()
    for _ in range(30):
        stream.second()
    stream.port("n0", stream.now - 20)
    stream.second()
    stream.second()
    source = stream.source()
    assert source.state == "late"
    assert source.age_seconds == pytest.approx(21.0, abs=1.1)
    assert source.delay_seconds == pytest.approx(20.1, abs=0.2)
    assert stream.link() == -1, "what was up 20 s ago is not known to be up"
    assert stream.twin.incidents == ()


def test_an_old_frame_never_takes_the_place_of_a_newer_one() -> None:
    stream = Stream()
    for _ in range(30):
        stream.second()
        stream.port("n0", stream.now + 0.2)
    stream.port("n0", stream.now - 20, up=0.0)
    stream.second()
    stream.second()
    assert stream.link() == 1 and stream.source().state == "ok"


@pytest.mark.parametrize("apart", [1.0, 0.4])
def test_readings_that_come_in_a_heap_are_late_and_their_source_has_no_wrong_clock(apart: float) -> None:
    stream = Stream()
    for _ in range(40):
        stream.second()
    for t in range(12):
        stream.port("n0", stream.now - 24 + t * apart)
    stream.second()
    stream.second()
    assert stream.source().state == "late" and stream.link() == -1
    assert np.isnan(stream.source().clock_offset_seconds)


def test_readings_that_are_ever_later_are_late_and_their_source_has_no_wrong_clock() -> None:
    stream = Stream()
    for k in range(40):
        stream.second()
        stream.port("n0", stream.now - 6 - 0.9 * k)
    stream.second()
    assert stream.source().state == "late" and stream.link() == -1
    assert np.isnan(stream.source().clock_offset_seconds)


def test_a_clock_that_is_steadily_behind_is_learnt_and_shown() -> None:
    stream = Stream()
    for _ in range(12):
        stream.second()
        stream.port("n0", stream.now - 20)
    stream.second()
    source = stream.source()
    assert source.state == "ok" and stream.link() == 1
    assert source.clock_offset_seconds == pytest.approx(-20, abs=1.2) and source.skewed


@pytest.mark.parametrize("steps", [1, 5, 20], ids=["at once", "soon", "slowly"])
def test_a_clock_that_was_behind_and_is_set_right_carries_time_nowhere(steps: int) -> None:
    stream = Stream()
    for _ in range(12):
        stream.second()
        stream.port("n0", stream.now - 20)
    for step in range(1, steps + 1):
        stream.second()
        stream.port("n0", stream.now - 20 + 20 * step / steps)
    for _ in range(6):
        stream.second()
        stream.port("n0", stream.now + 0.2)
    assert abs(stream.twin.time - at(stream.now)) <= NS
    assert abs(np.nan_to_num(stream.source().clock_offset_seconds)) < 1.2 and stream.link() == 1
    assert stream.twin.incidents == ()


def test_a_collector_that_was_seen_to_take_long_has_no_wrong_clock() -> None:
    stream = Stream()
    told = {"up": 1.0, "interval_seconds": 8.0, "duration_seconds": 8.0, "late": 3.0, "clock_offset_seconds": 0.0}
    for k in range(64):
        stream.second(**told)
        if k % 8 == 0:
            stream.port("n0", stream.now - 12)
    source = stream.source()
    assert source.state == "late" and source.duration_seconds == 8.0
    assert source.clock_offset_seconds == 0.0 and not source.skewed
    assert source.age_seconds > 12
    assert stream.twin.incidents == ()


@pytest.mark.parametrize(("offset", "skewed"), [(0.3, False), (-0.9, False), (1.4, True), (-2.0, True)])
def test_a_measured_clock_is_shown_and_marked_above_the_threshold(offset: float, skewed: bool) -> None:
    stream = Stream()
    for _ in range(5):
        stream.second(up=1.0, interval_seconds=1.0, clock_offset_seconds=offset)
        stream.port("n0", stream.now + 0.2 + offset)
    source = stream.source()
    assert (source.clock_offset_seconds, source.skewed) == (offset, skewed)


def test_only_our_own_supervisor_is_believed_what_time_it_is() -> None:
    stream = Stream()
    for _ in range(5):
        stream.second()
        stream.port("n0", stream.now + 0.2)
    up = {"up": np.array([1.0])}
    stream.twin.ingest(Frame(at(stream.now + 3600), "n9:agent", "source", ("n9",), up))
    for _ in range(5):
        stream.second()
        stream.port("n0", stream.now + 0.2)
    assert stream.twin.time < at(stream.now + 2)
    assert stream.twin.incidents == () and stream.source().state == "ok"


def test_an_unknown_measure_says_nothing() -> None:
    stream = Stream()
    for _ in range(5):
        stream.second(up=1.0, interval_seconds=float("nan"), clock_offset_seconds=float("nan"))
        stream.port("n0", stream.now + 0.2)
    source = stream.source()
    assert source.state == "ok" and np.isnan(source.clock_offset_seconds) and np.isnan(source.duration_seconds)
