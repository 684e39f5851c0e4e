"""Finds regular shapes in rows of numbers and writes them as ranges, the way back from `twin.topology.short`.

A row is what its texts have in numbers, say node, NIC, port and leaf of a link. Rows that follow each other at equal
steps become one item with an axis; items alike at equal steps become one with a further axis outside; and so on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from math import prod
from typing import NamedTuple

import numpy as np

from twin.topology.joining import I64

_DIGITS = re.compile(r"([0-9]{1,9})")
_LONGEST_LIST = 32  # values of one range that are written out, since they do not follow each other
_LETTERS = "ijklmnopqrst"


class Axis(NamedTuple):
    """`size` steps, each adding `step` to the row."""

    size: int
    step: tuple[int, ...]


class Item(NamedTuple):
    """first: row it starts with; axes: slowest first."""

    first: int
    axes: tuple[Axis, ...]

    @property
    def rows(self) -> int:
        return prod(axis.size for axis in self.axes)


class Form(NamedTuple):
    """A text around numbers: literals[0], number of columns[0], literals[1], and so on. widths: 0 for no padding."""

    literals: tuple[str, ...]
    widths: tuple[int, ...]
    columns: tuple[int, ...]


Fits = Callable[[int, tuple[Axis, ...]], bool]


def forms(names: Sequence[str]) -> tuple[list[tuple[tuple[str, ...], tuple[int, ...]]], list[list[int]]]:
    """For each name its literals with widths, and its numbers. Padded are those that share literals with a name
    whose number begins with 0."""
    split = [_DIGITS.split(name) for name in names]
    padded: dict[tuple[str, ...], set[int]] = {}
    for parts in split:
        family = padded.setdefault(tuple(parts[::2]), set())
        family.update(k for k, digits in enumerate(parts[1::2]) if digits[0] == "0" and len(digits) > 1)
    shapes, numbers = [], []
    for parts in split:
        literals, digits = tuple(parts[::2]), parts[1::2]
        family = padded[literals]
        shapes.append((literals, tuple(len(d) if k in family else 0 for k, d in enumerate(digits))))
        numbers.append([int(d) for d in digits])
    return shapes, numbers


_MIX = np.random.default_rng(7).integers(1 << 40, 1 << 62, 64)


def find(values: I64, kinds: Sequence[int], fits: Fits) -> list[Item]:
    """Rows as items. values: int64[rows, numbers]; kinds: rows of one kind may be joined; fits: whether rows of a
    kind can be written with these axes."""
    items = [Item(row, ()) for row in range(len(values))]
    same = list(kinds)  # items of one number have the same kind and axes
    known: dict[tuple[int, tuple[Axis, ...]], tuple[bool, int]] = {}
    fresh = max(same, default=0) + 1
    while len(items) > 1:
        steps = np.diff(values[[item.first for item in items]], axis=0)
        sums = (steps * _MIX[: steps.shape[1]]).sum(axis=1).tolist()  # equal steps have equal sums
        out: list[Item] = []
        out_same: list[int] = []
        at = 0
        while at < len(items):
            end = at
            if at + 1 < len(items) and same[at + 1] == same[at]:
                end += 1
                while end + 1 < len(items) and same[end + 1] == same[at] and sums[end] == sums[at]:
                    end += 1
            item, shape = items[at], same[at]
            if end > at:
                axes = (Axis(end - at + 1, tuple(steps[at].tolist())), *item.axes)
                key = (kinds[item.first], axes)
                if key not in known:
                    known[key] = (fits(*key), fresh)
                    fresh += 1
                fit, number = known[key]
                if fit:
                    item, shape = Item(item.first, axes), number
                else:
                    end = at
            out.append(item)
            out_same.append(shape)
            at = end + 1
        if len(out) == len(items):
            break
        items, same = out, out_same
    return items


def write(
    lead: Form, others: Iterable[Form], row: Sequence[int], axes: Sequence[Axis], paired: bool
) -> list[str] | None:
    """The texts of an item, with as few letters as do; None where ranges cannot say it. paired: every text goes
    through every axis, as the two ends of links do; else others may stay the same along axes without a letter."""
    several = list(others)
    for tied in range(len(axes) + 1):
        loose = list(range(tied, len(axes)))
        found = _write(lead, row, axes, tied)
        if found is None or found[1] != list(range(len(axes))):
            continue
        made = [found[0]]
        for form in several:
            other = _write(form, row, axes, tied)
            if other is None:
                break
            free = [axis for axis in other[1] if axis >= tied]
            ties = {axis for axis in other[1] if axis < tied}
            if (free != loose and (free or paired)) or (paired and len(ties) < tied):
                break
            made.append(other[0])
        else:
            return made
    return None


def write_list(lead: Form, listed: Form, row: Sequence[int], axes: Sequence[Axis], tied: int) -> list[str] | None:
    """The texts of an item whose first `tied` axes are those of its name, and the others go through a list."""
    name, texts = _write(lead, row, axes, tied), _write(listed, row, axes, tied)
    if name is None or texts is None or name[1] != list(range(tied)):
        return None
    if [axis for axis in texts[1] if axis >= tied] != list(range(tied, len(axes))):
        return None
    return [name[0], texts[0]]


def _write(form: Form, row: Sequence[int], axes: Sequence[Axis], tied: int) -> tuple[str, list[int]] | None:
    """A text, the first `tied` axes with letters, and its axes in the order in which it goes through them."""
    out, order = form.literals[0], []
    for literal, width, column in zip(form.literals[1:], form.widths, form.columns, strict=True):
        moving = [k for k, axis in enumerate(axes) if axis.step[column]]
        if not moving:
            out += str(row[column]).zfill(width) + literal
            continue
        letters, step = [k for k in moving if k < tied], axes[moving[-1]].step[column]
        inner = moving[len(letters) :]
        values = prod(axes[k].size for k in moving)
        if len(letters) > 1 or step < 1 or (inner and inner != list(range(inner[0], inner[-1] + 1))):
            return None
        if any(axes[k].step[column] != axes[n].step[column] * axes[n].size for k, n in pairwise(moving)):
            return None
        if step > 1 and not 2 < values <= _LONGEST_LIST:
            return None
        run = prod(axes[k].size for k in inner)
        if any(k in order for k in inner):
            return None
        order += [k for k in moving if k not in order]
        tie = f"{_LETTERS[letters[0]]}=" if letters else ""
        length = f"x{run}" if letters and run > 1 else ""
        out += f"[{tie}{_numbers(row[column], step, values, width)}{length}]{literal}"
    return out, order


def _numbers(first: int, step: int, count: int, width: int) -> str:
    if step == 1:
        return f"{str(first).zfill(width)}-{str(first + count - 1).zfill(width)}"
    return ",".join(str(first + k * step).zfill(width) for k in range(count))
