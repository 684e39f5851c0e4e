"""Rows of the overview that need no fabric: interfaces of this host, sources with their reasons and clocks."""

from __future__ import annotations

from dataclasses import replace

import pytest
from screen_samples import ABOUT, NVML_REASON, make_snapshot, own_host

from tui import layout
from tui.plain import ports_line
from tui.rows.interfaces import a_second, interface_lines, interfaces, rows_wanted
from tui.rows.sources import sources_lines
from tui.text import line_width, plain
from twin.snapshot import SourceView

NAN = float("nan")


def text(lines: list[list[tuple[str, str]]]) -> str:
    return "\n".join(plain(line).rstrip() for line in lines)


def test_each_interface_has_its_state_speed_rates_and_errors() -> None:
    first, second, third = interfaces(own_host())
    assert (first.name, first.up, first.speed, first.rx) == ("eno1", True, 25e9, 1.31e6 * 8)
    assert second.up is False and second.speed != second.speed
    assert (third.errors, third.drops) == (0.4, 1250.0)
    told = text(interface_lines(own_host(), ABOUT, 80, 20))
    for part in ("eno1", "25 Gb/s", "10.5 Mb/s", "384 Kb/s", "down", "0.4/s", "1,250/s", "fabrictwin doctor"):
        assert part in " ".join(told.split()), part


def test_what_is_not_known_of_an_interface_is_a_question_mark() -> None:
    snapshot = replace(own_host(), port={})
    assert [i.up for i in interfaces(snapshot)] == [None] * 3
    row = text(interface_lines(snapshot, (), 80, 20)).splitlines()[2]
    assert row.split() == ["?", "eno1", "unknown", "?", "?", "?", "?", "?"]


@pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 40), (40, 8), (20, 3), (200, 60)])
def test_rows_fit_their_place_and_nothing_is_left_out_silently(width: int, height: int) -> None:
    snapshot = own_host()
    lines = interface_lines(snapshot, ABOUT, width, height)
    assert len(lines) <= height and all(line_width(line) <= width for line in lines)
    if height >= rows_wanted(snapshot, ABOUT, width):
        assert len(lines) == rows_wanted(snapshot, ABOUT, width)
    shortened = interface_lines(snapshot, (), width, 4)
    assert "+2 more" in text(shortened)


@pytest.mark.parametrize("height", range(4, 70))
@pytest.mark.parametrize("troubles", [0, 3])
def test_the_parts_of_an_overview_without_planes_fit_any_height(height: int, troubles: int) -> None:
    plan = layout.own_host(height, 9, False, 2, troubles)
    used = plan.verdict + plan.interfaces + plan.gpus + plan.incidents + plan.sources + 3 * plan.gap
    assert plan.interfaces >= 1 and plan.planes == 0
    assert used <= max(layout.frame(height).body, 2)


@pytest.mark.parametrize(
    ("rate", "told"), [(0.0, "0/s"), (0.04, "0.04/s"), (3.0, "3/s"), (1250.0, "1,250/s"), (NAN, "?")]
)
def test_errors_are_told_a_second(rate: float, told: str) -> None:
    assert a_second(rate) == told


def source(name: str, state: str, offset: float = NAN, skewed: bool = False, age: float = 1.0) -> SourceView:
    return SourceView(name, state, age, 1.0, 0, 4, 9, 0.0, 0.1, offset, skewed)


def test_why_a_source_fails_and_whose_clock_is_off_is_told_in_little_room_and_in_much() -> None:
    listed = (source("a", "ok"), source("b", "failed"), source("c", "ok", -75.0, True), source("d", "late", age=20.0))
    snapshot = replace(make_snapshot(sources=0, minutes=0), sources=listed)
    little = text(sources_lines(snapshot, 100, 3, {"b": NVML_REASON}))
    assert "1 failed" in little and "1 late" in little and "1 clock off" in little
    assert "b  NVML: driver and library" in little and "d  late: what it says is 20 s old" in little
    much = text(sources_lines(snapshot, 120, 6, {"b": NVML_REASON}))
    assert NVML_REASON[:60] in much and "clock 1m 15s behind" in much and "20 s old" in much
    assert much.splitlines()[1].split()[:3] == ["■", "b", "failed"], "the worst comes first"


def test_a_clock_that_is_right_and_a_source_without_a_reason_take_no_room() -> None:
    snapshot = replace(make_snapshot(sources=0, minutes=0), sources=(source("a", "ok", 0.2),))
    assert len(sources_lines(snapshot, 80, 3)) == 1
    assert "clock" not in text(sources_lines(snapshot, 80, 6))


def test_a_line_of_plain_output_names_the_interfaces_with_their_rates() -> None:
    line = ports_line(own_host())
    assert "eno1 up 25 Gb/s rx 10.5 Mb/s tx 384 Kb/s" in line
    assert "eno2 down rx 0 b/s" in line and "0.4/s errors 1,250/s drops" in line
