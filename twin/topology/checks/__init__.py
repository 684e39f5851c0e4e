"""What an engineer would look for in a wiring: planes that touch, crossing rails, unequal uplinks, power.

A finding is a warning: the file can be used, and `accept` in it says that something is meant so.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from twin.topology import figures
from twin.topology.checks.accept import RULES, Accepted
from twin.topology.checks.fabric import switches
from twin.topology.checks.finding import Finding, Issue, count, grouped
from twin.topology.checks.hosts import like_nodes, rails
from twin.topology.checks.power import feeds
from twin.topology.model import Topology

__all__ = ["RULES", "Finding", "Report", "check"]


@dataclass(frozen=True)
class Report:
    """accepted: how many things are meant so. idle: entries of `accept` that silenced nothing."""

    findings: tuple[Finding, ...]
    accepted: int
    idle: tuple[str, ...]
    oversubscription: dict[str, float]  # tier -> bandwidth down over up, only where it is above 1

    @property
    def verdict(self) -> str:
        return count(len(self.findings), "finding") if self.findings else "valid"

    def to_json(self) -> dict[str, Any]:
        return {
            "findings": [f.to_json() for f in self.findings],
            "accepted": self.accepted,
            "accept_without_effect": list(self.idle),
        }

    def text(self) -> str:
        """Lines for a person, empty where there is nothing to say."""
        lines = []
        for f in self.findings:
            lines += [
                f"{f.rule} {f.place}".rstrip() + f": {f.found}",
                f"  expected  {f.expected}",
                f"  meant so  accept: [{_quoted(f.accept)}]",
            ]
        if self.accepted:
            lines.append(f"{count(self.accepted, 'finding')} accepted as meant so")
        lines += [f"accept {entry} silences nothing" for entry in self.idle]
        lines += [f"{tier} switches are oversubscribed {r:.3g}:1" for tier, r in self.oversubscription.items()]
        return "\n".join(lines)


def check(topo: Topology, accept: Iterable[str] = ()) -> Report:
    """Every finding about a wiring that `accept` does not call meant so."""
    accepted = Accepted(accept)
    issues: list[Issue] = [*switches(topo), *like_nodes(topo), *rails(topo), *feeds(topo)]
    left = [issue for issue in issues if not accepted(issue.rule, issue.addresses)]
    over = {tier: ratio for tier, ratio in figures.oversubscription(topo).items() if ratio > 1 + 1e-6}
    return Report(tuple(grouped(left)), len(issues) - len(left), accepted.idle, over)


def _quoted(entry: str) -> str:
    plain = all(c.isalnum() or c in "-_./:*" for c in entry) and not entry.endswith(":")
    return entry if plain else '"' + entry.replace("\\", "\\\\").replace('"', '\\"') + '"'
