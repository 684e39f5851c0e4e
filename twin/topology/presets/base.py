"""What a preset is: a name, its sizes, its sources, and where the function is that builds it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from twin.topology.model import Topology


@dataclass(frozen=True, slots=True)
class Parameter:
    """A size that a preset takes. `allowed` is a range or the only values that make sense."""

    name: str
    default: int
    help: str
    allowed: range | tuple[int, ...]

    def describe(self) -> str:
        """The allowed values as text."""
        if isinstance(self.allowed, range):
            return f"{self.allowed.start} to {self.allowed.stop - 1}"
        return " or ".join(map(str, self.allowed))


@dataclass(frozen=True, slots=True)
class Preset:
    """A whole fabric from a few sizes. builder: `module:function` of this package, loaded when it is used.

    ends_at: the most GPUs of the design and why, by the number of planes where that matters, else under 0.
    """

    name: str
    about: str
    source: str
    parameters: tuple[Parameter, ...]
    builder: str
    ends_at: Mapping[int, tuple[int, str]] = field(default_factory=dict)

    def make(self, **sizes: int) -> Topology:
        """Builds it; `sizes` has a value for every parameter."""
        module, _, function = self.builder.partition(":")
        topology: Topology = getattr(import_module(f"{__package__}.{module}"), function)(**sizes)
        return topology
