"""`fabrictwin watch`: live, in the screen or as lines."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tui.commands.live import about, open_live, reasons
from tui.commands.options import Seconds, plain_option, wants_screen
from tui.commands.recording import keeping_options
from tui.commands.screen import open_screen

if TYPE_CHECKING:
    from replay.limits import Keeping
    from replay.live import Live
    from twin.frames import Frame


@click.command(
    epilog="""\b
Examples:
  fabrictwin watch                                 this host's own interfaces
  fabrictwin watch site.yaml --record today.mcap
  fabrictwin watch site.yaml --record all.mcap --rotate-every 1h --keep-for 48h --keep-size 20GB
  fabrictwin watch site.yaml --plain --for 1h > log"""
)
@click.argument("site", required=False)
@click.option("--record", type=click.Path(dir_okay=False, path_type=Path), help="Also record into this trace.")
@keeping_options
@click.option("--for", "duration", type=Seconds(), help="Stop after this time (lines only).")
@plain_option
@click.option("--ascii", "ascii_only", is_flag=True, help="ASCII characters only.")
def command(
    site: str | None, record: Path | None, keeping: Keeping, duration: float | None, plain: bool, ascii_only: bool
) -> None:
    """Live: SITE, or this host's own network interfaces and InfiniBand."""
    live = open_live(site, record, keeping)
    told = about(live, site)
    if wants_screen(plain):
        from tui.session import FeedSession

        session = FeedSession(live.name, live.twin, live.frames(), about=told, reasons=lambda: reasons(live))
        open_screen(session, ascii_only)
        live.finish_recording()
    else:
        for line in told:
            click.echo(line)
        asyncio.run(_lines(live, duration))
    if live.recording_error:
        click.echo(f"fabrictwin: {live.recording_error}", err=True)


async def _lines(live: Live, duration: float | None) -> None:
    from tui.plain import Lines

    lines = Lines(live.twin, lambda: reasons(live))
    async for frame in until_stopped(live, duration):
        live.twin.ingest(frame)
        lines.tell(click.echo)
    live.twin.finish()
    lines.tell(click.echo)


async def until_stopped(live: Live, duration: float | None) -> AsyncIterator[Frame]:
    """Frames until the time is up or somebody ends the program; then everything is closed in order."""
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    end = loop.time() + duration if duration else None
    try:
        async for frame in live.frames():
            yield frame
            if stop.is_set() or (end is not None and loop.time() >= end):
                break
    finally:
        await live.close()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
