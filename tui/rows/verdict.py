"""The verdict: one word, one line of causes, one line of what it costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tui.text import Line, count, cut, percent, plural, width_of
from tui.theme import GLYPH, STYLE

if TYPE_CHECKING:
    from twin.incident import Incident
    from twin.snapshot import F64, Snapshot

SEVERITIES = ("critical", "warning", "info")
_FULL = 0.995  # share of bandwidth that reads as 100 %


def open_incidents(incidents: Sequence[Incident]) -> list[Incident]:
    """Those that count: neither silenced nor within announced work."""
    return [i for i in incidents if i.is_open and i.superseded_by is None and not i.is_muted]


def muted_incidents(incidents: Sequence[Incident]) -> list[Incident]:
    return [i for i in incidents if i.is_open and i.is_muted]


def words(kind: str) -> str:
    """An incident's kind as words: `plane_down` is `plane down`."""
    return kind.replace("_", " ")


def kind_words(incident: Incident) -> str:
    """Its kind, and of one that has several forms which it is: `link slow`, `congestion: incast`."""
    kind = words(incident.kind)
    return f"{kind}: {words(incident.class_)}" if incident.class_ else kind


def headline(incident: Incident) -> str:
    """An incident in a few words: `plane B down`, `link slow n012/nic3/p0`."""
    kind, _, rest = incident.kind.partition("_")
    if kind == "plane" and incident.cause.startswith("plane:"):
        return f"plane {incident.cause[6:]} {rest}"
    return f"{kind_words(incident)} {incident.cause}".strip()


def status(snapshot: Snapshot | None) -> str:
    """`critical`, `warning`, `ok`, or `unknown` where nothing is known."""
    if snapshot is None:
        return "unknown"
    severities = {i.severity for i in open_incidents(snapshot.incidents)}
    for severity in ("critical", "warning"):
        if severity in severities:
            return severity
    if not any_known(snapshot):
        return "unknown"
    return "warning" if unconfirmed(snapshot) else "ok"


def unconfirmed(snapshot: Snapshot) -> bool:
    """Whether bandwidth is missing that no incident tells of: seen a moment ago, not yet raised."""
    if muted_incidents(snapshot.incidents):
        return False  # it may well be theirs
    return bool((snapshot.gpu_bandwidth < _FULL).any())  # unknown (NaN) is not below


def any_known(snapshot: Snapshot) -> bool:
    """Whether anything at all was heard: a link's state, a port's or a GPU's reading, a good source."""
    import numpy as np  # only where there is data: the first frame comes without it

    return bool(
        (snapshot.link_state >= 0).any()
        or np.isfinite(snapshot.port_age).any()
        or np.isfinite(snapshot.gpu_age).any()
        or any(s.state == "ok" for s in snapshot.sources)
    )


def severity_counts(incidents: Sequence[Incident]) -> list[tuple[str, int]]:
    """(severity, how many are open) for those that are, worst first."""
    opened = open_incidents(incidents)
    counts = [(s, sum(i.severity == s for i in opened)) for s in SEVERITIES]
    return [(s, n) for s, n in counts if n]


def count_spans(incidents: Sequence[Incident]) -> Line:
    """`■ 2 critical  ▲ 1 warning`."""
    line: Line = []
    for severity, number in severity_counts(incidents):
        if line:
            line.append(("  ", "text"))
        line.append((f"{GLYPH[severity]} {number} {severity}", STYLE[severity] + " bold"))
    return line


def gpu_cost(bandwidth: F64) -> str:
    """What it costs the GPUs: `512 of 512 GPUs below full bandwidth: 512 at 50 %`."""
    import numpy as np

    total = len(bandwidth)
    if not total:
        return ""
    known = bandwidth[np.isfinite(bandwidth)]
    missing = total - len(known)
    unknown = f" · {count(missing)} unknown" if missing else ""
    below = known[known < _FULL]
    if not len(known):
        return f"{plural(total, 'GPU')}: bandwidth unknown"
    if not len(below):
        return f"{plural(len(known), 'GPU')} at full bandwidth{unknown}"
    shares, counts = np.unique(np.round(below, 2), return_counts=True)
    told = [f"{count(int(n))} at {percent(float(s))}" for s, n in zip(shares[:3], counts[:3], strict=True)]
    if len(shares) > 3:
        told[2:] = [f"{count(int(counts[2:].sum()))} at {percent(float(shares[2]))} to {percent(float(shares[-1]))}"]
    worst = ", ".join(told)
    return f"{count(len(below))} of {plural(total, 'GPU')} below full bandwidth: {worst}{unknown}"


def verdict_lines(snapshot: Snapshot | None, width: int, height: int = 2) -> list[Line]:
    """The verdict in `height` lines, the causes first."""
    if snapshot is None:
        return [[(" ? ", "unknown"), ("waiting for the first data", "text bold")]][:height]
    opened = open_incidents(snapshot.incidents)
    cost: Line = [("   " + gpu_cost(snapshot.gpu_bandwidth), "text")]
    if not opened:
        return _quiet(snapshot, cost, width, height)
    first: Line = [(" ", "text"), *count_spans(snapshot.incidents), ("  ", "text")]
    left = width - sum(width_of(t) for t, _ in first)
    causes = [headline(i) for i in sorted(opened, key=lambda i: SEVERITIES.index(i.severity))]
    first.append((join_fitting(causes, left), "text bold"))
    return [cut(first, width), cut(cost, width)][:height]


def _quiet(snapshot: Snapshot, cost: Line, width: int, height: int) -> list[Line]:
    if not any_known(snapshot):
        first: Line = [(" ? nothing known  ", "unknown bold"), ("no source has reported yet", "text")]
        return [first][:height]
    if unconfirmed(snapshot):
        first = [(f" {GLYPH['warning']} links have just gone down ", "warn bold"), ("not confirmed yet", "text")]
        return [cut(first, width), cut(cost, width)][:height]
    first = [(f" {GLYPH['ok']} no open incidents ", "ok bold")]
    if muted := muted_incidents(snapshot.incidents):
        first.append((f" {len(muted)} muted", "dim"))
    known = [p.known_fraction for p in snapshot.planes if p.known_fraction == p.known_fraction]
    if known and min(known) < 0.995:
        first.append((f" but only {percent(min(known))} of the links of a plane are known", "warn"))
    return [cut(first, width), cut(cost, width)][:height]


def join_fitting(parts: Sequence[str], width: int, joint: str = " · ") -> str:
    """As many parts as fit, then how many more there are."""
    text = ""
    for i, part in enumerate(parts):
        longer = f"{text}{joint}{part}" if text else part
        more = f"{joint}+{len(parts) - i - 1} more" if i + 1 < len(parts) else ""
        if text and width_of(longer) + width_of(more) > width:
            return f"{text}{joint}+{len(parts) - i} more"
        text = longer
    return text
