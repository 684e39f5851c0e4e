"""Where the data comes from and how fresh it is: what is not measured is shown, too."""

from __future__ import annotations

from tui.text import Line, age, count, cut, fit, line_width, plural, section, width_of
from twin.snapshot import Snapshot, SourceView

_RANK = {"failed": 0, "stale": 1, "ok": 2}
_LOOK = {"failed": ("■", "crit"), "stale": ("▲", "warn"), "ok": ("●", "ok")}


def _age_key(source: SourceView) -> float:
    return float("inf") if source.age_seconds != source.age_seconds else source.age_seconds


def worst_first(snapshot: Snapshot) -> list[SourceView]:
    return sorted(snapshot.sources, key=lambda s: (_RANK.get(s.state, 0), -_age_key(s), s.name))


def source_spans(snapshot: Snapshot) -> Line:
    """`● 64 ok  ▲ 1 stale  ■ 0 failed`."""
    line: Line = []
    for state in ("ok", "stale", "failed"):
        number = sum(s.state == state for s in snapshot.sources)
        glyph, style = _LOOK[state]
        line.append((f"{'  ' if line else ''}{glyph} {count(number)} {state}", style if number else "dim"))
    return line


def sources_line(snapshot: Snapshot | None, width: int) -> Line:
    """All sources in one line, with the oldest."""
    if snapshot is None:
        return []
    if not snapshot.sources:
        return section("SOURCES", [("? no source has reported", "unknown")], width)
    oldest = max(snapshot.sources, key=_age_key)
    old = age(oldest.age_seconds) if oldest.age_seconds == oldest.age_seconds else "never heard"
    spans = source_spans(snapshot)
    full = [*spans, (f"  oldest {old}: {fit_to(oldest.name, 16)}", "dim")]
    return section("SOURCES", full if line_width(full) + 14 < width else spans, width)


def fit_to(text: str, most: int) -> str:
    return text if width_of(text) <= most else fit(text, most)


def sources_lines(snapshot: Snapshot | None, width: int, height: int) -> list[Line]:
    """The one line, or with room a table, the worst source first."""
    if snapshot is None or height < 1:
        return []
    if height < 4:
        return [sources_line(snapshot, width)]
    lines = [section("SOURCES", source_spans(snapshot), width)]
    if not snapshot.sources:
        return [*lines, [(" ? no source has reported", "unknown")]]
    listed = worst_first(snapshot)
    room = height - 1 if len(listed) <= height - 1 else height - 2
    name_width = min(30, max(10, width - 50))
    for source in listed[:room]:
        glyph, style = _LOOK.get(source.state, ("?", "unknown"))
        every = f"every {age(source.interval_seconds)}" if source.interval_seconds > 0 else ""
        lines.append(
            cut(
                [
                    (f" {glyph} ", style + " bold"),
                    (fit(source.name, name_width), "text"),
                    (fit(source.state, 8), style),
                    (fit(f"{age(source.age_seconds)} old", 12), "text"),
                    (fit(every, 12), "dim"),
                    (fit(plural(source.failures, "failure") if source.failures else "", 12), "warn"),
                ],
                width,
            )
        )
    if len(listed) > room:
        rest = listed[room:]
        same = rest[0].state if len({s.state for s in rest}) == 1 else "more"
        lines.append([(f"   +{count(len(rest))} {same}, oldest {age(max(_age_key(s) for s in rest))}", "dim")])
    return lines
