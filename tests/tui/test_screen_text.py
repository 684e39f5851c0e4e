"""Numbers, ages and lines as the screens write them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.colours import DARK
from tui.rows.verdict import join_fitting
from tui.text import age, bar, chart, cut, fit, fit_middle, line_width, percent, plain, section, spark, stretch, wrap
from tui.text import span_clock as position
from tui.theme import Palette, to_ascii

NAN = float("nan")


@given(st.text(max_size=40), st.integers(0, 30), st.sampled_from("<>^"))
def test_fit_fills_exactly_its_width(text: str, width: int, align: str) -> None:
    text = "".join(c for c in text if c.isprintable())
    assert line_width([(fit(text, width, align), "text")]) == width


@given(st.lists(st.text(alphabet="abc é全", max_size=12), max_size=6), st.integers(0, 40))
def test_a_cut_line_never_exceeds_its_width(parts: list[str], width: int) -> None:
    assert line_width(cut([(p, "text") for p in parts], width)) <= width


def test_a_long_link_keeps_both_of_its_ends() -> None:
    shown = fit_middle("n012/nic3/p0--A-leaf-03/p12", 17)
    assert (shown[:6], shown[-4:], len(shown)) == ("n012/n", "/p12", 17)


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0, "0 s"), (0.44, "0.4 s"), (45, "45 s"), (134, "2m 14s"), (3799.6, "1h 03m"), (187_200, "2d 04h"),
     (NAN, "?"), (math.inf, "?"), (-3, "0 s")],
)  # fmt: skip
def test_an_age_has_its_unit_and_unknown_is_a_question_mark(seconds: float, said: str) -> None:
    assert age(seconds) == said


@pytest.mark.parametrize(
    ("share", "said"),
    [(1, "100 %"), (0.999, "99 %"), (0.5, "50 %"), (0.004, "<1 %"), (0, "0 %"), (NAN, "? %")],
)
def test_a_share_is_never_rounded_to_all_or_nothing(share: float, said: str) -> None:
    assert percent(share) == said


def test_stretches_of_time_are_round() -> None:
    assert [stretch(s) for s in (45, 299, 4800, 86_400 * 2, NAN)] == ["45 s", "5 min", "1 h 20 min", "2 d", "?"]
    assert [position(s) for s in (0, 133, 3733)] == ["00:00", "02:13", "1:02:13"]


@given(st.floats(0, 1), st.integers(1, 60))
def test_a_bar_is_as_wide_as_asked_and_full_only_at_one(share: float, width: int) -> None:
    drawn = plain(bar(share, width, "ok"))
    assert len(drawn) == width
    if width > 1:
        assert ("─" not in drawn) == (share == 1) and ("━" not in drawn) == (share == 0)


def test_unknown_is_not_drawn_as_zero() -> None:
    assert "?" in plain(bar(NAN, 8, "ok"))
    assert plain(spark([0.0, NAN, 1.0], 5, "ok")) == "  ▁·▇"
    assert plain(chart([0.0, NAN, 1.0], 3, 2, "ok")[1]) == "▁·█"


def test_a_section_without_room_for_its_right_end_goes_without() -> None:
    assert "12 planes" in plain(section("PLANES", [("12 planes", "dim")], 40))
    assert plain(section("PLANES", [("12 planes", "dim")], 18)).startswith("── PLANES")


def test_wrapped_text_keeps_every_word_and_its_width() -> None:
    lines = wrap("look at what the switches share averyveryverylongwordindeed end", 12)
    assert all(len(line) <= 12 for line in lines)
    assert "".join(lines).replace(" ", "") == "lookatwhattheswitchesshareaveryveryverylongwordindeedend"


def test_parts_that_do_not_fit_are_counted() -> None:
    assert join_fitting(["plane B down", "link slow x", "power low"], 26) == "plane B down · +2 more"


def test_ascii_keeps_the_width_and_names_from_the_wire_cannot_move_the_cursor() -> None:
    assert to_ascii("■ ▲ ━─ ▁█ é 全") == "X ! =- .# ? ??"
    strip = Palette(DARK).strip([("n0\x1b[2J\n", "text")], 10)
    assert strip.text == "n0?[2J?   "
    assert Palette(DARK, ascii_only=True).strip([("■ plane", "crit")], 9).text == "X plane  "
