"""Field values: which fields give which metric, and the batch that asks one GPU for them.

Field numbers and units: NVML_FI_* of the vendor's binding and header (nvml.h).
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from collectors.nvml.library import INVALID_ARGUMENT, LACKING, UNKNOWN, Library
from collectors.nvml.values import ENTRY, INT, U64, UINT, USHORT, WORDS, Entries

_SMALL_BATCH = 64  # entries a call, where a driver refuses all at once
_CALL = "nvmlDeviceGetFieldValues"


@dataclass(frozen=True, slots=True)
class Source:
    """A field that gives a metric once it is multiplied by `scale`. wide: useless when it is only 32 bits."""

    field: int
    scale: float = 1
    scope: int = 0
    wide: bool = False


# metric -> fields, the better first. Names with a dot are no metrics of the registry.
GPU_FIELDS: Mapping[str, tuple[Source, ...]] = {
    "power_watts": (Source(186, 1e-3), Source(185, 1e-3)),  # instant, average over 1 s; mW; scope 0 is the GPU
    "power_limit_watts": (Source(190, 1e-3),),
    "energy_joules": (Source(83, 1e-3), Source(191, 1e-3)),  # mJ since the driver was loaded
    "ecc_uncorrected": (Source(4), Source(6)),  # since the driver was loaded, in the GPU's life
    # a 32-bit byte counter of PCIe 5 x16 (64 GB/s) wraps in 67 ms: no rate can be had from it
    "pcie_tx_bytes": (Source(197, wide=True),),
    "pcie_rx_bytes": (Source(198, wide=True),),
    ".recovery_action": (Source(230),),
    ".module_watts": (Source(186, 1e-3, scope=1), Source(185, 1e-3, scope=1)),  # both GPUs of a module report it
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
    "rx_errors": (Source(208),),  # NVLink 5, as the next
    "tx_discards": (Source(212),),
}
LINK_COUNT = 91


def entries_for(wanted: Sequence[tuple[int, int]]) -> Entries:
    """Entries that ask for (field, scope) each."""
    out = np.zeros(len(wanted), ENTRY)
    if wanted:
        out["field"], out["scope"] = np.array(wanted, np.uint32).T
    return out


class Batch:
    """Field values of one GPU, asked for in one call into memory that is kept.

    entries: ENTRY[n]; words: the same memory as uint64[n, WORDS]; unread: uint64[n, WORDS] of which nothing is known.
    """

    def __init__(self, wanted: Sequence[tuple[int, int]]) -> None:
        self.entries = entries_for(wanted)
        self.words: U64 = self.entries.view(np.uint64).reshape(-1, WORDS)
        unread = self.entries.copy()
        unread["code"] = UNKNOWN
        self.unread: U64 = unread.view(np.uint64).reshape(-1, WORDS)
        self._clean = (ctypes.c_void_p(_at(self.words)), ctypes.c_void_p(_at(self.unread)), self.words.nbytes)
        self._parts = self._split(max(len(wanted), 1))

    def read(self, library: Library, handle: ctypes.c_void_p) -> int:
        """The nvmlReturn_t of the whole call; each entry has its own beside."""
        code = self._ask(library, handle)
        if code == INVALID_ARGUMENT and len(self.entries) > _SMALL_BATCH and len(self._parts) == 1:
            self._parts = self._split(_SMALL_BATCH)
            code = self._ask(library, handle)
        return code

    def _ask(self, library: Library, handle: ctypes.c_void_p) -> int:
        ctypes.memmove(*self._clean)  # what the driver does not answer must not look like an answer of before
        ask = library.function(_CALL)
        for count, place in self._parts:
            code: int = ask(handle, count, place)
            if code:
                return code
        return 0

    def _split(self, size: int) -> list[tuple[ctypes.c_int, ctypes.c_void_p]]:
        """(how many entries, where they are) of each call."""
        count, start = len(self.entries), _at(self.words)
        return [
            (ctypes.c_int(min(size, count - first)), ctypes.c_void_p(start + first * ENTRY.itemsize))
            for first in range(0, count, size)
        ]


def _at(words: U64) -> int:
    return words.ctypes.data


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
        if good and source.wide and all(k in (UINT, INT, USHORT) for k in good):
            why = why or NARROW
        elif good:
            return source, 0
        elif later is None and any(c not in LACKING for c in code):
            later = source
        else:
            why = why or code[0]
    return later, why
