"""What every parser of a tool's output shares: the error, the lines, the warnings, the GUID.

A dump comes from another program, over a pipe or from a file that somebody kept, so it may be cut short,
mixed with warnings, or be another program's. Small damage becomes a warning with its line number; a dump that
says nothing at all is a `DumpError`, since an empty answer must never look like an empty, healthy fabric.
"""

from __future__ import annotations

from collections.abc import Iterator

MAX_LINE = 4096  # the longest real line (a port with all its counters) has about 1,200 characters
MAX_WARNINGS = 50  # a wrong file would otherwise earn one warning a line


class DumpError(ValueError):
    """The text is not what the parser reads. `line` counts from 1; the message says what was expected."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(f"line {line}: {message}")
        self.line = line
        self.message = message

    def __reduce__(self) -> tuple[type[DumpError], tuple[int, str]]:
        return type(self), (self.line, self.message)  # so that it survives a process pool


class Warnings:
    """Collects `line N: …` sentences, the first `MAX_WARNINGS` of them, and counts the rest."""

    def __init__(self) -> None:
        self._kept: list[str] = []
        self._dropped = 0

    def add(self, line: int, message: str) -> None:
        if len(self._kept) < MAX_WARNINGS:
            self._kept.append(f"line {line}: {message}")
        else:
            self._dropped += 1

    def done(self) -> list[str]:
        more = [f"and {self._dropped} more warnings"] if self._dropped else []
        return self._kept + more


def numbered_lines(dump: str | bytes, tool: str) -> list[tuple[int, str]]:
    """The lines with their numbers, or a `DumpError` where there is no text from `tool` to read.

    Bytes that are not UTF-8 are replaced: a node description is 64 bytes that anybody may have set.
    """
    text = dump.decode("utf-8", "replace") if isinstance(dump, bytes) else dump
    if not text.strip():
        raise DumpError(1, f"expected output of {tool}, found nothing; did the tool fail?")
    binary = text.find("\0")
    if binary >= 0:
        raise DumpError(text.count("\n", 0, binary) + 1, f"expected output of {tool}, found a binary file")
    # Not splitlines(): it would cut a description at the odd separators that Unicode knows.
    return [(number, line.rstrip("\r")) for number, line in enumerate(text.removesuffix("\n").split("\n"), start=1)]


def readable(lines: list[tuple[int, str]], warnings: Warnings) -> Iterator[tuple[int, str]]:
    """The lines that hold something, without those too long to be a tool's (no pattern need see them)."""
    for number, line in lines:
        if len(line) > MAX_LINE:
            warnings.add(number, f"skipped: {len(line)} characters, more than any tool prints")
        elif line and not line.isspace():
            yield number, line


def guid(digits: str) -> str:
    """`2c9…` as the 16 lower-case hexadecimal digits that name a node or port everywhere in fabrictwin."""
    return digits.lower().zfill(16)


def shown(line: str) -> str:
    """A line as a warning quotes it: printable, and no longer than a screen is wide."""
    text = ascii(line.strip())
    return text if len(text) <= 80 else text[:77] + "..."
