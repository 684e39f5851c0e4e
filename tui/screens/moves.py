"""The keys that move a cursor, the same wherever there is one."""

from __future__ import annotations

from textual.binding import Binding, BindingType


def moves(up: str, down: str, first: str = "the first", last: str = "the last") -> list[BindingType]:
    """Bindings to `move` and `page`; what `?` says of the ways up and down, and of the ends."""
    return [
        Binding("up,k", "move(-1)", "up", show=False, tooltip=up),
        Binding("down,j", "move(1)", "down", show=False, tooltip=down),
        Binding("pageup", "page(-1)", "page up", show=False, tooltip="a page up"),
        Binding("pagedown", "page(1)", "page down", show=False, tooltip="a page down"),
        Binding("home", "move(-1000000)", "first", show=False, tooltip=first),
        Binding("end", "move(1000000)", "last", show=False, tooltip=last),
    ]
