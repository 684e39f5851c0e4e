"""Lines over time as small SVG pictures, and what happened when as bars on a common axis."""

from __future__ import annotations

import numpy as np

from replay.report.markup import Markup, tag
from replay.report.series import Line, runs
from replay.report.words import amount, clock
from twin.frames import NS

WIDTH, HEIGHT = 340, 112
_LEFT, _RIGHT, _TOP, _BOTTOM = 6, 334, 18, 92
_POINTS = 300


def plot(line: Line, during: tuple[int, int] | None = None) -> Markup:
    """One line. during: the time that is shaded, ns."""
    first, last = int(line.times[0]), max(int(line.times[-1]), int(line.times[0]) + NS)
    known = line.values[np.isfinite(line.values)]
    top = max([float(known.max()) if len(known) else 0.0, line.expected or 0.0])
    low = min(0.0, float(known.min())) if len(known) else 0.0
    top = top if top > low else low + 1.0

    def x(time: float) -> float:
        return round(_LEFT + (_RIGHT - _LEFT) * min(max((time - first) / (last - first), 0.0), 1.0), 1)

    def y(value: float) -> float:
        return round(_BOTTOM - (_BOTTOM - _TOP) * (value - low) / (top - low), 1)

    marks: list[Markup] = []
    if during is not None:
        left, right = x(during[0]), x(during[1])
        marks.append(
            tag(
                "rect", class_="during", x=left, y=_TOP, width=max(1.0, round(right - left, 1)), height=_BOTTOM - _TOP
            )
        )
    marks.append(tag("line", class_="axis", x1=_LEFT, y1=_BOTTOM, x2=_RIGHT, y2=_BOTTOM))
    if line.expected is not None and low <= line.expected <= top:
        level = y(line.expected)
        marks.append(tag("line", class_="expected", x1=_LEFT, y1=level, x2=_RIGHT, y2=level))
    for times, values in runs(line, _POINTS):
        points = [(x(t), y(v)) for t, v in zip(times.tolist(), values.tolist(), strict=True)]
        if len(points) == 1:
            marks.append(tag("circle", class_="dot", cx=points[0][0], cy=points[0][1], r=1.5))
            continue
        if line.is_state:  # a state holds until the next reading
            points = [p for a, b in zip(points, [*points[1:], points[-1]], strict=True) for p in (a, (b[0], a[1]))]
        marks.append(tag("polyline", class_="line", points=" ".join(f"{px},{py}" for px, py in points)))
    marks.append(tag("text", amount(top, line.unit), class_="label", x=_LEFT, y=_TOP - 5))
    marks.append(tag("text", clock(first), class_="label", x=_LEFT, y=_BOTTOM + 14))
    marks.append(tag("text", clock(last), class_="label end", x=_RIGHT, y=_BOTTOM + 14))
    name = f"{line.entity} {line.metric}"
    return tag("svg", tag("title", name), marks, viewBox=f"0 0 {WIDTH} {HEIGHT}", class_="plot", role="img")


def bar(start: int, end: int, first: int, last: int, class_: str, title: str, target: str | None = None) -> Markup:
    """A bar from `start` to `end` in a row that goes from `first` to `last`."""
    length = max(1, last - first)
    left = 100 * min(max((start - first) / length, 0.0), 1.0)
    width = min(max(100 * (end - start) / length, 0.4), 100 - min(left, 99.6))
    style = f"left:{min(left, 99.6):.2f}%;width:{width:.2f}%"
    if target is None:
        return tag("span", class_=f"bar {class_}", style=style, title=title)
    return tag("a", class_=f"bar {class_}", style=style, title=title, href=f"#{target}", aria_label=title)


def ticks(first: int, last: int) -> Markup:
    """Times along a row."""
    steps = 4
    moments = [first + (last - first) * i // steps for i in range(steps + 1)]
    return tag("div", [tag("span", clock(moment)) for moment in moments], class_="ticks")
