"""`fabrictwin drill`: simulated failures with what must be found."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tui.commands.options import Seconds, json_option, print_json
from tui.main import CRITICAL, OK, WARNINGS
from twin.errors import InputError

if TYPE_CHECKING:
    from replay.drills.runner import Result
    from replay.drills.score import Job, Score


@click.group()
def command() -> None:
    """Drills: scenario files of simulated failures, run against the real twin."""


@command.command("list")
@json_option
def list_(as_json: bool) -> None:
    """The shipped drills."""
    from replay.drills.file import library, load_drill

    drills = {name: load_drill(path) for name, path in library().items()}
    if as_json:
        print_json(
            [{"name": n, "title": d.name, "about": d.scenario.about, "path": d.path} for n, d in drills.items()]
        )
        return
    for name, drill in drills.items():
        click.echo(f"{name:<20} {drill.scenario.preset:<24} {drill.scenario.about or drill.name}")


@command.command()
@click.argument("files", nargs=-1)
@json_option
@click.option("--junit", type=click.Path(dir_okay=False, path_type=Path), help="Also write a JUnit XML report.")
def run(files: tuple[str, ...], as_json: bool, junit: Path | None) -> int:
    """Runs drill FILES, or shipped drills by name; all shipped ones when none is given.

    Exit code 0 when all passed, 2 when one failed, 3 when one cannot be run.
    """
    from replay.drills.file import find_drill, library, load_drill
    from replay.drills.runner import run_drill

    drills = [load_drill(find_drill(f)) for f in files or library()]
    results = []
    for drill in drills:
        if len(drills) > 1 and sys.stderr.isatty():
            click.echo(f"{drill.name} …", err=True)
        results.append(run_drill(drill))
        if not as_json:
            click.echo(results[-1].to_text())
    if as_json:
        print_json([r.to_json() for r in results])
    if junit is not None:
        _write_junit(junit, results)
    return OK if all(r.passed for r in results) else CRITICAL


@command.command(
    epilog="""\b
Examples:
  fabrictwin drill score                                     100 single faults, an hour of health
  fabrictwin drill score --faults 500 --seed 3 --json
  fabrictwin drill score --faults 0 --double 200 --noise 2"""
)
@click.option("--faults", type=click.IntRange(0), default=100, show_default=True, help="Single faults to put in.")
@click.option(
    "--double", type=click.IntRange(0), default=0, show_default=True, help="Faults to put in two at a time."
)
@click.option("--healthy", type=Seconds(), default="1h", show_default=True, help="Simulated time without a fault.")
@click.option("--seed", type=int, default=1, show_default=True, help="Of the draw: the same seed, the same faults.")
@click.option("--noise", type=click.FloatRange(0), default=1.0, show_default=True, help="Times the usual noise.")
@click.option("--preset", "presets", multiple=True, help="Only these fabrics; all when none is named.")
@click.option("--jobs", "at_once", type=click.IntRange(1), help="Processes side by side; one a core unless said.")
@json_option
def score(
    faults: int, double: int, healthy: float, seed: int, noise: float, presets: tuple[str, ...], at_once: int | None,
    as_json: bool,
) -> int:  # fmt: skip
    """How well detection does on random faults over all presets, and how often it cries wolf.

    Precision: incidents that belong to a fault. Recall: faults told with kind and cause right, in time. Exit code 0
    when every fault was told right and nothing else, 1 otherwise.
    """
    from replay.drills import score as board
    from twin.topology.presets import PRESETS, unknown_preset

    for name in presets:
        if name not in PRESETS:
            raise InputError(unknown_preset(name))
    pieces = board.jobs(
        faults, seed, double=double, healthy_seconds=healthy, noise=noise, fabrics=presets or board.FABRICS
    )
    found = _side_by_side(pieces, at_once)
    if as_json:
        print_json({what: s.to_json() for what, s in found.items()})
    else:
        click.echo(board.text(found))
    return OK if not any(s.wrong for s in found.values()) else WARNINGS


def _side_by_side(pieces: list[Job], at_once: int | None) -> dict[str, Score]:
    """Every piece in processes of their own, with progress where there is a terminal."""
    import os
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    from replay.drills.score import Score, work

    found: dict[str, Score] = {}
    with ProcessPoolExecutor(at_once or os.cpu_count(), mp_context=get_context("spawn")) as pool:
        for done, (what, part) in enumerate(pool.map(work, pieces), 1):
            found.setdefault(what, Score()).add(part)
            if sys.stderr.isatty():
                click.echo(f"\r{done} of {len(pieces)} runs", nl=done == len(pieces), err=True)
    return found


def _write_junit(path: Path, results: list[Result]) -> None:
    from xml.etree import ElementTree

    failed = sum(not r.passed for r in results)
    suite = ElementTree.Element("testsuite", name="fabrictwin drills", tests=str(len(results)), failures=str(failed))
    for r in results:
        case = ElementTree.SubElement(suite, "testcase", classname="drill", name=r.drill.name)
        if not r.passed:
            ElementTree.SubElement(case, "failure", message="not as expected").text = r.to_text()
    ElementTree.ElementTree(suite).write(path, encoding="utf-8", xml_declaration=True)
