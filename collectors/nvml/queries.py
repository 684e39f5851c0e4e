"""Values that NVML gives by a call of their own, one number each; an older call stands behind a newer one."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from math import nan
from typing import Any

from collectors.nvml.library import LACKING, Library

_NONE32, _NONE64 = 2**32 - 1, 2**64 - 1  # NVML_VALUE_NOT_AVAILABLE in an unsigned number


class _Utilization(ctypes.Structure):
    _fields_ = [("gpu", ctypes.c_uint), ("memory", ctypes.c_uint)]


class _Memory(ctypes.Structure):
    _fields_ = [(n, ctypes.c_ulonglong) for n in ("total", "free", "used")]


class _Memory2(ctypes.Structure):
    _fields_ = [
        ("version", ctypes.c_uint), *((n, ctypes.c_ulonglong) for n in ("total", "reserved", "free", "used")),
    ]  # fmt: skip


class _Temperature(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint), ("sensor", ctypes.c_uint), ("celsius", ctypes.c_int)]


def _ratio(buffer: Any) -> float:
    return buffer.gpu / 100 if buffer.gpu <= 100 else nan


def _used(buffer: Any) -> float:
    return nan if buffer.used == _NONE64 else float(buffer.used)


def _times(scale: float) -> Callable[[Any], float]:
    def number(buffer: Any) -> float:
        value = buffer.value
        return nan if value == _NONE32 else value * scale

    return number


@dataclass(frozen=True, slots=True)
class Query:
    """A call. before: what it takes between the GPU and the answer. blank: memory for the answer, made once a GPU."""

    function: str
    blank: Callable[[], Any]
    number: Callable[[Any], float]
    before: tuple[Any, ...] = ()


_SM = ctypes.c_int(1)  # NVML_CLOCK_SM
_CORE = ctypes.c_int(0)  # NVML_TEMPERATURE_GPU
QUERIES: Mapping[str, tuple[Query, ...]] = {
    "utilization_ratio": (Query("nvmlDeviceGetUtilizationRates", _Utilization, _ratio),),
    # the first counts what is reserved apart from what is used, the second as used
    "memory_used_bytes": (
        Query("nvmlDeviceGetMemoryInfo_v2", lambda: _Memory2(version=0x0200_0028), _used),
        Query("nvmlDeviceGetMemoryInfo", _Memory, _used),
    ),
    "temperature_celsius": (
        Query("nvmlDeviceGetTemperatureV", lambda: _Temperature(version=0x0100_000C), lambda b: float(b.celsius)),
        Query("nvmlDeviceGetTemperature", ctypes.c_uint, _times(1), (_CORE,)),
    ),
    "sm_clock_hertz": (Query("nvmlDeviceGetClockInfo", ctypes.c_uint, _times(1e6), (_SM,)),),
    "throttle_reasons": (
        Query("nvmlDeviceGetCurrentClocksEventReasons", ctypes.c_ulonglong, lambda b: float(b.value)),
        Query("nvmlDeviceGetCurrentClocksThrottleReasons", ctypes.c_ulonglong, lambda b: float(b.value)),
    ),
}
# asked for where the fields of the same metrics are not there
INSTEAD: Mapping[str, tuple[Query, ...]] = {
    "power_watts": (Query("nvmlDeviceGetPowerUsage", ctypes.c_uint, _times(1e-3)),),
    "power_limit_watts": (Query("nvmlDeviceGetEnforcedPowerLimit", ctypes.c_uint, _times(1e-3)),),
}
CALLED = (*QUERIES, *INSTEAD)  # the order of an answer's numbers
_ALL: Mapping[str, tuple[Query, ...]] = {**QUERIES, **INSTEAD}


class Answers:
    """The queries of one GPU that it answers. What it lacks is not asked for again until the next `Answers`."""

    def __init__(self, library: Library, handle: ctypes.c_void_p, metrics: Iterable[str]) -> None:
        self._library, self._handle = library, handle
        self._left = {metric: list(_ALL[metric]) for metric in metrics}
        self.lacking: dict[str, int] = {}
        self._prepare()

    def source(self, metric: str) -> str | None:
        return self._left[metric][0].function if metric in self._left else None

    def read(self) -> tuple[list[float], int]:
        """One number for each of CALLED, NaN where unknown; the nvmlReturn_t of the last call that failed, else 0."""
        codes = [ask() for ask in self._asks]
        if any(codes):
            return self._read_rest(codes)
        return [number() for number in self._numbers], 0

    def _read_rest(self, codes: list[int]) -> tuple[list[float], int]:
        """Where calls failed: what the others gave, or the same again where an older call takes over."""
        numbers, failed, again = [number() for number in self._numbers], 0, False
        for metric, code in zip(tuple(self._left), codes, strict=True):
            if code in LACKING:
                again = self._drop(metric, code) or again
            elif code:
                failed = code
            if code:
                numbers[CALLED.index(metric)] = nan
        self._prepare()
        return self.read() if again else (numbers, failed)

    def _drop(self, metric: str, code: int) -> bool:
        """True where another call stands behind."""
        self._left[metric].pop(0)
        if self._left[metric]:
            return True
        del self._left[metric]
        self.lacking[metric] = code
        return False

    def _prepare(self) -> None:
        """Calls and what reads their answers with all that they take, put together once."""
        self._asks: list[Callable[[], int]] = []
        numbers: dict[str, Callable[[], float]] = {}
        for metric, (query, *_) in self._left.items():
            buffer = query.blank()
            function = self._library.function(query.function)
            self._asks.append(partial(function, self._handle, *query.before, ctypes.byref(buffer)))
            numbers[metric] = partial(query.number, buffer)
        self._numbers = [numbers.get(metric, _unknown) for metric in CALLED]


def _unknown() -> float:
    return nan
