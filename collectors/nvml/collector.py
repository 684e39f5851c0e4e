"""The collector of this host's GPUs and NVLinks."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from math import nan

from collectors.base import Clock, CollectorError, Sample, frame_time
from collectors.nvml.capability import Capability, capabilities
from collectors.nvml.columns import Layout, Values
from collectors.nvml.gpu import Gpu
from collectors.nvml.lane import Lane
from collectors.nvml.library import Library
from collectors.nvml.links import Links
from collectors.nvml.machine import Attempt, Machine
from twin.address import kind_of
from twin.errors import InputError
from twin.frames import Frame

FASTEST_S = 1.0  # a site may not poll faster: a 25 ms poller held the driver's lock two thirds of the time
PATIENCE = 0.25  # of the deadline: so long may one GPU take before the others are read without it
_USED = 0.8  # of the deadline: what is there by then is handed on


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
        self._expected, self._design = gpus, links or {}
        given = {k if k.startswith(("GPU-", "MIG-")) else _pci(k): a for k, a in (addresses or {}).items()}
        self._machine = Machine(host, given, monotonic)
        self._lane = Lane("NVML")
        self._layout: Layout | None = None
        self._nvlinks: Links | None = None
        self._last: tuple[list[Gpu], Values] | None = None
        self._released = False
        self._sampling = threading.Lock()
        self._ready: Sample | None = None  # of the attempt that came to its end

    async def collect(self) -> Sample:
        """A frame of GPUs and one of NVLinks. Raises CollectorError where NVML gives nothing at all."""
        if self._released:
            raise CollectorError("NVML is released, for a GPU reset or a driver update; it is not read until resumed")
        done: set[int] = set()
        self._ready = None
        problem = await self._read(done)
        if not any(row >= 0 for row in done) and (problem is not None or self._machine.gpus):
            raise problem or CollectorError(f"NVML: no GPU answered within {self.deadline * _USED:g} s")
        with self._sampling:
            return self._ready or self._sample(done)

    async def _read(self, done: set[int]) -> CollectorError | None:
        """Reads GPU after GPU; their rows go to `done`. One that takes too long is left, and the rest read anew."""
        loop = asyncio.get_running_loop()
        end = loop.time() + self.deadline * _USED
        while True:
            attempt = Attempt()
            try:
                if await self._lane.run(partial(self._work, attempt, done), partial(self._left, attempt, end)):
                    return None
            except CollectorError as problem:
                return problem
            finally:
                attempt.abandoned = True  # no matter to one that has ended
            if attempt.current is None:
                return CollectorError(f"NVML: the driver gave no answer within {self.deadline * _USED:g} s")
            self._lane.leave()
            self._lane = Lane("NVML")
            if loop.time() >= end:
                return None

    def _work(self, attempt: Attempt, done: set[int]) -> None:
        """In the lane's thread. The sample is made there as well: the answers are in the cache of its core."""
        self._machine.read(attempt, done)
        with self._sampling:
            if not attempt.abandoned:
                self._ready = self._sample(done)

    def _left(self, attempt: Attempt, end: float) -> float:
        """For how many seconds to wait, for the GPU it is in and for all together."""
        spent = time.monotonic() - attempt.since if attempt.current is not None else 0.0
        return min(self.deadline * PATIENCE - spent, end - asyncio.get_running_loop().time())

    def _sample(self, done: set[int]) -> Sample:
        gpus = list(self._machine.gpus)
        layout, nvlinks = self._lay_out(gpus)
        now = frame_time(self._clock)
        read = {row for row in done if 0 <= row < len(gpus) and not gpus[row].fault}
        values = layout.values(gpus, read)
        frames = []
        if gpus:
            values.gpu("xid")[:] = self._xids(gpus)
            frames.append(Frame(now, self.name, "gpu", layout.gpu_names, values.gpu_columns()))
        if layout.link_names:
            for row in nvlinks.judge(values.link(".state")):
                if row in read:  # a link that was inactive may have lacked its counters
                    gpus[row].probe_again()
            speed = values.link("speed_bytes_per_second")
            speed[~(nvlinks.active & (speed > 0))] = nan
            frames.append(Frame(now, self.name, "nvlink", layout.link_names, values.link_columns(nvlinks.up)))
        self._last = gpus, values
        return Sample(frames, self._warnings(gpus, values, done))

    def _lay_out(self, gpus: list[Gpu]) -> tuple[Layout, Links]:
        layout, nvlinks = self._layout, self._nvlinks
        if layout is None or nvlinks is None or not layout.fits(gpus):
            layout = self._layout = Layout(gpus)
            nvlinks = self._nvlinks = Links(layout, gpus, self._design, nvlinks)
        return layout, nvlinks

    def _xids(self, gpus: list[Gpu]) -> list[float]:
        events = self._machine.events
        if events is None or self._machine.stuck(events):
            return [nan] * len(gpus)
        xid = events.xid
        return [nan if g.handle is None else xid.get(g.handle.value or 0, nan) for g in gpus]

    def module_power(self) -> dict[str, float]:
        """Watts of each module by board serial, of the last sample: both its GPUs report all of it, so once each."""
        if self._last is None:
            return {}
        gpus, values = self._last
        out: dict[str, float] = {}
        for gpu, watts in zip(gpus, values.gpu(".module_watts").tolist(), strict=True):
            if gpu.identity is not None and gpu.identity.board is not None and watts == watts:
                out[gpu.identity.board] = max(watts, out.get(gpu.identity.board, 0.0))
        return out

    def bit_error_rates(self) -> dict[str, tuple[float, float]]:
        """NVLink address -> effective and symbol bit error rate as last read, NaN unknown; NVLink 5 and later."""
        return {
            f"{gpu.address}/nvlink{k}": rates
            for gpu in self._machine.gpus
            if gpu.slow is not None and not gpu.fault
            for k, rates in enumerate(zip(gpu.slow.effective_ber.tolist(), gpu.slow.symbol_ber.tolist(), strict=True))
        }

    def _warnings(self, gpus: list[Gpu], values: Values, done: set[int]) -> list[str]:
        machine = self._machine
        events = machine.events
        out = list(machine.notes())
        gone = events.unavailable if events is not None else set()
        for row, (gpu, recovery) in enumerate(zip(gpus, values.gpu(".recovery_action").tolist(), strict=True)):
            if row in done:
                out += gpu.warnings(recovery)
            elif machine.stuck(gpu):
                out.append(f"{gpu.address}: a call has not come back yet; the other GPUs are read without it")
            else:
                out.append(f"{gpu.address}: not read in time")
            if gone and gpu.handle is not None and gpu.handle.value in gone:
                out.append(f"{gpu.address}: the driver said that this GPU became unavailable")
        if events is not None and machine.stuck(events):
            out.append("XID errors are unknown: the driver does not come back from a call for them")
        if self._expected is not None and len(gpus) != self._expected:
            out.append(f"{self._host}: NVML finds {len(gpus)} GPUs, the wiring has {self._expected}")
        return out

    def capabilities(self) -> list[Capability]:
        """Where each metric of each GPU comes from, or who lacks it; empty before the first sample."""
        machine = self._machine
        return [found for gpu in machine.gpus for found in capabilities(gpu, machine.events)]

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
            await self._lane.run(self._machine.close, lambda: self.deadline)
        self._lane.leave()


def _pci(text: str) -> str:
    """A PCI address as it is compared: `0000:0F:00.0` and `00000000:0f:00.0` are the same."""
    *domain, bus, device = text.lower().split(":") if text.count(":") in (1, 2) else ("", text, "")
    return f"{''.join(domain).zfill(8)}:{bus}:{device}"
