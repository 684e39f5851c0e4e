"""Values that NVML gives by a call of their own, one number each; an older call stands behind a newer one."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from collectors.nvml.library import LACKING, Library


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


def _value(buffer: Any) -> float:
    return float(buffer.value)


def _used(buffer: Any) -> float:
    return float(buffer.used)


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
    "utilization_ratio": (Query("nvmlDeviceGetUtilizationRates", _Utilization, lambda b: b.gpu / 100),),
    # the first counts what is reserved apart from what is used, the second as used
    "memory_used_bytes": (
        Query("nvmlDeviceGetMemoryInfo_v2", lambda: _Memory2(version=0x0200_0028), _used),
        Query("nvmlDeviceGetMemoryInfo", _Memory, _used),
    ),
    "temperature_celsius": (
        Query("nvmlDeviceGetTemperatureV", lambda: _Temperature(version=0x0100_000C), lambda b: float(b.celsius)),
        Query("nvmlDeviceGetTemperature", ctypes.c_uint, _value, (_CORE,)),
    ),
    "sm_clock_hertz": (Query("nvmlDeviceGetClockInfo", ctypes.c_uint, lambda b: b.value * 1e6, (_SM,)),),
    "throttle_reasons": (
        Query("nvmlDeviceGetCurrentClocksEventReasons", ctypes.c_ulonglong, _value),
        Query("nvmlDeviceGetCurrentClocksThrottleReasons", ctypes.c_ulonglong, _value),
    ),
}
# asked for where the fields of the same metrics are not there
INSTEAD: Mapping[str, tuple[Query, ...]] = {
    "power_watts": (Query("nvmlDeviceGetPowerUsage", ctypes.c_uint, lambda b: b.value / 1e3),),
    "power_limit_watts": (Query("nvmlDeviceGetEnforcedPowerLimit", ctypes.c_uint, lambda b: b.value / 1e3),),
}


class Answers:
    """The queries of one GPU that it answers. What it lacks is not asked for again until the next `Answers`."""

    def __init__(self, queries: Mapping[str, tuple[Query, ...]]) -> None:
        self._left = {metric: list(options) for metric, options in queries.items()}
        self._ready: dict[str, tuple[Query, Any, Any]] = {}
        self.lacking: dict[str, int] = {}

    def source(self, metric: str) -> str | None:
        return self._ready[metric][0].function if metric in self._ready else None

    def read(self, library: Library, handle: ctypes.c_void_p, values: dict[str, float]) -> int:
        """Puts what is known into `values`. Returns the nvmlReturn_t of the last call that failed, else 0."""
        failed = 0
        for metric in tuple(self._left):
            while self._left.get(metric):
                query, buffer, place = self._prepared(metric)
                code = library.code(query.function, handle, *query.before, place)
                if code == 0:
                    values[metric] = query.number(buffer)
                    break
                if code not in LACKING:
                    failed = code
                    break
                self._ready.pop(metric)
                self._left[metric].pop(0)
                if not self._left[metric]:
                    del self._left[metric]
                    self.lacking[metric] = code
        return failed

    def _prepared(self, metric: str) -> tuple[Query, Any, Any]:
        if metric not in self._ready:
            query = self._left[metric][0]
            buffer = query.blank()
            self._ready[metric] = (query, buffer, ctypes.byref(buffer))
        return self._ready[metric]
