"""`fabrictwin record`: a site into a trace, without a screen."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tui.commands.live import open_live
from tui.commands.options import Seconds
from tui.commands.recording import keeping_options
from tui.commands.watch import until_stopped
from twin.errors import FabrictwinError, InputError

if TYPE_CHECKING:
    from replay.limits import Keeping
    from replay.live import Live


@click.command(
    epilog="""\b
Examples:
  fabrictwin record site.yaml -o incident.mcap --for 10m
  fabrictwin record -o here.mcap                    this host; stop with Ctrl+C
  fabrictwin record site.yaml -o all.mcap --rotate-every 1h --keep-for 48h --keep-size 20GB --min-free 5GB"""
)
@click.argument("site", required=False)
@click.option(
    "-o", "--output", required=True, type=click.Path(dir_okay=False, path_type=Path), help="Trace to write."
)
@click.option("--for", "duration", type=Seconds(), help="Stop after this time.")
@keeping_options
def command(site: str | None, output: Path, duration: float | None, keeping: Keeping) -> None:
    """Records SITE (or this host) as received: raw counters, so that newer detectors can judge it again.

    In pieces (--rotate-size, --rotate-every) each is a trace of its own, all-20251201T042000Z.mcap; the oldest may be
    let go (--keep-size, --keep-for), but none that has notes. `fabrictwin analyze all-*.mcap` judges them as one.
    """
    if output.suffix != ".mcap":
        raise InputError(f"{output}: recordings are .mcap; `fabrictwin trace convert` makes text of them afterwards")
    live = open_live(site, output, keeping)
    where = f"pieces of {output}" if keeping.in_pieces else str(output)
    click.echo(f"recording {live.name} to {where}; Ctrl+C stops", err=True)
    count = asyncio.run(_record(live, duration))
    if live.recording_error:
        raise FabrictwinError(live.recording_error)
    click.echo(f"{where}: {count} frames, {len(live.twin.incidents)} incidents", err=True)


async def _record(live: Live, duration: float | None) -> int:
    count = 0
    async for frame in until_stopped(live, duration):
        live.twin.ingest(frame)
        count += 1
    return count
