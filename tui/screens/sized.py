"""Screens that hold to the size that the terminal has now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import events

if TYPE_CHECKING:
    from textual.message_pump import MessagePump as Base
else:
    Base = object  # a second base that Textual knows would hide the styles of the first


class Sized(Base):
    """Mixed into a screen, before it.

    Textual tells a screen that was laid out anew of its new size by one more Resize. Where a terminal is dragged and
    two sizes stand in the queue, each would bring itself back for ever, and the screen would never rest.
    """

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, events.Resize) and event.size != self.app.size:
            return  # the terminal has left this size behind: the one that it has now is on its way
        await super().on_event(event)
