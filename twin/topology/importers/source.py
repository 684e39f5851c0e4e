"""Reading input files: size limits, text, JSON, YAML; every failure is one InputError with its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from twin.errors import InputError

MEBIBYTE = 1 << 20
# Per format, well above what a large site writes (an LLDP neighbour takes 2.5 kB, a host's XML 20 kB) and
# well below what would take minutes or gigabytes to parse.
LIMITS = {"JSON": 64 * MEBIBYTE, "YAML": 8 * MEBIBYTE, "XML": 8 * MEBIBYTE, "text": 8 * MEBIBYTE}
_SHOWN = 60


def read_text(path: Path, form: str) -> str:
    """The text of a file in `form`, a key of LIMITS. Raises InputError for what is too large, binary or empty."""
    limit = LIMITS[form]
    try:
        with path.open("rb") as stream:
            data = stream.read(limit + 1)
    except FileNotFoundError as problem:
        raise InputError(f"{path}: no such file") from problem
    except OSError as problem:
        raise InputError(f"{path}: cannot be read: {problem.strerror}") from problem
    if len(data) > limit:
        raise InputError(f"{path}: larger than {limit // MEBIBYTE} MiB, the most that is read as {form}")
    return decode(data, str(path))


def decode(data: bytes, path: str) -> str:
    """Bytes as text. Raises InputError with the line of the first byte that is none."""
    zero = data.find(0)
    if zero >= 0:
        raise InputError(f"{path}:{data.count(10, 0, zero) + 1}: a binary file; expected text")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        line = data.count(10, 0, problem.start) + 1
        raise InputError(f"{path}:{line}: not UTF-8 text (byte {data[problem.start]:#04x})") from problem
    if not text.strip():
        raise InputError(f"{path}: empty")
    return text


def parse_json(text: str, path: str) -> Any:
    """One JSON value. Raises InputError with line and column."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise json_error(problem, path) from problem


def json_error(problem: ValueError | RecursionError, path: str, line: int = 0) -> InputError:
    """What a JSON parser's complaint says to a person. line: lines before the text that was parsed."""
    if isinstance(problem, json.JSONDecodeError):
        return InputError(f"{path}:{line + problem.lineno}:{problem.colno}: not JSON: {problem.msg}")
    if isinstance(problem, RecursionError):
        return InputError(f"{path}: not JSON that can be used: nested too deeply")
    return InputError(f"{path}: not JSON that can be used: {str(problem).splitlines()[0]}")


def parse_yaml(text: str, path: str) -> tuple[Any, Any]:
    """A YAML file as (values, Document); the Document knows lines. Raises InputError."""
    from twin.yamlfile import Document

    document = Document(path, text)
    return document.data, document


def shown(value: object) -> str:
    """A value as an error quotes it: printable, one line, short."""
    try:
        text = ascii(value[: _SHOWN * 2]) if isinstance(value, str) else ascii(repr(value))[1:-1]
    except ValueError:  # Python does not write out an integer of thousands of digits
        text = "a huge number"
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def printable(text: str) -> str:
    """Text of a file without what would steer a terminal."""
    return "".join(c if c.isprintable() else "?" for c in text)


def word(value: object) -> str:
    """A value that should be a word, as one; empty for none."""
    return "" if value is None else value if isinstance(value, str) else shown(value)


class Reader:
    """Walks parsed JSON or YAML and complains with file, place and what was expected. lines: a Document, or None."""

    def __init__(self, path: str, lines: Any = None) -> None:
        self.path = path
        self._lines = lines

    def wrong(self, place: tuple[str | int, ...], message: str) -> InputError:
        if self._lines is not None:
            return InputError(self._lines.problem(place, message))
        where = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in place).lstrip(".")
        return InputError(f"{self.path}: {where + ': ' if where else ''}{message}")

    def mapping(self, value: object, place: tuple[str | int, ...]) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise self.wrong(place, f"expected a mapping of keys to values, found {shown(value)}")
        return {key if isinstance(key, str) else shown(key): entry for key, entry in value.items()}

    def items(self, value: object, place: tuple[str | int, ...]) -> list[Any]:
        if not isinstance(value, list):
            raise self.wrong(place, f"expected a list, found {shown(value)}")
        return value

    def text(self, value: object, place: tuple[str | int, ...]) -> str:
        """A name; numbers will do, since YAML makes numbers of some names."""
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 10**12:
            return str(value)
        if not isinstance(value, str) or not value.strip():
            raise self.wrong(place, f"expected a name, found {shown(value)}")
        return value.strip()

    def integer(self, value: object, place: tuple[str | int, ...]) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or abs(value) > 1_000_000:
            raise self.wrong(place, f"expected a whole number, found {shown(value)}")
        return value
