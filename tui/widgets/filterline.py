"""The line that a filter is typed in, and below it why it makes no sense."""

from __future__ import annotations

from collections.abc import Callable

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Input, Static


class FilterLine(Vertical):
    """apply: takes what was typed and returns what is wrong with it, or nothing."""

    DEFAULT_CSS = """
    FilterLine { height: auto; display: none; }
    FilterLine Input { margin: 0 1; background: $panel; }
    FilterLine Static { height: auto; padding: 0 2; color: $warning; display: none; }
    FilterLine Static.-hint { color: $text-muted; }
    """

    def __init__(self, apply: Callable[[str], str], placeholder: str) -> None:
        super().__init__()
        self._apply = apply
        self.line = Input(placeholder=placeholder, compact=True, select_on_focus=False)  # one adds to a filter
        self.says = Static("", markup=False)

    def compose(self) -> ComposeResult:
        yield self.line
        yield self.says

    def open(self, text: str, hint: str = "") -> None:
        """Begins with `text`; where there is none yet, `hint` stands below until something is typed."""
        self.display = True
        with self.line.prevent(Input.Changed):
            self.line.value = text
        self.line.focus()
        self.tell("" if text else hint, hint=True)

    def close(self) -> None:
        self.display = False
        self.tell("")
        self.screen.set_focus(None)

    def tell(self, problem: str, *, hint: bool = False) -> None:
        """Shows what is wrong with what was typed; nothing takes it away."""
        self.says.set_class(hint, "-hint")
        self.says.update(problem)
        self.says.display = bool(problem)

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        if self.display:
            self.tell(self._apply(event.value))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Stays open where it makes no sense: nobody has read why yet."""
        event.stop()
        problem = self._apply(event.value)
        self.tell(problem)
        if not problem:
            self.close()
