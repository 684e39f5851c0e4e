"""InfluxDB line protocol: `measurement,tag=value field=1i,other="text" 1764547200000000000`, one record a line.

Format: InfluxDB documentation, "Line protocol". Own code, because the one parser on PyPI runs untrusted bytes through
a C extension for what a few expressions do. Repetitions are possessive: no input makes them go back and try again.
"""

from __future__ import annotations

import re

from collectors.mqtt.record import Record
from twin.frames import NS

_NAME = r"(?:\\.|[^\\,= \n])++"
_VALUE = r'(?:"(?:\\[\s\S]|[^"\\])*+"|[^",\\ \n]++)'
_TAG = rf"({_NAME})=({_NAME})"
_FIELD = rf"({_NAME})=({_VALUE})"
_LINE = re.compile(
    rf"(?P<measurement>(?:\\.|[^\\, \n])++)(?P<tags>(?:,{_NAME}={_NAME})*+) ++"
    rf"(?P<fields>{_NAME}={_VALUE}(?:,{_NAME}={_VALUE})*+)(?: ++(?P<time>-?[0-9]{{1,19}}+))?+ *+\r?(?:\n|\Z)"
)
_TAGS, _FIELDS = re.compile(_TAG), re.compile(_FIELD)
_ESCAPE = re.compile(r"\\([,= ])")
_TEXT_ESCAPE = re.compile(r'\\(["\\])')
_INTEGER = re.compile(r"(-?[0-9]{1,20})([iu])", re.ASCII)
_FLOAT = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]{1,4})?", re.ASCII)
_LONGEST_FLOAT = 400
_BOOLEANS = {w: w[0] in "tT" for w in ("t", "T", "true", "True", "TRUE", "f", "F", "false", "False", "FALSE")}
_RANGES = {"i": (-(2**63), 2**63 - 1), "u": (0, 2**64 - 1)}
_LATEST = 2**33 * NS

Value = float | int | bool | str


def parse(payload: bytes) -> tuple[list[Record], list[str]]:
    """The records of a payload, and a line for each part that is none. The rest of a bad line is skipped."""
    text = payload.decode("utf-8", "replace")
    records, problems = [], []
    at, end = 0, len(text)
    while at < end:
        if text[at] in "\r\n \t":
            at += 1
            continue
        match = None if text[at] == "#" else _LINE.match(text, at)
        try:
            if match is not None:
                records.append(_record(match))
            elif text[at] != "#":
                raise ValueError("expected measurement,tag=value field=value time")
        except ValueError as problem:
            problems.append(f"not line protocol: {problem}: {text[at : at + 80].splitlines()[0]!r}")
        at = match.end() if match is not None else text.find("\n", at) % (end + 1)
    return records, problems


def _record(match: re.Match[str]) -> Record:
    tags = {_plain(k): _plain(v) for k, v in _TAGS.findall(match["tags"])}
    fields = {_plain(k): _value(v) for k, v in _FIELDS.findall(match["fields"])}
    time = None if match["time"] is None else int(match["time"])
    if time is not None and not 0 < time < _LATEST:
        raise ValueError(f"time {time}, expected nanoseconds since 1970")
    return Record(_plain(match["measurement"]), tags, fields, time)


def _plain(name: str) -> str:
    return _ESCAPE.sub(r"\1", name) if "\\" in name else name


def _value(text: str) -> Value:
    """Raises ValueError for what is no value."""
    if text[0] == '"':
        return _TEXT_ESCAPE.sub(r"\1", text[1:-1])
    if whole := _INTEGER.fullmatch(text):
        number, (least, most) = int(whole[1]), _RANGES[whole[2]]
        if least <= number <= most:
            return number
    elif text in _BOOLEANS:
        return _BOOLEANS[text]
    elif len(text) <= _LONGEST_FLOAT and _FLOAT.fullmatch(text) and abs(float(text)) != float("inf"):
        return float(text)
    raise ValueError(f"value {text[:40]!r}")
