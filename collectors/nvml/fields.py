"""Field values: which fields give which metric, the batch that asks one GPU for them, and what the answers mean.

Field numbers and units: NVML_FI_* of the vendor's binding and header (nvml.h).
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from collectors.nvml.library import INVALID_ARGUMENT, LACKING, UNKNOWN, Library
from twin.frames import UNKNOWN_U64

F64 = npt.NDArray[np.float64]
U64 = npt.NDArray[np.uint64]
Entries = npt.NDArray[np.void]

# nvmlFieldValue_t: 40 bytes. type: nvmlValueType_t, code: nvmlReturn_t of this entry alone
ENTRY = np.dtype(
    [
        ("field", "<u4"), ("scope", "<u4"), ("time", "<i8"), ("latency", "<i8"), ("type", "<u4"), ("code", "<u4"),
        ("value", "<u8"),
    ]
)  # fmt: skip
_DOUBLE, _UINT, _ULONG, _ULONGLONG, _LONGLONG, _INT, _USHORT = range(7)
_SENTINEL = np.uint64(0x7FFF_FFFF_FFFF_FFF0)  # from here up the vendor's tools mean "not supported" (DCGM)
_SMALL_BATCH = 64  # entries a call, where a driver refuses all at once


@dataclass(frozen=True, slots=True)
class Source:
    """A field that gives a metric once it is multiplied by `scale`. wide: useless when it is only 32 bits."""

    field: int
    scale: float = 1
    scope: int = 0
    wide: bool = False


# metric -> fields, the better first. Names with a dot are no metrics of the registry.
GPU_FIELDS: Mapping[str, tuple[Source, ...]] = {
    "power_watts": (Source(185, 1e-3), Source(186, 1e-3)),  # average over 1 s, instant; mW; scope 0 is the GPU
    "power_limit_watts": (Source(190, 1e-3),),
    "energy_joules": (Source(83, 1e-3), Source(191, 1e-3)),  # mJ since the driver was loaded
    "ecc_uncorrected": (Source(4), Source(6)),  # since the driver was loaded, in the GPU's life
    # a 32-bit byte counter of PCIe 5 x16 (64 GB/s) wraps in 67 ms: no rate can be had from it
    "pcie_tx_bytes": (Source(197, wide=True),),
    "pcie_rx_bytes": (Source(198, wide=True),),
    ".recovery_action": (Source(230),),
    ".module_watts": (Source(185, 1e-3, scope=1),),  # both GPUs of a module report it
}
# scope: the link. A field asked for without one would be link 0's.
LINK_FIELDS: Mapping[str, tuple[Source, ...]] = {
    ".state": (Source(165),),
    "speed_bytes_per_second": (Source(164, 1e6),),  # MB/s
    "tx_bytes": (Source(202), Source(138, 1024)),  # bytes (NVLink 5), KiB
    "rx_bytes": (Source(204), Source(139, 1024)),
    "crc_errors": (Source(163),),
    "replay_errors": (Source(161),),
    "recovery_errors": (Source(162), Source(215)),
    "symbol_errors": (Source(221),),
}
RARE_GPU_FIELDS: Mapping[str, tuple[Source, ...]] = {
    ".remap_pending": (Source(144),),
    ".remap_failed": (Source(145),),
}
RARE_LINK_FIELDS: Mapping[str, tuple[Source, ...]] = {".effective_ber": (Source(220),)}
LINK_COUNT = 91


def entries_for(wanted: Sequence[tuple[int, int]]) -> Entries:
    """Entries that ask for (field, scope) each."""
    out = np.zeros(len(wanted), ENTRY)
    if wanted:
        out["field"], out["scope"] = np.array(wanted, np.uint32).T
    return out


def decode(entries: Entries) -> tuple[F64, U64]:
    """float64[n] (NaN where unknown) and uint64[n] (all ones where unknown or no natural number)."""
    kind, raw = entries["type"], entries["value"]
    low = raw & np.uint64(0xFFFF_FFFF)
    known = entries["code"] == 0
    is_uint, is_short, is_double = kind == _UINT, kind == _USHORT, kind == _DOUBLE
    is_long, is_int = kind == _LONGLONG, kind == _INT
    whole = np.where(is_uint | is_int, low, np.where(is_short, raw & np.uint64(0xFFFF), raw))
    known &= np.where(is_uint, low != np.uint64(0xFFFF_FFFF), (raw < _SENTINEL) | is_short | is_int | is_long)
    known |= is_double & (entries["code"] == 0)
    values = whole.astype(np.float64)
    odd = is_double | is_long | is_int
    if odd.any():
        signed = np.where(is_int, low.astype(np.uint32).view(np.int32).astype(np.float64), raw.view(np.int64))
        values = np.where(is_double, raw.view(np.float64), np.where(is_long | is_int, signed, values))
        natural = np.isfinite(values) & (values >= 0) & (values < 2.0**63) & (values == np.floor(values))
        known &= ~is_double | (np.isfinite(values) & (np.abs(values) < 140737488355328))  # from there up: no value
        known &= ~is_long | (raw < _SENTINEL) | (raw >= np.uint64(1 << 63))
        natural &= known
        whole = np.where(is_double & natural, np.where(natural, values, 0).astype(np.uint64), whole)
        whole = np.where(odd & ~natural, UNKNOWN_U64, whole)
    return np.where(known, values, np.nan), np.where(known, whole, UNKNOWN_U64)


def scaled(whole: U64, scale: U64) -> U64:
    """Counters in other units; unknown where that no longer fits 64 bits."""
    fits = whole < UNKNOWN_U64 // np.maximum(scale, np.uint64(1))
    return np.where(fits, np.where(fits, whole, np.uint64(0)) * scale, UNKNOWN_U64)


def bit_error_rate(coded: int) -> float:
    """Fields 220 and 222: exponent in bits 0 to 7, mantissa in 8 to 11, m x 10^-e; 15 and 255 mean none at all."""
    exponent, mantissa = coded & 0xFF, coded >> 8 & 0xF
    return 0.0 if (mantissa, exponent) == (15, 255) else mantissa * 10.0**-exponent


class Batch:
    """Field values of one GPU, asked for in one call into memory that is kept."""

    def __init__(self, wanted: Sequence[tuple[int, int]]) -> None:
        self.entries = entries_for(wanted)
        self.unread = self.entries.copy()
        self.unread["code"] = UNKNOWN
        self._size = len(wanted)

    def read(self, library: Library, handle: ctypes.c_void_p) -> int:
        """The nvmlReturn_t of the whole call; each entry has its own beside."""
        if not len(self.entries):
            return 0
        self.entries[:] = self.unread
        code = self._ask(library, handle)
        if code == INVALID_ARGUMENT and self._size > _SMALL_BATCH:
            self._size = _SMALL_BATCH
            code = self._ask(library, handle)
        return code

    def _ask(self, library: Library, handle: ctypes.c_void_p) -> int:
        start, count, code = self.entries.ctypes.data, len(self.entries), 0
        for first in range(0, count, self._size):
            part = min(self._size, count - first)
            place = ctypes.c_void_p(start + first * ENTRY.itemsize)
            code = library.code("nvmlDeviceGetFieldValues", handle, ctypes.c_int(part), place)
            if code:
                break
        return code


@dataclass(slots=True)
class Plan:
    """What one GPU has of the fields of a table, and where in its batch each metric lies.

    gpu: metric -> (place, source); links: metric -> (place of link 0, source), the links of a metric in a row.
    lacking: metric -> nvmlReturn_t, or -1 for a counter too narrow to be of use.
    """

    batch: Batch
    n_links: int
    gpu: dict[str, tuple[int, Source]] = field(default_factory=dict)
    links: dict[str, tuple[int, Source]] = field(default_factory=dict)
    lacking: dict[str, int] = field(default_factory=dict)


NARROW = -1


def probe(
    library: Library,
    handle: ctypes.c_void_p,
    n_links: int,
    gpu_fields: Mapping[str, tuple[Source, ...]],
    link_fields: Mapping[str, tuple[Source, ...]],
) -> tuple[int, Plan]:
    """Asks for every field once; the plan asks for those that gave something, on any link. (code, plan)."""
    tables = ((gpu_fields, False), (link_fields, True))
    wanted: list[tuple[int, int]] = []
    for table, per_link in tables:
        for sources in table.values():
            for s in sources:
                wanted += [(s.field, k) for k in range(n_links)] if per_link else [(s.field, s.scope)]
    everything = Batch(wanted)
    code = everything.read(library, handle)
    codes, kinds = everything.entries["code"], everything.entries["type"]
    plan = Plan(Batch(()), n_links)
    chosen: list[tuple[int, int]] = []
    at = 0
    for table, per_link in tables:
        for metric, sources in table.items():
            count = n_links if per_link else 1
            first, at = at, at + count * len(sources)
            if not count:
                continue
            found, why = _choose(sources, codes[first:at].reshape(-1, count), kinds[first:at].reshape(-1, count))
            if found is None:
                plan.lacking[metric] = why
                continue
            (plan.links if per_link else plan.gpu)[metric] = (len(chosen), found)
            chosen += [(found.field, k) for k in range(n_links)] if per_link else [(found.field, found.scope)]
    plan.batch = Batch(chosen)
    return code, plan


def _choose(sources: Sequence[Source], codes: npt.NDArray[np.uint32], kinds: Entries) -> tuple[Source | None, int]:
    """The first source that any link answered to, else the first that failed in a way that may pass."""
    later, why = None, 0
    for source, code, kind in zip(sources, codes.tolist(), kinds.tolist(), strict=True):
        good = [k for c, k in zip(code, kind, strict=True) if c == 0]
        if good and source.wide and all(k in (_UINT, _INT, _USHORT) for k in good):
            why = why or NARROW
        elif good:
            return source, 0
        elif later is None and any(c not in LACKING for c in code):
            later = source
        else:
            why = why or code[0]
    return later, why
