"""The report as Markdown, for a ticket: tables, and lines of blocks instead of plots."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from replay.analyze import show_span
from replay.gaps import Gap
from replay.report.gather import Findings, Story
from replay.report.series import Line
from replay.report.wiring import reach
from replay.report.words import (
    GLYPHS,
    before_during_after,
    clock,
    cost,
    count,
    date_clock,
    ended,
    fabric,
    lasting,
    some,
)
from twin.incident import Incident
from twin.topology.model import Topology

_SPECIAL = re.compile(r"([\\`*_\[\]#|~<>&$])|(?<=^)([-+=]|\d+(?=[.)]))")
_BLOCKS = "▁▂▃▄▅▆▇█"
_WIDTH = 40
_MOST_NAMES, _MOST_GAPS = 20, 50


def markdown(found: Findings) -> str:
    """The whole text."""
    analysis, topo = found.analysis, found.topology
    span = "no frames" if analysis.start is None or analysis.end is None else show_span(analysis.start, analysis.end)
    out = [
        f"# {text(found.title)}", "", f"{text(topo.name)}: {fabric(topo)}.  ",
        f"{text(span)}, {count(analysis.frames, 'frame')} from {count(len(analysis.sources), 'source')}.  ",
        "**" + ", ".join(f"{n} {severity}" for severity, n in analysis.summary.items()) + "**",
    ]  # fmt: skip
    problems = [*(["part of the recording is missing"] if analysis.truncated else []), *analysis.problems]
    out += [f"> {text(problem)}" for problem in problems]
    end = analysis.end or 0
    if found.stories:
        rows = [
            (f"{GLYPHS[i.severity]} {i.severity}", clock(i.started), _end(i), i.kind, code(i.cause), text(cost(i)))
            for i in analysis.incidents
        ]
        out += ["", "## Timeline (UTC)", "", *_table(("", "from", "to", "incident", "cause", "cost"), rows)]
        out += ["", "## Incidents"]
        for story in found.stories:
            out += ["", *_story(story, topo, end)]
    else:
        out += ["", "Nothing happened."]
    for title, lines in (("Planes", found.planes), ("Power", found.power)):
        if lines:
            out += ["", f"## {title}", "", *[_spark(line) for line in lines]]
    if found.gaps:
        silent = [
            (code(g.source), date_clock(g.start), _until(g), lasting(g.end - g.start))
            for g in found.gaps[:_MOST_GAPS]
        ]  # fmt: skip
        out += ["", "## Blind", "", *_table(("source", "silent from", "until", "for"), silent)]
        if len(found.gaps) > _MOST_GAPS:
            out += ["", f"and {len(found.gaps) - _MOST_GAPS:,} more"]
    if found.notes:
        out += ["", "## Notes of operators", ""]
        said = ((note.time, f"{note.author}: {note.text}" if note.author else note.text) for note in found.notes)
        out += [f"- **{date_clock(time)}** {text(words)}" for time, words in said]
    return "\n".join(out) + "\n"


def _story(story: Story, topo: Topology, end: int) -> list[str]:
    i = story.incident
    out = [f"### {GLYPHS[i.severity]} {i.severity}: {i.kind} {code(i.cause)}", "", text(i.summary), ""]
    if i.advice:
        out += [f"**What to do:** {text(i.advice)}", ""]
    facts = [
        ("started", date_clock(i.started)), ("detected", f"{lasting(i.detected - i.started)} later"),
        ("ended", ended(i)), ("cost", cost(i)), ("reach", _reach(i, topo)),
        ("affected", some(i.affected.names, _MOST_NAMES)),
        ("jobs", ", ".join(f"{j.name} runs at {j.bandwidth_fraction:.0%}" for j in i.jobs)),
        ("victims", some(i.victims, _MOST_NAMES)),
        ("came and went", f"{i.count} times" if i.count > 1 else ""), ("taken over by", i.superseded_by or ""),
    ]  # fmt: skip
    for name in ("acknowledged", "silenced", "maintenance"):
        word = getattr(i, name)
        if word is not None:
            facts.append((name, f"by {word.by} until {clock(word.until)} {word.why}".rstrip()))
    out += [f"- {name}: {text(value)}" for name, value in facts if value]
    if i.evidence:
        rows = [
            (code(e.entity), text(e.metric), _value(e.value), "" if e.expected is None else _value(e.expected))
            for e in i.evidence
        ]
        out += ["", *_table(("evidence", "metric", "seen", "expected"), rows)]
    if story.lines:
        out += ["", *[f"{_spark(line)} {text(before_during_after(line, i, end))}" for line in story.lines]]
    return out


def _end(incident: Incident) -> str:
    return "open" if incident.resolved is None else clock(incident.resolved)


def _until(gap: Gap) -> str:
    return date_clock(gap.end) if gap.resumed else "the end"


def _reach(incident: Incident, topo: Topology) -> str:
    hit = reach(topo, incident)
    parts = [(len(hit.links), "link"), (len(hit.switches), "switch"), (len(hit.nodes), "node")]
    return ", ".join(count(number, thing) for number, thing in parts if number)


def _spark(line: Line) -> str:
    """A line as blocks from zero to its largest value; a dot where it is unknown."""
    values = line.values
    parts = np.array_split(values, min(_WIDTH, len(values)))
    means = [float(p[np.isfinite(p)].mean()) if np.isfinite(p).any() else float("nan") for p in parts]
    top = max((m for m in means if m == m), default=0.0) or 1.0
    blocks = "".join("·" if m != m else _BLOCKS[min(7, int(7.99 * max(m, 0.0) / top))] for m in means)
    return f"- `{blocks}` {code(line.entity)} {text(line.metric)}"


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[str]:
    return ["| " + " | ".join(row) + " |" for row in (head, tuple("---" for _ in head), *rows)]


def text(value: object) -> str:
    """Text in which nothing is markup."""
    return _SPECIAL.sub(lambda m: f"\\{m[0]}", " ".join(str(value).split()))


def code(value: str) -> str:
    """A name as code, whatever it holds. A table would end at a bar, and code at a backtick."""
    return f"`{' '.join(value.split()).replace('`', chr(39)).replace('|', '¦')}`"


def _value(value: float | str | None) -> str:
    return "unknown" if value is None else text(value) if isinstance(value, str) else f"{value:,.6g}"
