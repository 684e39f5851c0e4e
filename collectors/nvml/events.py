"""XID errors and GPUs that became unavailable, as the driver's events tell. Only what comes after registering."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

from collectors.nvml.library import LACKING, Library

XID, UNAVAILABLE, RECOVERY = 0x8, 0x4000, 0x8000  # nvmlEventType*
_WANTED = XID | UNAVAILABLE | RECOVERY
_MOST = 256  # events taken in one sample; a GPU in a storm of errors must not hold up the rest


class _EventData(ctypes.Structure):
    _fields_ = [
        ("device", ctypes.c_void_p), ("type", ctypes.c_ulonglong), ("data", ctypes.c_ulonglong),
        ("gpu_instance", ctypes.c_uint), ("compute_instance", ctypes.c_uint),
    ]  # fmt: skip


class Events:
    """An event set over the GPUs that take part. xid: last XID by handle, 0 none yet; a GPU not in it gives none."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._set: ctypes.c_void_p | None = None
        self._data = _EventData()
        self.xid: dict[int, int] = {}
        self.unavailable: set[int] = set()

    def register(self, handles: Sequence[ctypes.c_void_p]) -> None:
        """A healthy GPU may support no events at all: then it is left out."""
        made = ctypes.c_void_p()
        if self._library.code("nvmlEventSetCreate", ctypes.byref(made)):
            return
        self._set = made
        for handle in handles:
            supported = ctypes.c_ulonglong()
            code = self._library.code("nvmlDeviceGetSupportedEventTypes", handle, ctypes.byref(supported))
            kinds = supported.value & _WANTED if code == 0 else XID if code in LACKING else 0
            if not kinds & XID or handle.value is None:
                continue
            if self._library.code("nvmlDeviceRegisterEvents", handle, ctypes.c_ulonglong(kinds), made) == 0:
                self.xid[handle.value] = 0

    def poll(self) -> None:
        """Takes what is waiting, without waiting."""
        if self._set is None or not self.xid:
            return
        data = self._data
        for _ in range(_MOST):
            if self._library.code("nvmlEventSetWait_v2", self._set, ctypes.byref(data), ctypes.c_uint(0)):
                return  # TIMEOUT: there are no more
            if data.device in self.xid:
                if data.type & XID:
                    self.xid[data.device] = data.data
                if data.type & UNAVAILABLE:
                    self.unavailable.add(data.device)

    def close(self) -> None:
        if self._set is not None:
            self._library.code("nvmlEventSetFree", self._set)
            self._set = None
