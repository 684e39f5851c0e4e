"""Glyphs, their ASCII, the palette that turns style words into terminal styles, and themes as Textual has them."""

from __future__ import annotations

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip
from textual.theme import Theme

from tui.colours import COLOURS, Colours
from tui.text import Line, width_of

GLYPH: dict[str, str] = {"critical": "■", "warning": "▲", "info": "○", "ok": "●", "unknown": "?", "muted": "–"}
STYLE: dict[str, str] = {"critical": "crit", "warning": "warn", "info": "info", "ok": "ok", "unknown": "unknown"}

# One ASCII character for every glyph that the screens draw.
_ASCII = str.maketrans(
    {
        "■": "X", "▲": "!", "○": "i", "●": "o", "►": ">", "◄": "<", "▼": "v", "◆": "*", "▮": "I",
        "─": "-", "━": "=", "│": "|", "┃": "|", "┄": "-", "┬": "+", "┴": "+", "├": "+", "┤": "+",
        "╷": "|", "╵": "|", "▁": ".", "▂": ":", "▃": "-", "▄": "=", "▅": "+", "▆": "*", "▇": "%", "█": "#",
        "▏": ".", "▎": ".", "▍": ":", "▌": ":", "▋": "=", "▊": "=", "▉": "#", "░": ".", "▒": "+", "▓": "%",
        "·": ".", "…": "~", "×": "x", "→": ">", "↑": "^", "↓": "v", "←": "<", "–": "-", "—": "-", "≥": ">",
    }
)  # fmt: skip
_CONTROLS = dict.fromkeys((*range(32), *range(127, 160)), "?")


def to_ascii(text: str) -> str:
    """`text` in ASCII, as wide as before as far as each glyph is one cell wide."""
    if text.isascii():
        return text
    mapped = text.translate(_ASCII)
    return mapped if mapped.isascii() else "".join(c if c.isascii() else "?" * width_of(c) for c in mapped)


def textual_theme(name: str) -> Theme:
    """The theme `name` for the parts of the screen that Textual draws itself."""
    c = COLOURS[name]
    return Theme(
        name=f"fabrictwin-{name}", primary=c.accent, secondary=c.info, accent=c.accent, foreground=c.text,
        background=c.background, surface=c.surface, panel=c.raised, success=c.ok, warning=c.warn,
        error=c.crit, dark=c.dark,
        variables={"block-cursor-background": c.cursor, "block-cursor-foreground": c.text, "border": c.faint},
    )  # fmt: skip


def _styles(c: Colours) -> dict[str, Style]:
    def ink(colour: str) -> Style:
        return Style(color=colour)

    styles = {
        "text": ink(c.text), "dim": ink(c.dim), "faint": ink(c.faint), "accent": ink(c.accent),
        "title": Style(color=c.accent, bold=True), "bold": Style(bold=True), "key": Style(color=c.accent, bold=True),
        "ok": ink(c.ok), "warn": ink(c.warn), "crit": ink(c.crit), "info": ink(c.info), "unknown": ink(c.dim),
        "track": ink(c.faint), "area": ink(c.area),
        "head": Style(color=c.text, bgcolor=c.raised), "cursor": Style(bgcolor=c.cursor, bold=True),
        "raised": Style(bgcolor=c.raised), "on": Style(color=c.ink, bgcolor=c.accent, bold=True),
        "badge_crit": Style(color=c.ink, bgcolor=c.crit, bold=True),
        "badge_warn": Style(color=c.ink, bgcolor=c.warn, bold=True),
        "badge_ok": Style(color=c.ink, bgcolor=c.ok, bold=True),
        "badge_info": Style(color=c.ink, bgcolor=c.info, bold=True),
        "badge_unknown": Style(color=c.ink, bgcolor=c.dim, bold=True),
        "cell_down": Style(color=c.ink, bgcolor=c.crit, bold=True),
        "cell_part": Style(color=c.ink, bgcolor=c.warn, bold=True),
        "cell_unknown": Style(color=c.dim, bgcolor=c.surface),
        "cell_none": ink(c.faint), "cell_ok": Style(color=c.heat[5][1], bgcolor=c.heat[5][0]),
    }  # fmt: skip
    for level, (background, text) in enumerate(c.heat):
        styles[f"heat{level}"] = Style(color=text, bgcolor=background)
    return styles


class Palette:
    """Turns the style words of lines into terminal styles and lines into strips, for one theme."""

    def __init__(self, colours: Colours, *, ascii_only: bool = False) -> None:
        self.ascii_only = ascii_only
        self._words = _styles(colours)
        self._ground = Style(color=colours.text, bgcolor=colours.background)
        self._styles: dict[str, Style] = {}

    def style(self, words: str) -> Style:
        """The style of a few words, later ones on top; `@action` makes the text clickable."""
        known = self._styles.get(words)
        if known is None:
            known = self._ground
            for word in words.split():
                if word.startswith("@"):
                    known += Style.from_meta({"@click": word[1:]})
                else:
                    known += self._words[word]
            self._styles[words] = known
        return known

    def strip(self, line: Line, width: int, base: str = "text") -> Strip:
        """`line` as exactly `width` cells; neighbours of one style are one segment."""
        merged: list[list[str]] = []
        for text, words in line:
            if not text:
                continue
            if merged and merged[-1][1] == words:
                merged[-1][0] += text
            else:
                merged.append([text, words])
        segments = []
        for text, words in merged:
            clean = text if text.isprintable() else text.translate(_CONTROLS)
            segments.append(Segment(to_ascii(clean) if self.ascii_only else clean, self.style(words)))
        return Strip(segments).adjust_cell_length(width, self.style(base))
