"""One GPU: who it is, what it can be asked for, and its answers of one sample."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

from collectors.nvml import fields
from collectors.nvml.fabric import IN_PROGRESS, Fabric, Place, read_fabric, read_place
from collectors.nvml.fields import LINK_COUNT, NARROW, Batch, Plan, bit_error_rate, decode, probe
from collectors.nvml.library import LACKING, Library, NvmlFault, said
from collectors.nvml.queries import INSTEAD, QUERIES, Answers

PROBE_AGAIN_S = 300.0  # what a GPU lacks is asked for again this often: a driver or MIG mode may bring it
RARELY_S = 10.0  # fabric state, MIG mode, rows waiting to be remapped, bit error rates: they change slowly
LONG_IN_PROGRESS_S = 60.0  # a fabric registration takes seconds; one under way for longer is stuck
FAILING_BER = 1e-12  # effective bit error rate of a failing NVLink (DCGM 4.6)
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
    """Read by one thread at a time. What a sample gave is in `plan.batch.entries` and `values` while `fault` is 0."""

    def __init__(self, address: str, pci: str) -> None:
        self.address, self.pci = address, pci
        self.identity: Identity | None = None
        self.handle: ctypes.c_void_p | None = None
        self.n_links = 0  # the most it ever had: a lost GPU keeps its links, unknown
        self.plan = Plan(Batch(()), 0)
        self.values: dict[str, float] = {}
        self.fault = 0
        self.fabric: Fabric | None = None
        self.place: Place | None = None
        self.mig = False
        self.ber: list[float] = []
        self._answers = Answers(QUERIES)
        self._rare = Plan(Batch(()), 0)
        self._remap: tuple[float, float] = (0.0, 0.0)
        self._fabric_since: float | None = None
        self._long = False
        self._probed: float | None = None
        self._rarely: float | None = None

    def attach(self, identity: Identity, handle: ctypes.c_void_p) -> None:
        """A handle of a freshly opened library; everything is found out anew."""
        self.identity, self.handle, self.fault = identity, handle, 0
        self._probed = self._rarely = None

    def detach(self, code: int) -> None:
        self.handle, self.fault = None, code

    def probe_again(self) -> None:
        self._probed = None

    def read(self, library: Library, now: float) -> None:
        """One sample. Raises nothing: what failed is `fault`, or unknown. now: seconds, of any clock that goes on."""
        if self.handle is None:
            return
        try:
            self._read(library, self.handle, now)
        except NvmlFault as fault:
            self.fault = fault.code
        if self.fault:
            self.values = {}

    def _read(self, library: Library, handle: ctypes.c_void_p, now: float) -> None:
        if self._probed is None or now - self._probed >= PROBE_AGAIN_S:
            self._probe(library, handle)
            self._probed = now
        code = self.plan.batch.read(library, handle)
        if code and code not in LACKING:
            raise NvmlFault(code, "nvmlDeviceGetFieldValues")
        values: dict[str, float] = {}
        failed = self._answers.read(library, handle, values)
        if failed and not values:
            raise NvmlFault(failed, "the GPU")
        if self._rarely is None or now - self._rarely >= RARELY_S:
            self._read_rarely(library, handle, now)
            self._rarely = now
        self.values, self.fault = values, 0

    def _probe(self, library: Library, handle: ctypes.c_void_p) -> None:
        count = link_count(library, handle)
        code, plan = probe(library, handle, count, fields.GPU_FIELDS, fields.LINK_FIELDS)
        if code and code not in LACKING:
            raise NvmlFault(code, "nvmlDeviceGetFieldValues")
        _, self._rare = probe(library, handle, count, fields.RARE_GPU_FIELDS, fields.RARE_LINK_FIELDS)
        self._answers = Answers({**QUERIES, **{m: q for m, q in INSTEAD.items() if m in plan.lacking}})
        self.place = read_place(library, handle)
        self.n_links = max(self.n_links, count)
        self.plan = plan

    def _read_rarely(self, library: Library, handle: ctypes.c_void_p, now: float) -> None:
        self.fabric = read_fabric(library, handle)
        if self.fabric is None or self.fabric.state != IN_PROGRESS:
            self._fabric_since = None
        elif self._fabric_since is None:
            self._fabric_since = now
        self._long = self._fabric_since is not None and now - self._fabric_since >= LONG_IN_PROGRESS_S
        current, pending = ctypes.c_uint(), ctypes.c_uint()
        code = library.code("nvmlDeviceGetMigMode", handle, ctypes.byref(current), ctypes.byref(pending))
        mig = code == 0 and current.value == 1
        if mig != self.mig:
            self.mig, self._probed = mig, None
        self._rare.batch.read(library, handle)
        values = decode(self._rare.batch.entries)[0]
        pending_at, failed_at = (self._rare.gpu.get(m, (None,))[0] for m in (".remap_pending", ".remap_failed"))
        self._remap = (
            0.0 if pending_at is None else float(values[pending_at]),
            0.0 if failed_at is None else float(values[failed_at]),
        )
        at = self._rare.links.get(".effective_ber")
        coded = [] if at is None else values[at[0] : at[0] + self._rare.n_links].tolist()
        self.ber = [float("nan") if v != v else bit_error_rate(int(v)) for v in coded]

    def warnings(self, recovery: float) -> list[str]:
        """What an operator must know of it. recovery: the value of the recovery action, NaN where unknown."""
        if self.fault:
            return [f"{self.address}: {said(self.fault)} (PCI {self.pci})"]
        out = []
        if recovery == recovery and recovery:
            out.append(_RECOVERY.get(int(recovery), f"the driver asks for recovery action {int(recovery)}"))
        if self.fabric is not None:
            out += self.fabric.problems(rack_scale=self.place is not None and self.place.rack_scale)
            if self._long:
                out.append("fabric registration has been in progress for more than a minute: NVLink cannot be used")
        if self.mig:
            out.append("MIG mode is on: utilization and NVLink are not given for the whole GPU")
        if self._remap[1] > 0:
            out.append("a memory row could not be remapped: the GPU is to be replaced")
        elif self._remap[0] > 0:
            out.append("memory rows wait to be remapped: the GPU needs a reset when it is idle")
        bad = [f"{k} ({rate:.0e})" for k, rate in enumerate(self.ber) if rate > FAILING_BER]
        if bad:
            out.append(f"effective bit error rate above {FAILING_BER:.0e} on NVLink {', '.join(bad)}")
        return [f"{self.address}: {text}" for text in out]

    def source(self, metric: str) -> str | None:
        """Which field or call gives a metric, None where none does."""
        for table in (self.plan.gpu, self.plan.links):
            if metric in table:
                return f"field {table[metric][1].field}"
        if metric == "fabric_state":
            return "nvmlDeviceGetGpuFabricInfoV" if self.fabric is not None else None
        return "field 165" if metric == "up" and ".state" in self.plan.links else self._answers.source(metric)

    def why_not(self, metric: str) -> str:
        """Why a metric is not there."""
        if self.fault:
            return said(self.fault)
        metric = ".state" if metric == "up" else metric
        code = self.plan.lacking.get(metric, self._answers.lacking.get(metric))
        if code == NARROW:
            return "only 32 bits, which wrap within a sample"
        return said(code) if code else "not supported"
