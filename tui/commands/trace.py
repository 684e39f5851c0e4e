"""`fabrictwin trace`: convert, describe, cut, merge, verify and anonymise traces."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tui.commands.options import json_option, print_json

if TYPE_CHECKING:
    from replay.writing import Progress, Written
    from twin.topology.model import Topology

_IN = click.Path(path_type=Path)


_site = click.option(
    "--site", help="Wiring of a text trace: a preset, site or wiring file. An .mcap carries its own."
)


@click.group(
    epilog="""\b
Examples:
  fabrictwin trace verify incident.mcap
  fabrictwin trace cut incident.mcap short.mcap --from 04:20 --to 04:30
  fabrictwin trace merge host1.mcap host2.mcap -o all.mcap
  fabrictwin trace anonymize short.mcap for-the-vendor.mcap"""
)
def command() -> None:
    """Traces: recordings of frames as .mcap, .jsonl or .jsonl.zst."""


@command.command(
    epilog="""\b
Examples:
  fabrictwin trace convert incident.mcap incident.jsonl.zst
  fabrictwin trace convert samples.jsonl samples.mcap --site wiring.yaml"""
)
@click.argument("source", type=_IN, metavar="IN")
@click.argument("target", type=_IN, metavar="OUT")
@click.option("--site", help="Wiring for an .mcap made from text: a preset, site or wiring file.")
def convert(source: Path, target: Path, site: str | None) -> None:
    """Writes the trace IN in the form that the name OUT says: .mcap, .jsonl or .jsonl.zst."""
    from replay.convert import convert as run

    topology, loaded = _load(site)
    done = run(source, target, topology=topology, site=loaded, progress=_progress())
    _tell(target, done)


@command.command(
    epilog="""\b
Examples:
  fabrictwin trace cut incident.mcap short.mcap --from 04:20 --to 04:30
  fabrictwin trace cut incident.mcap end.jsonl.zst --from -10m
  fabrictwin trace cut incident.mcap begin.mcap --to +90s"""
)
@click.argument("source", type=_IN, metavar="IN")
@click.argument("target", type=_IN, metavar="OUT")
@click.option("--from", "start", metavar="TIME", help="First time that is kept; the beginning when absent.")
@click.option("--to", "end", metavar="TIME", help="First time that is left out; nothing when absent.")
@_site
def cut(source: Path, target: Path, start: str | None, end: str | None, site: str | None) -> None:
    """Writes the part of the trace IN from a TIME up to another.

    TIME: a UTC time of day (04:20, 04:20:30) or date (2025-12-01 04:20), seconds since the epoch, a step from the
    beginning (+90s) or back from the end (-5m; s, m, h, d), or a share of the trace (50%).
    """
    from replay.cut import cut as run

    topology, loaded = _load(site)
    done = run(
        source, target, start, end, topology=topology, site=loaded,
        progress=_progress(),
    )  # fmt: skip
    _tell(target, done)


@command.command(
    epilog="""\b
Examples:
  fabrictwin trace merge n000.mcap n001.mcap switches.mcap -o all.mcap
  fabrictwin trace merge today-*.mcap -o today.mcap
  fabrictwin trace merge a.jsonl b.jsonl -o all.mcap --site site.yaml"""
)
@click.argument("sources", type=_IN, metavar="IN...", nargs=-1, required=True)
@click.option("-o", "--output", type=_IN, required=True, help="Trace to write.")
@click.option("--site", help="Wiring of the whole, where the traces carry none or their wirings disagree.")
def merge(sources: tuple[Path, ...], output: Path, site: str | None) -> None:
    """Writes several traces as one, by time: of several hosts, or pieces of one recording.

    What two of them recorded alike counts once. Their wirings are put together where they do not disagree.
    """
    from replay.merge import MergedTrace
    from replay.trace import open_trace
    from replay.writing import everything, rewrite

    topology, loaded = _load(site)
    merged = MergedTrace([open_trace(path, topology=topology) for path in sources], topology)
    kept = loaded or merged.site
    done = rewrite(merged.traces, output, everything(merged), lambda: merged.topology, kept, progress=_progress())
    _tell(output, done)


@command.command(
    epilog="""\b
Examples:
  fabrictwin trace verify incident.mcap
  fabrictwin trace verify samples.jsonl.zst --site site.yaml --json

Exit codes: 0 sound, 1 usable with care (cut, gaps, names or times that do not fit), 2 damaged, 3 no trace."""
)
@click.argument("trace", type=_IN)
@_site
@json_option
def verify(trace: Path, site: str | None, as_json: bool) -> int:
    """Is TRACE whole, as it was written, in order, about its own wiring, and without gaps?"""
    from replay.trace import open_trace
    from replay.verify import verify as run

    topology, _ = _load(site)
    found = run(open_trace(trace, topology=topology))
    if as_json:
        print_json(found.to_json())
    else:
        click.echo(found.text())
    return found.exit_code


@command.command(
    epilog="""\b
Examples:
  fabrictwin trace anonymize incident.mcap for-the-vendor.mcap
  fabrictwin trace anonymize incident.mcap public.mcap --drop-notes --key names.json"""
)
@click.argument("source", type=_IN, metavar="IN")
@click.argument("target", type=_IN, metavar="OUT")
@click.option("--drop-notes", is_flag=True, help="Leave out the remarks of operators.")
@click.option("--key", type=_IN, help="Also write old and new names here, as JSON; keep it to yourself.")
@_site
def anonymize(source: Path, target: Path, drop_notes: bool, key: Path | None, site: str | None) -> None:
    """Writes the trace IN with other names of nodes, switches, racks, NVLink domains, jobs and sources.

    The same incidents are found in it. Of the site file thresholds, announced work and power remain. Remarks keep
    their words with names, addresses and secrets replaced: read them before you give the file away.
    """
    import msgspec

    from replay.anonymize import anonymize as run
    from tui.commands.options import write

    topology, _ = _load(site)
    done = run(source, target, topology=topology, notes=not drop_notes, progress=_progress())
    _tell(target, done)
    if target.suffix != ".mcap":
        click.echo(
            "fabrictwin: text holds no wiring: others can judge it only beside an .mcap of the same names", err=True
        )
    if done.notes:
        many = f"{done.notes} remark{'s are' if done.notes > 1 else ' is'}"
        click.echo(f"fabrictwin: {many} kept in other words; read before you share, or --drop-notes", err=True)
    if key is not None:
        write(msgspec.json.format(msgspec.json.encode(done.names), indent=2).decode() + "\n", key, force=False)


@command.command(
    epilog="""\b
Examples:
  fabrictwin trace info incident.mcap
  fabrictwin trace info incident.mcap --json"""
)
@click.argument("trace", type=_IN)
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


def _load(site: str | None) -> tuple[Topology | None, dict[str, Any] | None]:
    """The wiring and the site that --site names."""
    if site is None:
        return None, None
    from twin.site import load_site

    loaded = load_site(site)
    return loaded.topology, loaded.source


def _progress() -> Progress | None:
    if not sys.stderr.isatty():
        return None
    return lambda frames: click.echo(f"\r{frames:,} frames", err=True, nl=False)


def _tell(target: Path, done: Written) -> None:
    if sys.stderr.isatty():
        click.echo("\r\x1b[K", err=True, nl=False)
    cut = ", the input is cut" if done.truncated else ""
    click.echo(f"{target}: {done.frames} frames{cut}")
    for problem in done.problems:
        click.echo(f"fabrictwin: {problem}", err=True)
