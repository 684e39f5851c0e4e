"""The report as one HTML file: no script, no font, no picture from elsewhere."""

from __future__ import annotations

from importlib.resources import files

from replay.analyze import show_span
from replay.report.gather import Findings, Story
from replay.report.markup import Markup, join, tag
from replay.report.plots import bar, plot, ticks
from replay.report.series import Line
from replay.report.wiring import Map
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
from twin.incident import Incident, Word

_MOST_ROWS = 200  # of the timeline, and of silent sources
_MOST_NAMES = 40


def page(found: Findings) -> str:
    """The whole file."""
    style = files(__package__).joinpath("report.css").read_text("utf-8")
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", http_equiv="Content-Security-Policy", content="default-src 'none'; style-src 'unsafe-inline'"),
        tag("title", f"{found.title}: what happened"),
        tag("style", Markup(style)),
    )
    drawn = Map.of(found.topology)
    parts = [
        _header(found), drawn.symbol(), _timeline(found), _planes(found), _power(found), _incidents(found, drawn),
        _blind(found), _notes(found), _footer(found),
    ]  # fmt: skip
    body = tag("body", tag("main", parts))
    return "<!DOCTYPE html>\n" + tag("html", head, body, lang="en") + "\n"


def _header(found: Findings) -> Markup:
    analysis = found.analysis
    topo = found.topology
    counts = [
        tag("span", f"{GLYPHS[severity]} {number} {severity}", class_=f"count {severity if number else 'none'}")
        for severity, number in analysis.summary.items()
    ]
    span = "no frames" if analysis.start is None or analysis.end is None else show_span(analysis.start, analysis.end)
    warning = "Part of the recording is missing; this is what the rest shows." if analysis.truncated else ""
    said = [*([warning] if warning else []), *analysis.problems]
    return tag(
        "header",
        tag("h1", found.title),
        tag("p", f"{topo.name}: {fabric(topo)}", class_="about"),
        tag(
            "p",
            f"{span}, {count(analysis.frames, 'frame')} from {count(len(analysis.sources), 'source')}",
            class_="about",
        ),
        tag("p", counts, class_="counts"),
        [tag("p", text, class_="problem") for text in said],
    )


def _timeline(found: Findings) -> Markup | None:
    first, last = found.analysis.start, found.analysis.end
    if first is None or last is None:
        return None
    rows = [
        _row(
            (f"{GLYPHS[i.severity]} {i.kind}", i.cause),
            [bar(i.started, i.resolved or last, first, last, i.severity, f"{i.kind} {i.cause}, {ended(i)}", _id(i))],
        )
        for i in found.analysis.incidents[:_MOST_ROWS]
    ]
    if found.notes:
        marks = [bar(n.time, n.time, first, last, "note", f"{clock(n.time)} {n.text}", "notes") for n in found.notes]
        rows.append(_row(("✎ notes", ""), marks))
    if found.gaps:
        marks = [bar(g.start, g.end, first, last, "blind", f"{g.source}: {lasting(g.end - g.start)}", "blind")
                 for g in found.gaps[:_MOST_ROWS]]  # fmt: skip
        rows.append(_row(("◌ blind", count(len({g.source for g in found.gaps}), "source")), marks))
    if not rows:
        rows = [tag("p", "Nothing happened.", class_="about")]
    left = len(found.analysis.incidents) - _MOST_ROWS
    more = tag("p", f"and {left:,} more incidents below", class_="about") if left > 0 else None
    return _section("timeline", "Timeline (UTC)", tag("div", rows, ticks(first, last), class_="timeline"), more)


def _row(label: tuple[str, str], marks: list[Markup]) -> Markup:
    name = tag("span", tag("b", label[0]), " ", tag("span", label[1], class_="name"), class_="what")
    return tag("div", name, tag("span", marks, class_="track"), class_="row")


def _planes(found: Findings) -> Markup | None:
    if not found.planes:
        return None
    return _section("planes", "Planes", tag("div", [_figure(line) for line in found.planes], class_="plots"))


def _power(found: Findings) -> Markup | None:
    if not found.power:
        return None
    said = "Drawn, beside what may be drawn (dashed): the site, then what had the least room."
    plots = tag("div", [_figure(line) for line in found.power], class_="plots")
    return _section("power", "Power", tag("p", said, class_="about"), plots)


def _figure(line: Line, incident: Incident | None = None, end: int = 0) -> Markup:
    name = tag("figcaption", tag("code", line.entity), f" {line.metric.replace('_', ' ')}")
    if incident is None:
        return tag("figure", name, plot(line))
    during = (incident.started, end if incident.resolved is None else incident.resolved)
    told = tag("figcaption", before_during_after(line, incident, end), class_="means")
    return tag("figure", name, plot(line, during), told)


def _incidents(found: Findings, drawn: Map) -> Markup | None:
    if not found.stories:
        return None
    end = found.analysis.end or 0
    return _section("incidents", "Incidents", [_story(story, drawn, end) for story in found.stories])


def _story(story: Story, drawn: Map, end: int) -> Markup:
    i = story.incident
    facts: list[tuple[str, object]] = [
        ("started", date_clock(i.started)),
        ("detected", f"{clock(i.detected)}, {lasting(i.detected - i.started)} after it started"),
        ("ended", ended(i)),
        ("cost", cost(i)),
    ]
    if i.affected.names:
        facts.append(("affected", some(i.affected.names, _MOST_NAMES)))
    if i.jobs:
        facts.append(("jobs", ", ".join(f"{j.name} runs at {j.bandwidth_fraction:.0%}" for j in i.jobs)))
    if i.victims:
        facts.append(("victims", some(i.victims, _MOST_NAMES)))
    if i.count > 1:
        facts.append(("came and went", f"{i.count} times"))
    if i.superseded_by is not None:
        facts.append(("taken over by", tag("a", i.superseded_by, href=f"#i{i.superseded_by}")))
    for name in ("acknowledged", "silenced", "maintenance"):
        word: Word | None = getattr(i, name)
        if word is not None:
            facts.append(
                (
                    name,
                    f"by {word.by}, {clock(word.at)} to {clock(word.until)}" + (f": {word.why}" if word.why else ""),
                )
            )
    picture = drawn.damage(i)
    severity = tag("span", f"{GLYPHS[i.severity]} {i.severity}", class_=f"count {i.severity}")
    return tag(
        "article",
        tag("h3", severity, f"{i.kind} {i.class_}".strip(), " ", tag("code", i.cause)),
        tag("p", i.summary),
        tag("p", tag("b", "What to do: "), i.advice, class_="advice") if i.advice else None,
        tag("dl", [(tag("dt", name), tag("dd", value)) for name, value in facts]),
        _evidence(i),
        tag("div", [_figure(line, i, end) for line in story.lines], class_="plots") if story.lines else None,
        tag("figure", picture, tag("figcaption", _legend()), class_="reach") if picture is not None else None,
        id=_id(i), class_=i.severity,
    )  # fmt: skip


def _evidence(incident: Incident) -> Markup | None:
    if not incident.evidence:
        return None
    head = tag("tr", [tag("th", word) for word in ("evidence", "metric", "seen", "expected")])
    rows = [
        tag("tr", [tag("td", x) for x in (tag("code", e.entity), e.metric, _value(e.value), _expected(e.expected))])
        for e in incident.evidence
    ]  # fmt: skip
    return tag("div", tag("table", tag("thead", head), tag("tbody", rows)), class_="wide")


def _value(value: float | str | None) -> str:
    return "unknown" if value is None else value if isinstance(value, str) else f"{value:,.6g}"


def _expected(value: float | str | None) -> str:
    return "" if value is None else _value(value)


def _legend() -> Markup:
    kinds = (
        ("cause", "cause"),
        ("near", "its links end here"),
        ("all", "all GPUs affected"),
        ("some", "some GPUs affected"),
    )
    return join([(tag("span", class_=f"key {class_}"), f" {word}  ") for class_, word in kinds])


def _blind(found: Findings) -> Markup | None:
    if not found.gaps:
        return None
    head = tag("tr", [tag("th", word) for word in ("source", "silent from", "until", "for")])
    rows = [
        tag(
            "tr", tag("td", tag("code", g.source)), tag("td", date_clock(g.start)),
            tag("td", date_clock(g.end) if g.resumed else "the end"), tag("td", lasting(g.end - g.start)),
        )
        for g in found.gaps[:_MOST_ROWS]
    ]  # fmt: skip
    table = tag("div", tag("table", tag("thead", head), tag("tbody", rows)), class_="wide")
    left = len(found.gaps) - _MOST_ROWS
    more = tag("p", f"and {left:,} more", class_="about") if left > 0 else None
    said = "What these sources read is unknown then: no fault of theirs could be seen, and none could end."
    return _section("blind", "Blind", tag("p", said, class_="about"), table, more)


def _notes(found: Findings) -> Markup | None:
    if not found.notes:
        return None
    rows = [
        tag("li", tag("b", date_clock(note.time)), f" {note.author}: " if note.author else " ", note.text)
        for note in found.notes
    ]
    return _section("notes", "Notes of operators", tag("ul", rows))


def _footer(found: Findings) -> Markup:
    by = f", recorded by {found.program}" if found.program else ""
    return tag("footer", f"fabrictwin analyze, from {found.title}{by}. Times are UTC.")


def _section(id: str, title: str, *children: object) -> Markup:
    return tag("section", tag("h2", title), children, id=id)


def _id(incident: Incident) -> str:
    return f"i{incident.id}"
