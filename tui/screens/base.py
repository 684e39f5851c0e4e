"""ViewScreen: header, a body, the timeline and the keys; every view is one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar, cast

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.screen import Screen
from textual.widget import Widget

from tui import layout
from tui.rows.keys import KeyHint, key_name
from tui.screens.sized import Sized
from tui.shown import Shown
from tui.widgets.header import Header
from tui.widgets.keyline import KeyLine
from tui.widgets.panel import Panel
from tui.widgets.timeline import Timeline

if TYPE_CHECKING:
    from tui.app import FabricApp

# What goes first from the line of keys where there is no room: the higher the earlier; 0 never goes.
RANKS = {
    "help": 0, "quit": 0, "open": 0, "back": 0, "view": 1, "pause": 1, "copy": 2, "filter": 1, "plane": 1,
    "states": 2, "step": 2, "incident": 2, "speed": 3, "goto": 2, "neighbour": 2,
    "ask": 1, "sweep": 1, "renew": 2, "traffic": 2, "sort": 1,
}  # fmt: skip
REPLAY_RANKS = RANKS | {"view": 3, "open": 2, "filter": 3, "step": 1, "incident": 1, "goto": 1, "speed": 2}


def set_height(widget: Widget, rows: int, gap: int = 0) -> None:
    """Gives a widget its rows, and hides it where it has none."""
    widget.display = rows > 0
    if rows > 0:
        widget.styles.height = rows
        widget.styles.margin = (gap, 0, 0, 0)


class ViewScreen(Sized, Screen[None]):
    DEFAULT_CSS = """
    ViewScreen { layout: vertical; background: $background; overflow: hidden; }
    ViewScreen > #body { height: 1fr; overflow: hidden; }
    """
    AUTO_FOCUS = ""  # nothing takes the keys but the screen
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "back", show=False, tooltip="go back: clear the filter, leave the page"),
    ]
    view = ""  # the name its key goes to
    composed = False  # snapshots may come before there is anything to draw them in

    def __init__(self) -> None:
        super().__init__()
        self.timeline = Timeline()
        self.key_line = KeyLine([])

    @property
    def fabric(self) -> FabricApp:
        return cast("FabricApp", self.app)

    def body(self) -> Iterable[Widget]:
        """The widgets between header and timeline."""
        raise NotImplementedError

    def arrange_body(self, shown: Shown) -> None:
        """Gives the widgets of the body their rows, for the size of the screen."""

    def compose(self) -> ComposeResult:
        yield Header()
        yield Container(*self.body(), id="body")
        yield self.timeline
        yield self.key_line

    def on_mount(self) -> None:
        self.composed = True
        self.lay_out()

    def on_resize(self) -> None:
        self.lay_out()
        self.show(self.fabric.shown)

    def on_screen_resume(self) -> None:
        self.show(self.fabric.shown)

    def lay_out(self) -> None:
        """Gives every part its rows, and the line of keys its keys."""
        if not self.composed:
            return
        of = layout.frame(self.app.size.height)
        set_height(self.timeline, of.timeline)
        set_height(self.key_line, of.keys)
        self.key_line.hints = self.hints()
        self.arrange_body(self.fabric.shown)

    def show(self, shown: Shown) -> None:
        """Draws `shown` in every panel of the screen."""
        if not self.composed:
            return
        self.arrange_body(shown)
        for panel in self.query(Panel):
            if panel.display:
                panel.show(shown)

    def hints(self) -> list[KeyHint]:
        """The keys of this view for its foot line, from its bindings."""
        found: list[KeyHint] = []
        told: set[str] = set()
        ranks = REPLAY_RANKS if self.fabric.session.mode == "replay" else RANKS
        for active in self.active_bindings.values():
            binding = active.binding
            if binding.show and active.enabled and binding.description and binding.action not in told:
                told.add(binding.action)
                name = binding.action.partition("(")[0]
                here = bool(self.view) and binding.action == f"view('{self.view}')"
                key = binding.key_display or key_name(binding.key)
                rank, other = ranks.get(name, 3), name == "view" and not here
                found.append(KeyHint(key, binding.description, self.click(active), rank, here, other))
        order = {"view": 0, "help": 8, "quit": 9}
        return sorted(found, key=lambda h: order.get(h.action.partition(".")[2].partition("(")[0], 4))

    @staticmethod
    def click(active: Any) -> str:
        """The action of a binding in full, for a click."""
        action = str(active.binding.action)
        if " " in action:
            return ""
        space = "app" if active.node is active.node.app else "screen"
        return action if "." in action.partition("(")[0] else f"{space}.{action}"

    def entity(self) -> str:
        """The address under the cursor, of which one may ask what if it failed; nothing where there is none."""
        return ""

    def action_back(self) -> None:
        self.fabric.back()


class StartingScreen(ViewScreen):
    """What is there before anything else: the header and the keys."""

    view = "overview"

    def body(self) -> Iterable[Widget]:
        return ()
