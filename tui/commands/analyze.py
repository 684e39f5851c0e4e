"""`fabrictwin analyze`: what happened, from a trace or from several."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tui.commands.options import json_option, print_json

if TYPE_CHECKING:
    from replay.analyze import Progress
    from replay.trace import Trace

_TRACE = click.Path(path_type=Path)


@click.command(
    epilog="""\b
Examples:
  fabrictwin analyze incident.mcap
  fabrictwin analyze samples.jsonl --site wiring.yaml --json
  fabrictwin analyze n000.mcap n001.mcap switches.mcap        several hosts, merged by time
  fabrictwin analyze incident.mcap --report incident.html --report incident.md
  fabrictwin analyze incident.mcap --rules other-site.yaml
  fabrictwin analyze incident.mcap --compare recorded shipped

Exit codes: 0 nothing found, 1 warnings, 2 critical, 3 cannot run; with --compare 0 the same, 1 a difference."""
)
@click.argument("traces", type=_TRACE, metavar="TRACE...", nargs=-1, required=True)
@click.option("--site", help="Wiring of a text trace: a preset, site or wiring file. An .mcap carries its own.")
@click.option("--rules", metavar="FILE", help="Judge by other thresholds: a site file, a rules.toml, or `shipped`.")
@click.option(
    "--compare",
    nargs=2,
    metavar="A B",
    help="What rules A find that B do not, and the other way round: files as for --rules, `shipped` or `recorded`.",
)
@click.option(
    "--report",
    "reports",
    multiple=True,
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Also write a report: .html (one file, nothing else needed) or .md. Repeatable.",
)
@json_option
def command(
    traces: tuple[Path, ...], site: str | None, rules: str | None, compare: tuple[str, str] | None,
    reports: tuple[Path, ...], as_json: bool,
) -> int:  # fmt: skip
    """Runs today's detectors over TRACE. Exit code 0, 1 with warnings, 2 with critical incidents.

    Several traces, of several hosts or pieces of one recording, are judged as one, by time.
    """
    opened = open_with(traces, site)
    show = sys.stderr.isatty() and not as_json
    progress = _progress if show else None
    if compare is not None:
        return _compare(opened, compare, progress, as_json)
    notes: Sequence[str] = ()
    if rules is not None:
        from replay.rulesfile import rule_set

        chosen = rule_set(rules, opened)
        opened.rules, notes = chosen.rules, chosen.notes
    if reports:
        from replay.report import form_of, gather, write_report

        for path in reports:
            form_of(path)
        found = gather(opened, progress)
        result = found.analysis
        for path in reports:
            write_report(found, path)
    else:
        from replay.analyze import analyze_trace

        result = analyze_trace(opened, progress)
    _done(show)
    if as_json:
        print_json(result.to_json())
        notes = [*notes, *result.problems]
    else:
        click.echo(result.text())
    for note in notes:
        click.echo(f"fabrictwin: {note}", err=True)
    for path in reports:
        click.echo(f"wrote {path}", err=True)
    return result.exit_code


def _compare(trace: Trace, names: tuple[str, str], progress: Progress | None, as_json: bool) -> int:
    from replay.compare import compare
    from replay.rulesfile import rule_set

    a, b = (rule_set(name, trace) for name in names)
    found = compare(trace, a, b, progress)
    _done(progress is not None)
    if as_json:
        print_json(found.to_json())
    else:
        click.echo(found.text())
    for note in dict.fromkeys((*found.found_a.problems, *found.found_b.problems)):
        click.echo(f"fabrictwin: {note}", err=True)
    return found.exit_code


def open_with(traces: Path | Sequence[Path], site: str | None) -> Trace:
    """The trace, or several as one, judged with the wiring and thresholds of `site` where one is named."""
    from replay.trace import open_trace

    topology = rules = None
    if site is not None:
        from twin.site import load_site

        loaded = load_site(site)
        topology, rules = loaded.topology, loaded.rules
    paths = [traces] if isinstance(traces, Path) else traces
    opened = [open_trace(path, topology=topology) for path in paths]
    if len(opened) == 1:
        opened[0].rules = rules
        return opened[0]
    from replay.merge import MergedTrace

    merged = MergedTrace(opened, topology)
    merged.rules = rules
    return merged


def _done(shown: bool) -> None:
    if shown:
        click.echo("\r\x1b[K", err=True, nl=False)


def _progress(frames: int, time: int) -> None:
    click.echo(f"\r{frames:,} frames", err=True, nl=False)
