"""The foot line: the keys of this view, or a note for a moment. Keys can be clicked."""

from __future__ import annotations

from tui.rows.keys import KeyHint, keys_line
from tui.shown import Shown
from tui.text import Line
from tui.widgets.panel import Panel


class KeyLine(Panel):
    DEFAULT_CSS = """
    KeyLine { height: 1; }
    """
    base = "head"

    def __init__(self, hints: list[KeyHint]) -> None:
        super().__init__()
        self.hints = hints

    def key(self, shown: Shown) -> object:
        return self.fabric.note

    def lines(self, shown: Shown, width: int, height: int) -> list[Line]:
        line = keys_line(self.hints, width, self.fabric.note)
        return [[(text, f"head {style}" if style != "text" else "head") for text, style in line]]
