"""Go to a time of a recording."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from replay.when import EXAMPLES, parse_when
from tui.screens.sized import Sized
from tui.text import clock


class GotoScreen(Sized, ModalScreen[int | None]):
    DEFAULT_CSS = """
    GotoScreen { align: center bottom; }
    GotoScreen > Vertical { width: 100%; max-width: 80; height: 4; background: $panel; padding: 0 1; }
    GotoScreen > Vertical { margin-bottom: 4; }
    GotoScreen Input { background: $panel; }
    GotoScreen Static { color: $text-muted; }
    """
    BINDINGS = [Binding("escape", "dismiss", "close")]

    def __init__(self, now: int, start: int, end: int) -> None:
        super().__init__()
        self._now, self._start, self._end = now, start, end

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(f"Go to a time (UTC), from {clock(self._start)} to {clock(self._end)}", id="says")
            yield Input(compact=True)
            yield Static(EXAMPLES, markup=False)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        when = parse_when(event.value, self._now, self._start, self._end)
        if when is None:
            self.query_one("#says", Static).update(f"not a time: {event.value[:40]!r}; for example:")
        else:
            self.dismiss(when)
