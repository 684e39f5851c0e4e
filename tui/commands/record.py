"""`fabrictwin record`: a site into a trace, without a screen."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from replay.live import Live
from tui.commands.live import open_live
from tui.commands.options import Seconds
from tui.commands.watch import until_stopped
from twin.errors import FabrictwinError, InputError


@click.command(
    epilog="""\b
Examples:
  fabrictwin record site.yaml -o incident.mcap --for 10m
  fabrictwin record -o here.mcap                    this host; stop with Ctrl+C"""
)
@click.argument("site", required=False)
@click.option(
    "-o", "--output", required=True, type=click.Path(dir_okay=False, path_type=Path), help="Trace to write."
)
@click.option("--for", "duration", type=Seconds(), help="Stop after this time.")
def command(site: str | None, output: Path, duration: float | None) -> None:
    """Records SITE (or this host) as received: raw counters, so that newer detectors can judge it again."""
    if output.suffix != ".mcap":
        raise InputError(f"{output}: recordings are .mcap; `fabrictwin trace convert` makes text of them afterwards")
    live = open_live(site, output)
    click.echo(f"recording {live.name} to {output}; Ctrl+C stops", err=True)
    count = asyncio.run(_record(live, duration))
    if live.recording_error:
        raise FabrictwinError(live.recording_error)
    click.echo(f"{output}: {count} frames, {len(live.twin.incidents)} incidents", err=True)


async def _record(live: Live, duration: float | None) -> int:
    count = 0
    async for frame in until_stopped(live, duration):
        live.twin.ingest(frame)
        count += 1
    return count
