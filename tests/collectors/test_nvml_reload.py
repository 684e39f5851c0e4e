"""The driver is unloaded and loaded anew under a running watch: a gap, no false incident, right rates after it."""

from __future__ import annotations

import asyncio
import math
from pathlib import Path

import pytest
from nvml_rig import library, nvml

from tests.rigs.nvml.rig import FakeGpu, Standin, gpu
from tests.rigs.watch import Watch

__all__ = ["library", "nvml"]  # fixtures

SITE = """
topology:
  name: mini
  planes: []
  nodes: [{name: n0, gpu_model: h100, gpus: 2, nics: 0, ports_per_nic: 1}]
  domains: [{name: d0, gpus: [n0/gpu0, n0/gpu1], switches: [], links_per_gpu: 18, speed: 25GB/s}]
collectors:
  - nvml: {name: n0}
"""
BYTES_A_SECOND = 5e8


def busy(index: int, start: int) -> FakeGpu:
    """A GPU that sends over PCIe and NVLink. start: what its counters had when the driver was loaded."""
    one = gpu(index).say(f"field 197 0 ull {start}", f"grow 197 0 {BYTES_A_SECOND}")
    return one.say(f"field 138 * ull {start}", f"grow 138 * {BYTES_A_SECOND / 1024}")


async def test_a_driver_reload_is_a_gap_and_nothing_else(nvml: Standin, tmp_path: Path) -> None:
    site = tmp_path / "site.yaml"
    site.write_text(SITE)
    nvml.write([busy(i, 2**45) for i in range(2)])
    watch = Watch(site)
    rates: list[float] = []

    def read() -> list[float]:
        """Bytes/s over PCIe, then over NVLink, of all GPUs and NVLinks; NaN where unknown."""
        table = watch.live.twin._table
        found = [*table("gpu").value("pcie_tx_bytes").tolist(), *table("nvlink").value("tx_bytes").tolist()]
        rates.extend(found)
        return found

    def flowing() -> bool:
        found = read()
        return len(found) == 2 + 36 and all(rate == pytest.approx(BYTES_A_SECOND, rel=0.3) for rate in found)

    def failing() -> bool:
        read()
        return any(h.ok is False for h in watch.live.health())

    async with watch.live:
        task = asyncio.create_task(watch.run())
        await watch.until(lambda: bool(watch.live.twin.time) and flowing(), "the traffic")
        nvml.write(None, "reload 1", "error nvmlInit 9")
        await watch.until(failing, "the failing source")
        (health,) = watch.live.health()
        assert health.last_error == "nvmlInit: the NVIDIA driver is not loaded"
        nvml.write([busy(1, 0), busy(0, 0)], "reload 1")  # in another order, and counters begin anew
        await watch.until(lambda: not failing(), "the source back")
        await watch.until(flowing, "the traffic after it")
        (health,) = watch.live.health()
        assert [w.split(":")[1] for w in health.warnings] == [
            " NVML was opened anew",
            " the driver has new indices, addresses stay",
        ]
        task.cancel()
    assert {i.kind for i in watch.incidents} <= {"collector_failed", "telemetry_stale"}
    known = [rate for rate in rates if not math.isnan(rate)]
    assert known
    assert all(0 <= rate < 10 * BYTES_A_SECOND for rate in known), "neither a jump nor a fall"
