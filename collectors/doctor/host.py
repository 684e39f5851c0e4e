"""What this host itself lets one read: GPUs, RDMA devices, interfaces, tools, libraries, its clock."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from collectors.base import Worker
from collectors.build import build_own
from collectors.call import one_line
from collectors.doctor.check import Check
from collectors.doctor.clock import clock_check
from collectors.doctor.coverage import Seen
from collectors.doctor.here import no_gpu_reason
from collectors.doctor.infiniband import infiniband_checks
from collectors.doctor.libraries import library_checks
from collectors.doctor.sources import Attempt, collect
from collectors.infiniband_sysfs import list_ports
from collectors.sysfs import entries, read
from collectors.tools import find_tool
from twin.errors import FabrictwinError, MissingTool
from twin.topology.model import Topology

NVIDIA, MELLANOX = "0x10de", "0x15b3"  # PCI vendors
_DISPLAY, _NETWORK, _INFINIBAND = "0x03", "0x02", "0x0207"  # PCI classes

# program -> (package, what it is for)
_TOOLS = {
    "rdma": ("iproute2", "to tell which RDMA devices are planes of one port"),
    "ethtool": ("ethtool", "to look at a NIC's own counters by hand"),
    "lldpcli": ("lldpd", "to discover the wiring of an Ethernet fabric (`topology discover --lldp`)"),
}


async def host_checks(
    root: Path = Path("/sys"), dev: Path = Path("/dev"), env: Mapping[str, str] | None = None
) -> list[Check]:
    """Every check of this host, in the order in which they are told. Raises nothing for what is missing."""
    try:
        topology, collectors = await Worker("this host").run(lambda: build_own(root))
    except (FabrictwinError, ImportError) as problem:
        return [Check("this host", "missing", one_line(problem))]
    attempts = [Attempt("own", None, c.name, c, Seen(topology)) for c in collectors]
    infiniband = any(p.link_layer == "InfiniBand" for p in list_ports(root))
    fabric = asyncio.create_task(infiniband_checks(infiniband, dev=dev, env=env))
    await asyncio.gather(*(collect(a) for a in attempts))
    by_kind = {_kind_of(a): a for a in attempts}
    return [
        await _gpus(by_kind.get("gpu"), root, dev),
        _rdma(by_kind.get("rdma"), topology, root),
        _interfaces(by_kind.get("interfaces"), topology),
        *await fabric,
        *(_tool(name, env) for name in _TOOLS),
        *library_checks(),
        clock_check(),
        permissions(root),
    ]


def _kind_of(attempt: Attempt) -> str:
    return {"nvml": "gpu", "infiniband": "rdma"}.get(attempt.name.rpartition(":")[2], "interfaces")


# --- GPUs ---


async def _gpus(attempt: Attempt | None, root: Path, dev: Path) -> Check:
    name = "GPUs"
    if attempt is None or attempt.error is not None:
        reason = attempt.error if attempt is not None else await Worker("NVML").run(no_gpu_reason)
        said = f"NVML: {(reason or 'finds no GPU').removeprefix('NVML: ')}"
        cards = _pci(root, NVIDIA, _DISPLAY)
        if not cards and not (dev / "nvidiactl").exists() and attempt is None:
            return Check(name, "none", f"none here ({said})")
        where = f"{len(cards)} at PCI, but {said}" if cards else said
        return Check(name, "missing", where, _driver_advice(reason or ""))
    seen = attempt.seen
    known, total, links = int(seen.read("gpu").sum()), len(seen.topology.gpu_names), int(seen.read("nvlink").sum())
    nvlinks = f", {links} NVLinks" if links else ""
    sound = known == total and not attempt.warnings
    details = (*attempt.warnings, *attempt.lacking)
    return Check(name, "ok" if sound else "part", f"{known} of {total} read through NVML{nvlinks}", None, details)


def _driver_advice(reason: str) -> str:
    if "not found" in reason or "not there" in reason:
        return "Install the driver's library libnvidia-ml.so.1; in a container, use the NVIDIA container toolkit."
    if "not loaded" in reason:
        return "Load the driver: modprobe nvidia; `dmesg` says why where that fails."
    return "See `dmesg | grep -i nvrm` and `nvidia-smi`."


def _pci(root: Path, vendor: str, of_class: str) -> list[str]:
    """PCI addresses of a vendor's devices of a class."""
    devices = root / "bus/pci/devices"
    return [
        name
        for name in sorted(entries(devices) or ())
        if read(devices / name / "vendor") == vendor and (read(devices / name / "class") or "").startswith(of_class)
    ]


# --- network ---


def _rdma(attempt: Attempt | None, topology: Topology, root: Path) -> Check:
    name = "RDMA devices"
    if attempt is None:
        cards = _pci(root, MELLANOX, _NETWORK)
        if not cards:
            return Check(name, "none", "none here (no device in /sys/class/infiniband)")
        advice = (
            "Load the drivers: modprobe mlx5_core mlx5_ib; in a container, /sys and the devices must be the host's."
        )
        return Check(name, "missing", f"{len(cards)} adapters at PCI ({cards[0]}), no RDMA device", advice)
    return _ports(name, attempt, topology, lambda word: "/" in word)


def _interfaces(attempt: Attempt | None, topology: Topology) -> Check:
    if attempt is None:
        return Check("network interfaces", "none", "none that is no bridge, tunnel or virtual function")
    return _ports("network interfaces", attempt, topology, lambda word: "/" not in word)


def _ports(name: str, attempt: Attempt, topology: Topology, mine: Callable[[str], bool]) -> Check:
    """What one collector of ports could read, by the names that the host gives them."""
    if attempt.error is not None:
        return Check(name, "missing", attempt.error)
    up, speed = (attempt.seen.known("port", metric) for metric in ("up", "speed_bits_per_second"))
    words = [
        (word, row)
        for row, address in enumerate(topology.port_names)
        for word in topology.labels.get(address, "").split()
        if mine(word)
    ]
    details = list(attempt.warnings)
    if silent := [word for word, row in words if not up[row]]:
        details.append(f"not known to be up or down: {', '.join(silent)}")
    if slow := [word for word, row in words if up[row] and not speed[row]]:
        details.append(f"speed unknown, as of a port that is down or virtual: {', '.join(slow)}")
    found = ", ".join(word for word, _ in words)
    return Check(name, "part" if attempt.warnings or silent else "ok", found, None, tuple(details))


# --- the rest ---


def _tool(name: str, env: Mapping[str, str] | None) -> Check:
    package, purpose = _TOOLS[name]
    try:
        find_tool(name, package, purpose, env)
    except MissingTool:
        return Check(
            f"tool {name}", "none", f"not installed; it is needed {purpose}", f"Install the package {package}."
        )
    return Check(f"tool {name}", "ok", "installed")


def permissions(root: Path) -> Check:
    """Whether we see the host itself: its /sys, its network, with which rights."""
    details = []
    if entries(root / "class/net") is None:
        return Check(
            "permissions", "missing", f"{root}/class/net is not there", "Mount /sys: mount -t sysfs sysfs /sys."
        )
    if Path("/.dockerenv").exists() or Path("/run/.containerenv").exists():
        details.append("in a container: only the devices and the network handed to it are seen")
    if _other_network():
        details.append("in a network namespace of its own: the host's other interfaces are not seen")
    who = "root" if os.geteuid() == 0 else f"user {os.geteuid()}: some counters and devices may be for root only"
    return Check("permissions", "ok", who, None, tuple(details))


def _other_network() -> bool:
    try:
        return Path("/proc/self/ns/net").readlink() != Path("/proc/1/ns/net").readlink()
    except OSError:  # not ours to see: then nothing is said
        return False
