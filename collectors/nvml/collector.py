"""The collector of this host's GPUs and NVLinks."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from collectors.base import Clock, CollectorError, Sample, Worker, frame_time
from collectors.nvml.columns import GPU_METRICS, LINK_METRICS, Layout, Values, unknown
from collectors.nvml.gpu import Gpu
from collectors.nvml.library import Library
from collectors.nvml.machine import Attempt, Machine
from twin.address import kind_of
from twin.errors import InputError
from twin.frames import Column, Frame

FASTEST_S = 1.0  # a site may not poll faster: a 25 ms poller held the driver's lock two thirds of the time
PATIENCE = 0.25  # of the deadline: so long may one GPU take before the others are read without it
_USED = 0.8  # of the deadline: what is there by then is handed on


@dataclass(frozen=True, slots=True)
class Capability:
    """Whether a metric can be had of a GPU or its NVLinks. source: the field or call; reason: why not."""

    address: str
    metric: str
    source: str | None
    reason: str | None


def available() -> bool:
    """True where NVML can be opened. It may block while the driver wakes: not for the event loop's thread."""
    library = Library()
    try:
        library.open()
    except CollectorError:
        return False
    library.close()
    return True


class NvmlCollector:
    """GPUs and NVLinks of this host; one batch of field values and five small calls a GPU and sample.

    GPUs are numbered by PCI address unless `addresses` (UUID or PCI address -> `HOST/gpuN`) says otherwise, and
    keep their numbers while this collector lives. links: how many NVLinks the design gives an address, or all GPUs:
    of these an inactive one is down. Of others only one that was seen active can go down; NVLink may be absent by
    design (no bridge, a single GPU). All calls run in one thread; a GPU that does not answer within a quarter of the
    deadline is left to its thread, and the others are read by a new one. A client blocks a GPU reset: `release`.
    """

    def __init__(
        self,
        host: str,
        *,
        addresses: Mapping[str, str] | None = None,
        gpus: int | None = None,
        links: int | Mapping[str, int] | None = None,
        name: str = "nvml",
        interval: float = 1.0,
        deadline: float = 5.0,
        clock: Clock = time.time_ns,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """gpus: how many the design has. Raises InputError for an address that is no GPU's."""
        wrong = [a for a in (addresses or {}).values() if kind_of(a) != "gpu"]
        if wrong:
            raise InputError([f"nvml: {a!r} is not the address of a GPU, such as {host}/gpu0" for a in wrong])
        self.name, self.interval, self.deadline = name, interval, deadline
        self._host, self._clock = host, clock
        self._expected, self._links = gpus, links or {}
        given = {k if k.startswith(("GPU-", "MIG-")) else _pci(k): a for k, a in (addresses or {}).items()}
        self._machine = Machine(host, given, monotonic)
        self._worker = Worker("NVML")
        self._layout: Layout | None = None
        self._seen: npt.NDArray[np.bool_] = np.zeros(0, bool)  # NVLinks that were active once, those of the design
        self._designed: npt.NDArray[np.bool_] = self._seen
        self._state: bytes | None = None
        self._released = False
        self._modules: dict[str, float] = {}

    async def collect(self) -> Sample:
        """A frame of GPUs and one of NVLinks. Raises CollectorError where NVML gives nothing at all."""
        if self._released:
            raise CollectorError("NVML is released, for a GPU reset or a driver update; it is not read until resumed")
        done: set[int] = set()
        problem = await self._read(done)
        if not any(row >= 0 for row in done) and (problem is not None or self._machine.gpus):
            raise problem or CollectorError(f"NVML: no GPU answered within {self.deadline * _USED:g} s")
        return self._sample(done)

    async def _read(self, done: set[int]) -> CollectorError | None:
        loop = asyncio.get_running_loop()
        end, patience = loop.time() + self.deadline * _USED, self.deadline * PATIENCE
        while True:
            attempt = Attempt()
            task = asyncio.create_task(self._worker.run(partial(self._machine.read, attempt, done)))
            try:
                while not task.done():
                    spent = time.monotonic() - attempt.since if attempt.current is not None else 0.0
                    left = min(patience - spent, end - loop.time())
                    if left <= 0:
                        break
                    await asyncio.wait({task}, timeout=left)
            finally:
                if not task.done():
                    attempt.abandoned = True
                    task.cancel()
            if task.done() and not task.cancelled():
                fault = task.exception()
                if fault is None or isinstance(fault, CollectorError):
                    return fault
                raise fault
            if attempt.current is None:
                return CollectorError(f"NVML: the driver gave no answer within {self.deadline * _USED:g} s")
            self._worker = Worker("NVML")
            if loop.time() >= end:
                return None

    def _sample(self, done: set[int]) -> Sample:
        machine = self._machine
        gpus = list(machine.gpus)
        layout, now = self._lay_out(gpus), frame_time(self._clock)
        read = {row for row in done if 0 <= row < len(gpus) and not gpus[row].fault}
        values = layout.values(read)
        frames = []
        if gpus:
            frames.append(Frame(now, self.name, "gpu", layout.gpu_names, self._gpu_columns(gpus, values, read)))
        if layout.link_names:
            frames.append(Frame(now, self.name, "nvlink", layout.link_names, self._link_columns(gpus, values, read)))
        self._modules = self._module_power(gpus, values)
        return Sample(frames, self._warnings(gpus, values, done))

    def _gpu_columns(self, gpus: list[Gpu], values: Values, read: set[int]) -> dict[str, Column]:
        columns: dict[str, Column] = {}
        events = self._machine.events
        xid = {} if events is None or self._machine.stuck(events) else events.xid
        for metric in GPU_METRICS:
            column = values.column("gpu", metric)
            if metric == "xid":
                own = [xid.get(g.handle.value or 0) if g.handle is not None else None for g in gpus]
                column = np.array([np.nan if x is None else x for x in own], np.float64)
            elif metric == "fabric_state":
                states = [
                    g.fabric.state if r in read and g.fabric is not None else np.nan for r, g in enumerate(gpus)
                ]
                column = np.array(states, np.float64)
            elif any(metric in gpus[r].values for r in read):  # a call of its own, or one instead of a field
                column = np.full(len(gpus), np.nan) if column is None else column.astype(np.float64)
                for r in read:
                    column[r] = gpus[r].values.get(metric, column[r])
            if column is None:
                column = unknown("gpu", metric, len(gpus))
            columns[metric] = column
        return columns

    def _link_columns(self, gpus: list[Gpu], values: Values, read: set[int]) -> dict[str, Column]:
        up = values.up()
        self._seen |= up == 1
        up = np.where((up == 0) & ~self._seen & ~self._designed, np.nan, up)
        state = up.tobytes()
        if self._state is not None and state != self._state:  # a link that was inactive may have lacked its counters
            for row in read:
                gpus[row].probe_again()
        self._state = state
        columns: dict[str, Column] = {}
        for metric in LINK_METRICS:
            column = up if metric == "up" else values.column("nvlink", metric)
            columns[metric] = unknown("nvlink", metric, len(up)) if column is None else column
        speed = columns["speed_bytes_per_second"]
        columns["speed_bytes_per_second"] = np.where((up == 1) & (speed > 0), speed, np.nan)
        return columns

    def _lay_out(self, gpus: list[Gpu]) -> Layout:
        """The layout of now. NVLinks that were seen active once stay so, by their names."""
        before = self._layout
        if before is not None and before.fits(gpus):
            return before
        seen = set() if before is None else {n for n, s in zip(before.link_names, self._seen, strict=True) if s}
        layout = self._layout = Layout(gpus)
        designed = [self._links if isinstance(self._links, int) else self._links.get(g.address, 0) for g in gpus]
        self._designed = layout.link_number < np.array(designed, np.intp)[layout.link_gpu]
        self._seen = np.array([name in seen for name in layout.link_names], bool)
        self._state = None
        return layout

    def _module_power(self, gpus: list[Gpu], values: Values) -> dict[str, float]:
        watts = values.gauge("gpu", ".module_watts")
        out: dict[str, list[float]] = {}
        for gpu, w in zip(gpus, [] if watts is None else watts.tolist(), strict=watts is not None):
            if gpu.identity is not None and gpu.identity.board is not None and w == w:
                out.setdefault(gpu.identity.board, []).append(w)
        return {board: max(reported) for board, reported in out.items()}

    def module_power(self) -> dict[str, float]:
        """Watts of each module by board serial, of the last sample: both its GPUs report all of it, so once each."""
        return dict(self._modules)

    def _warnings(self, gpus: list[Gpu], values: Values, done: set[int]) -> list[str]:
        machine = self._machine
        out = list(machine.notes)
        recovery = values.gauge("gpu", ".recovery_action")
        asked = [np.nan] * len(gpus) if recovery is None else recovery.tolist()
        gone = machine.events.unavailable if machine.events is not None else set()
        for row, gpu in enumerate(gpus):
            if machine.stuck(gpu):
                out.append(f"{gpu.address}: a call has not come back yet; the other GPUs are read without it")
            elif row in done:
                out += gpu.warnings(asked[row])
            else:
                out.append(f"{gpu.address}: not read in time")
            if gpu.handle is not None and gpu.handle.value in gone:
                out.append(f"{gpu.address}: the driver said that this GPU became unavailable")
        if machine.events is not None and machine.stuck(machine.events):
            out.append("XID errors are unknown: the driver does not come back from a call for them")
        if self._expected is not None and len(gpus) != self._expected:
            out.append(f"{self._host}: NVML finds {len(gpus)} GPUs, the wiring has {self._expected}")
        return out

    def capabilities(self) -> list[Capability]:
        """Where each metric of each GPU comes from, or why it is not there; empty before the first sample."""
        out = []
        events = self._machine.events
        for gpu in self._machine.gpus:
            for metric in (*GPU_METRICS, *(LINK_METRICS if gpu.n_links else ())):
                source, reason = gpu.source(metric), None
                if metric == "xid":
                    has = events is not None and gpu.handle is not None and gpu.handle.value in events.xid
                    source = "events" if has else None
                if source is None:
                    reason = "events are not supported" if metric == "xid" and not gpu.fault else gpu.why_not(metric)
                out.append(Capability(gpu.address, metric, source, reason))
        return out

    async def release(self) -> None:
        """Lets go of NVML so that GPUs can be reset; `collect` raises until `resume`."""
        self._released = True
        await self.close()

    def resume(self) -> None:
        self._released = False
        self._machine.closing = False

    async def close(self) -> None:
        """A read that is under way closes NVML when it comes back."""
        self._machine.closing = True
        with contextlib.suppress(CollectorError):
            await self._worker.run(self._machine.close)


def _pci(text: str) -> str:
    """A PCI address as it is compared: `0000:0F:00.0` and `00000000:0f:00.0` are the same."""
    *domain, bus, device = text.lower().split(":") if text.count(":") in (1, 2) else ("", text, "")
    return f"{''.join(domain).zfill(8)}:{bus}:{device}"
