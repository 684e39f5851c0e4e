"""What one rule set finds in a trace and another does not."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from replay.analyze import Analysis, Progress, analyze_trace, incident_lines, show_time
from replay.rulesfile import RuleSet, differences
from replay.trace import Trace
from twin.incident import Incident

_TOLD = ("severity", "started", "detected", "resolved", "affected", "effect", "count", "class_")


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two analyses of one trace. pairs: incidents of one kind and cause that both find at overlapping times."""

    a: RuleSet
    b: RuleSet
    found_a: Analysis
    found_b: Analysis
    pairs: tuple[tuple[Incident, Incident], ...]
    only_a: tuple[Incident, ...]
    only_b: tuple[Incident, ...]

    @property
    def differ(self) -> tuple[tuple[Incident, Incident, tuple[str, ...]], ...]:
        """Pairs that are not told alike, with what differs."""
        out = []
        for one, two in self.pairs:
            fields = tuple(f.rstrip("_") for f in _TOLD if getattr(one, f) != getattr(two, f))
            if fields:
                out.append((one, two, fields))
        return tuple(out)

    @property
    def exit_code(self) -> int:
        """0 where both find the same, else 1."""
        return 1 if self.only_a or self.only_b or self.differ else 0

    def to_json(self) -> dict[str, Any]:
        return {
            "trace": self.found_a.to_json()["trace"],
            "a": {"rules": self.a.name, "summary": self.found_a.summary},
            "b": {"rules": self.b.name, "summary": self.found_b.summary},
            "rules": {name: {"a": x, "b": y} for name, (x, y) in differences(self.a.rules, self.b.rules).items()},
            "only_a": [i.to_json() for i in self.only_a],
            "only_b": [i.to_json() for i in self.only_b],
            "differ": [{"a": x.to_json(), "b": y.to_json(), "fields": list(f)} for x, y, f in self.differ],
            "same": len(self.pairs) - len(self.differ),
        }

    def text(self, width: int = 80) -> str:
        """The same for a person."""
        a, b = f"A {self.a.name}", f"B {self.b.name}"
        lines = [self.found_a.text(width).splitlines()[0], f"A: {self.a.name}    B: {self.b.name}"]
        rules = differences(self.a.rules, self.b.rules)
        lines.extend(f"  {name}: {x:g} in A, {y:g} in B" for name, (x, y) in rules.items())
        if not rules:
            lines.append("  the same thresholds")
        for name, incidents in ((a, self.only_a), (b, self.only_b)):
            lines.extend(["", f"only {name}: {len(incidents)}"])
            lines.extend(line for incident in incidents for line in incident_lines(incident, width))
        lines.extend(["", f"both, but told in another way: {len(self.differ)}"])
        for one, two, fields in self.differ:
            lines.append(f"  {one.kind}  {one.cause}")
            lines.extend(f"      {f}: {_shown(one, f)} in A, {_shown(two, f)} in B" for f in fields)
        lines.extend(["", f"both alike: {len(self.pairs) - len(self.differ)}"])
        return "\n".join(lines)


def compare(trace: Trace, a: RuleSet, b: RuleSet, progress: Progress | None = None) -> Comparison:
    """Judges a trace by both. Raises InputError as Trace.frames does."""
    found = []
    before = trace.rules
    try:
        for rules in (a, b):
            trace.rules = rules.rules
            found.append(analyze_trace(trace, progress))
    finally:
        trace.rules = before
    found_a, found_b = (replace(f, problems=(*f.problems, *s.notes)) for f, s in zip(found, (a, b), strict=True))
    pairs, only_a, left = [], [], list(found_b.incidents)
    for one in found_a.incidents:
        two = next((i for i in left if _is_same(one, i)), None)
        if two is None:
            only_a.append(one)
        else:
            left.remove(two)
            pairs.append((one, two))
    return Comparison(a, b, found_a, found_b, tuple(pairs), tuple(only_a), tuple(left))


def _is_same(one: Incident, two: Incident) -> bool:
    """One kind, one cause, and times that overlap."""
    if (one.kind, one.cause) != (two.kind, two.cause):
        return False
    return (two.resolved is None or one.started <= two.resolved) and (
        one.resolved is None or two.started <= one.resolved
    )


def _shown(incident: Incident, field: str) -> str:
    value = getattr(incident, field, getattr(incident, f"{field}_", None))
    if field in ("started", "detected", "resolved"):
        return "never" if value is None else show_time(value)
    if field == "affected":
        return f"{incident.affected.gpus:,} GPUs on {incident.affected.nodes:,} nodes"
    if field == "effect":
        return ", ".join(f"{name.replace('_', ' ')} {v:.3g}" for name, v in incident.effect.items()) or "none"
    return str(value)
