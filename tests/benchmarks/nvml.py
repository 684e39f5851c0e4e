"""A full sample of a host's GPUs through NVML."""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from collectors.nvml import NvmlCollector
from collectors.nvml.fields import GPU_FIELDS, LINK_FIELDS
from tests.benchmarks.measure import compare
from tests.rigs.nvml.rig import GEN4, GEN5, Standin, build, gpu

SAMPLES = 50


def run() -> Iterator[str]:
    """CPU of one sample of 8 GPUs x 18 NVLinks to finished frames, beside the same values read one call a value
    with the vendor's binding, and in its batches. The library is a stand-in without delay."""
    with tempfile.TemporaryDirectory() as folder:
        standin = Standin(build(Path(folder)), Path(folder) / "machine.txt")
        for name, gen in (("H100", GEN4), ("B200", GEN5)):
            standin.write([gpu(i, gen=gen) for i in range(8)], "static")
            ours, fields = asyncio.run(_ours())
            yield compare(f"{name}, {fields} values", ours, "one call a value", _stock(gen, False))
            yield compare(f"{name}, {fields} values", ours, "its batches     ", _stock(gen, True))


async def _ours() -> tuple[float, int]:
    collector = NvmlCollector("n0")
    sample = await collector.collect()
    times = []
    for _ in range(SAMPLES):
        start = time.process_time()
        sample = await collector.collect()
        times.append(time.process_time() - start)
    await collector.close()
    return statistics.median(times), sum(len(f.names) * len(f.columns) for f in sample.frames)


def _stock(gen: int, batches: bool) -> float:
    """Seconds of CPU to read the fields that the GPUs have, and the five other values, into a dictionary."""
    import pynvml

    late = {"tx_bytes", "rx_bytes", "recovery_errors"}
    lacking = {"symbol_errors", ".module_watts"} if gen == GEN4 else {"crc_errors", "replay_errors"}
    pick = {m: s[1 if (m in late) == (gen == GEN4) and m in late and m != "recovery_errors" else 0].field
            for m, s in LINK_FIELDS.items() if m not in lacking}  # fmt: skip
    if gen == GEN5:
        pick["recovery_errors"] = LINK_FIELDS["recovery_errors"][1].field
    wanted = [(s[0].field, s[0].scope) for m, s in GPU_FIELDS.items() if m not in lacking]
    wanted += [(field, link) for field in pick.values() for link in range(18)]
    calls: tuple[Callable[..., object], ...] = (
        pynvml.nvmlDeviceGetUtilizationRates, pynvml.nvmlDeviceGetMemoryInfo,
        lambda h: pynvml.nvmlDeviceGetTemperatureV(h, pynvml.NVML_TEMPERATURE_GPU),
        lambda h: pynvml.nvmlDeviceGetClockInfo(h, pynvml.NVML_CLOCK_SM),
        pynvml.nvmlDeviceGetCurrentClocksEventReasons,
    )  # fmt: skip
    pynvml.nvmlInit()
    handles = [pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(8)]
    times = []
    for _ in range(SAMPLES):
        start = time.process_time()
        values: dict[tuple[int, object], object] = {}
        for i, handle in enumerate(handles):
            asked = [wanted] if batches else [[one] for one in wanted]
            for some in asked:
                for entry in pynvml.nvmlDeviceGetFieldValues(handle, some):
                    if entry.nvmlReturn == 0:
                        values[i, (entry.fieldId, entry.scopeId)] = entry.value.ullVal
            for k, call in enumerate(calls):
                values[i, k] = call(handle)
        times.append(time.process_time() - start)
    pynvml.nvmlShutdown()
    return statistics.median(times)
