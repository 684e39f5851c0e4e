"""`fabrictwin drill`: simulated failures with what must be found."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tui.commands.options import json_option, print_json
from tui.main import CRITICAL, OK

if TYPE_CHECKING:
    from replay.drills.runner import Result


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


def _write_junit(path: Path, results: list[Result]) -> None:
    from xml.etree import ElementTree

    failed = sum(not r.passed for r in results)
    suite = ElementTree.Element("testsuite", name="fabrictwin drills", tests=str(len(results)), failures=str(failed))
    for r in results:
        case = ElementTree.SubElement(suite, "testcase", classname="drill", name=r.drill.name)
        if not r.passed:
            ElementTree.SubElement(case, "failure", message="not as expected").text = r.to_text()
    ElementTree.ElementTree(suite).write(path, encoding="utf-8", xml_declaration=True)
