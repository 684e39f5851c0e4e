"""The NVML library of this machine: opened through the vendor's binding, called by name, errors as codes.

The binding (nvidia-ml-py) is imported when the library is opened. Calls that are made every second, and those whose
answer may hold bytes that are no UTF-8, go to the same library without the binding's wrappers, which raise on such.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from typing import Any

from collectors.base import CollectorError

# nvmlReturn_t, as the binding lists them
UNINITIALIZED, INVALID_ARGUMENT, NOT_SUPPORTED, NO_PERMISSION, NOT_FOUND = 1, 2, 3, 4, 6
DRIVER_NOT_LOADED, TIMEOUT, FUNCTION_NOT_FOUND, GPU_IS_LOST, RESET_REQUIRED = 9, 10, 13, 15, 16
VERSION_MISMATCH, WRONG_VERSION, DEPRECATED, GPU_NOT_FOUND, UNKNOWN = 18, 25, 26, 28, 999

# the GPU, driver or library does not have what was asked for, and will not have it a second later
LACKING = frozenset((INVALID_ARGUMENT, NOT_SUPPORTED, NO_PERMISSION, FUNCTION_NOT_FOUND, WRONG_VERSION, DEPRECATED))
# what NVML was opened for is gone: a driver that was unloaded, loaded anew or replaced
STALE = frozenset((UNINITIALIZED, DRIVER_NOT_LOADED, VERSION_MISMATCH))

Call = Callable[..., int]

_LIBRARY = "libnvidia-ml.so.1"
_TEXT = 96  # bytes; NVML_DEVICE_NAME_V2_BUFFER_SIZE, the longest of the texts read here
_SAID = {
    UNINITIALIZED: "NVML is not initialised", NOT_SUPPORTED: "not supported", NO_PERMISSION: "no permission",
    DRIVER_NOT_LOADED: "the NVIDIA driver is not loaded", TIMEOUT: "the driver timed out",
    FUNCTION_NOT_FOUND: "this library does not have it", GPU_IS_LOST: "the GPU is lost: it fell off the bus",
    RESET_REQUIRED: "the GPU needs a reset", GPU_NOT_FOUND: "no GPU there", INVALID_ARGUMENT: "refused by the driver",
    VERSION_MISMATCH: "driver and library are of different versions: reboot, or reload the driver",
    WRONG_VERSION: "this library does not have it", DEPRECATED: "no longer supported",
    UNKNOWN: "unknown error of the driver",
}  # fmt: skip


class NvmlFault(CollectorError):
    """A call that failed. code: its nvmlReturn_t."""

    def __init__(self, code: int, call: str) -> None:
        super().__init__(f"{call}: {said(code)}")
        self.code = code


def said(code: int) -> str:
    """What an nvmlReturn_t means."""
    return _SAID.get(code, f"NVML error {code}")


class Library:
    """NVML from `open` to `close`. Not thread-safe by itself; NVML's own calls are."""

    def __init__(self) -> None:
        self._binding: Any = None
        self._calls: dict[str, Call] = {}
        self._pid = 0

    @property
    def is_open(self) -> bool:
        """False in a process that was forked from the one that opened it, too: NVML must be opened there anew."""
        return self._pid == os.getpid()

    def open(self) -> None:
        """Raises CollectorError where there is no binding, no library, or the driver does not answer."""
        try:
            ctypes.CDLL(_LIBRARY)  # the binding loads it by the same name; without it there is no need to import that
        except OSError as problem:
            raise CollectorError(f"NVML: {_LIBRARY} is not there: no NVIDIA driver on this host?") from problem
        try:
            import pynvml
        except ImportError as problem:
            raise CollectorError("NVML: the Python package nvidia-ml-py is not installed") from problem
        try:
            pynvml.nvmlInit()
        except pynvml.NVMLError as problem:
            raise NvmlFault(int(problem.value), "nvmlInit") from problem
        self._binding, self._pid = pynvml, os.getpid()

    def close(self) -> None:
        """One nvmlShutdown for one nvmlInit. What the driver says to it does not matter any more."""
        if self.is_open:
            self._pid = 0
            try:
                self._binding.nvmlShutdown()
            except self._binding.NVMLError:
                return

    def function(self, name: str) -> Call:
        """A call by its name, for those made every second; one that this library lacks says FUNCTION_NOT_FOUND."""
        call = self._calls.get(name)
        if call is None:
            try:
                call = self._binding.nvmlLib[name]  # one of our own: the binding's may be given types of arguments
            except AttributeError:
                call = _missing
            self._calls[name] = call
        return call

    def code(self, name: str, *arguments: object) -> int:
        """The nvmlReturn_t of a call."""
        return self.function(name)(*arguments)

    def call(self, name: str, *arguments: object) -> None:
        """Raises NvmlFault."""
        code = self.code(name, *arguments)
        if code:
            raise NvmlFault(code, name)

    def text(self, name: str, *before: object) -> str:
        """A text: what is no UTF-8 in it, or cannot be printed, becomes a mark. Raises NvmlFault."""
        buffer = ctypes.create_string_buffer(_TEXT)
        self.call(name, *before, buffer, ctypes.c_uint(_TEXT))
        return printable(buffer.value)

    def text_or_none(self, name: str, *before: object) -> str | None:
        try:
            return self.text(name, *before) or None
        except NvmlFault as fault:
            if fault.code in LACKING:
                return None
            raise


def printable(raw: bytes) -> str:
    """Bytes of a name or serial as text without control characters."""
    text = raw.decode("utf-8", "replace")
    return "".join(c if c.isprintable() else "?" for c in text).strip()


def _missing(*_: object) -> int:
    return FUNCTION_NOT_FOUND
