"""`fabrictwin replay`: a trace in the screen, or told as lines."""

from __future__ import annotations

from pathlib import Path

import click

from tui.commands.analyze import open_with
from tui.commands.options import plain_option, wants_screen
from tui.commands.screen import open_screen


@click.command(
    epilog="""\b
Examples:
  fabrictwin replay incident.mcap
  fabrictwin replay samples.jsonl --site wiring.yaml --plain"""
)
@click.argument("trace", type=click.Path(path_type=Path))
@click.option("--site", help="Wiring of a text trace: a preset, site or wiring file. An .mcap carries its own.")
@click.option("--speed", type=click.FloatRange(min=0.01), default=1.0, show_default=True, help="Times real time.")
@plain_option
@click.option("--ascii", "ascii_only", is_flag=True, help="ASCII characters only.")
def command(trace: Path, site: str | None, speed: float, plain: bool, ascii_only: bool) -> None:
    """Plays TRACE: space pauses, `,` `.` step, `[` `]` go to incidents, `<` `>` change the speed, g goes to a time.

    Without a terminal it prints planes and incidents as lines, as fast as it reads.
    """
    opened = open_with(trace, site)
    if wants_screen(plain):
        from replay.player import Player
        from tui.session import ReplaySession

        player = Player(opened)
        player.start_scan()
        try:
            open_screen(ReplaySession(trace.name, player, speed=speed), ascii_only)
        finally:
            player.close()
        return
    from tui.plain import follow

    twin = opened.twin()
    follow(twin, opened.frames_for(twin), click.echo)
    for problem in opened.problems:
        click.echo(f"fabrictwin: {problem}", err=True)
