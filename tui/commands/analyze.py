"""`fabrictwin analyze`: what happened, from a trace."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tui.commands.options import json_option, print_json

if TYPE_CHECKING:
    from replay.trace import Trace


@click.command(
    epilog="""\b
Examples:
  fabrictwin analyze incident.mcap
  fabrictwin analyze samples.jsonl --site wiring.yaml --json"""
)
@click.argument("trace", type=click.Path(path_type=Path))
@click.option("--site", help="Wiring of a text trace: a preset, site or wiring file. An .mcap carries its own.")
@json_option
def command(trace: Path, site: str | None, as_json: bool) -> int:
    """Runs today's detectors over TRACE. Exit code 0, 1 with warnings, 2 with critical incidents."""
    from replay.analyze import analyze_trace

    opened = open_with(trace, site)
    show = sys.stderr.isatty() and not as_json
    result = analyze_trace(opened, _progress if show else None)
    if show:
        click.echo("\r\x1b[K", err=True, nl=False)
    if as_json:
        print_json(result.to_json())
        for problem in result.problems:
            click.echo(f"fabrictwin: {problem}", err=True)
    else:
        click.echo(result.text())
    return result.exit_code


def open_with(trace: Path, site: str | None) -> Trace:
    """The trace, judged with the wiring and thresholds of `site` where one is named."""
    from replay.trace import open_trace

    if site is None:
        return open_trace(trace)
    from twin.site import load_site

    loaded = load_site(site)
    opened = open_trace(trace, topology=loaded.topology)
    opened.rules = loaded.rules
    return opened


def _progress(frames: int, time: int) -> None:
    click.echo(f"\r{frames:,} frames", err=True, nl=False)
