"""Panel: a widget made of lines. Only the lines that differ from the last ones are drawn again."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from rich.style import Style
from textual import events
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from tui.shown import Shown
from tui.text import Line, cut

if TYPE_CHECKING:
    from tui.app import FabricApp


_PLAIN = Style()  # a strip without a style breaks Textual's NO_COLOR filter


class Panel(Widget):
    """Subclasses make `lines`; `key` says of what they are made, so that the same is not made twice."""

    DEFAULT_CSS = """
    Panel { width: 1fr; height: auto; background: $background; }
    """
    base = "text"  # the style of what lines don't cover

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._strips: list[Strip] = []
        self._made: object = None

    @property
    def fabric(self) -> FabricApp:
        return cast("FabricApp", self.app)

    def lines(self, shown: Shown, width: int, height: int) -> list[Line]:
        raise NotImplementedError

    def key(self, shown: Shown) -> object:
        """Equal where the lines would be."""
        return shown.key

    def show(self, shown: Shown) -> None:
        """Makes the lines where they may have changed and draws those that have."""
        width, height = self.size
        made = (self.key(shown), width, height, self.fabric.palette)
        if made == self._made or width <= 0 or height <= 0:
            return
        self._made = made
        palette = self.fabric.palette
        lines = self.lines(shown, width, height)[:height]
        strips = [palette.strip(cut(line, width), width, self.base) for line in lines]
        strips += [palette.strip([], width, self.base)] * (height - len(strips))
        old, self._strips = self._strips, strips
        if len(old) != len(strips):
            self.refresh()
            return
        changed = [y for y, (before, after) in enumerate(zip(old, strips, strict=True)) if before != after]
        if changed:
            self.refresh(*(Region(0, y, width, 1) for y in changed))

    def remake(self) -> None:
        """Makes the lines anew: the cursor moved, a filter changed."""
        self._made = None
        self.show(self.fabric.shown)

    def on_resize(self, event: events.Resize) -> None:
        self.show(self.fabric.shown)

    def render_line(self, y: int) -> Strip:
        if y < len(self._strips):
            return self._strips[y]
        return Strip.blank(self.size.width, _PLAIN)
