"""Times as people write them, within a recording."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from twin.errors import InputError
from twin.frames import NS, time_ns

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_STEP = re.compile(r"([+-])\s*(\d+(?:\.\d+)?)\s*([smhd]?)")
_TIME = re.compile(r"(?:(\d{4})-(\d\d)-(\d\d)[ T])?(\d{1,2}):(\d\d)(?::(\d\d(?:\.\d+)?))?(?:Z| ?UTC)?")
_EPOCH = re.compile(r"\d{9,10}(?:\.\d+)?")
_SHARE = re.compile(r"(\d+(?:\.\d+)?)\s*%")
EXAMPLES = "12:34:56   12:34   2025-12-01 12:34   +90s   -5m   50%"


def parse_when(text: str, now: int, start: int, end: int) -> int | None:
    """The time that `text` means, ns: a UTC time of day or date, seconds since the epoch, a step from `now`, or a
    share of the recording.

    A time of day without a date is the first such moment of the recording, else the nearest to it.
    None where the text is none of these.
    """
    text = text.strip()
    if match := _STEP.fullmatch(text):
        seconds = float(match[2]) * _UNITS[match[3] or "s"]
        return now + round(seconds * NS) * (1 if match[1] == "+" else -1)
    if match := _SHARE.fullmatch(text):
        return start + round(min(100.0, float(match[1])) / 100 * (end - start))
    if _EPOCH.fullmatch(text):
        return time_ns(float(text))
    if match := _TIME.fullmatch(text):
        return _moment(match, start, end)
    return None


def bound(option: str, text: str, start: int, end: int) -> int:
    """As parse_when; a step forward counts from the start and one back from the end. Raises InputError."""
    text = text.strip()
    found = parse_when(text, end if text.startswith("-") else start, start, end)
    if found is None:
        raise InputError(f"{option}: {text!r} is no time; expected for example {', '.join(EXAMPLES.split('   '))}")
    return found


def _moment(match: re.Match[str], start: int, end: int) -> int | None:
    day = datetime.fromtimestamp(start / NS, UTC)
    try:
        date = [int(match[i]) for i in (1, 2, 3)] if match[1] else [day.year, day.month, day.day]
        moment = datetime(date[0], date[1], date[2], int(match[4]), int(match[5]), tzinfo=UTC)
    except ValueError:
        return None
    time = round(moment.timestamp()) * NS + round(float(match[6] or 0) * NS)
    if not match[1] and time < start and time + 86_400 * NS <= end:
        time += 86_400 * NS  # the recording goes past midnight
    return time
