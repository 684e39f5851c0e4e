"""`fabrictwin config`: what the screen is set to."""

from __future__ import annotations

import click

from tui.commands.options import json_option, print_json
from tui.keymap import KEYS
from tui.remembered import recall, remembered_path
from tui.settings import quoted, read_settings, settings_path, template
from twin.errors import InputError


@click.group(
    "config",
    epilog="""\b
Examples:
  fabrictwin config init                 a settings file with everything in it, commented out
  $EDITOR "$(fabrictwin config path)"
  fabrictwin config print                what counts now; exits with 3 where the file has a mistake""",
)
def command() -> None:
    """What the screen is set to: colours, the view to begin with, keys. See docs/settings.md."""


@command.command(epilog="\b\nExample:\n  fabrictwin config path --json")
@json_option
def path(as_json: bool) -> None:
    """Where the settings are, be there a file or not; with --json also where the screen remembers things."""
    if as_json:
        print_json({"settings": str(settings_path()), "remembered": str(remembered_path())})
    else:
        click.echo(settings_path())


@command.command("print", epilog="\b\nExample:\n  fabrictwin config print --json")
@json_option
def show(as_json: bool) -> None:
    """What counts now: what is set, else what the screen remembers, else what is shipped."""
    settings, problems = read_settings(settings_path())
    if problems:
        raise InputError(problems)
    last = recall(remembered_path())
    theme, view = settings.theme or last.theme or "dark", settings.view or last.view or "overview"
    keys = KEYS | dict(settings.keys)
    if as_json:
        print_json({"theme": theme, "view": view, "keys": keys})
        return
    click.echo(f"theme = {quoted(theme)}{_whence(settings.theme, last.theme)}")
    click.echo(f"view = {quoted(view)}{_whence(settings.view, last.view)}\n\n[keys]")
    for name, key in keys.items():
        click.echo(f"{name} = {quoted(key)}{'  # set' if name in settings.keys else ''}")


def _whence(is_set: str, remembered: str) -> str:
    return "  # set" if is_set else "  # remembered" if remembered else ""


@command.command(epilog="\b\nExamples:\n  fabrictwin config init\n  fabrictwin config init --force     anew")
@click.option("--force", is_flag=True, help="Replace a file that is there.")
def init(force: bool) -> None:
    """Writes a settings file in which everything stands, commented out."""
    to = settings_path()
    try:
        to.parent.mkdir(parents=True, exist_ok=True)
        with to.open("w" if force else "x", encoding="utf-8") as file:
            file.write(template())
    except FileExistsError as problem:
        raise InputError(f"{to}: is there already; --force replaces it") from problem
    except OSError as problem:
        raise InputError(f"{to}: cannot be written: {problem.strerror}") from problem
    click.echo(f"wrote {to}")
