"""`fabrictwin doctor`: what can be read, what not, and what to do about it."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from tui.commands.options import json_option, print_json
from tui.main import OK, WARNINGS

if TYPE_CHECKING:
    from collectors.doctor.check import Check, Gap, SourceReport
    from twin.site import Site

_NARROW, _WIDE = 60, 110  # columns that are made use of
_STATE, _NAME, _LABEL = 9, 20, 17
_MANY = {"gpu": "GPUs", "nvlink": "NVLinks", "psu": "supplies"}
_COLOURS = {"ok": "green", "part": "yellow", "missing": "red", "failed": "red", "none": None}


@click.command(
    epilog="""\b
Examples:
  fabrictwin doctor                         this host: GPUs, InfiniBand, tools, libraries, clock
  fabrictwin doctor site.yaml               every source of a site, tried twice
  fabrictwin doctor site.yaml --json

Exit codes: 0 all can be read, 1 something is missing, 3 cannot run."""
)
@click.argument("site", required=False)
@json_option
def command(site: str | None, as_json: bool) -> int:
    """What can be read on this host, or of SITE; what not, and what to do about it."""
    if site is None:
        from collectors.doctor.host import host_checks

        checks = asyncio.run(host_checks())
        sources: list[SourceReport] = []
        gaps: list[Gap] = []
        name = None
    else:
        from twin.site import load_site

        loaded = load_site(site)
        checks, sources, gaps = _examine(loaded)
        name = loaded.name
    sound = all(c.sound for c in checks) and all(s.state == "ok" for s in sources) and not any(g.blind for g in gaps)
    if as_json:
        print_json(_json(name, sound, checks, sources, gaps))
    else:
        width = max(_NARROW, min(_WIDE, shutil.get_terminal_size((80, 24)).columns))
        for line in _lines(name, sound, checks, sources, gaps, width):
            click.echo(line, color=False if os.environ.get("NO_COLOR") else None)
    return OK if sound else WARNINGS


def _examine(site: Site) -> tuple[list[Check], list[SourceReport], list[Gap]]:
    from collectors.doctor.clock import clock_check
    from collectors.doctor.coverage import gaps
    from collectors.doctor.sources import examine

    reports, seen = asyncio.run(examine(site, _progress))
    if sys.stderr.isatty():
        click.echo("\r\x1b[K", err=True, nl=False)
    return [clock_check()], reports, gaps(seen, site.topology)


def _progress(done: int, of: int) -> None:
    if sys.stderr.isatty():
        click.echo(f"\r{done} of {of} sources tried", err=True, nl=False)


def _json(
    site: str | None, sound: bool, checks: list[Check], sources: list[SourceReport], gaps: list[Gap]
) -> dict[str, Any]:
    return {
        "site": site,
        "status": "ok" if sound else "missing",
        "checks": [c.to_json() for c in checks],
        "sources": [s.to_json() for s in sources],
        "unread": [g.to_json() for g in gaps],
    }


# --- as text ---


def _lines(
    site: str | None, sound: bool, checks: list[Check], sources: list[SourceReport], gaps: list[Gap], width: int
) -> Iterator[str]:
    if site is None:
        yield "THIS HOST"
    for check in checks:
        yield from _check_lines(check, width)
    if site is not None:
        yield ""
        yield f"SOURCES of {site}" + ("" if sources else ": none; add `collectors` to the site file")
    for source in sources:
        yield from _source_lines(source, width)
    if gaps:
        yield ""
        yield "READ BY NO SOURCE"
        for gap in gaps:
            yield from _wrapped(" ! " if gap.blind else " - ", f"{gap.text}; such as {gap.example}", width)
    yield ""
    yield "All of it can be read." if sound else "Something is missing; lines with > say what to do about it."


def _wrapped(head: str, text: str, width: int) -> list[str]:
    """`text` behind `head`, and further lines below it; no word is broken."""
    return textwrap.wrap(
        text, width, initial_indent=head, subsequent_indent=" " * len(head), break_long_words=False,
        break_on_hyphens=False,
    ) or [head.rstrip()]  # fmt: skip


def _stated(state: str, head: str, text: str, width: int) -> Iterator[str]:
    """A line that begins with a state in its colour."""
    first, *rest = _wrapped(f" {state.upper() if state != 'none' else '-':<{_STATE - 1}}{head}", text, width)
    word = first[: _STATE + 1].rstrip()
    yield click.style(word, fg=_COLOURS[state], bold=state in ("missing", "failed")) + first[len(word) :]
    yield from rest


def _check_lines(check: Check, width: int) -> Iterator[str]:
    yield from _stated(check.state, f"{check.name:<{_NAME}}", check.found, width)
    for detail in check.details:
        yield from _wrapped(" " * (_STATE + _NAME), detail, width)
    if check.advice:
        yield from _wrapped(" " * (_STATE + _NAME) + "> ", check.advice, width)


def _source_lines(source: SourceReport, width: int) -> Iterator[str]:
    about = source.name if source.name == source.entry else f"{source.name} ({source.entry})"
    yield from _stated(source.state, "", about, width)
    for label, text in _facts(source):
        yield from _wrapped(f"{'':{_STATE}}{label:<{_LABEL}}", text, width)
    for advice in source.advice:
        yield from _wrapped(f"{'':{_STATE}}> ", advice, width)


def _facts(source: SourceReport) -> Iterator[tuple[str, str]]:
    if source.error:
        yield "error", source.error
    for c in source.coverage:
        rest = "" if c.meant else " of this wiring"
        yield _MANY.get(c.kind, f"{c.kind}s"), f"{c.read:,} of {c.expected:,}{rest} read"
    for kind, metrics in (source.read or {}).items():
        yield f"{kind} has", " ".join(metrics)
    for kind, metrics in (source.never or {}).items():
        if metrics:
            yield f"{kind} has not", " ".join(metrics)
    for p in source.partly:
        yield "unknown at some", f"{p.kind} {p.metric}: {p.unknown:,} of {p.of:,}, such as {p.example}"
    for text in source.lacking:
        yield "cannot be had", text
    for text in source.warnings:
        yield "warning", text
    if source.duration_seconds is not None and source.read:
        took = source.duration_seconds
        yield "a sample takes", (f"{took * 1000:.0f} ms" if took < 0.95 else f"{took:.1f} s") + _times(source)


def _times(source: SourceReport) -> str:
    text = f", one every {source.interval_seconds:g} s"
    if source.age_seconds is not None and source.age_seconds >= 1:
        text += f"; its newest reading is {source.age_seconds:.1f} s old"
    if source.clock_offset_seconds:
        text += f"; its clock is {source.clock_offset_seconds:+.1f} s off"
    return text
