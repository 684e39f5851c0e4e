"""Speeds and powers as people write them (`400G`, `50GB/s`, `66kW`) to and from base units."""

from __future__ import annotations

import re

_PREFIX = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_RATE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)\s*(B/s|b/s|bit/s|bps|B|b)?\s*", re.IGNORECASE)


def bits_per_second(text: str | int | float) -> float:
    """A link speed in bits/s: `400G`, `400Gb/s`, `50GB/s` (bytes) or a plain number of bits/s.

    Raises ValueError where the text is not a speed or is not above zero.
    """
    if isinstance(text, int | float) and not isinstance(text, bool):
        value = float(text)
    else:
        match = _RATE.fullmatch(str(text))
        if match is None:
            raise ValueError(f"{text!r} is not a speed; expected for example 400G, 800Gb/s or 50GB/s")
        value = float(match[1]) * _PREFIX[match[2].upper()]
        if (match[3] or "").startswith("B"):
            value *= 8
    if not 0 < value < 1e18:
        raise ValueError(f"{text!r} is not a speed above zero")
    return value


def show_speed(bits: float) -> str:
    """Bits/s as an operator says it: `400G`, `1.6T`; `?` where unknown."""
    if bits != bits:
        return "?"
    for size, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "K")):
        if bits >= size:
            return f"{bits / size:.4g}{letter}"
    return f"{bits:.0f}"


def show_watts(watts: float) -> str:
    """Watts for a person: `842 W`, `14.3 kW`; `?` where unknown."""
    if watts != watts:
        return "?"
    return f"{watts / 1000:.4g} kW" if abs(watts) >= 1000 else f"{watts:.4g} W"


_TIMES = {"ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_TIME = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|min|m|h)?\s*")


def seconds(text: str | int | float) -> float:
    """A duration in seconds: `5s`, `500ms`, `2m`, `1h` or a plain number. Raises ValueError otherwise."""
    match = _TIME.fullmatch(str(text))
    if match is None or isinstance(text, bool):
        raise ValueError(f"{text!r} is not a duration; expected for example 5s, 500ms or 2m")
    return float(match[1]) * _TIMES[match[2] or "s"]
