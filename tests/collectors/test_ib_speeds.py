"""Widths and speeds mean what operators mean by them, and what is unknown stays unknown."""

from __future__ import annotations

import pytest

from twin.ibtools import speeds


@pytest.mark.parametrize(
    ("width", "speed", "rate"),
    [
        ("4x", "SDR", 10e9),
        ("4x", "DDR", 20e9),
        ("4x", "QDR", 40e9),
        ("4x", "FDR10", 40e9),
        ("4X", "FDR", 56e9),
        ("4X", "EDR", 100e9),
        ("4x", "HDR", 200e9),
        ("4x", "NDR", 400e9),
        ("4x", "XDR", 800e9),
        ("2x", "NDR", 200e9),
        ("1x", "HDR", 50e9),
        ("12x", "SDR", 30e9),
    ],
)
def test_the_whole_link_in_operators_figures(width: str, speed: str, rate: float) -> None:
    """4X NDR is 400 Gbit/s, half its lanes half of that; and the figure leads back to the name."""
    assert speeds.link_rate(width, speed) == rate
    assert speeds.speed_of_link(width, rate) == speed.replace("FDR10", "QDR")


@pytest.mark.parametrize(
    ("printed", "speed"),
    [
        ("2.5 Gbps", "SDR"),
        ("5.0 Gbps", "DDR"),
        ("10.0 Gbps", "QDR"),
        ("10.0 Gbps (FDR10)", "FDR10"),
        ("14.0625 Gbps", "FDR"),
        ("25.78125 Gbps", "EDR"),
        ("53.125 Gbps", "HDR"),
        ("106.25 Gbps", "NDR"),
        ("212.5 Gbps", "XDR"),
        ("undefined (64)", None),
        ("Extended speed", None),
        ("nan Gbps", None),
        ("", None),
    ],
)
def test_a_lane_as_iblinkinfo_prints_it(printed: str, speed: str | None) -> None:
    assert speeds.speed_of_signalling(printed) == speed


def test_the_unknown_has_no_rate() -> None:
    """No width, no speed, or a name not known: None, and never zero."""
    assert speeds.link_rate(None, "NDR") is None
    assert speeds.link_rate("4x", None) is None
    assert speeds.link_rate("4x", "QXDR") is None
    assert speeds.link_rate("3x", "NDR") is None
    assert speeds.speed_of_link("4x", 123e9) is None
    assert speeds.width("undefined") is None
    assert speeds.width(" 12X ") == "12x"
    assert speeds.lane_rate("ndr") == 100e9
