"""Where a GPU sits in an NVLink fabric, and what the fabric says of itself.

Link state, fabric state, its status and its health are four different things: all links may be active and the
fabric dead all the same. Layouts and values: nvmlGpuFabricInfo_v2_t, _v3_t, nvmlPlatformInfo_v2_t of the binding.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from collectors.nvml.library import (
    INVALID_ARGUMENT,
    LACKING,
    NOT_SUPPORTED,
    WRONG_VERSION,
    Library,
    NvmlFault,
    printable,
    said,
)  # fmt: skip

T = TypeVar("T")

NOT_STARTED, IN_PROGRESS, COMPLETED = 1, 2, 3
NO_CLUSTER = "00000000-0000-0000-0000-000000000000"
_VERSIONS = (0x0300_0028, 0x0200_0024)  # version and size of the layout
_PLATFORM = 0x0200_002C
_FABRIC_CALL = "nvmlDeviceGetGpuFabricInfoV"

# (first bit, what is wrong) of two-bit fields: 1 true, 2 false, 0 not told
_HEALTH = ((0, "bandwidth is degraded"), (2, "a route is being recovered"), (4, "a route is unhealthy"),
           (6, "recovering from access timeouts"))  # fmt: skip
_CONFIGURATION = {
    2: "wrong system GUID", 3: "wrong chassis serial number", 4: "no partition", 5: "too few NVLinks",
    6: "GPU firmware does not fit", 7: "wrong place", 8: "GPU state is invalid",
}  # fmt: skip
_SUMMARY = {2: "unhealthy", 3: "of limited capacity"}


class _Fabric(ctypes.Structure):
    _fields_ = [
        ("version", ctypes.c_uint), ("cluster", ctypes.c_uint8 * 16), ("status", ctypes.c_uint),
        ("clique", ctypes.c_uint32), ("state", ctypes.c_uint8), ("health", ctypes.c_uint32),
        ("summary", ctypes.c_uint8),
    ]  # fmt: skip


class _Platform(ctypes.Structure):
    # numbers as bytes: declared as characters, a zero would end the text
    _fields_ = [
        ("version", ctypes.c_uint), ("guid", ctypes.c_uint8 * 16), ("chassis", ctypes.c_uint8 * 16),
        *((n, ctypes.c_uint8) for n in ("slot", "tray", "host", "peer", "module")),
    ]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Fabric:
    """What a GPU says of its NVLink fabric. cluster: UUID; status: nvmlReturn_t; summary: 0 not told, 1 healthy."""

    cluster: str
    clique: int
    state: int
    status: int
    health: int
    summary: int

    @property
    def home(self) -> str:
        """GPUs of the same can reach each other."""
        return f"cluster {self.cluster} clique {self.clique}"

    def problems(self, *, rack_scale: bool) -> list[str]:
        """What is wrong besides the state. No cluster in a completed state is normal on one board, in a rack not."""
        out = []
        if self.state == COMPLETED and self.status:
            out.append(f"fabric registration ended with an error: {said(self.status)}")
        if rack_scale and self.state == COMPLETED and not self.status and self.cluster == NO_CLUSTER:
            out.append("fabric registration completed without a cluster: the GPU is in no NVLink domain of the rack")
        out += [f"fabric: {text}" for bit, text in _HEALTH if self.health >> bit & 3 == 1]
        configuration = _CONFIGURATION.get(self.health >> 8 & 15)
        if configuration is not None:
            out.append(f"fabric: configuration is wrong: {configuration}")
        if self.summary in _SUMMARY and len(out) == 0:
            out.append(f"fabric is {_SUMMARY[self.summary]}")
        return out


@dataclass(frozen=True, slots=True)
class Place:
    """Where a GPU sits. slot counts switch trays too, tray does not; module: its number on the board, not its index.

    peer: the platform's code for what its NVLinks lead to; the binding does not say what the codes mean.
    """

    chassis: str
    slot: int
    tray: int
    host: int
    peer: int
    module: int

    @property
    def rack_scale(self) -> bool:
        """A tray of a rack whose trays share an NVLink fabric, as NVL72; a single board has no chassis number."""
        return bool(self.chassis)


def read_fabric(library: Library, handle: ctypes.c_void_p) -> Fabric:
    """Raises NvmlFault, with a code of LACKING where the GPU, its driver or the library knows no fabric."""
    fault = NvmlFault(NOT_SUPPORTED, _FABRIC_CALL)
    for version in _VERSIONS:
        raw = _Fabric(version=version)
        code = library.code(_FABRIC_CALL, handle, ctypes.byref(raw))
        if code == 0 and raw.state:
            h = bytes(raw.cluster).hex()
            cluster = f"{h[:8]}-{h[8:12]}-{h[12:16]}-{h[16:20]}-{h[20:]}"
            summary = raw.summary if version == _VERSIONS[0] else 0
            return Fabric(cluster, raw.clique, raw.state, raw.status, raw.health, summary)
        if code == 0:  # NVML_GPU_FABRIC_STATE_NOT_SUPPORTED
            break
        fault = NvmlFault(code, _FABRIC_CALL)
        if code not in (WRONG_VERSION, INVALID_ARGUMENT):
            break
    raise fault


def read_place(library: Library, handle: ctypes.c_void_p) -> Place:
    """Raises NvmlFault, with a code of LACKING where it is not told."""
    raw = _Platform(version=_PLATFORM)
    library.call("nvmlDeviceGetPlatformInfo", handle, ctypes.byref(raw))
    chassis = printable(bytes(raw.chassis).partition(b"\0")[0])
    return Place(chassis, raw.slot, raw.tray, raw.host, raw.peer, raw.module)


def or_none(read: Callable[[Library, ctypes.c_void_p], T], library: Library, handle: ctypes.c_void_p) -> T | None:
    """What `read` gives, None where the GPU, driver or library lacks it. Raises NvmlFault."""
    try:
        return read(library, handle)
    except NvmlFault as fault:
        if fault.code in LACKING:
            return None
        raise
