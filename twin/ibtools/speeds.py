"""InfiniBand widths and speeds as the tools write them, in bits per second as operators say them.

Three figures exist for one lane. NDR, for example: the tools that print lanes give the signalling rate (106.25
Gbps), an operator says 100 (400 for the port), and a little less is left for data. Rates here are the operator's,
which sysfs prints as well (`400 Gb/sec (4X NDR)`); signalling rates only serve to recognise what a tool printed.
"""

from __future__ import annotations

import math

LANES = {"1x": 1, "2x": 2, "4x": 4, "8x": 8, "12x": 12}

# bit/s of one lane, slowest first. FDR: 56 Gbit/s a 4x port is what operators say; 54.54 of it carry data.
LANE_RATES = {
    "SDR": 2.5e9,
    "DDR": 5e9,
    "QDR": 10e9,
    "FDR10": 10e9,
    "FDR": 14e9,
    "EDR": 25e9,
    "HDR": 50e9,
    "NDR": 100e9,
    "XDR": 200e9,
}

# Gbit/s of one lane on the wire, as iblinkinfo prints it (libibmad's names of LinkSpeedActive and its extensions).
# FDR10 signals at 10.3125 but is printed as `10.0 Gbps (FDR10)`: only the text tells it from QDR.
LANE_SIGNALLING = {
    2.5: "SDR",
    5.0: "DDR",
    10.0: "QDR",
    14.0625: "FDR",
    25.78125: "EDR",
    53.125: "HDR",
    106.25: "NDR",
    212.5: "XDR",
}


def width(text: str) -> str | None:
    """`4X` or `4x` as `4x`; None for a width that InfiniBand does not have."""
    name = text.strip().lower()
    return name if name in LANES else None


def lanes(text: str) -> int | None:
    return LANES.get(text.strip().lower())


def lane_rate(speed: str) -> float | None:
    """`NDR` -> 100e9 bit/s; None for a name not known."""
    return LANE_RATES.get(speed.strip().upper())


def link_rate(width: str | None, speed: str | None) -> float | None:
    """`4x`, `NDR` -> 400e9 bit/s; None where either is unknown, since unknown is not zero."""
    count, rate = lanes(width or ""), lane_rate(speed or "")
    return None if count is None or rate is None else count * rate


def speed_of_signalling(text: str) -> str | None:
    """`106.25 Gbps` -> `NDR`, `10.0 Gbps (FDR10)` -> `FDR10`: the lane as iblinkinfo prints it."""
    if "FDR10" in text:
        return "FDR10"
    number = text.strip().removesuffix("Gbps").strip()
    try:
        gbps = float(number)
    except ValueError:
        return None
    return next((name for rate, name in LANE_SIGNALLING.items() if math.isclose(rate, gbps)), None)


def speed_of_link(width: str, rate: float) -> str | None:
    """`4x`, 400e9 bit/s -> `NDR`; 40e9 is told as QDR, FDR10 being the same to an operator."""
    count = lanes(width)
    if count is None:
        return None
    return next((name for name, lane in LANE_RATES.items() if math.isclose(lane * count, rate)), None)
