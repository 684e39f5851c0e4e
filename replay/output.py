"""The file under a recording: it knows how much of it is whole, and can be cut back to that."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path

from twin.errors import InputError


class Output:
    """A file opened for writing. Nothing waits in the process: a write is a system call.

    Raises InputError where it cannot be opened, or holds something already and `overwrite` is false.
    """

    def __init__(self, path: Path, overwrite: bool) -> None:
        try:
            if not overwrite and path.is_file() and path.stat().st_size:
                raise InputError(f"{path}: exists and is not empty; choose another name, or remove it first")
            self._file = path.open("wb", buffering=0)
        except OSError as problem:
            raise InputError(f"{path}: cannot be written: {problem.strerror}") from problem
        self._at = 0
        self.kept = 0  # bytes that are whole

    @property
    def closed(self) -> bool:
        return self._file.closed

    def write(self, data: bytes) -> int:
        rest = memoryview(data)
        while rest:
            rest = rest[self._file.write(rest) :]
        self._at += len(data)
        return len(data)

    def tell(self) -> int:
        return self._at

    def flush(self) -> None:
        """Nothing is held back."""

    def keep(self) -> None:
        """Marks what is written so far as whole."""
        self.kept = self._at

    def close(self) -> None:
        self.keep()
        try:
            os.fsync(self._file.fileno())
        except OSError as problem:
            if problem.errno not in (errno.EINVAL, errno.ENOTSUP):  # a device or pipe knows no sync
                raise
        self._file.close()

    def abandon(self) -> None:
        """Cuts the file back to what is whole."""
        with suppress(OSError):
            self._file.truncate(self.kept)
        with suppress(OSError):
            self._file.close()
