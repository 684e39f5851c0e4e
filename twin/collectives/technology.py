"""What a link technology gives of its nominal bandwidth, from technology.toml."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files


@dataclass(frozen=True, slots=True)
class Technology:
    """efficiency: usable part of the nominal bandwidth. in_network: part of that left with reduction in switches, 0
    where they do not reduce. link_bytes_per_second: nominal, one direction, 0 where it varies."""

    name: str
    efficiency: float
    in_network: float
    source: str
    link_bytes_per_second: float = 0.0


@cache
def technologies() -> dict[str, Technology]:
    text = files(__package__).joinpath("technology.toml").read_text("utf-8")
    return {name: Technology(name, **entry) for name, entry in tomllib.loads(text).items()}


def nvlink(link_bytes_per_second: float) -> Technology:
    """The NVLink generation of links this fast: the newest that is not faster, so 50 GB/s is 5 (and 6, of which
    nothing is published yet)."""
    known = [t for name, t in technologies().items() if name.startswith("nvlink")]
    slower = [t for t in known if t.link_bytes_per_second <= link_bytes_per_second]
    return max(slower or known[:1], key=lambda t: t.link_bytes_per_second)
