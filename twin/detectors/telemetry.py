"""Findings about what is not being measured: telemetry_stale, collector_failed."""

from __future__ import annotations

from twin.detectors.finding import NO_LINKS, Finding, Story
from twin.detectors.rules import Rules, ns
from twin.frames import NS
from twin.incident import Affected, Evidence
from twin.sources import Sources
from twin.topology.model import Topology

MANY = 3  # sources that fell silent together and are told as one
CONFIRM = NS  # and an interval more, before silence is told: a trouble may yet explain it


class TelemetryDetector:
    """Remembers which silent sources are told together."""

    def __init__(self, topo: Topology, rules: Rules) -> None:
        self.topo, self.rules = topo, rules
        self._together: set[str] = set()

    def findings(self, now: int, sources: Sources) -> list[Finding]:
        """Sources that fail or are silent; many that fell silent together are one finding."""
        out = [self._failed(name, since, sources) for name, since in sources.failed_since.items()]
        silent = [i for i in sources.stale(now) if sources.names[i] not in sources.failed_since]
        ready = self._ready(now, silent, sources)
        self._together &= {sources.names[i] for i in silent}
        self._together |= self._fell_together([i for i in silent if ready[i]], sources)
        group = [i for i in silent if sources.names[i] in self._together]
        out.extend(self._alone(i, ready[i], sources) for i in silent if i not in group)
        if group:
            out.append(self._many(group, sources))
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

    def _failed(self, name: str, since: int, sources: Sources) -> Finding:
        failures = sources.failures.get(name, 1)

        def tell() -> Story:
            return Story(
                "warning",
                Affected(),
                {},
                (Evidence(name, "up", 0.0, 1.0),),
                f"source {name} fails: what it reports is unknown until it works again",
                f"See why in the notes of `fabrictwin check`, or in the log of {name}; it is tried again by itself.",
            )

        # two failures in a row: one may be a hiccup of the tool
        return Finding("collector_failed", name, since, failures >= 2, NO_LINKS, None, tell, covers=frozenset({name}))

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
        nodes = [n for n in names if n in index]
        return Affected(sum(int(self.topo.nodes.n_gpus[index[n]]) for n in nodes), len(nodes), tuple(nodes))
