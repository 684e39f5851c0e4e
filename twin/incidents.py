"""The ledger: findings of successive evaluations become incidents with a life (open, recovering, resolved)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
import numpy.typing as npt

from twin.detectors.finding import Finding, LinkRows, Story
from twin.detectors.links import SAME, Claim
from twin.detectors.rules import Rules, ns
from twin.handling import Desk, news
from twin.incident import SEVERITIES, Incident, Word
from twin.maintenance import Window
from twin.snapshot import Event

Bool = npt.NDArray[np.bool_]

_CLAIMING = ("plane_down", "plane_degraded", "switch_down", "link_down")


@dataclass(slots=True)
class _Record:
    incident: Incident
    links: LinkRows
    signature: object
    faded: int = 0  # since when it does not hold any more, 0 while it does
    progress: int = 0  # when a link of it last came up
    down: int = 0  # how many of its links were down then


class Ledger:
    """Keeps incidents. Everything it does follows from the findings and times it is given."""

    def __init__(self, rules: Rules, n_links: int, windows: Sequence[Window] = ()) -> None:
        self.rules = rules
        self._desk = Desk(windows)
        self._n_links = n_links
        self._open: dict[tuple[str, str], _Record] = {}
        self._closed: list[Incident] = []
        self.events: list[Event] = []

    @property
    def incidents(self) -> tuple[Incident, ...]:
        """Every incident: open ones first by severity and age, muted ones last of them, then the resolved, newest
        first."""
        opened = (r.incident for r in self._open.values())
        now = sorted(opened, key=lambda i: (i.is_muted, _rank(i), i.started, i.cause))
        return (*now, *reversed(self._closed))

    @property
    def history(self) -> tuple[Incident, ...]:
        """Every incident in the order in which it was detected."""
        return tuple(sorted(self.incidents, key=lambda i: (i.detected, i.started, i.kind, i.cause)))

    @property
    def open_keys(self) -> frozenset[tuple[str, str]]:
        """Kind and cause of what is open."""
        return frozenset(self._open)

    @property
    def n_open(self) -> int:
        return len(self._open)

    def claims(self) -> list[Claim]:
        """What open incidents say of links that are down."""
        return [Claim(k, r.links, r.faded) for k, r in self._open.items() if k[0] in _CLAIMING and len(r.links)]

    def reconcile(self, now: int, findings: list[Finding], down: Bool, slowest: int) -> None:
        """Takes what is seen at `now`: opens, changes, resolves.

        down: bool[links], down now or when last known. slowest: the longest interval of a source, ns.
        """
        seen = {f.key: f for f in findings}
        for finding in findings:
            record = self._open.get(finding.key)
            if record is not None:
                self._go_on(now, record, finding)
            elif finding.ready:
                self._raise(now, finding, seen)
        for key in [k for k in self._open if k not in seen]:
            self._fade(now, key, down, slowest)
        self._attend(now)

    # --- the words of people ---

    def acknowledge(self, now: int, id: str, word: Word) -> bool:
        """Somebody takes care of an open incident; whether there is one of that id."""
        return self._note(now, id, acknowledged=word)

    def silence(self, now: int, what: str, word: Word) -> None:
        """Mutes all that is, or will be until then, at an address (and below it) or of a kind."""
        self._desk.silence(what, word)
        self._attend(now)

    def recall(self, now: int, id: str, acknowledged: Word | None, silenced: Word | None) -> bool:
        """What was said of an open incident when it was recorded."""
        words = {"acknowledged": acknowledged, "silenced": silenced}
        return self._note(now, id, **{name: word for name, word in words.items() if word is not None})

    def _note(self, now: int, id: str, **words: Word) -> bool:
        record = next((r for r in self._open.values() if r.incident.id == id), None)
        if record is None or not words:
            return False
        self._becomes(now, record, replace(record.incident, **words))  # type: ignore[arg-type]
        return True

    def _attend(self, now: int) -> None:
        for record in self._open.values():
            self._becomes(now, record, self._desk.judge(now, record.incident, record.links))

    def _becomes(self, now: int, record: _Record, incident: Incident) -> None:
        before, record.incident = record.incident, incident
        for what in news(before, incident):
            self._say(now, what, incident)

    # --- from findings to incidents ---

    def _raise(self, now: int, finding: Finding, seen: dict[tuple[str, str], Finding]) -> None:
        story = finding.tell()
        incident = self._again(now, finding) or Incident(
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
            jobs=story.jobs,
            class_=story.class_,
            victims=story.victims,
        )
        incident = self._desk.judge(now, incident, finding.links)
        taken = self._taken_over(finding, seen)
        self._open[finding.key] = _Record(incident, finding.links, finding.signature)
        self._say(now, "opened" if incident.detected == now else "reopened", incident)
        for key in taken:
            self._close(now, key, "superseded", incident.id)
        if finding.kind == "link_flapping":
            self._take_history(finding, incident)

    def _take_history(self, finding: Finding, incident: Incident) -> None:
        """The downs that made it flap, of a link or of a device that restarts, were told one by one: they are part of
        it now."""
        for place, old in enumerate(self._closed):
            recent = old.resolved is not None and old.resolved >= finding.since
            if old.kind in _CLAIMING and old.cause == finding.cause and recent and old.superseded_by is None:
                self._closed[place] = replace(old, superseded_by=incident.id)

    def _again(self, now: int, finding: Finding) -> Incident | None:
        """The incident of a single link that was resolved a moment ago: it came back, it is no new one."""
        if finding.kind != "link_down" or len(finding.links) != 1:
            return None
        for place, old in enumerate(self._closed):
            recent = old.resolved is not None and now - old.resolved <= ns(self.rules.reopen)
            if (old.kind, old.cause) == finding.key and recent and old.superseded_by is None:
                del self._closed[place]
                return replace(old, resolved=None, state="open", count=old.count + 1)
        return None

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
                or key in finding.takes
            )
        ]

    def _go_on(self, now: int, record: _Record, finding: Finding) -> None:
        again = record.faded != 0
        news = finding.signature is not SAME and finding.signature != record.signature
        if not news and not again:
            return
        before = record.incident
        changes: dict[str, object] = {"state": "open", "count": max(before.count + again, finding.count)}
        if news:
            story = finding.tell()
            if _worse(story, before):  # an incident tells the worst that it has been
                changes |= {f.name: getattr(story, f.name) for f in fields(story)}
                changes["severity"] = min(before.severity, story.severity, key=SEVERITIES.index)
            record.links, record.signature = finding.links, finding.signature
        record.incident = replace(before, **changes)  # type: ignore[arg-type]
        record.faded = 0
        if again:
            self._say(now, "reopened", record.incident)
        elif _differs(before, record.incident):
            self._say(now, "changed", record.incident)

    def _fade(self, now: int, key: tuple[str, str], down: Bool, slowest: int) -> None:
        """It does not hold any more. It is over when all its links have been up for the recovery time; when some
        stay down although none has come up for a while, those are no longer part of it."""
        record = self._open[key]
        left = int(np.count_nonzero(down[record.links])) if key[0] in _CLAIMING else 0
        if not record.faded:
            record.faded = record.progress = now
            record.down = left
            record.incident = replace(record.incident, state="recovering")
            self._say(now, "recovering", record.incident)
            return
        if left < record.down:
            record.progress, record.down = now, left
        patience = ns(self.rules.recovery) if not left else max(ns(self.rules.settle), 2 * slowest)
        if now - record.progress >= patience:
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
    if story.affected.gpus > before.affected.gpus or not before.effect:
        return True
    if SEVERITIES.index(story.severity) < SEVERITIES.index(before.severity):
        return True
    measures = (
        "bandwidth_fraction", "plane_capacity_fraction", "speed_fraction", "headroom_fraction", "nvlink_fraction",
    )  # fmt: skip
    return any(story.effect.get(m, 1.0) < before.effect.get(m, 1.0) for m in measures)


def _differs(a: Incident, b: Incident) -> bool:
    return (a.severity, a.affected, a.effect) != (b.severity, b.affected, b.effect)
