"""The line of keys at the foot, as many as fit; the most needed go last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tui.text import Line, width_of

_NAMES = {
    "question_mark": "?", "slash": "/", "colon": ":", "comma": ",", "full_stop": ".", "space": "space",
    "left_square_bracket": "[", "right_square_bracket": "]", "less_than_sign": "<", "greater_than_sign": ">",
    "escape": "esc", "enter": "enter", "ctrl+p": "ctrl+p", "up": "↑", "down": "↓", "left": "←", "right": "→",
    "pageup": "pgup", "pagedown": "pgdn", "shift+tab": "shift+tab",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class KeyHint:
    """A key and what it does. rank: 0 is always shown, higher goes first where there is no room."""

    key: str
    says: str
    action: str
    rank: int = 1
    active: bool = False


def key_name(key: str) -> str:
    """A key as people write it: `?` for `question_mark`."""
    return " ".join(_NAMES.get(part, part) for part in key.split(","))


def keys_line(hints: Sequence[KeyHint], width: int, note: str = "") -> Line:
    """`1 overview  2 planes  …`; a note takes the line for a moment."""
    if note:
        return [(f" {note}", "accent bold")]
    shown = list(hints)

    def size() -> int:
        return 1 + sum(width_of(h.key) + width_of(h.says) + 3 for h in shown)

    while shown and size() > width + 2:
        worst = max(h.rank for h in shown)
        if worst == 0:
            break
        shown.pop(max(i for i, h in enumerate(shown) if h.rank == worst))
    line: Line = [(" ", "text")]
    for hint in shown:
        click = f" @{hint.action}" if hint.action else ""
        line.append((hint.key, ("on" if hint.active else "key") + click))
        line.append((f" {hint.says}", ("text bold" if hint.active else "dim") + click))
        line.append(("  ", "text"))
    return line
