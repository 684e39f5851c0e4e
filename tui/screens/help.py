"""The keys of the view behind it, made from its bindings."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.screen import ModalScreen, Screen
from textual.widgets import Static

from tui.rows.keys import key_name
from tui.screens.sized import Sized
from tui.text import fit


def key_table(rows: list[tuple[str, str]]) -> str:
    """`rows` of (keys, what they do) as aligned text."""
    width = max((len(keys) for keys, _ in rows), default=0) + 3
    return "\n".join(fit(keys, width) + says for keys, says in rows)


# Actions that come in pairs or more are one row; what they do is said once.
TOGETHER = {
    "move": "move: a row, a page, to the ends",
    "page": "move",
    "step": "one second back, on",
    "incident": "the incident before, after",
    "speed": "slower, faster",
    "plane": "the next plane, the previous",
    "neighbour": "the next, the previous",
}
_NOT_OURS = ("app.focus_", "screen.copy_text", "help_quit")


def rows_of(screen: Screen[object]) -> list[tuple[str, str]]:
    """(keys, what they do) of a screen's bindings, those of one action together."""
    found: dict[str, tuple[list[str], str]] = {}
    for key, active in screen.active_bindings.items():
        binding = active.binding
        says = binding.tooltip or binding.description
        if binding.system or not says or key == "ctrl+q" or binding.action.startswith(_NOT_OURS):
            continue
        name = binding.action.partition("(")[0]
        if TOGETHER.get(name) in TOGETHER:
            name = TOGETHER[name]
        row = name if name in TOGETHER else binding.action
        found.setdefault(row, ([], TOGETHER.get(name, says)))[0].append(key_name(key))
    return [(" ".join(keys), says) for keys, says in found.values()]


class HelpScreen(Sized, ModalScreen[None]):
    DEFAULT_CSS = """
    HelpScreen { align: center middle; }
    HelpScreen > VerticalScroll {
        width: auto; min-width: 40; max-width: 100%; height: auto; max-height: 100%;
        background: $panel; padding: 1 2; border-left: outer $accent; scrollbar-size-vertical: 1;
    }
    HelpScreen Static { width: auto; }
    HelpScreen.-ascii > VerticalScroll { border-left: none; }
    """
    BINDINGS = [
        Binding("escape,question_mark,q,enter", "dismiss", "close"),
        Binding("down,j", "scroll(1)", "down", show=False),
        Binding("up,k", "scroll(-1)", "up", show=False),
    ]

    def __init__(self, rows: list[tuple[str, str]], about: str) -> None:
        super().__init__()
        self._rows = rows
        self._about = about

    def compose(self) -> ComposeResult:
        self.set_class(getattr(self.app, "ascii", False), "-ascii")
        with VerticalScroll():
            yield Static(f"{self._about}\n\n{key_table(self._rows)}", markup=False)

    def action_scroll(self, by: int) -> None:
        self.query_one(VerticalScroll).scroll_relative(y=by, animate=False)

    def on_click(self) -> None:
        self.dismiss()
