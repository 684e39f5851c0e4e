"""The line of keys at the foot, as many as fit; the most needed go last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tui.text import Line, width_of

_NAMES = {
    "question_mark": "?", "slash": "/", "colon": ":", "comma": ",", "full_stop": ".", "space": "space",
    "left_square_bracket": "[", "right_square_bracket": "]", "less_than_sign": "<", "greater_than_sign": ">",
    "escape": "esc", "enter": "enter", "ctrl+p": "ctrl+p", "up": "↑", "down": "↓", "left": "←", "right": "→",
    "pageup": "pgup", "pagedown": "pgdn", "shift+tab": "shift+tab",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class KeyHint:
    """A key and what it does. rank: 0 is always shown, higher goes first where there is no room. shorten: its word
    goes before keys of rank 1 do."""

    key: str
    says: str
    action: str
    rank: int = 1
    active: bool = False
    shorten: bool = False


def key_name(key: str) -> str:
    """A key as people write it: `?` for `question_mark`."""
    return " ".join(_NAMES.get(part, part) for part in key.split(","))


def _shortened(hints: Sequence[KeyHint]) -> list[KeyHint]:
    """Views by their digits; one word for all of them where none is named."""
    last = max(i for i, h in enumerate(hints) if h.shorten)
    rest = "" if any(h.active for h in hints) else "views"
    return [
        replace(h, says=rest if i == last else "", shorten=False) if h.shorten else h for i, h in enumerate(hints)
    ]


def keys_line(hints: Sequence[KeyHint], width: int, note: str = "") -> Line:
    """`1 overview  2 planes  …`; a note takes the line for a moment."""
    if note:
        return [(f" {note}", "accent bold")]
    shown = list(hints)

    def size() -> int:
        return 1 + sum(width_of(h.key) + (width_of(h.says) + 3 if h.says else 1) for h in shown)

    while shown and size() > width + 2:
        worst = max(h.rank for h in shown)
        if worst == 0:
            break
        if worst == 1 and any(h.shorten for h in shown):
            shown = _shortened(shown)
            continue
        shown.pop(max(i for i, h in enumerate(shown) if h.rank == worst))
    line: Line = [(" ", "text")]
    for hint in shown:
        click = f" @{hint.action}" if hint.action else ""
        line.append((hint.key, ("on" if hint.active else "key") + click))
        if hint.says:
            line.append((f" {hint.says}", ("text bold" if hint.active else "dim") + click))
        line.append(("  " if hint.says else " ", "text"))
    return line[:-1]  # the last gap would be cut, with an ellipsis
