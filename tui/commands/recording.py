"""Options of whatever records: pieces, what is kept of them, and how much of the disk is left alone."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tui.commands.options import Seconds

if TYPE_CHECKING:
    from replay.limits import Keeping

F = TypeVar("F", bound=Callable[..., Any])
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kMGT]i?)?B?", re.IGNORECASE)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


class Bytes(click.ParamType[int]):
    """A size such as 500MB, 2G or 1GiB, in bytes."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        match = _SIZE.fullmatch(str(value).strip())
        if match is None:
            self.fail(f"{value!r} is not a size; expected for example 500MB, 2GB or 1GiB", param, ctx)
        unit = (match[2] or "").lower()
        factor: int = (1024 if unit.endswith("i") else 1000) ** _POWERS[unit[:1]]
        return round(float(match[1]) * factor)


_OPTIONS = (
    click.option("--rotate-size", type=Bytes(), metavar="SIZE", help="Begin a new piece at this size (500MB)."),
    click.option("--rotate-every", type=Seconds(), metavar="TIME", help="Begin a new piece after this time (1h)."),
    click.option("--keep-size", type=Bytes(), metavar="SIZE", help="Remove the oldest pieces beyond this in all."),
    click.option("--keep-for", type=Seconds(), metavar="TIME", help="Remove pieces older than this (24h)."),
    click.option(
        "--min-free", type=Bytes(), metavar="SIZE", default="200MB", show_default=True,
        help="Leave so much of the disk: remove the oldest pieces, else stop recording.",
    ),
)  # fmt: skip


def keeping_options(function: F) -> F:
    """The options of a recording; the command gets them as `keeping`."""

    @functools.wraps(function)
    def wrapper(
        *, rotate_size: int | None, rotate_every: float | None, keep_size: int | None, keep_for: float | None,
        min_free: int, **options: Any,
    ) -> Any:  # fmt: skip
        return function(keeping=_keeping(rotate_size, rotate_every, keep_size, keep_for, min_free), **options)

    wrapped: Any = wrapper
    for option in reversed(_OPTIONS):
        wrapped = option(wrapped)
    return wrapped  # type: ignore[no-any-return]


def _keeping(*limits: Any) -> Keeping:
    from replay.limits import Keeping

    return Keeping(*limits)
