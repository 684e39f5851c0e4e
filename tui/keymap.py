"""The keys of the screen that a person may change, and how people write keys: `space`, `?`, `ctrl+k`, `f5`."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

# What is done -> (the action of `FabricApp`, its key as shipped).
_ACTIONS: dict[str, tuple[str, str]] = {
    "overview": ("view('overview')", "1"),
    "planes": ("view('planes')", "2"),
    "nvlink": ("view('nvlink')", "3"),
    "gpus": ("view('gpus')", "4"),
    "power": ("view('power')", "5"),
    "incidents": ("view('incidents')", "6"),
    "whatif": ("view('whatif')", "7"),
    "ask": ("whatif", "w"),
    "pause": ("pause", "space"),
    "step-back": ("step(-1)", ","),
    "step-on": ("step(1)", "."),
    "previous": ("incident(-1)", "["),
    "next": ("incident(1)", "]"),
    "slower": ("speed(-1)", "<"),
    "faster": ("speed(1)", ">"),
    "goto": ("goto", "g"),
    "commands": ("command_palette", ":"),
    "help": ("help", "?"),
    "quit": ("quit", "q"),
}
KEYS: dict[str, str] = {name: key for name, (_, key) in _ACTIONS.items()}
# What terminals, shells or Textual use already: ctrl+i is tab, ctrl+s stops the output of many terminals.
FIXED = {f"ctrl+{letter}" for letter in "chijmpqsz"}
_NAMED = {"space", "insert", "delete", "backspace", *(f"f{n}" for n in range(1, 13))}
_WITH = re.compile(r"ctrl\+[a-z]$")
_SHORT = {"solidus": "slash", "reverse_solidus": "backslash", "commercial_at": "at", "hyphen_minus": "minus",
          "plus_sign": "plus", "low_line": "underscore"}  # fmt: skip


def is_key(key: str) -> bool:
    """Whether every terminal can tell this key from others: a character, a named key, or ctrl and a letter."""
    return (len(key) == 1 and key.isprintable() and key != " ") or key in _NAMED or bool(_WITH.match(key))


def textual_name(key: str) -> str:
    """A key in the words of Textual: `?` is `question_mark`."""
    if len(key) != 1 or key.isalnum():
        return key
    name = unicodedata.name(key).lower().replace("-", "_").replace(" ", "_")
    return _SHORT.get(name, name)


def changeable(bindings: Iterable[Any]) -> list[Any]:
    """Bindings of Textual that can be told apart by their action; those with ctrl stay what they are."""
    return [b if b.key.startswith("ctrl") else replace(b, id=b.action) for b in bindings]


def bindings_of(keys: Mapping[str, str]) -> dict[str, str]:
    """Keys by what is done, as Textual takes them: by the id of the binding."""
    return {_ACTIONS[name][0]: textual_name(key) for name, key in keys.items()}
