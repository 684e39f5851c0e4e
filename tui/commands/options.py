"""What commands share: sizes of presets as options, JSON, plain output, durations."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click
import msgspec

from twin.topology.presets import PRESETS
from twin.units import seconds

F = TypeVar("F", bound=Callable[..., Any])


class Seconds(click.ParamType[float]):
    """A duration such as 10s or 2m, as float seconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        try:
            return seconds(value)
        except ValueError as problem:
            self.fail(str(problem), param, ctx)


def preset_sizes(function: F) -> F:
    """Every parameter of every preset as an option; the command gets those given as `sizes`, a dict."""
    known: dict[str, list[str]] = {}
    for preset in PRESETS.values():
        for parameter in preset.parameters:
            known.setdefault(parameter.name, []).append(f"{preset.name}: {parameter.help}")

    @functools.wraps(function)
    def wrapper(**options: Any) -> Any:
        sizes = {name: options.pop(name) for name in known}
        return function(sizes={k: v for k, v in sizes.items() if v is not None}, **options)

    wrapped: Any = wrapper
    for name, uses in reversed(known.items()):
        wrapped = click.option(
            "--" + name.replace("_", "-"), name, type=int, help=uses[0].split(": ")[1], metavar="N"
        )(wrapped)
    return wrapped  # type: ignore[no-any-return]


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
plain_option = click.option(
    "--plain", is_flag=True, help="Lines instead of the screen; the default without a terminal."
)


def print_json(value: Any) -> None:
    """Pretty JSON on standard output; unknown numbers are null."""
    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def wants_screen(plain: bool) -> bool:
    """Whether there is a terminal to draw on and nobody asked for lines."""
    return not plain and sys.stdin.isatty() and sys.stdout.isatty()
