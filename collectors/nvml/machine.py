"""All GPUs of this host: opened, found again after a driver reload, and read one after the other in one thread."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Mapping

from collectors.nvml.events import Events
from collectors.nvml.gpu import Gpu, Identity, identify
from collectors.nvml.library import GPU_NOT_FOUND, STALE, UNKNOWN, Library, NvmlFault

UNSEEN = "unknown"  # PCI address of a GPU that could not be asked for it
REOPEN_S = 30.0  # opening takes seconds without persistence mode: not more often where it did not help
NEWS_S = 60.0  # for how long it is told that NVML was opened anew


_Found = tuple[Identity, ctypes.c_void_p, int]  # what an index of the driver leads to


class Attempt:
    """One pass of one thread over the GPUs. An abandoned one stops after the call it is stuck in."""

    def __init__(self) -> None:
        self.abandoned = False
        self.current: Gpu | Events | None = None
        self.since = time.monotonic()


class Machine:
    """The GPUs by address, in the order of their PCI addresses. Everything here runs in a worker thread."""

    def __init__(self, host: str, addresses: Mapping[str, str], monotonic: Callable[[], float]) -> None:
        """addresses: UUID or PCI address -> address, for GPUs that are not to be numbered by PCI address."""
        self._host, self._given, self._monotonic = host, dict(addresses), monotonic
        self.library = Library()
        self.gpus: list[Gpu] = []
        self.events: Events | None = None
        self._notes: list[str] = []
        self._news: list[str] = []
        self.driver: str | None = None
        self.closing = False
        self._busy: dict[int, Attempt] = {}  # id of a Gpu or Events -> who reads it
        self._opened: float | None = None
        self._good = False  # a GPU has answered since NVML was opened

    def stuck(self, patient: Gpu | Events) -> bool:
        """True while a thread that was given up is still in a call to it."""
        attempt = self._busy.get(id(patient))
        return attempt is not None and attempt.abandoned

    def notes(self) -> list[str]:
        """What changed since the GPUs were numbered: some for good, some told for a while."""
        recent = self._opened is not None and self._monotonic() - self._opened < NEWS_S
        return [*self._notes, *self._news] if recent else self._notes

    def any_stuck(self) -> bool:
        return any(attempt.abandoned for attempt in tuple(self._busy.values()))

    def read(self, attempt: Attempt, done: set[int]) -> None:
        """Reads every GPU whose row is not in `done` and nobody is stuck in, then events; rows read go to `done`.

        Raises CollectorError where NVML cannot be opened.
        """
        try:
            if not self.library.is_open:
                self.open()
            self._pass(attempt, done)
            if self._is_stale() and not attempt.abandoned and not self.any_stuck():
                done.clear()
                self.close()
                self.open()
                self._pass(attempt, done)
        finally:
            if self.closing:
                self.close()

    def _is_stale(self) -> bool:
        """What the handles were for is gone: the driver was reloaded, or access to all GPUs was taken away."""
        faults = [g.fault for g in self.gpus]
        if not all(faults):
            self._good = True
        if not faults or not (all(faults) or any(f in STALE for f in faults)):
            return False
        return self._good or self._opened is None or self._monotonic() - self._opened >= REOPEN_S

    def _pass(self, attempt: Attempt, done: set[int]) -> None:
        now = self._monotonic()
        patients: list[tuple[int, Gpu | Events]] = list(enumerate(self.gpus))
        if self.events is not None:
            patients.append((-1, self.events))
        for row, patient in patients:
            if attempt.abandoned or self.closing:
                return
            key = id(patient)
            if row in done or key in self._busy:
                continue
            self._busy[key] = attempt
            attempt.since = time.monotonic()
            attempt.current = patient
            try:
                if isinstance(patient, Gpu):
                    patient.read(self.library, now)
                else:
                    patient.poll()
            finally:
                attempt.current = None
                del self._busy[key]
            if not attempt.abandoned:
                done.add(row)

    # --- opening ---

    def open(self) -> None:
        self.library.open()
        self._opened, self._good = self._monotonic(), False
        try:
            self.driver = self.library.text_or_none("nvmlSystemGetDriverVersion")
            self._find()
            self.events = Events(self.library)
            self.events.register([g.handle for g in self.gpus if g.handle is not None])
        except NvmlFault:
            self.close()
            raise

    def _find(self) -> None:
        count = ctypes.c_uint()
        self.library.call("nvmlDeviceGetCount_v2", ctypes.byref(count))
        found: list[_Found | None] = []
        codes: list[int] = []
        for index in range(count.value):
            handle = ctypes.c_void_p()
            code = self.library.code("nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(index), ctypes.byref(handle))
            try:
                found.append(None if code else (identify(self.library, handle), handle, index))
            except NvmlFault as fault:
                found.append(None)
                code = fault.code
            codes.append(code)
        self._notes, self._news = [], []
        if self.gpus:
            self._news = [f"{self._host}: NVML was opened anew: counters of the driver may begin anew"]
            self._match(found, codes)
        else:
            self._number(found, codes)
        for place, gpu in enumerate(self.gpus):
            gpu.turn = place / len(self.gpus)

    def _number(self, found: list[_Found | None], codes: list[int]) -> None:
        """First time: GPU n is the n-th by PCI address. One that cannot be asked keeps the place of its index
        where the others are in order (NVML counts by PCI address), else it comes last."""
        pcis = [f[0].pci for f in found if f is not None]
        order: list[int] = list(range(len(found)))
        if pcis != sorted(pcis):
            keys = ["~" if f is None else f[0].pci for f in found]
            order.sort(key=keys.__getitem__)
        for number, index in enumerate(order):
            entry = found[index]
            gpu = Gpu(f"{self._host}/gpu{number}", UNSEEN if entry is None else entry[0].pci)
            if entry is None:
                gpu.detach(codes[index])
            else:
                gpu.attach(*entry)
                gpu.address = self._given.get(entry[0].uuid, self._given.get(entry[0].pci, gpu.address))
            self.gpus.append(gpu)

    def _match(self, found: list[_Found | None], codes: list[int]) -> None:
        """Later: each GPU is the one at its PCI address, whatever index it has now."""
        fresh = {f[0].pci: f for f in found if f is not None}
        nameless = [g for g in self.gpus if g.pci == UNSEEN]
        strangers = sorted(fresh.keys() - {g.pci for g in self.gpus})
        for gpu, pci in zip(nameless, strangers, strict=False):  # could not be asked when all were numbered
            gpu.pci = pci
        code = next((c for c in codes if c), GPU_NOT_FOUND)
        moved = []
        for gpu in self.gpus:
            entry = fresh.pop(gpu.pci, None)
            if entry is None:
                gpu.detach(code)
                continue
            if gpu.identity is not None and gpu.identity.uuid != entry[0].uuid:
                self._notes.append(
                    f"{gpu.address}: another GPU is at PCI {gpu.pci}: {entry[0].uuid} instead of {gpu.identity.uuid}"
                )
            if gpu.index not in (-1, entry[2]):
                moved.append(f"{gpu.address} is {entry[2]} and was {gpu.index}")
            gpu.attach(*entry)
        if moved:
            self._news.append(f"{self._host}: the driver has new indices, addresses stay: {', '.join(moved)}")
        for entry in (fresh[p] for p in sorted(fresh)):
            identity = entry[0]
            gpu = Gpu(self._given.get(identity.uuid, self._given.get(identity.pci, self._next())), identity.pci)
            gpu.attach(*entry)
            self.gpus.append(gpu)
            self._notes.append(f"{gpu.address}: new GPU at PCI {identity.pci}")

    def _next(self) -> str:
        taken = {g.address for g in self.gpus}
        return next(a for n in range(len(taken) + 1) if (a := f"{self._host}/gpu{n}") not in taken)

    def close(self) -> None:
        """Lets go of NVML in balance; a thread that is stuck in it keeps it open until it comes back."""
        if self.any_stuck() or not self.library.is_open:
            return
        if self.events is not None:
            self.events.close()
            self.events = None
        for gpu in self.gpus:
            gpu.detach(UNKNOWN)
        self.library.close()
