"""Many names as few hostlist expressions, as Slurm writes them: `n000` … `n063` is `n[000-063]`."""

from __future__ import annotations

import re
from collections.abc import Iterable

from twin.address import natural

Frame = tuple[str, int, str]  # before a number, its length or 0, after it

_NUMBER = re.compile(r"\d{1,9}")


def compress(names: Iterable[str]) -> list[str]:
    """Expressions that stand for `names`, each once. Names alike but for one number become one expression."""
    left = sorted(dict.fromkeys(names), key=natural)
    padded = {_frame(n, m) for n in left for m in _NUMBER.finditer(n) if m[0][0] == "0" and len(m[0]) > 1}
    ways: dict[Frame, list[str]] = {}  # the numbers that go with each frame
    for name in left:
        for match in _NUMBER.finditer(name):
            ways.setdefault(_wide(_frame(name, match), padded), []).append(match[0])
    out: dict[str, None] = {}
    done: set[str] = set()
    for name in left:
        if name in done:
            continue
        frames = [_wide(_frame(name, m), padded) for m in _NUMBER.finditer(name)]
        best = max(frames, key=lambda f: (len(ways[f]), len(f[0])), default=None)
        if best is None:
            out[name] = None
            continue
        before, _, after = best
        numbers = [n for n in ways[best] if before + n + after not in done]
        done.update(before + n + after for n in numbers)
        out[name if len(numbers) == 1 else f"{before}[{','.join(_runs(numbers))}]{after}"] = None
    return list(out)


def _frame(name: str, match: re.Match[str]) -> Frame:
    return name[: match.start()], len(match[0]), name[match.end() :]


def _wide(frame: Frame, padded: set[Frame]) -> Frame:
    """Numbers go together whatever their length, unless some of that length begin with zeros."""
    return frame if frame in padded else (frame[0], 0, frame[2])


def _runs(numbers: list[str]) -> list[str]:
    out: list[tuple[str, str]] = []
    for number in numbers:
        if out and int(out[-1][1]) + 1 == int(number):
            out[-1] = out[-1][0], number
        else:
            out.append((number, number))
    return [a if a == b else f"{a}-{b}" for a, b in out]
