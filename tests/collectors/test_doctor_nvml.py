"""The doctor at a stand-in for NVML: GPUs that answer, one that is lost, what a generation lacks."""

from __future__ import annotations

from pathlib import Path

from nvml_rig import eight, library, nvml
from sysfs_tree import write

from collectors.doctor.check import Check
from collectors.doctor.here import here, no_gpu_reason
from collectors.doctor.host import host_checks
from collectors.own_ports import own_ports
from tests.rigs.nvml.rig import LOST, Standin

__all__ = ["library", "nvml"]  # fixtures


async def gpus(root: Path) -> Check:
    write(root / "class/net", {})
    checks = await host_checks(root, root / "dev", {"PATH": "/nowhere"})
    return next(c for c in checks if c.name == "GPUs")


async def test_gpus_that_answer_are_read_and_what_they_lack_is_told_with_the_reason(
    nvml: Standin, tmp_path: Path
) -> None:
    nvml.write(eight())
    found = await gpus(tmp_path)
    assert (found.state, found.found) == ("ok", "8 of 8 read through NVML, 144 NVLinks")
    assert found.details and all("at 8 of 8: " in text for text in found.details)
    assert no_gpu_reason() is None


async def test_a_lost_gpu_makes_it_partly_read(nvml: Standin, tmp_path: Path) -> None:
    machine = eight()
    machine[3].say(f"error * {LOST}")
    nvml.write(machine)
    found = await gpus(tmp_path)
    assert found.state == "part" and found.found.startswith("7 of 8")
    assert any("gpu3" in text and "fell off the bus" in text for text in found.details)


async def test_a_driver_that_is_not_loaded_is_told_with_what_to_do(nvml: Standin, tmp_path: Path) -> None:
    nvml.write([], "error nvmlInit 9")
    write(tmp_path / "bus/pci/devices", {"0000:17:00.0": {"vendor": "0x10de", "class": "0x030200"}})
    found = await gpus(tmp_path)
    assert found.state == "missing" and "driver is not loaded" in found.found
    assert found.advice is not None and "modprobe nvidia" in found.advice
    assert "driver is not loaded" in here(own_ports("me", root=tmp_path).topology)[0]
