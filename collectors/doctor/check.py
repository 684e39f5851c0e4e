"""What the doctor says: of one thing on this host, of one source, of what nothing reads."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

# ok: read, or ready to be. part: something of it is missing. missing, failed: nothing of it can be had.
# none: there is no such thing here, and nothing to be done about it.
CheckState = Literal["ok", "part", "missing", "none"]
SourceState = Literal["ok", "part", "failed"]


@dataclass(frozen=True, slots=True)
class Check:
    """One thing of this host that a source may need. details: a line each, of what is not as it could be."""

    name: str
    state: CheckState
    found: str
    advice: str | None = None
    details: tuple[str, ...] = ()

    @property
    def sound(self) -> bool:
        return self.state in ("ok", "none")

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Coverage:
    """How many entities of a kind a source reads, of those it should. example: the first that it does not.

    meant: False where nobody can say what it should read; `expected` is the whole wiring then.
    """

    kind: str
    read: int
    expected: int
    example: str | None = None
    meant: bool = True

    @property
    def short(self) -> bool:
        return self.meant and self.read < self.expected


@dataclass(frozen=True, slots=True)
class Partly:
    """A metric that is unknown at some of the entities that are read."""

    kind: str
    metric: str
    unknown: int
    of: int
    example: str


@dataclass(frozen=True, slots=True)
class SourceReport:
    """One source of a site. Seconds throughout; clock_offset_seconds: of its clock, behind below zero.

    entry: the kind of collector in the site file. read, never: metrics by kind that are known somewhere, nowhere.
    lacking: why a metric cannot be had, where a collector tells. strangers: how many names it gave that the wiring
    does not have. age_seconds: of its newest reading when it came.
    """

    name: str
    entry: str
    state: SourceState
    error: str | None = None
    coverage: tuple[Coverage, ...] = ()
    read: dict[str, tuple[str, ...]] | None = None
    never: dict[str, tuple[str, ...]] | None = None
    partly: tuple[Partly, ...] = ()
    strangers: int = 0
    warnings: tuple[str, ...] = ()
    lacking: tuple[str, ...] = ()
    duration_seconds: float | None = None
    interval_seconds: float | None = None
    deadline_seconds: float | None = None
    age_seconds: float | None = None
    clock_offset_seconds: float | None = None
    advice: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Gap:
    """Entities of the wiring that no source reads. blind: whether something is unknown for that."""

    what: str
    unread: int
    of: int
    example: str
    text: str
    blind: bool = False

    def to_json(self) -> dict[str, Any]:
        return asdict(self)
