"""Presets: whole fabrics from a few parameters, each figure traced to a published table.

`registry` lists them; the functions that build them lie in the other modules and are loaded, with numpy and the
catalogue, when the first preset is built.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING

from twin.errors import InputError
from twin.topology.presets.base import Parameter, Preset
from twin.topology.presets.registry import PRESETS

if TYPE_CHECKING:
    from twin.topology.model import Topology

__all__ = ["PRESETS", "Parameter", "Preset", "check_parameters", "preset", "scale_limit", "unknown_preset"]


def unknown_preset(name: str) -> str:
    """What to say about a preset that does not exist."""
    near = get_close_matches(name, PRESETS, 1)
    hint = f"did you mean {near[0]}?" if near else f"expected one of {', '.join(PRESETS)}"
    return f"{name!r} is not a preset; {hint}"


def check_parameters(name: str, given: Mapping[str, int]) -> list[str]:
    """Everything that is wrong with the parameters given for preset `name`."""
    known = {p.name: p for p in PRESETS[name].parameters}
    problems = []
    for key, value in given.items():
        if key not in known:
            problems.append(f"preset {name} has no parameter {key!r}; it takes {', '.join(known) or 'none'}")
        elif value not in known[key].allowed:
            problems.append(f"{name}: {key} is {value}, expected {known[key].describe()}")
    return problems


def preset(name: str, **given: int) -> Topology:
    """Builds preset `name`. Raises InputError for an unknown preset or a parameter out of range."""
    if name not in PRESETS:
        raise InputError(unknown_preset(name))
    if problems := check_parameters(name, given):
        raise InputError(problems)
    chosen = PRESETS[name]
    return chosen.make(**{p.name: given.get(p.name, p.default) for p in chosen.parameters})


def scale_limit(name: str, planes: int) -> tuple[int, str] | None:
    """The most GPUs that the design of preset `name` reaches, and why; None for no preset."""
    known = PRESETS[name].ends_at if name in PRESETS else {}
    return known.get(planes) or known.get(0)
