"""Incident: one cause, what it costs, since when, and what to do about it (design, section 7)."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import msgspec

NS = 1_000_000_000
SEVERITIES: tuple[str, ...] = ("critical", "warning", "info")


@dataclass(frozen=True, slots=True)
class Evidence:
    """One reading that shows it: what was seen and what the design expects. The peer of a port is an address."""

    entity: str
    metric: str
    value: float | str | None
    expected: float | str | None


@dataclass(frozen=True, slots=True)
class Affected:
    """Who pays. names: whole nodes where all their GPUs are affected, else single GPUs."""

    gpus: int = 0
    nodes: int = 0
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Incident:
    """Times are nanoseconds since the epoch. state: open, recovering or resolved."""

    kind: str
    cause: str
    severity: str
    started: int
    detected: int
    resolved: int | None = None
    state: str = "open"
    affected: Affected = Affected()
    effect: dict[str, float] = field(default_factory=dict)
    evidence: tuple[Evidence, ...] = ()
    summary: str = ""
    advice: str = ""
    count: int = 1  # how often it came and went
    superseded_by: str | None = None  # id of the incident that took it over

    @property
    def id(self) -> str:
        """The same for the same incident in every run over the same frames."""
        key = f"{self.kind}\n{self.cause}\n{self.detected}".encode()
        return blake2b(key, digest_size=6).hexdigest()

    @property
    def is_open(self) -> bool:
        return self.resolved is None

    def to_json(self) -> dict[str, Any]:
        """The form of the design; times in seconds since the epoch."""
        return {
            "id": self.id,
            "kind": self.kind,
            "severity": self.severity,
            "cause": self.cause,
            "state": self.state,
            "started": self.started / NS,
            "detected": self.detected / NS,
            "resolved": None if self.resolved is None else self.resolved / NS,
            "affected": {
                "gpus": self.affected.gpus,
                "nodes": self.affected.nodes,
                "names": list(self.affected.names),
            },
            "effect": {k: round(v, 6) for k, v in self.effect.items()},
            "evidence": [
                {"entity": e.entity, "metric": e.metric, "value": e.value, "expected": e.expected}
                for e in self.evidence
            ],
            "count": self.count,
            "superseded_by": self.superseded_by,
            "summary": self.summary,
            "advice": self.advice,
        }


def to_json_lines(incidents: tuple[Incident, ...]) -> bytes:
    """Incidents as JSON, one a line, the same bytes for the same incidents."""
    return b"\n".join(msgspec.json.encode(i.to_json()) for i in incidents)
