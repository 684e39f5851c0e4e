"""Reading the kernel's small files, and what their text may mean. Whatever cannot be read is None, never zero."""

from __future__ import annotations

import errno
import os
import re
import resource
import stat
import string
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path

from twin.address import kind_of
from twin.errors import InputError
from twin.frames import UNKNOWN_U64, Frame, column
from twin.metrics import REGISTRY

Value = float | int | None

SYS = Path("/sys")
MAX_FILE = 4096  # bytes; a sysfs file is at most one page
# O_NONBLOCK: opening must not wait, should the path be no sysfs file but a pipe
_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
LOOK_AGAIN = 60  # readings after which a file that was missing is looked for again
_LIMIT_FILES = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
_MOST_OPEN = 4096 if _LIMIT_FILES == resource.RLIM_INFINITY else min(4096, _LIMIT_FILES // 2)
_KEPT_OPEN = threading.Semaphore(_MOST_OPEN)  # files that all collectors together keep open
_WHOLE = re.compile(r"[0-9]{1,20}", re.ASCII)  # 20 digits: 2^64 - 1
_LIMIT = int(UNKNOWN_U64)  # all ones is what a driver answers for "unknown", and what a column means by it


def read(path: Path) -> str | None:
    """The text of a file without the white space around it; None where it cannot be read."""
    try:
        handle = os.open(path, _FLAGS)
    except (OSError, ValueError):  # ValueError: a NUL in the path
        return None
    try:
        return _text(os.read(handle, MAX_FILE))
    except OSError:  # a driver may refuse a read it offers: EINVAL for a port that is down, EIO, ENODEV
        return None
    finally:
        os.close(handle)


def _text(content: bytes) -> str:
    return content.decode("ascii", "replace").strip(string.whitespace)


class Files:
    """The files below one directory, kept open from one reading to the next.

    A file of sysfs that is read again from its start asks the kernel anew, so a value costs one system call instead
    of three and a walk along the path. Files that are not there are looked for again only now and then. Half of the
    process's file limit is kept open at most; beyond it a file is opened for each reading. For one thread at a time.
    there: what `present` last said.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._base = f"{directory}/"
        self._same: tuple[int, int] | None = None  # device and inode: which directory the open files are of
        self._open: dict[str, int] = {}
        self._missing: dict[str, int] = {}  # file -> the reading at which to look again
        self.readings = 0
        self.there = False

    def present(self) -> bool:
        """True where the directory is there. Ask before each round of reading: one that was renamed, or removed and
        made again under its old name, is another directory, and what was open of the old one is closed."""
        self.readings += 1
        try:
            found = self.directory.stat()
            self.there = stat.S_ISDIR(found.st_mode)
        except (OSError, ValueError):
            self.there = False
        if not self.there:
            self.close()
        elif self._same != (found.st_dev, found.st_ino):
            self.close()
            self._same = (found.st_dev, found.st_ino)
        return self.there

    def read(self, name: str) -> str | None:
        """The text of one file without the white space around it; None where it cannot be read."""
        handle = self._open.get(name)
        if handle is None:
            return self._first(name)
        try:
            return _text(os.pread(handle, MAX_FILE, 0))
        except OSError as problem:
            if problem.errno == errno.ENODEV:  # what the file belonged to is gone
                self._drop(name)
            return None

    def number(self, name: str) -> int | None:
        """A whole number in one file; None where it holds none."""
        return whole(self.read(name))

    def close(self) -> None:
        """Closes every file; a later reading opens them again."""
        for name in list(self._open):
            self._drop(name)
        self._missing.clear()
        self._same = None

    def __del__(self) -> None:
        self.close()

    def _first(self, name: str) -> str | None:
        if self._missing.get(name, 0) > self.readings:
            return None
        if not _KEPT_OPEN.acquire(blocking=False):
            return read(Path(self._base + name))
        try:
            self._open[name] = os.open(self._base + name, _FLAGS)
        except (OSError, ValueError) as problem:
            _KEPT_OPEN.release()
            if isinstance(problem, OSError) and problem.errno in (errno.ENOENT, errno.ENOTDIR):
                self._missing[name] = self.readings + LOOK_AGAIN
            return None
        return self.read(name)

    def _drop(self, name: str) -> None:
        os.close(self._open.pop(name))
        _KEPT_OPEN.release()


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
