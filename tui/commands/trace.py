"""`fabrictwin trace`: convert and describe traces."""

from __future__ import annotations

from pathlib import Path

import click

from tui.commands.options import json_option, print_json


@click.group()
def command() -> None:
    """Traces: recordings of frames as .mcap, .jsonl or .jsonl.zst."""


@command.command()
@click.argument("source", type=click.Path(path_type=Path), metavar="IN")
@click.argument("target", type=click.Path(path_type=Path), metavar="OUT")
@click.option("--site", help="Wiring for an .mcap made from text: a preset, site or wiring file.")
def convert(source: Path, target: Path, site: str | None) -> None:
    """Writes the trace IN in the form that the name OUT says: .mcap, .jsonl or .jsonl.zst."""
    from replay.convert import convert as run

    loaded = None
    if site is not None:
        from twin.site import load_site

        loaded = load_site(site)
    done = run(source, target, topology=loaded.topology if loaded else None, site=loaded.source if loaded else None)
    cut = ", the input is cut" if done.truncated else ""
    click.echo(f"{target}: {done.frames} frames{cut}")
    for problem in done.problems:
        click.echo(f"fabrictwin: {problem}", err=True)


@command.command()
@click.argument("trace", type=click.Path(path_type=Path))
@json_option
def info(trace: Path, as_json: bool) -> None:
    """What is in TRACE: times, sources, frames, wiring, whether it is cut."""
    from replay.info import info as describe
    from replay.info import info_text
    from replay.trace import open_trace

    found = describe(open_trace(trace))
    if as_json:
        print_json(found)
    else:
        click.echo(info_text(found))
