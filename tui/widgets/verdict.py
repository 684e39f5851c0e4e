"""The verdict: what is broken and what it costs."""

from __future__ import annotations

from tui.rows.verdict import verdict_lines
from tui.shown import Shown
from tui.text import Line
from tui.widgets.panel import Panel


class Verdict(Panel):
    def key(self, shown: Shown) -> object:
        return (shown.key, shown.failed)

    def lines(self, shown: Shown, width: int, height: int) -> list[Line]:
        if shown.failed:
            said: Line = [(" ■ the source ended: ", "crit bold"), (shown.failed, "text")]
            rest = verdict_lines(shown.snapshot, width, height - 1) if shown.snapshot is not None else []
            return [said, *rest]
        return verdict_lines(shown.snapshot, width, height)
