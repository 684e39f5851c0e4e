"""Findings about what is not being measured: telemetry_stale, collector_failed."""

from __future__ import annotations

from twin.detectors.finding import NO_LINKS, Finding, Story
from twin.frames import NS
from twin.incident import Affected, Evidence
from twin.sources import Sources
from twin.topology.model import Topology

MANY = 3  # silent sources that are told as one
CONFIRM = NS  # and a tick, ns


def findings(now: int, sources: Sources, topo: Topology) -> list[Finding]:
    """Sources that fail or are silent; many that fell silent are one finding, their common way is the suspect."""
    out = [_failed(name, since, sources) for name, since in sources.failed_since.items()]
    silent = [i for i in sources.stale(now) if sources.names[i] not in sources.failed_since]
    alone = [_stale(now, i, sources, topo) for i in silent]
    if len(silent) < MANY:
        return out + alone
    return [*out, _many(silent, any(f.ready for f in alone), sources, topo)]


def _failed(name: str, since: int, sources: Sources) -> Finding:
    failures = sources.failures.get(name, 1)

    def tell() -> Story:
        return Story(
            "warning",
            Affected(),
            {},
            (Evidence(name, "up", 0.0, 1.0),),
            f"source {name} fails: what it reports is unknown until it works again",
            f"See why with `fabrictwin doctor`, or in the log of {name}; it is tried again by itself.",
        )

    # two failures in a row: one may be a hiccup of the tool
    return Finding("collector_failed", name, since, failures >= 2, NO_LINKS, None, tell)


def _stale(now: int, i: int, sources: Sources, topo: Topology) -> Finding:
    name, last = sources.names[i], sources.last[i]
    interval = int(sources.interval()[i]) / NS

    def tell() -> Story:
        return Story(
            "warning",
            _nodes([name], topo),
            {},
            (Evidence(name, "interval_seconds", None, round(interval, 3)),),
            f"nothing heard from {name}, which reported every {interval:.3g} s: "
            f"its {sources.entities[i]} entities are unknown",
            f"We are blind there, not sure that it is broken: check the agent of {name} and the way to it.",
        )

    # one interval more: the same trouble may explain its silence once its neighbours are known to be gone too
    quiet = now - max(last, sources.excused[i])
    ready = quiet >= int(sources.patience()[i]) + int(sources.interval()[i]) + CONFIRM
    return Finding("telemetry_stale", name, last, ready, NO_LINKS, last, tell)


def _many(silent: list[int], ready: bool, sources: Sources, topo: Topology) -> Finding:
    names = [sources.names[i] for i in silent]
    since = min(sources.last[i] for i in silent)

    def tell() -> Story:
        return Story(
            "warning",
            _nodes(names, topo),
            {},
            tuple(Evidence(name, "interval_seconds", None, None) for name in names[:4]),
            f"nothing heard from {len(names)} of {len(sources.names)} sources "
            f"({', '.join(names[:3])}…): what they report is unknown",
            "So many at once share a way to us: check broker, collector host and management network first.",
        )

    return Finding("telemetry_stale", "sources", since, ready, NO_LINKS, tuple(names), tell, covers=frozenset(names))


def _nodes(names: list[str], topo: Topology) -> Affected:
    index = topo.rows("node")
    nodes = [n for n in names if n in index]
    return Affected(sum(int(topo.nodes.n_gpus[index[n]]) for n in nodes), len(nodes), tuple(nodes))
