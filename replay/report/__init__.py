"""Reports of a trace for people who were not there: one HTML file that needs nothing else, or Markdown."""

from __future__ import annotations

from pathlib import Path

from replay.report.gather import Findings, gather
from twin.errors import FabrictwinError, InputError

__all__ = ["Findings", "form_of", "gather", "write_report"]


def form_of(path: Path) -> str:
    """`.html` or `.md`, as the name of a report says. Raises InputError where it says neither."""
    suffix = path.suffix.lower()
    if suffix not in (".html", ".md"):
        raise InputError(f"{path}: cannot tell what to write; expected a name ending in .html or .md")
    return suffix


def write_report(found: Findings, path: Path) -> None:
    """Writes a report; the same findings give the same bytes. Raises FabrictwinError where it cannot be written."""
    from replay.report.markdown import markdown
    from replay.report.page import page

    text = page(found) if form_of(path) == ".html" else markdown(found)
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as problem:
        raise FabrictwinError(f"{path}: cannot be written: {problem.strerror}") from problem
