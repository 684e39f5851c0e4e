"""One GPU: who it is, what it can be asked for, and its answers of one sample."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from math import inf, nan

from collectors.nvml.fields import GPU_FIELDS, LINK_COUNT, LINK_FIELDS, Batch, Plan, probe
from collectors.nvml.library import LACKING, Library, NvmlFault, said
from collectors.nvml.queries import CALLED, INSTEAD, QUERIES, Answers
from collectors.nvml.slow import Slow
from collectors.nvml.values import decode

PROBE_AGAIN_S = 300.0  # what a GPU lacks is asked for again this often: a driver or MIG mode may bring it
SLOW_S = 10.0  # between two readings of what changes slowly
NUMBERS = (*CALLED, "fabric_state")  # what a GPU gives by calls of their own
UNREAD = [nan] * len(NUMBERS)
_MOST_LINKS = 18  # asked one by one where the count is not given: before NVML had field 91 there were no more
_RECOVERY = {
    1: "the GPU needs a reset", 2: "the node needs a reboot", 3: "drain the GPU: peer-to-peer must stop",
    4: "drain the node, then reset the GPU", 5: "the IMEX domain must be recovered", 6: "the bus needs a reset",
    7: "the system needs a reboot",
}  # fmt: skip  # NVML_GPU_RECOVERY_ACTION_*


@dataclass(frozen=True, slots=True)
class Identity:
    """What stays of a GPU. pci: `00000000:0f:00.0`; board: serial, the same for all GPUs of one module."""

    pci: str
    uuid: str
    name: str
    board: str | None
    part: str | None


def identify(library: Library, handle: ctypes.c_void_p) -> Identity:
    """Raises NvmlFault."""
    return Identity(
        pci_address(library, "nvmlDeviceGetPciInfo_v3", handle),
        library.text("nvmlDeviceGetUUID", handle),
        library.text_or_none("nvmlDeviceGetName", handle) or "unknown",
        library.text_or_none("nvmlDeviceGetSerial", handle),
        library.text_or_none("nvmlDeviceGetBoardPartNumber", handle),
    )


class _Pci(ctypes.Structure):
    _fields_ = [
        ("legacy", ctypes.c_char * 16), ("domain", ctypes.c_uint), ("bus", ctypes.c_uint), ("device", ctypes.c_uint),
        ("id", ctypes.c_uint), ("subsystem", ctypes.c_uint), ("bus_id", ctypes.c_char * 32),
    ]  # fmt: skip


def pci_address(library: Library, call: str, *arguments: object) -> str:
    """The address that `call` gives, in a form that sorts as the numbers do. Raises NvmlFault."""
    raw = _Pci()
    library.call(call, *arguments, ctypes.byref(raw))
    return f"{raw.domain:08x}:{raw.bus:02x}:{raw.device:02x}.0"


def link_count(library: Library, handle: ctypes.c_void_p) -> int:
    """NVLinks of a GPU. Asked for: the library's own maximum is twice what a GPU has. Raises NvmlFault."""
    batch = Batch([(LINK_COUNT, 0)])
    code = batch.read(library, handle)
    if code and code not in LACKING:
        raise NvmlFault(code, "NVLink count")
    count = decode(batch.entries)[0][0]
    if code == 0 and count == count:
        return int(min(max(count, 0), 64))
    state = ctypes.c_uint()
    for link in range(_MOST_LINKS):
        if library.code("nvmlDeviceGetNvLinkState", handle, ctypes.c_uint(link), ctypes.byref(state)):
            return link
    return _MOST_LINKS


class Gpu:
    """Read by one thread at a time. What a sample gave is in `plan.batch` and `numbers` while `fault` is 0."""

    def __init__(self, address: str, pci: str) -> None:
        self.address, self.pci = address, pci
        self.identity: Identity | None = None
        self.handle: ctypes.c_void_p | None = None
        self.index = -1  # what the driver numbers it as; it changes
        self.turn = 0.0  # 0 to 1: when among all GPUs it is asked for what changes slowly
        self.n_links = 0  # the most it ever had: a lost GPU keeps its links, unknown
        self.plan = Plan(Batch(()), 0)
        self.numbers: list[float] = UNREAD  # in the order of NUMBERS
        self.fault = 0
        self.slow: Slow | None = None
        self.answers: Answers | None = None
        self._problems: list[str] = []
        self._probe_at = self._slow_at = -inf

    def attach(self, identity: Identity, handle: ctypes.c_void_p, index: int) -> None:
        """A handle of a freshly opened library; everything is found out anew."""
        self.identity, self.handle, self.index, self.fault = identity, handle, index, 0
        self._probe_at = self._slow_at = -inf

    def detach(self, code: int) -> None:
        self.handle, self.fault = None, code

    def probe_again(self) -> None:
        self._probe_at = -inf

    def read(self, library: Library, now: float) -> None:
        """One sample. Raises nothing: what failed is `fault`, or unknown. now: seconds, of any clock that goes on."""
        if self.handle is None:
            return
        try:
            self._read(library, self.handle, now)
        except NvmlFault as fault:
            self.fault = fault.code

    def _read(self, library: Library, handle: ctypes.c_void_p, now: float) -> None:
        if now >= self._probe_at or self.answers is None or self.slow is None:
            self.answers, self.slow = self._probe(library, handle)
            self._probe_at = now + PROBE_AGAIN_S
        code = self.plan.batch.read(library, handle)
        if code and code not in LACKING:
            raise NvmlFault(code, "nvmlDeviceGetFieldValues")
        numbers, failed = self.answers.read()
        if failed and all(n != n for n in numbers):
            raise NvmlFault(failed, "the GPU")
        if now >= self._slow_at:
            self._read_slow(self.slow, now)
        fabric = self.slow.fabric
        numbers.append(nan if fabric is None else fabric.state)
        self.numbers, self.fault = numbers, 0

    def _probe(self, library: Library, handle: ctypes.c_void_p) -> tuple[Answers, Slow]:
        count = link_count(library, handle)
        code, plan = probe(library, handle, count, GPU_FIELDS, LINK_FIELDS)
        if code and code not in LACKING:
            raise NvmlFault(code, "nvmlDeviceGetFieldValues")
        slow = Slow(library, handle, count, self.slow)
        self._slow_at = -inf
        self.n_links = max(self.n_links, count)
        self.plan = plan
        return Answers(library, handle, [*QUERIES, *(m for m in INSTEAD if m in plan.lacking)]), slow

    def _read_slow(self, slow: Slow, now: float) -> None:
        was_mig = slow.mig
        slow.read(now)
        if slow.mig != was_mig:
            self.probe_again()
        self._problems = [f"{self.address}: {text}" for text in slow.problems()]
        first = self._slow_at == -inf
        self._slow_at = now + SLOW_S * (1 + self.turn if first else 1)

    def warnings(self, recovery: float) -> list[str]:
        """What an operator must know of it. recovery: the value of the recovery action, NaN where unknown."""
        if self.fault:
            return [f"{self.address}: {said(self.fault)} (PCI {self.pci})"]
        if recovery == recovery and recovery:
            asked = _RECOVERY.get(int(recovery), f"the driver asks for recovery action {int(recovery)}")
            return [f"{self.address}: {asked}", *self._problems]
        return self._problems
