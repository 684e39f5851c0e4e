"""Findings about what is not being measured: telemetry_stale, collector_failed."""

from __future__ import annotations

from collections.abc import Mapping

from twin.detectors.finding import NO_LINKS, Finding, Story
from twin.detectors.rules import Rules, ns
from twin.frames import NS
from twin.incident import Affected, Evidence
from twin.sources import Sources, device_of
from twin.topology.model import Topology

MANY = 3  # sources that fell silent together and are told as one
CONFIRM = NS  # and an interval more, before silence is told: a trouble may yet explain it


class TelemetryDetector:
    """Remembers which silent, and which failing, sources are told together."""

    def __init__(self, topo: Topology, rules: Rules) -> None:
        self.topo, self.rules = topo, rules
        self._together: set[str] = set()
        self._failing: set[str] = set()

    def findings(self, now: int, sources: Sources) -> list[Finding]:
        """Sources that fail or are silent; many that fell silent together are one finding."""
        out = self._failures(sources)
        silent = [i for i in sources.stale(now) if sources.names[i] not in sources.failed_since]
        ready = self._ready(now, silent, sources)
        self._together &= {sources.names[i] for i in silent}
        self._together |= self._fell_together([i for i in silent if ready[i]], sources)
        group = [i for i in silent if sources.names[i] in self._together]
        out.extend(self._alone(i, ready[i], sources) for i in silent if i not in group)
        if group:
            out.append(self._many(group, sources))
        return out

    def _failures(self, sources: Sources) -> list[Finding]:
        """Sources that say themselves that they fail; many that began to fail together are one finding. What reads a
        device that is dead fails for that reason, which is told already."""
        failed = {n: t for n, t in sources.failed_since.items() if device_of(n, sources.dark) is None}
        # two failures in a row: one may be a hiccup of the tool
        ready = {name for name in failed if sources.failures.get(name, 1) >= 2}
        self._failing &= set(failed)
        self._failing |= self._at_once({name: t for name, t in failed.items() if name in ready})
        out = [self._failed(n, t, n in ready) for n, t in failed.items() if n not in self._failing]
        if self._failing:
            out.append(self._many_failed(sorted(self._failing), failed))
        return out

    def _at_once(self, times: Mapping[str, int]) -> set[str]:
        """Those of many that began within one burst of each other."""
        out: set[str] = set()
        run: list[str] = []
        for name in sorted(times, key=lambda n: (times[n], n)):
            if run and times[name] - times[run[0]] > ns(self.rules.burst):
                run = []
            run.append(name)
            if len(run) >= MANY:
                out |= set(run)
        return out

    def _ready(self, now: int, silent: list[int], sources: Sources) -> dict[int, bool]:
        quiet, patience, interval = sources.quiet(now), sources.patience(), sources.interval()
        return {i: bool(quiet[i] >= patience[i] + interval[i] + CONFIRM) for i in silent}

    def _fell_together(self, silent: list[int], sources: Sources) -> set[str]:
        """Those whose last words lie within one burst (and one of their intervals) of each other."""
        out: set[str] = set()
        run: list[int] = []
        for i in sorted(silent, key=lambda i: sources.last[i]):
            span = ns(self.rules.burst) + int(sources.interval()[i])
            if run and sources.last[i] - sources.last[run[0]] > span:
                run = []
            run.append(i)
            if len(run) >= MANY:
                out |= {sources.names[k] for k in run}
        return out

    def _failed(self, name: str, since: int, ready: bool) -> Finding:
        def tell() -> Story:
            return Story(
                "warning",
                Affected(),
                {},
                (Evidence(name, "up", 0.0, 1.0),),
                f"source {name} fails: what it reports is unknown until it works again",
                f"`fabrictwin doctor` says why, or the log of {name}; it is tried again by itself.",
            )

        return Finding("collector_failed", name, since, ready, NO_LINKS, None, tell)

    def _many_failed(self, names: list[str], failed: Mapping[str, int]) -> Finding:
        def tell() -> Story:
            return Story(
                "warning",
                self._nodes(names),
                {},
                tuple(Evidence(name, "up", 0.0, 1.0) for name in names[:4]),
                f"{len(names)} sources began to fail together ({', '.join(names[:3])}…): what they report is unknown",
                "So many at once share a way to us: check broker, collector host and management network first.",
            )

        since = min(failed[name] for name in names)
        covers = frozenset(names)
        return Finding("collector_failed", "sources", since, True, NO_LINKS, tuple(names), tell, covers=covers)

    def _alone(self, i: int, ready: bool, sources: Sources) -> Finding:
        name, last = sources.names[i], sources.last[i]
        interval = int(sources.interval()[i]) / NS

        def tell() -> Story:
            often = f", which reported every {interval:.3g} s" if interval else ""
            return Story(
                "warning",
                self._nodes([name]),
                {},
                (Evidence(name, "interval_seconds", None, round(interval, 3) or None),),
                f"nothing heard from {name}{often}: its {sources.entities[i]} entities are unknown",
                f"We are blind there, not sure that it is broken: check the agent of {name} and the way to it.",
            )

        return Finding("telemetry_stale", name, last, ready, NO_LINKS, last, tell)

    def _many(self, silent: list[int], sources: Sources) -> Finding:
        names = [sources.names[i] for i in silent]
        since = min(sources.last[i] for i in silent)

        def tell() -> Story:
            return Story(
                "warning",
                self._nodes(names),
                {},
                tuple(Evidence(name, "interval_seconds", None, None) for name in names[:4]),
                f"nothing heard from {len(names)} of {len(sources.names)} sources "
                f"({', '.join(names[:3])}…): what they report is unknown",
                "So many at once share a way to us: check broker, collector host and management network first.",
            )

        return Finding(
            "telemetry_stale", "sources", since, True, NO_LINKS, tuple(names), tell, covers=frozenset(names)
        )

    def _nodes(self, names: list[str]) -> Affected:
        index = self.topo.rows("node")
        nodes = list(dict.fromkeys(n for name in names if (n := device_of(name, index)) is not None))
        return Affected(sum(int(self.topo.nodes.n_gpus[index[n]]) for n in nodes), len(nodes), tuple(nodes))
