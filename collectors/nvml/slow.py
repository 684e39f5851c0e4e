"""What changes slowly of a GPU: its fabric, MIG mode, memory rows to be remapped, bit error rates of its NVLinks."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from math import nan
from typing import TypeVar

import numpy as np

from collectors.nvml.fabric import COMPLETED, IN_PROGRESS, Fabric, Place, read_fabric, read_place
from collectors.nvml.fields import Source, probe
from collectors.nvml.library import LACKING, Library, NvmlFault
from collectors.nvml.values import F64, TAG, VALUE, Decoder, bit_error_rates

T = TypeVar("T")

LONG_IN_PROGRESS_S = 60.0  # a fabric registration takes seconds; one under way for longer is stuck
FAILING_BER = 1e-12  # effective bit error rate of a failing NVLink (DCGM 4.6)

GPU_FIELDS: Mapping[str, tuple[Source, ...]] = {
    ".remap_pending": (Source(144),),
    ".remap_failed": (Source(145),),
}
LINK_FIELDS: Mapping[str, tuple[Source, ...]] = {".effective_ber": (Source(220),), ".symbol_ber": (Source(222),)}
CALLS: Mapping[str, str] = {
    ".fabric": "nvmlDeviceGetGpuFabricInfoV",
    ".mig": "nvmlDeviceGetMigMode",
    ".place": "nvmlDeviceGetPlatformInfo",
}


class Slow:
    """Read every few seconds. What a GPU lacks is asked for once by each `Slow`; lacking: metric -> nvmlReturn_t.

    effective_ber, symbol_ber: float64[NVLinks], bit error rates, NaN unknown. place: None where it is not told.
    """

    def __init__(self, library: Library, handle: ctypes.c_void_p, n_links: int, before: Slow | None) -> None:
        """before: takes over from it what was seen earlier, such as the first fabric. Raises NvmlFault."""
        self._library, self._handle = library, handle
        self.lacking: dict[str, int] = {}
        self.place: Place | None = self._ask(".place", read_place)
        _, self.plan = probe(library, handle, n_links, GPU_FIELDS, LINK_FIELDS)
        self.lacking |= self.plan.lacking
        n_values = len(self.plan.batch.words)
        self._decoder = Decoder(np.ones(n_values), n_values)
        self.fabric: Fabric | None = None
        self.mig: bool = before is not None and before.mig
        self.effective_ber = self.symbol_ber = np.full(n_links, nan)
        self._remap_pending = self._remap_failed = nan
        self._first: Fabric | None = None if before is None else before._first
        self._since: float | None = None if before is None else before._since
        self._stuck = False

    def read(self, now: float) -> None:
        """now: seconds, of any clock that goes on. Raises NvmlFault."""
        self.fabric = self._ask(".fabric", read_fabric)
        if self.fabric is None or self.fabric.state != IN_PROGRESS:
            self._since = None
        elif self._since is None:
            self._since = now
        self._stuck = self._since is not None and now - self._since >= LONG_IN_PROGRESS_S
        if self._first is None and self.fabric is not None and self.fabric.state == COMPLETED:
            self._first = self.fabric
        self.mig = bool(self._ask(".mig", _read_mig))
        batch = self.plan.batch
        batch.read(self._library, self._handle)
        values, _ = self._decoder.read(batch.words[:, TAG], batch.words[:, VALUE])
        self._remap_pending, self._remap_failed = (self._of_gpu(values, m) for m in GPU_FIELDS)
        self.effective_ber, self.symbol_ber = (bit_error_rates(self._of_links(values, m)) for m in LINK_FIELDS)

    def _of_gpu(self, values: F64, metric: str) -> float:
        at = self.plan.gpu.get(metric)
        return nan if at is None else float(values[at[0]])

    def _of_links(self, values: F64, metric: str) -> F64:
        at = self.plan.links.get(metric)
        return np.full(self.plan.n_links, nan) if at is None else values[at[0] : at[0] + self.plan.n_links]

    def _ask(self, what: str, read: Callable[[Library, ctypes.c_void_p], T]) -> T | None:
        if what in self.lacking:
            return None
        try:
            return read(self._library, self._handle)
        except NvmlFault as fault:
            if fault.code not in LACKING:
                raise
            self.lacking[what] = fault.code
            return None

    def problems(self) -> list[str]:
        """What an operator must know."""
        out = []
        if self.fabric is not None:
            out += self.fabric.problems(rack_scale=self.place is not None and self.place.rack_scale)
            if self._stuck:
                out.append("fabric registration has been in progress for more than a minute: NVLink cannot be used")
            if self._first is not None and self.fabric.state == COMPLETED and self.fabric.home != self._first.home:
                out.append(
                    f"fabric: it is in {self.fabric.home} now and was in {self._first.home}: "
                    "GPUs of another cluster or clique cannot be reached by NVLink"
                )
        if self.mig:
            out.append("MIG mode is on: utilization and NVLink are not given for the whole GPU")
        if self._remap_failed > 0:
            out.append("a memory row could not be remapped: the GPU is to be replaced")
        elif self._remap_pending > 0:
            out.append("memory rows wait to be remapped: the GPU needs a reset when it is idle")
        failing = np.flatnonzero(self.effective_ber > FAILING_BER).tolist()
        if failing:
            bad = [f"{k} ({self.effective_ber[k]:.0e})" for k in failing]
            out.append(f"effective bit error rate above {FAILING_BER:.0e} on NVLink {', '.join(bad)}")
        return out


def _read_mig(library: Library, handle: ctypes.c_void_p) -> bool:
    current, pending = ctypes.c_uint(), ctypes.c_uint()
    library.call(CALLS[".mig"], handle, ctypes.byref(current), ctypes.byref(pending))
    return current.value == 1
