"""Where the data comes from and how fresh it is: what is not measured is shown, too."""

from __future__ import annotations

from collections.abc import Mapping

from tui.text import Line, age, count, cut, fit, line_width, plural, section, width_of
from twin.snapshot import Snapshot, SourceView

_STATES = ("ok", "late", "stale", "failed")
_LOOK = {"failed": ("■", "crit"), "stale": ("▲", "warn"), "late": ("▲", "warn"), "ok": ("●", "ok")}


def _age_key(source: SourceView) -> float:
    return float("inf") if source.age_seconds != source.age_seconds else source.age_seconds


def worst_first(snapshot: Snapshot) -> list[SourceView]:
    rank = {state: -n for n, state in enumerate(_STATES)}
    return sorted(snapshot.sources, key=lambda s: (rank.get(s.state, -9), not s.skewed, -_age_key(s), s.name))


def source_spans(snapshot: Snapshot) -> Line:
    """`● 64 ok  ▲ 1 stale  ■ 0 failed`; late ones and wrong clocks only where there are some."""
    line: Line = []
    for state in _STATES:
        number = sum(s.state == state for s in snapshot.sources)
        glyph, style = _LOOK[state]
        if number or state != "late":
            line.append((f"{'  ' if line else ''}{glyph} {count(number)} {state}", style if number else "dim"))
    skewed = sum(s.skewed for s in snapshot.sources)
    if skewed:
        line.append((f"  ▲ {plural(skewed, 'clock')} off", "warn"))
    return line


def clock_word(source: SourceView) -> str:
    """`clock 12 s ahead`, nothing where it is right or not known."""
    if not source.skewed:
        return ""
    way = "ahead" if source.clock_offset_seconds > 0 else "behind"
    return f"clock {age(abs(source.clock_offset_seconds))} {way}"


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


def troubled(snapshot: Snapshot, reasons: Mapping[str, str]) -> list[SourceView]:
    """Sources of which there is more to say than a count: they fail, lack something, are late, their clock is off."""
    return [s for s in worst_first(snapshot) if reasons.get(s.name) or s.skewed or s.state == "late"]


def _trouble_line(source: SourceView, reason: str, width: int) -> Line:
    glyph, style = _LOOK.get(source.state, ("?", "unknown"))
    late = f"late: what it says is {age(source.age_seconds)} old" if source.state == "late" else ""
    text = ", ".join(part for part in (late, clock_word(source), reason) if part)
    return cut([(f" {glyph} ", style + " bold"), (f"{source.name}  ", "text bold"), (text, "text")], width)


def sources_lines(
    snapshot: Snapshot | None, width: int, height: int, reasons: Mapping[str, str] | None = None
) -> list[Line]:
    """The one line with troubles below it, or with room a table, the worst source first.

    reasons: source -> why it fails, or what of it cannot be had.
    """
    if snapshot is None or height < 1:
        return []
    reasons = reasons or {}
    if height < 4:
        told = troubled(snapshot, reasons)[: height - 1]
        return [sources_line(snapshot, width), *(_trouble_line(s, reasons.get(s.name, ""), width) for s in told)]
    lines = [section("SOURCES", source_spans(snapshot), width)]
    if not snapshot.sources:
        return [*lines, [(" ? no source has reported", "unknown")]]
    listed = worst_first(snapshot)
    room = height - 1 if len(listed) <= height - 1 else height - 2
    name_width = min(30, max(10, width - 50))
    if any(reasons.get(s.name) for s in listed[:room]):  # a reason needs the room more than a short name does
        name_width = min(name_width, max(width_of(s.name) for s in listed[:room]) + 2)
    lines += [_row(source, reasons.get(source.name, ""), name_width, width) for source in listed[:room]]
    if len(listed) > room:
        rest = listed[room:]
        same = rest[0].state if len({s.state for s in rest}) == 1 else "more"
        lines.append([(f"   +{count(len(rest))} {same}, oldest {age(max(_age_key(s) for s in rest))}", "dim")])
    return lines


def _row(source: SourceView, reason: str, name_width: int, width: int) -> Line:
    glyph, style = _LOOK.get(source.state, ("?", "unknown"))
    line: Line = [
        (f" {glyph} ", style + " bold"),
        (fit(source.name, name_width), "text"),
        (fit(source.state, 8), style),
        (fit(f"{age(source.age_seconds)} old", 12), "text"),
    ]
    if said := ", ".join(part for part in (clock_word(source), reason) if part):
        return cut([*line, (said, "warn")], width)
    every = f"every {age(source.interval_seconds)}" if source.interval_seconds > 0 else ""
    failures = plural(source.failures, "failure") if source.failures else ""
    return cut([*line, (fit(every, 12), "dim"), (fit(failures, 12), "warn")], width)
