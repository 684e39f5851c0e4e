"""Reading the kernel's small files, and what their text may mean. Whatever cannot be read is None, never zero."""

from __future__ import annotations

import os
import re
import string
from collections.abc import Iterable, Mapping
from pathlib import Path

from twin.address import kind_of
from twin.errors import InputError
from twin.frames import UNKNOWN_U64, Frame, column
from twin.metrics import REGISTRY

Value = float | int | None

MAX_FILE = 4096  # bytes; a sysfs file is at most one page
_WHOLE = re.compile(r"[0-9]{1,20}", re.ASCII)  # 20 digits: 2^64 - 1
_LIMIT = int(UNKNOWN_U64)  # all ones is what a driver answers for "unknown", and what a column means by it


def read(path: Path) -> str | None:
    """The text of a file without the white space around it; None where it cannot be read."""
    try:
        # O_NONBLOCK: opening must not wait, should the path be no sysfs file but a pipe
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (OSError, ValueError):  # ValueError: a NUL in the path
        return None
    try:
        return os.read(handle, MAX_FILE).decode("ascii", "replace").strip(string.whitespace)
    except OSError:  # a driver may refuse a read it offers: EINVAL for a port that is down, EIO, ENODEV
        return None
    finally:
        os.close(handle)


def entries(path: Path) -> list[str] | None:
    """What a directory holds; None where there is no such directory."""
    try:
        return [entry.name for entry in path.iterdir()]
    except (OSError, ValueError):
        return None


def whole(text: str | None) -> int | None:
    """A counter or another whole number. `N/A (no PMA)`, `-1` and an empty file are None."""
    if text is None or not _WHOLE.fullmatch(text):
        return None
    number = int(text)
    return number if number < _LIMIT else None


def scaled(number: int | None, factor: int) -> int | None:
    """`number` in other units; None where that no longer fits a column of 64 bits."""
    return number * factor if number is not None and number * factor < _LIMIT else None


def port_frame(time: int, source: str, metrics: Iterable[str], rows: Mapping[str, Mapping[str, Value]]) -> Frame:
    """A frame of ports: `rows` gives each address its values, and what it leaves out of `metrics` is unknown."""
    columns = {m: column((row.get(m) for row in rows.values()), counter=REGISTRY["port", m].counter) for m in metrics}
    return Frame(time, source, "port", tuple(rows), columns)


def check_addresses(what: str, addresses: Iterable[str]) -> None:
    """Raises InputError for an address that is no port and for one given twice."""
    problems, seen = [], set()
    for address in addresses:
        if kind_of(address) != "port":
            problems.append(f"{what}: {address!r} is not the address of a port, such as n0/nic0/p0")
        if address in seen:
            problems.append(f"{what}: two devices are mapped to {address}")
        seen.add(address)
    if problems:
        raise InputError(problems)
