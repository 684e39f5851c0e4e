"""Slurm's hostlist expressions: `tux[0-3,12],rack[1-2]n[01-18]` to names."""

from __future__ import annotations

import re
from collections.abc import Iterator

MAX_NAMES = 200_000
_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")


class Hostlists:
    """Expands expressions, all of one input's together no more than MAX_NAMES."""

    def __init__(self) -> None:
        self._room = MAX_NAMES

    def expand(self, text: str) -> list[str]:
        """The names an expression stands for, in its order. Raises ValueError saying what is wrong."""
        names: list[str] = []
        for part in _parts(text):
            names.extend(_expand_part(part, self._room - len(names)))
        self._room -= len(names)
        return names


def _parts(text: str) -> Iterator[str]:
    """Splits at commas outside brackets."""
    depth = start = 0
    for i, char in enumerate(text):
        depth += (char == "[") - (char == "]")
        if depth not in (0, 1):
            raise ValueError(f"brackets do not match in {text[:60]!r}")
        if char == "," and not depth:
            yield text[start:i]
            start = i + 1
    if depth:
        raise ValueError(f"a bracket is not closed in {text[:60]!r}")
    yield text[start:]


def _expand_part(part: str, room: int) -> list[str]:
    pieces = re.split(r"\[([^\]]*)\]", part.strip())
    names = [pieces[0]]
    for i in range(1, len(pieces), 2):
        ends = [f"{number}{pieces[i + 1]}" for number in _numbers(pieces[i], room)]
        if len(names) * len(ends) > room:
            raise ValueError(f"more than {MAX_NAMES:,} names in {part[:60]!r}")
        names = [name + end for name in names for end in ends]
    if any(not name for name in names):
        raise ValueError("an empty name in a list")
    if len(names) > room:
        raise ValueError(f"more than {MAX_NAMES:,} names")
    return names


def _numbers(text: str, room: int) -> list[str]:
    out: list[str] = []
    for part in text.split(","):
        match = _RANGE.fullmatch(part.strip())
        if match is None:
            raise ValueError(f"{part[:40]!r} is not a number or a range such as 01-18")
        first, last = match[1], match[2] or match[1]
        if int(last) < int(first) or int(last) - int(first) >= room:
            raise ValueError(f"{part[:40]!r} is not a range from low to high of at most {MAX_NAMES:,}")
        out.extend(str(n).zfill(len(first)) for n in range(int(first), int(last) + 1))
    return out
