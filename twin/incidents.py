"""The ledger: findings of successive evaluations become incidents with a life (open, recovering, resolved)."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np
import numpy.typing as npt

from twin.detectors.finding import Finding, LinkRows, Story
from twin.detectors.rules import Rules, ns
from twin.incident import SEVERITIES, Incident
from twin.snapshot import Event

Bool = npt.NDArray[np.bool_]


@dataclass(slots=True)
class _Record:
    incident: Incident
    links: LinkRows
    signature: object
    recovering: int = 0  # since when it looks healthy, 0 while it does not


class Ledger:
    """Keeps incidents. Everything it does follows from the findings and times it is given."""

    def __init__(self, rules: Rules, n_links: int) -> None:
        self.rules = rules
        self._n_links = n_links
        self._open: dict[tuple[str, str], _Record] = {}
        self._closed: list[Incident] = []
        self.events: list[Event] = []

    @property
    def incidents(self) -> tuple[Incident, ...]:
        """Every incident: open ones first by severity and age, then the resolved, newest first."""
        now = sorted((r.incident for r in self._open.values()), key=lambda i: (_rank(i), i.started, i.cause))
        return (*now, *reversed(self._closed))

    @property
    def history(self) -> tuple[Incident, ...]:
        """Every incident in the order in which it was detected."""
        return tuple(sorted(self.incidents, key=lambda i: (i.detected, i.started, i.kind, i.cause)))

    @property
    def n_open(self) -> int:
        return len(self._open)

    def held(self, findings: list[Finding] | None = None) -> Bool:
        """Links that an incident of many links still explains while it recovers.

        With findings: also those of incidents that these no longer show and none of them takes over.
        """
        out = np.zeros(self._n_links, bool)
        seen = {f.key for f in findings or ()}
        for key, r in self._open.items():
            gone = findings is not None and key not in seen and not self._is_taken(r, findings)
            if len(r.links) > 1 and (r.recovering or gone):
                out[r.links] = True
        return out

    def _is_taken(self, record: _Record, findings: list[Finding]) -> bool:
        return any(
            np.isin(record.links, f.links, assume_unique=True).all()
            for f in findings
            if len(f.links) >= len(record.links)
        )

    def reconcile(self, now: int, findings: list[Finding]) -> None:
        """Takes what is seen at `now`: opens, changes, resolves."""
        seen = {f.key: f for f in findings}
        for finding in findings:
            record = self._open.get(finding.key)
            if record is not None:
                self._go_on(now, record, finding)
            elif finding.ready:
                self._raise(now, finding, seen)
        for key in [k for k in self._open if k not in seen]:
            self._fade(now, key)

    def _raise(self, now: int, finding: Finding, seen: dict[tuple[str, str], Finding]) -> None:
        story = finding.tell()
        incident = Incident(
            kind=finding.kind,
            cause=finding.cause,
            severity=story.severity,
            started=finding.since,
            detected=now,
            affected=story.affected,
            effect=story.effect,
            evidence=story.evidence,
            summary=story.summary,
            advice=story.advice,
            count=finding.count,
        )
        taken = self._taken_over(finding, seen)
        self._open[finding.key] = _Record(incident, finding.links, finding.signature)
        self._say(now, "opened", incident)
        for key in taken:
            self._close(now, key, "superseded", incident.id)

    def _taken_over(self, finding: Finding, seen: dict[tuple[str, str], Finding]) -> list[tuple[str, str]]:
        """Open incidents that this finding explains and that are no longer seen for themselves."""
        mine = np.zeros(self._n_links, bool)
        mine[finding.links] = True
        return [
            key
            for key, record in self._open.items()
            if key not in seen
            and (
                (len(record.links) and mine[record.links].all())
                or (key[0] == finding.kind and key[1] in finding.covers)
            )
        ]

    def _go_on(self, now: int, record: _Record, finding: Finding) -> None:
        again = record.recovering != 0
        if finding.signature == record.signature and not again:
            return
        before = record.incident
        changes: dict[str, object] = {"state": "open", "count": max(before.count + again, finding.count)}
        if finding.signature != record.signature:
            story = finding.tell()
            if _worse(story, before):  # an incident tells the worst that it has been
                changes |= {f.name: getattr(story, f.name) for f in fields(story)}
                changes["severity"] = min(before.severity, story.severity, key=SEVERITIES.index)
        record.incident = replace(before, **changes)  # type: ignore[arg-type]
        record.links, record.signature, record.recovering = finding.links, finding.signature, 0
        if again:
            self._say(now, "reopened", record.incident)
        elif _differs(before, record.incident):
            self._say(now, "changed", record.incident)

    def _fade(self, now: int, key: tuple[str, str]) -> None:
        record = self._open[key]
        if not record.recovering:
            record.recovering = now
            record.incident = replace(record.incident, state="recovering")
            self._say(now, "recovering", record.incident)
        elif now - record.recovering >= ns(self.rules.recovery):
            self._close(now, key, "resolved", None)

    def _close(self, now: int, key: tuple[str, str], what: str, by: str | None) -> None:
        record = self._open.pop(key)
        incident = replace(record.incident, resolved=now, state="resolved", superseded_by=by)
        self._closed.append(incident)
        self._say(now, what, incident)

    def _say(self, now: int, what: str, incident: Incident) -> None:
        self.events.append(Event(now, what, incident))


def _rank(incident: Incident) -> int:
    return SEVERITIES.index(incident.severity)


def _worse(story: Story, before: Incident) -> bool:
    share = story.effect.get("bandwidth_fraction", 1.0), before.effect.get("bandwidth_fraction", 1.0)
    return story.affected.gpus > before.affected.gpus or share[0] < share[1] or not before.effect


def _differs(a: Incident, b: Incident) -> bool:
    return (a.severity, a.affected, a.effect) != (b.severity, b.affected, b.effect)
