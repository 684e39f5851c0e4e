"""The list of incidents: one line each, open first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tui.filter import Field, Filterable, Labels, Number, Text, parse, select
from tui.rows.detail import detail_lines
from tui.rows.verdict import any_known, count_spans, kind_words, muted_incidents, words
from tui.rows.words import affected, lasted, state_word
from tui.text import Line, fit, fit_middle, section, wrap
from tui.theme import GLYPH

if TYPE_CHECKING:
    from twin.incident import Incident
    from twin.snapshot import Snapshot


def matching(incidents: Sequence[Incident], text: str) -> list[Incident]:
    """Those that a filter holds of (see tui.filter); a word may be anywhere in them. Raises FilterError."""
    terms = parse(text)
    if not terms:
        return list(incidents)

    def hay(i: Incident) -> str:
        names = " ".join((*i.affected.names, *i.victims))
        return f"{i.kind} {kind_words(i)} {i.cause} {i.severity} {i.state} {i.summary} {names}"

    def names(of: Callable[[Incident], str]) -> Text:
        return Text(Labels(map(of, incidents)))

    def numbers(of: Callable[[Incident], float]) -> Number:
        return Number(np.array([of(i) for i in incidents], dtype=np.float64))

    fields: dict[str, Field] = {
        "kind": names(lambda i: i.kind),
        "class": names(lambda i: i.class_),
        "cause": names(lambda i: i.cause),
        "severity": names(lambda i: i.severity),
        "state": names(lambda i: "muted" if i.is_open and i.is_muted else i.state),
        "gpus": numbers(lambda i: i.affected.gpus),
        "nodes": numbers(lambda i: i.affected.nodes),
        "count": numbers(lambda i: i.count),
    }
    holds = select(terms, Filterable(len(incidents), fields, {}, names(hay)))
    return [i for i, found in zip(incidents, holds.tolist(), strict=True) if found]


def incident_line(incident: Incident, now: int, width: int, *, selected: bool) -> Line:
    """One incident in one line; the cursor is a glyph and a colour."""
    glyph, word, style = state_word(incident)
    tone = " cursor" if selected else ""
    quiet = "text" if incident.is_open and not incident.is_muted else "dim"
    line: Line = [("►" if selected else " ", "accent" + tone), (f"{glyph} ", style + tone)]
    rest = width - 4
    if width >= 60:
        line.append((fit(word, 9), style + (" bold" if incident.is_open else "") + tone))
        rest -= 9
    kind_width = 16 if width < 100 else 20
    gpus, since = (12, 9) if width >= 60 else (10, 8)
    if width < 46:
        gpus = 0
    cause_width = rest - kind_width - gpus - since
    title = fit(words(incident.class_ or incident.kind), kind_width - 1) + " "
    line.append((title, f"{quiet} bold{tone}" if incident.is_open else quiet + tone))
    line.append((fit_middle(incident.cause, max(1, cause_width)), quiet + tone))
    if gpus:
        line.append((fit(affected(incident), gpus, ">"), quiet + tone))
    line.append((fit(lasted(incident, now), since, ">"), quiet + tone))
    return [*line, (" ", "text" + tone)]


def incidents_title(shown: Sequence[Incident], total: int, text: str, first: int, rows: int, width: int) -> Line:
    right: Line = []
    if text:
        right.append((f"filter “{text}”: {len(shown)} of {total}", "accent"))
    elif total:
        right += count_spans(shown)
        if muted := len(muted_incidents(shown)):
            right.append((f"{'  ' if right else ''}{muted} muted", "dim"))
        closed = sum(not i.is_open for i in shown)
        if closed:
            right.append((f"{'  ' if right else ''}{closed} resolved", "dim"))
    if len(shown) > rows:
        right.append((f"  {first + 1}–{min(len(shown), first + rows)} of {len(shown)}", "dim"))
    return section("INCIDENTS", right, width)


def window(cursor: int, first: int, rows: int, total: int) -> int:
    """The first row to show so that the cursor is in sight, moving as little as can be."""
    if cursor < first:
        first = cursor
    if cursor >= first + rows:
        first = cursor - rows + 1
    return max(0, min(first, total - rows))


def cursor_of(incidents: Sequence[Incident], selected: str, last: int) -> int:
    """The row of the incident `selected`; where it is gone, the row it was in."""
    for row, incident in enumerate(incidents):
        if incident.id == selected:
            return row
    return max(0, min(last, len(incidents) - 1))


def incidents_lines(
    snapshot: Snapshot | None, listed: Sequence[Incident], width: int, height: int,
    *, cursor: int = 0, first: int = 0, text: str = "", two_lines: bool = False, preview: bool = False,
) -> list[Line]:  # fmt: skip
    """The title and the rows from `first` on; a second line holds the summary where `two_lines`."""
    if snapshot is None or height < 1:
        return []
    rows = visible_rows(height, two_lines)
    lines = [incidents_title(listed, len(snapshot.incidents), text, first, rows, width)]
    if not listed:
        return [*lines, none_line(snapshot, text)][:height]
    for row, incident in enumerate(listed[first : first + rows], first):
        lines.append(incident_line(incident, snapshot.time, width, selected=row == cursor))
        if two_lines:
            lines.append([(fit(f"    {incident.summary}", width - 1), "dim")])
    if preview:
        lines += preview_lines(listed[cursor], snapshot.time, width, height - len(lines))
    return lines[:height]


def none_line(snapshot: Snapshot, text: str) -> Line:
    """What stands where no incident does; that none is known is not that all is well."""
    if text:
        return [(f" nothing matches “{text}”", "dim")]
    if not any_known(snapshot):
        return [(" ? none known: nothing has been heard yet", "unknown")]
    return [(f" {GLYPH['ok']} none", "ok"), (": nothing is known to be broken", "dim")]


def preview_lines(incident: Incident, now: int, width: int, height: int) -> list[Line]:
    """The chosen incident under the list, in the rows that are left: in full, or what it is and what to do."""
    if height >= 12:
        made = detail_lines(incident, now, width)
        if len(made) > height - 1:
            made = [*made[: height - 2], [(" enter shows all", "dim")]]
        return [[], *made]
    if height < 2:
        return []
    said = [[(f"   {part}", "text")] for part in wrap(incident.summary, width - 6)] if incident.summary else []
    advice = incident.advice if incident.is_open else ""  # what is over needs nothing done
    to_do = [[(f"   {part}", "dim")] for part in wrap(f"→ {advice}", width - 6)] if advice else []
    room = height - 1
    said = said[: max(1, room - min(len(to_do), 1))]
    made = [*said, *to_do]
    if len(made) > room:
        made = made[:room]
        text, style = made[-1][0]
        if len(text) > width - 8:
            text = text.rpartition(" ")[0]
        made[-1] = [(f"{text} …", style)]
    return [[], *made]


def visible_rows(height: int, two_lines: bool) -> int:
    return max(1, (height - 1) // 2 if two_lines else height - 1)
