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
class JobEffect:
    """What is left of the network bandwidth of a job's slowest GPU, which sets the pace of a collective."""

    name: str
    bandwidth_fraction: float


@dataclass(frozen=True, slots=True)
class Word:
    """What somebody said of an incident, and for how long it stands. Event times in nanoseconds."""

    by: str
    at: int
    until: int
    why: str = ""

    def to_json(self) -> dict[str, Any]:
        told = {"by": self.by, "at": self.at / NS, "until": self.until / NS}
        return {**told, "why": self.why} if self.why else told

    @classmethod
    def from_json(cls, data: Any) -> Word | None:
        """None where it is no such word."""
        try:
            at, until = (round(float(data[k]) * 1e6) * 1000 for k in ("at", "until"))
            return cls(str(data["by"]), at, until, str(data.get("why", "")))
        except (KeyError, TypeError, ValueError, OverflowError, AttributeError):
            return None


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
    class_: str = ""  # of a kind that has several, as congestion has; `class` in JSON
    victims: tuple[str, ...] = ()  # who waits because of it, besides the cause
    jobs: tuple[JobEffect, ...] = ()  # those that lose bandwidth, worst first
    acknowledged: Word | None = None  # somebody is on it
    silenced: Word | None = None  # nobody wants to hear of it for a while
    maintenance: Word | None = None  # it lies within work that was announced

    @property
    def id(self) -> str:
        """The same for the same incident in every run over the same frames."""
        return incident_id(self.kind, self.cause, self.detected)

    @property
    def is_open(self) -> bool:
        return self.resolved is None

    @property
    def is_muted(self) -> bool:
        """Kept and shown apart, and counted in no verdict."""
        return self.silenced is not None or self.maintenance is not None

    def to_json(self) -> dict[str, Any]:
        """The form of the design; times in seconds since the epoch."""
        return {
            "id": self.id,
            "kind": self.kind,
            "severity": self.severity,
            "cause": self.cause,
            "state": "maintenance" if self.is_open and self.maintenance is not None else self.state,
            "started": self.started / NS,
            "detected": self.detected / NS,
            "resolved": None if self.resolved is None else self.resolved / NS,
            "affected": {
                "gpus": self.affected.gpus,
                "nodes": self.affected.nodes,
                "names": list(self.affected.names),
            },
            "effect": {k: round(v, 6) for k, v in self.effect.items()},
            "jobs": [{"name": j.name, "bandwidth_fraction": round(j.bandwidth_fraction, 6)} for j in self.jobs],
            "evidence": [
                {"entity": e.entity, "metric": e.metric, "value": e.value, "expected": e.expected}
                for e in self.evidence
            ],
            "count": self.count,
            "superseded_by": self.superseded_by,
            "class": self.class_ or None,
            "victims": list(self.victims),
            "acknowledged": self.acknowledged and self.acknowledged.to_json(),
            "silenced": self.silenced and self.silenced.to_json(),
            "maintenance": self.maintenance and self.maintenance.to_json(),
            "summary": self.summary,
            "advice": self.advice,
        }


def incident_id(kind: str, cause: str, detected: int) -> str:
    """The id of what was detected then, ns."""
    return blake2b(f"{kind}\n{cause}\n{detected}".encode(), digest_size=6).hexdigest()


def to_json_lines(incidents: tuple[Incident, ...]) -> bytes:
    """Incidents as JSON, one a line, the same bytes for the same incidents."""
    return b"\n".join(msgspec.json.encode(i.to_json()) for i in incidents)
