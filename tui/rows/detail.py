"""One incident in full: what it costs, what to do, what shows it, since when, and who pays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui.rows.verdict import headline, words
from tui.rows.words import state_word
from tui.text import (
    NS,
    Line,
    age,
    clock,
    count,
    date_clock,
    fit,
    fit_middle,
    percent,
    plural,
    section,
    width_of,
    wrap,
)
from twin.units import show_speed, show_watts

if TYPE_CHECKING:
    from twin.incident import Evidence, Incident


def reading(metric: str, value: float | str | None) -> str:
    """A value of a metric with its unit; `?` where unknown."""
    if value is None or value != value:
        return "?"
    if isinstance(value, str):
        return value
    if metric == "up":
        return "up" if value else "down"
    if metric.endswith(("_ratio", "_fraction")):
        return percent(value)
    if metric.endswith("bits_per_second"):
        return f"{show_speed(value)}b/s"
    if metric.endswith("bytes_per_second"):
        return f"{show_speed(value)}B/s"
    if metric.endswith("_watts"):
        return show_watts(value)
    if metric.endswith("_celsius"):
        return f"{value:.4g} °C"
    if metric.endswith("_hertz"):
        return f"{show_speed(value)}Hz"
    if metric.endswith("_seconds"):
        return f"{value:.4g} s"
    if metric.endswith("_bytes"):
        return f"{show_speed(value)}B"
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:.4g}"


def effect_rows(incident: Incident) -> list[tuple[str, str]]:
    """(what, how much) of an incident's effect, bandwidth first."""
    rows = []
    who = incident.affected
    if who.gpus or who.nodes:
        where = f" on {plural(who.nodes, 'host')}" if who.nodes and who.gpus else ""
        rows.append(("affected", f"{plural(who.gpus, 'GPU')}{where}" if who.gpus else plural(who.nodes, "host")))
    else:
        rows.append(("affected", "no GPU so far"))
    for key, value in sorted(incident.effect.items(), key=lambda kv: (kv[0] != "bandwidth_fraction", kv[0])):
        if key == "bandwidth_fraction":
            rows.append(("bandwidth", f"{percent(value)} of the designed bandwidth is left"))
        else:
            unit = key if not key.endswith("fraction") else "_fraction"
            name = key
            for suffix in ("_fraction", "_ratio", "_watts", "_bits_per_second"):
                name = name.removesuffix(suffix)
            rows.append((words(name), reading(unit, value)))
    rows += [(f"job {j.name}", f"runs at {percent(j.bandwidth_fraction)}") for j in incident.jobs]
    return rows


def class_rows(incident: Incident) -> list[tuple[str, str]]:
    """Of an incident that has a class: which, where its root is, and how many wait because of it."""
    if not incident.class_:
        return []
    number = len(incident.victims)
    waiting = f"{count(number)} wait because of it, listed below" if number else "nobody is known to wait"
    return [("class", words(incident.class_)), ("root", incident.cause), ("victims", waiting)]


def time_rows(incident: Incident, now: int) -> list[tuple[str, str]]:
    late = (incident.detected - incident.started) / NS
    rows = [
        ("started", f"{date_clock(incident.started)} UTC, {age((now - incident.started) / NS)} ago"),
        ("detected", f"{clock(incident.detected)} UTC, {age(late)} after it started"),
    ]
    if incident.resolved is None:
        rows.append(("resolved", "recovering" if incident.state == "recovering" else "not yet"))
    else:
        took = age((incident.resolved - incident.started) / NS)
        rows.append(("resolved", f"{clock(incident.resolved)} UTC, it lasted {took}"))
    if incident.count > 1:
        rows.append(("seen", f"{incident.count} times"))
    for what in ("acknowledged", "silenced", "maintenance"):
        word = getattr(incident, what)
        if word is not None:
            rows.append((what, f"{word.why or f'by {word.by}'}, until {date_clock(word.until)} UTC"))
    return rows


def evidence_lines(evidence: tuple[Evidence, ...], width: int) -> list[Line]:
    """Seen against expected, a line each."""
    least = 12 if width >= 70 else 10
    readings = [(reading(e.metric, e.value), reading(e.metric, e.expected)) for e in evidence]
    longest = max((width_of(text) + 2 for pair in readings for text in pair), default=0)
    seen = expected = max(least, min(longest, width // 4))  # a neighbour's name needs more room than a number
    longest = max((len(e.metric) for e in evidence), default=6) + 2
    longest = max(longest, 8)
    metric_width = min(longest, max(8, (width - seen - expected - 2) * 6 // 10))
    entity_width = max(6, width - metric_width - seen - expected - 2)
    lines: list[Line] = [
        [(fit(" entity", entity_width + 1) + fit("metric", metric_width), "dim"),
         (fit("seen", seen - 1, ">") + " " + fit("expected", expected - 1, ">"), "dim")]
    ]  # fmt: skip
    lines += [
        [
            (" " + fit_middle(e.entity, entity_width - 1) + " ", "text"),
            (fit(words(e.metric), metric_width - 1) + " ", "text"),
            (fit(shown[0], seen - 1, ">") + " ", "warn bold"),
            (fit(shown[1], expected - 1, ">") + " ", "ok"),
        ]
        for e, shown in zip(evidence, readings, strict=True)
    ]
    return lines


def names_lines(names: tuple[str, ...], width: int, most: int = 400) -> list[Line]:
    """Names in columns."""
    if not names:
        return []
    shown = names[:most]
    cell = min(width, max(len(n) for n in shown) + 2)
    per_line = max(1, (width - 1) // cell)
    lines: list[Line] = [
        [(" " + "".join(fit(n, cell) for n in shown[i : i + per_line]), "text")]
        for i in range(0, len(shown), per_line)
    ]
    if len(names) > most:
        lines.append([(f" and {count(len(names) - most)} more", "dim")])
    return lines


def name_lists(incident: Incident) -> list[tuple[str, tuple[str, ...]]]:
    """Names of those who pay: where a root has victims these first, and apart from them those at the root itself."""
    victims, names = incident.victims, incident.affected.names
    if not victims:
        return [("Affected", names)] if names else []
    others = tuple(name for name in names if name not in set(victims))
    return [("Victims", victims), *([("At the root", others)] if others else [])]


def _pairs(rows: list[tuple[str, str]], width: int) -> list[Line]:
    label = min(22, max(11, *(len(name) + 2 for name, _ in rows)))
    return [
        [(f" {fit(name, label)}", "dim"), (fit(value, max(1, width - label - 2)), "text")] for name, value in rows
    ]


def detail_lines(incident: Incident | None, now: int, width: int, reason: str = "") -> list[Line]:
    """The whole page, as long as it gets. reason: why its cause, a source, fails."""
    if incident is None:
        return [[(" no incident is selected", "dim")]]
    glyph, word, style = state_word(incident)
    state = incident.state if incident.is_open else f"resolved, it was {incident.severity}"
    lines: list[Line] = [
        [(f" {glyph} {word.upper()}  ", style + " bold"), (fit(headline(incident), max(1, width - 24)), "text bold")],
    ]
    if incident.cause not in headline(incident):
        lines.append([(f"   cause {incident.cause}", "dim")])
    if incident.summary:
        lines += [[(f"   {part}", "text")] for part in wrap(incident.summary, width - 4)]
    if reason and incident.is_open:
        lines += [[(f"   {part}", "warn")] for part in wrap(reason, width - 4)]
    if incident.superseded_by:
        lines.append([(f"   explained by incident {incident.superseded_by}", "dim")])
    lines += [[], section("EFFECT", [], width), *_pairs(class_rows(incident) + effect_rows(incident), width)]
    if incident.advice:
        lines += [[], section("WHAT TO DO", [], width)]
        lines += [[(f" {part}", "text")] for part in wrap(incident.advice, width - 2)]
    if incident.evidence:
        lines += [[], section("EVIDENCE", [("seen against expected", "dim")], width)]
        lines += evidence_lines(incident.evidence, width)
    lines += [[], section("TIMES", [(state, "dim")], width), *_pairs(time_rows(incident, now), width)]
    for title, names in name_lists(incident):
        total = plural(len(names), "name")
        lines += [[], section(title.upper(), [(total, "dim")], width), *names_lines(names, width)]
    lines.append([(f" incident {incident.id} · {incident.kind}", "dim")])
    return lines


def ticket(incident: Incident, now: int, site: str) -> str:
    """An incident as plain text for a ticket."""
    _, word, _ = state_word(incident)
    out = [f"[{incident.severity.upper()}] {headline(incident)} ({site})", ""]
    if incident.summary:
        out += [incident.summary, ""]
    pairs = [("Kind", incident.kind), ("Cause", incident.cause), ("State", word if not incident.is_open else "open")]
    pairs += [(k.capitalize(), v) for k, v in class_rows(incident)]
    pairs += [(k.capitalize(), v) for k, v in effect_rows(incident) + time_rows(incident, now)]
    out += [f"{name + ':':<11} {value}" for name, value in pairs]
    if incident.evidence:
        out += ["", "Evidence (seen, expected):"]
        out += [
            f"  {e.entity}  {e.metric}  {reading(e.metric, e.value)}, {reading(e.metric, e.expected)}"
            for e in incident.evidence
        ]
    if incident.advice:
        out += ["", "Advice:", f"  {incident.advice}"]
    for title, names in name_lists(incident):
        more = f" and {len(names) - 20} more" if len(names) > 20 else ""
        out += ["", f"{title}: {', '.join(names[:20])}{more}"]
    out.append(f"Incident: {incident.id}")
    return "\n".join(out) + "\n"
