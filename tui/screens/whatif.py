"""View 7: what would break next, and what a failure or a repair would do. The twin is asked by its snapshot alone."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from textual.binding import Binding, BindingType
from textual.widget import Widget
from textual.widgets import Input

from tui.questions import TRAFFIC, work_out
from tui.screens.base import ViewScreen
from tui.screens.moves import moves
from tui.widgets.whatif import WhatIfPanel
from twin.errors import InputError

if TYPE_CHECKING:
    from tui.shown import Shown
    from twin.snapshot import Snapshot

HINT = "what fails: plane:B n012; +n013 is repaired, A-leaf-03=0.5 half as fast, <450 W a GPU"


class WhatIfScreen(ViewScreen):
    DEFAULT_CSS = """
    WhatIfScreen Input { margin: 0 1; background: $panel; }
    """
    view = "whatif"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "back", key_display="esc", tooltip="go back: close the line, to the sweep, leave"),
        Binding("enter", "open", "ask", tooltip="what if the failure under the cursor happened"),
        Binding("slash", "ask", "ask for", key_display="/", tooltip="type what fails, or is repaired"),
        Binding("right,tab,l", "sweep(1)", "class", key_display="←→", tooltip="sweep the next class of parts"),
        Binding("left,shift+tab,h", "sweep(-1)", "previous class", show=False, tooltip="sweep the class before"),
        Binding("t", "traffic", "traffic", tooltip="where traffic goes, against where the model says that it should"),
        Binding("r", "renew", "anew", tooltip="ask again, of the state now"),
        *moves("a row up", "a row down"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.line = Input(placeholder=HINT, compact=True)
        self.line.display = False
        self.panel = WhatIfPanel()
        self._question = ""  # on the screen; none while it shows a sweep
        self._class = 0  # a place among the classes that the fabric has
        self._at: tuple[int, int] | None = None  # the snapshot that was asked
        self.busy = False

    def body(self) -> Iterable[Widget]:
        yield self.line
        yield self.panel

    # --- asking ---

    def show(self, shown: Shown) -> None:
        super().show(shown)
        if self.composed and self._at is None and shown.snapshot is not None:
            self.renew()

    def ask(self, text: str) -> None:
        """Shows what `text` would do (see `question`); nothing asks for a sweep."""
        self._question = text
        self._at = None
        self.show(self.fabric.shown)

    def renew(self) -> None:
        """Asks the newest snapshot, beside the screen."""
        snapshot = self.fabric.shown.snapshot
        if snapshot is None:
            return
        self._at, self.busy = self.fabric.shown.key, True
        self.panel.wait("working it out …")

        # begun by the worker: one that is cancelled before that leaves nothing behind
        work: Any = partial(self._work, snapshot)
        self.run_worker(work, exclusive=True, group="whatif")

    async def _work(self, snapshot: Snapshot) -> None:
        try:
            found = await asyncio.to_thread(work_out, snapshot, self._question, self._class)
        except InputError as problem:
            self.panel.wait(str(problem))
        else:
            self.panel.put(found, snapshot.time)
        self.busy = False

    # --- keys ---

    def action_open(self) -> None:
        chosen = self.panel.chosen()
        if chosen is not None:
            self.ask(" ".join(chosen.failed))

    def action_ask(self) -> None:
        self.line.display = True
        self.line.value = self._question if self._question != TRAFFIC else ""
        self.line.focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self._close()
        self.ask(event.value.strip())

    def action_sweep(self, by: int) -> None:
        self._class += by
        self.ask("")

    def action_traffic(self) -> None:
        self.ask(TRAFFIC)

    def action_renew(self) -> None:
        self.renew()

    def action_move(self, by: int) -> None:
        self.panel.move(by)

    def action_page(self, way: int) -> None:
        self.panel.move(way * self.panel.page())

    def action_back(self) -> None:
        """Closes the line first, then goes from an answer to the sweep, then leaves."""
        if self.line.display:
            self._close()
        elif self._question:
            self.ask("")
        else:
            super().action_back()

    def _close(self) -> None:
        self.line.display = False
        self.set_focus(None)
