"""Finding: what a detector sees now. The ledger turns findings of successive evaluations into incidents."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from twin.incident import Affected, Evidence, JobEffect

LinkRows = npt.NDArray[np.intp]
NO_LINKS: LinkRows = np.zeros(0, np.intp)


@dataclass(frozen=True, slots=True)
class Story:
    """The part of an incident that is told: made only when something about it changed."""

    severity: str
    affected: Affected
    effect: dict[str, float]
    evidence: tuple[Evidence, ...]
    summary: str
    advice: str
    jobs: tuple[JobEffect, ...] = ()
    class_: str = ""
    victims: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """One cause seen now. links: the rows it explains. since: time of the first reading that shows it.

    signature changes when the story must be told anew. ready: it has lasted long enough to be raised. scope:
    addresses that it accounts for, with all below them (see explain.py). takes: open incidents that it takes over.
    """

    kind: str
    cause: str
    since: int
    ready: bool
    links: LinkRows
    signature: object
    tell: Callable[[], Story]
    count: int = 1
    covers: frozenset[str] = frozenset()  # causes of the same kind that it stands for
    scope: frozenset[str] = frozenset()
    takes: frozenset[tuple[str, str]] = frozenset()

    @property
    def key(self) -> tuple[str, str]:
        return self.kind, self.cause
