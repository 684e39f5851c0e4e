"""Pages of exporters: the Prometheus text format 0.0.4, and OpenMetrics 1.0.

https://prometheus.io/docs/instrumenting/exposition_formats and https://prometheus.io/docs/specs/om/open_metrics_spec.
Comments (HELP, TYPE, UNIT), exemplars and the order of lines carry no readings; every other line is one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from twin.errors import FabrictwinError

OPENMETRICS = "application/openmetrics-text"
ACCEPT = f"{OPENMETRICS};version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.9,text/plain;q=0.3,*/*;q=0.1"

_COMMENT = ord("#")
_QUOTED = rb'"(?:[^"\\]|\\.)*+"'
_LINE = re.compile(
    rb"[ \t]*+(?P<key>(?:[a-zA-Z_:][a-zA-Z0-9_:]*+[ \t]*+)?+(?:\{(?:[^\"{}]|" + _QUOTED + rb")*+\})?+)"
    rb"[ \t]*+(?P<value>[^ \t#]++)(?:[ \t]++(?P<time>[^ \t#]++))?+[ \t]*+(?:#.*+)?+",
    re.DOTALL,
)
_KEY = re.compile(rb"(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*+)?+[ \t]*+(?:\{(?P<labels>.*)\})?+", re.DOTALL)
_LABEL = re.compile(
    rb"[ \t]*+(?:(?P<label>[a-zA-Z_][a-zA-Z0-9_]*+)|(?P<quoted>" + _QUOTED + rb"))[ \t]*+"
    rb"(?:=[ \t]*+(?P<value>" + _QUOTED + rb"))?+[ \t]*+(?P<end>,|$)",
    re.DOTALL,
)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES = {"n": "\n", '"': '"', "\\": "\\"}

F64 = npt.NDArray[np.float64]


class PageError(FabrictwinError):
    """A page that is no exposition. Its text says which line, and what is wrong with it."""


def readings(page: bytes, *, openmetrics: bool = False) -> Iterator[tuple[bytes, float, float]]:
    """The key, value and time (seconds since the epoch, NaN where none is said) of every line that is a reading.

    A key is the name with its labels, as written. Raises PageError for a page that is cut short or malformed.
    """
    unit = 1.0 if openmetrics else 1e-3
    last = b""
    for number, raw in enumerate(page.split(b"\n"), 1):
        line = raw.strip(b" \t\r")
        if not line:
            continue
        last = line
        if line[0] == _COMMENT:
            continue
        match = _LINE.fullmatch(line)
        if match is None or not match["key"]:
            raise PageError(f"line {number}: {_shown(line)}: expected a name with labels and a value")
        try:
            time = float("nan") if match["time"] is None else _number(match["time"]) * unit
            yield match["key"].rstrip(b" \t"), _number(match["value"]), time
        except ValueError as problem:
            raise PageError(f"line {number}: {_shown(line)}: the value or time is no number") from problem
    if openmetrics and last != b"# EOF":
        raise PageError("the page is cut short: OpenMetrics ends with # EOF")


def split_key(key: bytes) -> tuple[str, dict[str, str]]:
    """The name and the labels of a key. Raises PageError where it is none."""
    match = _KEY.fullmatch(key)
    if match is None:
        raise PageError(f"{_shown(key)}: not the name of a series with its labels")
    name = None if match["name"] is None else match["name"].decode()
    labels: dict[str, str] = {}
    text, at = match["labels"] or b"", 0
    while text[at:].strip(b" \t"):
        part = _LABEL.match(text, at)
        if part is None:
            raise PageError(f"{_shown(key)}: malformed labels")
        word = part["label"].decode() if part["label"] is not None else _unquoted(part["quoted"])
        if part["value"] is not None and word not in labels:
            labels[word] = _unquoted(part["value"])
        elif part["value"] is None and name is None and part["quoted"] is not None:
            name = word  # a name of other characters stands in the braces (Prometheus 3)
        else:
            raise PageError(f"{_shown(key)}: malformed labels")
        at = part.end()
    if not name:
        raise PageError(f"{_shown(key)}: a series without a name")
    return name, labels


class Page:
    """Reads page after page of one exporter. Where the keys are those of the page before, only numbers are parsed."""

    def __init__(self) -> None:
        self.keys: list[bytes] = []  # of the last page, in its order; another list when they changed
        self._heads: list[bytes] = []
        self._lengths: list[int] = []

    def read(self, page: bytes, *, openmetrics: bool = False) -> tuple[F64, F64]:
        """float64[keys] twice: values, and times in seconds, NaN where none is said. Raises PageError."""
        values = self._again(page, openmetrics)
        if values is None:
            found = list(readings(page, openmetrics=openmetrics))
            self.keys = [key for key, _, _ in found]
            self._heads = [key + b" " for key in self.keys]
            self._lengths = [len(head) for head in self._heads]
            return np.array([v for _, v, _ in found]), np.array([t for _, _, t in found])
        return values, np.full(len(values), np.nan)

    def _again(self, page: bytes, openmetrics: bool) -> F64 | None:
        """The values of a page with the same keys, each followed by one space and a number; None for any other."""
        lines = [line for line in page.split(b"\n") if line and line[0] != _COMMENT]
        if len(lines) != len(self._heads) or not lines:
            return None
        if [line[:n] for line, n in zip(lines, self._lengths, strict=True)] != self._heads:
            return None
        if openmetrics and not page.endswith(b"# EOF\n"):
            return None
        texts = [line[n:] for line, n in zip(lines, self._lengths, strict=True)]
        if b"_" in b"".join(texts):  # Python reads 1_0 as a number
            return None
        try:
            return np.array(list(map(float, texts)))
        except ValueError:
            return None


def _number(text: bytes) -> float:
    if b"_" in text:
        raise ValueError
    return float(text)


def _unquoted(text: bytes) -> str:
    inner = text[1:-1].decode("utf-8", "replace")
    return _ESCAPE.sub(lambda m: _ESCAPES.get(m[1], m[0]), inner) if "\\" in inner else inner


def _shown(text: bytes) -> str:
    return repr(text[:80].decode("utf-8", "replace"))
