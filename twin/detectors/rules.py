"""Thresholds: one data file (`rules.toml`), overridable by a site."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from importlib.resources import files

from twin.errors import InputError
from twin.frames import NS


@dataclass(frozen=True, slots=True)
class Rules:
    """Seconds, shares and counts as rules.toml gives them."""

    link_debounce: float
    recovery: float
    link_slow_fraction: float
    flap_count: int
    flap_window: float
    flap_clear: float
    plane_down_fraction: float
    plane_degraded_fraction: float
    burst: float
    stale_floor: float
    stale_intervals: float
    settle: float
    reopen: float
    late: float
    clock_offset: float
    congestion_share: float
    congestion_cost: float
    full_port: float
    pause_storm: float
    discards: float
    errors_short: float
    errors_long: float
    symbol_errors_short: float
    symbol_errors_long: float
    rx_errors_short: float
    fec_uncorrected_short: float
    errors_quiet: float
    plane_silent_fraction: float
    plane_busy_fraction: float
    plane_return: float
    plane_unused_hold: float
    plane_unused_idle: float
    nvlink_crc_rate: float
    nvlink_error_rate: float
    nvlink_symbol_rate: float
    nvlink_recovery_growth: float
    nvlink_error_growth: float
    nvlink_growth_window: float
    error_lasting: float
    fabric_patience: float
    gpu_lost_intervals: float
    xid_hold: float
    throttle_lasting: float
    straggler_fraction: float
    straggler_lasting: float
    power_hold: float
    power_clear: float
    power_margin: float
    power_soon: float
    swing_fraction: float
    swing_window: float

    @classmethod
    def load(cls, overrides: Mapping[str, float] | None = None) -> Rules:
        """The shipped thresholds with a site's own in their place."""
        shipped = tomllib.loads(files(__package__).joinpath("rules.toml").read_text("utf-8"))
        values = {name: entry["value"] for name, entry in shipped.items()}
        for name, value in (overrides or {}).items():
            if name not in values:
                raise InputError(f"rules: there is no rule {name!r}; expected one of {', '.join(values)}")
            if not isinstance(value, int | float) or value < 0:
                raise InputError(f"rules: {name} is {value!r}, expected a number ({shipped[name]['unit']})")
            values[name] = value
        values["flap_count"] = max(1, int(values["flap_count"]))
        return cls(**{f.name: values[f.name] for f in fields(cls)})


def ns(seconds: float) -> int:
    return round(seconds * NS)
