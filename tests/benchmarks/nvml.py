"""A full sample of a host's GPUs through NVML."""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from collectors.nvml import NvmlCollector
from tests.rigs.nvml.rig import GEN4, GEN5, Standin, build, gpu

ROUNDS, SAMPLES = 7, 40
GPUS = 8
Read = Callable[[], Awaitable[object]]


def run() -> Iterator[str]:
    """CPU of one sample of 8 GPUs x 18 NVLinks to finished frames, all threads counted, and in the same minute that
    of nvitop for the 8 GPUs without any NVLink. Both through the vendor's binding, from a stand-in without delay."""
    with tempfile.TemporaryDirectory() as folder:
        standin = Standin(build(Path(folder)), Path(folder) / "machine.txt")
        for name, gen in (("H100", GEN4), ("B200", GEN5)):
            standin.write([gpu(i, gen=gen).say("put other 1") for i in range(GPUS)], "static")
            yield from asyncio.run(_compare(name))


async def _compare(name: str) -> list[str]:
    import nvitop  # here, so that other benchmarks run without it
    from nvitop.tui.library.device import Device as ShownDevice

    now = 0.0
    ours, inline = NvmlCollector("n0", monotonic=lambda: now), _Inline("n0", monotonic=lambda: now)

    async def a_second_later(collector: NvmlCollector) -> None:
        nonlocal now
        now += 1  # so that what is read every few seconds has its share
        await collector.collect()

    values = sum(len(f.names) * len(f.columns) for f in (await ours.collect()).frames)
    devices, shown = nvitop.Device.all(), ShownDevice.all()
    readers: dict[str, Read] = {
        "ours": partial(a_second_later, ours),
        "ours without a thread": partial(a_second_later, inline),
        "nvitop, snapshot": _each(devices, nvitop.Device.as_snapshot),
        "nvitop, as it refreshes its screen": _each(shown, ShownDevice.as_snapshot),
        "nvitop, seven values of ours": _each(devices, _seven),
    }
    medians: dict[str, list[float]] = {what: [] for what in readers}
    total = 0.0
    for _ in range(ROUNDS):
        for what, read in readers.items():
            times = await _cpu(read)
            medians[what].append(statistics.median(times))
            total += sum(times) if what == "ours" else 0
    await ours.close()
    await inline.close()
    typical = {what: statistics.median(found) for what, found in medians.items()}
    mine = typical["ours"]
    mean = total / (ROUNDS * SAMPLES)
    return [
        f"{name}, {values} values: {mine * 1e3:.3f} ms (best of {ROUNDS} rounds {min(medians['ours']) * 1e3:.3f}; "
        f"mean with what is read rarely {mean * 1e3:.3f}); "
        f"without the thread {typical['ours without a thread'] * 1e3:.3f} ms",
        *(
            f"   {what}: {typical[what] * 1e3:.3f} ms   ratio {mine / typical[what]:.3f}"
            for what in readers
            if what.startswith("nvitop")
        ),
    ]


async def _cpu(read: Read) -> list[float]:
    await read()
    times = []
    for _ in range(SAMPLES):
        start = time.process_time()
        await read()
        times.append(time.process_time() - start)
    return times


class _Inline(NvmlCollector):
    """Reads in the thread of the event loop, to tell what handing over costs."""

    async def _read(self, done: set[int]) -> None:
        from collectors.nvml.machine import Attempt

        self._work(Attempt(), done)


def _each(devices: list[Any], read: Callable[[Any], object]) -> Read:
    async def all_of_them() -> None:
        for device in devices:
            read(device)

    return all_of_them


def _seven(device: Any) -> None:
    """What both have; nvitop asks for related values once within `oneshot`."""
    with device.oneshot():
        device.gpu_utilization(), device.memory_used(), device.temperature(), device.sm_clock()
        device.power_usage(), device.power_limit(), device.total_volatile_uncorrected_ecc_errors()
