"""Hardware facts as data: `hardware.toml`, each entry with its source; one loader."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def hardware() -> dict[str, dict[str, dict[str, Any]]]:
    """The catalogue: {"switch" | "gpu" | "nic": {key: facts}}."""
    return tomllib.loads(files(__name__).joinpath("hardware.toml").read_text("utf-8"))


def switch_ports(model: str, speed: str) -> int:
    """How many ports switch `model` has at `speed` (`400G`); 0 where the catalogue does not say."""
    return int(hardware()["switch"].get(model, {}).get("ports", {}).get(speed, 0))


def max_switch_ports(model: str) -> int:
    """The most ports switch `model` can be split into; 0 where the catalogue does not know it."""
    return max(hardware()["switch"].get(model, {}).get("ports", {}).values(), default=0)
