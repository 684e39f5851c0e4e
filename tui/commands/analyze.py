"""`fabrictwin analyze`: what happened, from a trace."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from tui.commands.options import json_option, print_json
from twin.topology.model import Topology


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
    from replay.trace import open_trace

    opened = open_trace(trace, topology=topology_of(site))
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


def topology_of(site: str | None) -> Topology | None:
    if site is None:
        return None
    from twin.site import load_site

    return load_site(site).topology


def _progress(frames: int, time: int) -> None:
    click.echo(f"\r{frames:,} frames", err=True, nl=False)
