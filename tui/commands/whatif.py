"""`fabrictwin whatif`: what a failure would cost, before it happens."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tui.commands.options import json_option, preset_sizes, print_json
from twin.errors import InputError

if TYPE_CHECKING:
    from twin.whatif import Change, WhatIf

_WIDTH = 80


@click.command(
    epilog="""\b
Examples:
  fabrictwin whatif b300-superpod-ethernet --fail plane:B
  fabrictwin whatif b300-superpod-ethernet --scalable-units 4 --sweep switches
  fabrictwin whatif site.yaml --fail n012/psu0 n012/psu1 --limit 450
  fabrictwin whatif site.yaml --fail A-leaf-03 --sweep switches     what would be worst then
  fabrictwin whatif today.mcap --at 12:34 --repair plane:B --json"""
)
@click.argument("fabric", metavar="SITE|PRESET|TRACE")
@click.argument("more", metavar="[ADDRESS]...", nargs=-1)
@click.option(
    "--fail", multiple=True, metavar="ADDRESS", help="What fails: a plane, switch, node, port, GPU, feed, …"
)
@click.option("--repair", multiple=True, metavar="ADDRESS", help="What is mended first.")
@click.option(
    "--degrade", multiple=True, metavar="ADDRESS=SHARE", help="Links at a share of their speed: n0/nic1=0.5"
)
@click.option("--limit", type=float, metavar="WATTS", help="What each GPU may draw from now on.")
@click.option(
    "--sweep",
    metavar="CLASS",
    help="Each single failure of switches, links, planes, nics, nodes, gpus, nvswitches, domains, racks, feeds, psus",
)
@click.option("--pairs", "in_pairs", is_flag=True, help="With --sweep: two at a time, the worst 2,000 of them.")
@click.option("--at", metavar="TIME", help="The state of a trace at this time; else that at its end.")
@click.option("--site", help="Wiring of a text trace: a preset, site or wiring file.")
@preset_sizes
@json_option
def command(
    fabric: str, more: tuple[str, ...], fail: tuple[str, ...], repair: tuple[str, ...], degrade: tuple[str, ...],
    limit: float | None, sweep: str | None, in_pairs: bool, at: str | None, site: str | None, sizes: dict[str, int],
    as_json: bool,
) -> None:  # fmt: skip
    """What would it cost if something failed, was mended, went slower, or GPUs drew less?

    Of a PRESET or SITE as designed, at full load by the catalogue; of a TRACE as it was. Further addresses after the
    first belong to --fail, or to --repair where nothing fails. A sweep starts from the state after these changes.
    """
    from twin.whatif import pairs, singles, to_json

    if in_pairs and not sweep:
        raise InputError("--pairs: of what? expected --sweep CLASS with it, such as --sweep switches")
    change = _change(fail, repair, degrade, limit, more)
    if change.empty and not sweep:
        raise InputError("nothing is asked: expected --fail, --repair, --degrade, --limit or --sweep (see --help)")
    whatif = _open(fabric, sizes, at, site)
    answer = whatif.ask(change)
    swept = (pairs if in_pairs else singles)(whatif.after(change), sweep) if sweep else None
    if as_json:
        print_json({**to_json(answer), **({"sweep": swept.to_json()} if swept else {})})
        return
    from tui.rows.whatif import answer_lines, asked, sweep_lines
    from tui.text import plain_lines, wrap

    if not change.empty:
        click.echo("\n".join(wrap(f"WHAT IF {asked(change)}", _WIDTH)))
        click.echo(plain_lines(answer_lines(answer, _WIDTH)))
    if swept:
        click.echo(plain_lines(sweep_lines(swept, _WIDTH)))


def _change(
    fail: tuple[str, ...], repair: tuple[str, ...], degrade: tuple[str, ...], limit: float | None,
    more: tuple[str, ...],
) -> Change:  # fmt: skip
    from twin.whatif import Change

    if more and fail and repair:
        raise InputError(
            f"{more[0]!r}: is it to fail or to be repaired? write --fail or --repair before each address"
        )
    if more and not fail and not repair:
        raise InputError(f"{more[0]!r}: what of it? write --fail, --repair or --degrade before it")
    if more:
        fail, repair = (fail + more, repair) if fail else (fail, repair + more)
    return Change(fail, repair, tuple(_slower(text) for text in degrade), limit)


def _slower(text: str) -> tuple[str, float]:
    address, _, share = text.rpartition("=")
    try:
        if address:
            return address, float(share)
    except ValueError:
        pass
    raise InputError(f"--degrade {text}: expected ADDRESS=SHARE, such as n0/nic1=0.5")


def _open(fabric: str, sizes: dict[str, int], at: str | None, site: str | None) -> WhatIf:
    """Of a trace the state at a time, of anything else the design."""
    from replay.layout import SUFFIXES
    from twin.whatif import WhatIf

    if not fabric.endswith(SUFFIXES):
        if at is not None or site is not None:
            option = "--at" if at is not None else "--site"
            raise InputError(f"{option}: only a trace ({', '.join(SUFFIXES)}) takes it, {fabric} is none")
        from twin.site import load_site

        loaded = load_site(fabric, sizes)
        return WhatIf(loaded.topology, rules=loaded.rules)
    if sizes:
        raise InputError(f"--{next(iter(sizes)).replace('_', '-')}: only a preset takes sizes, {fabric} is a trace")
    from replay.player import Player
    from replay.when import bound
    from tui.commands.analyze import open_with

    trace = open_with(Path(fabric), site)
    player = Player(trace)
    when = player.end if at is None else bound("--at", at, player.start, player.end)
    return WhatIf.of_snapshot(player.step_to(when), rules=trace.rules)
