"""Themes can be read: contrast of all that a screen draws, and severities that stay apart without red or green."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from rich.segment import Segment
from screen_samples import StillSession, broken, congested, empty
from test_screen_keys import running
from test_screen_snapshots import Compare, after, app_of
from textual.containers import VerticalScroll

from tui.colours import COLOURS
from tui.theme import GLYPH, Palette

F64 = npt.NDArray[np.float64]
ENOUGH = {name: 7.0 if name == "high-contrast" else 4.5 for name in COLOURS}  # WCAG 2.2, 1.4.6 and 1.4.3
GRAPHICS = 3.0  # WCAG 2.2, 1.4.11: bars, charts
# CIE 1976 colour difference; about 2.3 can just be told apart, side by side (Mahy et al. 1994). Ten times that is
# plain at a glance, apart, in a glyph one cell wide.
APART = 23.0
# Machado, Oliveira, Fernandes: A Physiologically-based Model for Simulation of Color Vision Deficiency, IEEE TVCG
# 15(6), 2009, table 1, severity 1.0; on linear RGB.
VISION = {
    "all cones": np.eye(3),
    "protanopia": np.array([
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ]),
    "deuteranopia": np.array([
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ]),
}  # fmt: skip
TO_XYZ = np.array(  # linear sRGB, IEC 61966-2-1
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)
WHITE = TO_XYZ.sum(1)


def linear(colour: str) -> F64:
    """float64[3]: linear RGB of `#rrggbb`, 0 to 1."""
    c = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)


def contrast(one: str, other: str) -> float:
    """1 to 21, as WCAG has it."""
    low, high = sorted(float(TO_XYZ[1] @ linear(c)) for c in (one, other))
    return (high + 0.05) / (low + 0.05)


def lab(rgb: F64) -> F64:
    """float64[3]: CIE L*a*b* of linear RGB."""
    v = TO_XYZ @ np.clip(rgb, 0, 1) / WHITE
    f = np.where(v > 216 / 24389, np.cbrt(v), (24389 / 27 * v + 16) / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def test_contrast_is_what_the_standard_says_it_is() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)  # the well known grey that just fails
    assert lab(linear("#ff0000")) == pytest.approx([53.24, 80.09, 67.20], abs=0.05)


@pytest.mark.parametrize("name", COLOURS)
def test_every_colour_of_text_can_be_read_on_every_ground(name: str) -> None:
    c = COLOURS[name]
    texts = {"text", "dim", "accent", "ok", "warn", "crit", "info"}
    grounds = {"background", "surface", "raised", "cursor"}
    pairs = {(a, b): contrast(getattr(c, a), getattr(c, b)) for a in texts for b in grounds}
    pairs |= {("ink", b): contrast(c.ink, getattr(c, b)) for b in ("accent", "ok", "warn", "crit", "info", "dim")}
    pairs |= {("heat", str(i)): contrast(*pair) for i, pair in enumerate(c.heat)}
    assert {pair: value for pair, value in pairs.items() if value < ENOUGH[name]} == {}
    assert contrast(c.area, c.background) >= GRAPHICS


def drawn(segments: Iterable[Segment]) -> set[tuple[str, str, str]]:
    """(text, colour, ground) of what must be read: words, numbers and the glyphs that say how something is."""
    telling = set(GLYPH.values()) - {"–"}
    found = set()
    for text, style, _ in segments:
        told = any(c.isalnum() or c in telling for c in text)
        if told and style and style.color and style.bgcolor and not style.dim:
            found.add((text.strip(), style.color.get_truecolor().hex, style.bgcolor.get_truecolor().hex))
    return found


@pytest.mark.parametrize("name", COLOURS)
async def test_every_word_that_is_drawn_can_be_read(name: str) -> None:
    seen: set[tuple[str, str, str]] = set()
    pages = ((), ("question_mark",), ("escape", "enter"), ("escape", "2"), ("s",), ("enter",), ("6",), ("7",))
    for state in (broken(), congested(), empty()):
        async with running(StillSession(state), (160, 50), colours=name) as (app, pilot):
            for keys in pages:
                await pilot.press(*keys)
                await pilot.pause()
                dialog = app.screen.query_one(VerticalScroll) if app.screen.is_modal else app.screen
                x, y, width, height = dialog.region  # what lies behind a dialog is not there to be read
                for strip in app.screen._compositor.render_strips()[y : y + height]:
                    seen |= drawn(strip.crop(x, x + width))
    weak = sorted((round(contrast(a, b), 2), text, a, b) for text, a, b in seen if contrast(a, b) < ENOUGH[name])
    assert len(seen) > 100 and weak == []


@pytest.mark.parametrize("vision", VISION)
def test_severities_of_the_colour_blind_theme_stay_apart_without_red_or_green(vision: str) -> None:
    c = COLOURS["colour-blind"]
    seen = {word: lab(VISION[vision] @ linear(getattr(c, word))) for word in ("crit", "warn", "ok", "info", "dim")}
    near = {(a, b): np.linalg.norm(seen[a] - seen[b]) for a, b in combinations(seen, 2)}
    assert {pair: distance for pair, distance in near.items() if distance < APART} == {}


def test_the_simulated_eye_mixes_up_red_and_green() -> None:
    red, green = linear("#b03a2e"), linear("#5e6e10")
    apart = {name: np.linalg.norm(lab(m @ red) - lab(m @ green)) for name, m in VISION.items()}
    assert apart["all cones"] > 2 * APART > 2 * apart["deuteranopia"]


@pytest.mark.parametrize("name", COLOURS)
def test_heat_goes_one_way(name: str) -> None:
    lightness = [lab(linear(ground))[0] for ground, _ in COLOURS[name].heat]
    steps = np.diff(lightness) * (1 if COLOURS[name].dark else -1)
    assert (steps > 2.3).all()  # each level can be told from the next


@pytest.mark.parametrize("name", COLOURS)
def test_every_severity_has_a_glyph_of_its_own_and_every_word_a_style(name: str) -> None:
    assert len(set(GLYPH.values())) == len(GLYPH)
    styles = {
        str(Palette(COLOURS[name]).style(f"badge_{w}").bgcolor) for w in ("crit", "warn", "ok", "info", "unknown")
    }
    assert len(styles) == 5


@pytest.mark.parametrize("name", COLOURS)
def test_overview(snap_compare: Compare, name: str) -> None:
    """The overview of a broken fabric in the colours of each theme."""
    app: Any = app_of(StillSession(broken()), colours=name)
    assert snap_compare(app, terminal_size=(100, 30), run_before=after())
