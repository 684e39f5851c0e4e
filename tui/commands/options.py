"""What commands share: sizes of presets as options, JSON, plain output, durations."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
import msgspec

from twin.errors import InputError
from twin.topology.presets import PRESETS
from twin.units import bits_per_second, seconds

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


def output_option(function: F) -> F:
    """`-o FILE` and `--force`, as `output` and `force`; for `write`."""
    function = click.option("--force", is_flag=True, help="Replace the file where it is there already.")(function)
    path = click.Path(dir_okay=False, path_type=Path)
    return click.option("-o", "--output", type=path, help="File to write.")(function)


def write(text: str, output: Path | None, force: bool) -> None:
    """Text to a file or to standard output. A file that says something else is not lost without --force."""
    if output is None:
        click.echo(text, nl=False)
        return
    try:
        if not force and output.exists() and output.read_text(encoding="utf-8", errors="replace") != text:
            raise InputError(f"{output}: is there already and says something else; --force replaces it")
        output.write_text(text, encoding="utf-8")
    except OSError as problem:
        raise InputError(f"{output}: cannot be written: {problem.strerror}") from problem
    click.echo(f"wrote {output}", err=True)


def speed(option: str, value: str) -> float:
    """Bits/s that an option gives. Raises InputError that names the option."""
    try:
        return bits_per_second(value)
    except ValueError as problem:
        raise InputError(f"{option}: {problem}") from problem


def print_json(value: Any) -> None:
    """Pretty JSON on standard output; unknown numbers are null."""
    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def wants_screen(plain: bool) -> bool:
    """Whether there is a terminal to draw on and nobody asked for lines."""
    return not plain and sys.stdin.isatty() and sys.stdout.isatty()
