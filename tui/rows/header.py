"""The header: status first, then which site, how it is watched, the time it shows and how old that is."""

from __future__ import annotations

from tui.rows.verdict import status
from tui.shown import NS, Shown
from tui.text import Line, age, clock, date_clock, fit, line_width, span_clock, width_of
from tui.theme import GLYPH, STYLE

OLD_SECONDS = 10.0  # data older than this is marked; ten beats of the screen


def badge(word: str) -> Line:
    return [(f" {GLYPH[word]} {word.upper()} ", f"badge_{STYLE[word]}")]


def show_rate(rate: float) -> str:
    return f"×{rate:g}"


def state_spans(shown: Shown, width: int) -> Line:
    """Mode, pause, speed and position: what moves, and how."""
    line: Line = []
    if shown.failed:
        return [(" ■ SOURCE ENDED ", "badge_crit")]
    if shown.paused:
        waiting = f" {shown.waiting} newer" if shown.waiting and width >= 100 else ""
        line.append((f" ▮▮ PAUSED{waiting} ", "on"))
    if shown.mode == "replay":
        line.append((f" REPLAY {'' if shown.paused else '► '}{show_rate(shown.speed or 1.0)} ", "head bold"))
    else:
        line.append((f" {shown.mode.upper()} ", "head bold"))
        if shown.speed not in (None, 1.0):
            line.append((f"{show_rate(shown.speed or 1.0)} ", "head bold"))
    if shown.state:
        line.append((f" {shown.state} ", "head warn"))
    return line


def when_spans(shown: Shown, width: int) -> Line:
    """The time shown, and its age or its place in the recording."""
    snapshot = shown.snapshot
    if snapshot is None:
        return [(" no data yet ", "head warn")]
    time = date_clock(snapshot.time) if width >= 100 else clock(snapshot.time)
    line: Line = [(f" {time} UTC ", "head bold")]
    if shown.mode == "replay":
        if shown.span is not None:
            start, end = shown.span
            position = f"{span_clock((snapshot.time - start) / NS)} of {span_clock((end - start) / NS)}"
            line.append((f" {position} ", "head dim"))
        return line
    style = "head dim" if shown.data_age <= OLD_SECONDS else "head warn bold"
    mark = "" if shown.data_age <= OLD_SECONDS else "▲ "
    line.append((f" {mark}data {age(shown.data_age)} old ", style))
    return line


def header_line(shown: Shown, width: int) -> Line:
    left = badge(status(shown.snapshot))
    state, when = state_spans(shown, width), when_spans(shown, width)
    room = width - sum(line_width(part) for part in (left, state, when))
    if room < 6 and shown.snapshot is not None:
        when = when[-1:]
        room = width - sum(line_width(part) for part in (left, state, when))
    title = f" {shown.title} "
    name = fit(title, min(width_of(title), room)) if room >= 4 else ""
    gap = max(0, room - width_of(name))
    return [*left, (name, "head bold"), *state, (" " * gap, "head"), *when]
