"""Which RDMA devices of this host are planes of another one, and which network interface one belongs to.

An 800 Gb/s InfiniBand port of a ConnectX-8 or -9 is several planes. Since Linux 6.11 the driver shows the port as one
logical device (`mlx5_0`, port 1) and may show its planes as a sub-device of type `smi` (named by whoever added it,
`smi1` by default) with one port a plane, numbered from 1: patches "RDMA/mlx5: Support plane device" and "RDMA/nldev:
Add support to dump device type and parent device if exists"; as seen on a host, Mellanox/rdmamap pull request 17.
"""

from __future__ import annotations

import json
import subprocess
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from collectors.base import CollectorError
from collectors.sysfs import SYS, entries, read, whole
from collectors.tools import find_tool
from twin.address import natural
from twin.errors import MissingTool

Port = tuple[str, int]  # device and port number

TOOL_SECONDS = 2.0
_SM_DISABLED = 1 << 10  # PortInfo CapabilityMask, IsSMDisabled: the driver sets it on a logical port with planes


@dataclass(frozen=True, slots=True)
class RdmaDevice:
    """A device as `rdma -j dev` lists it. kind: `smi` for one that shows planes of its parent, else None."""

    name: str
    kind: str | None = None
    parent: str | None = None


def parse_devices(text: str | bytes) -> list[RdmaDevice]:
    """The devices in the output of `rdma -j dev` (iproute2 rdma/dev.c: `ifname`, `type`, `parent`).

    `type` and `parent` are printed since iproute2 6.11. Raises CollectorError where it is no such list.
    """
    try:
        listed = json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise CollectorError(f"rdma -j dev: its answer is no JSON: {problem}") from problem
    if not isinstance(listed, list):
        raise CollectorError("rdma -j dev: expected a list of devices")
    found = []
    for entry in listed:
        name, kind, parent = (
            (entry.get(k) for k in ("ifname", "type", "parent")) if isinstance(entry, dict) else [None] * 3
        )
        if isinstance(name, str) and name:
            found.append(
                RdmaDevice(name, kind if isinstance(kind, str) else None, parent if isinstance(parent, str) else None)
            )
    return found


def ask_kernel() -> list[RdmaDevice]:
    """The devices as the program `rdma` tells them; none where it is missing or fails. Blocks: for a worker."""
    try:
        command = [find_tool("rdma", "iproute2", "planes of InfiniBand ports"), "-j", "dev"]
        done = subprocess.run(
            command, capture_output=True, timeout=TOOL_SECONDS, stdin=subprocess.DEVNULL, check=True
        )
        return parse_devices(done.stdout)
    except (MissingTool, CollectorError, OSError, subprocess.SubprocessError):
        return []


def ports_of(root: Path, device: str) -> list[int]:
    """The port numbers of a device, ascending."""
    listed = entries(root / "class/infiniband" / device / "ports") or ()
    return sorted(int(port) for port in listed if whole(port) is not None)


def find_planes(root: Path = SYS, told: list[RdmaDevice] | None = None) -> dict[Port, tuple[Port, ...]]:
    """Logical port -> the ports that are its planes, in order; nothing for ports without planes.

    told: the devices as `ask_kernel` has them; a parent that is told there counts. What is not told is found as
    rdma-core's libibumad does: InfiniBand ports of several devices that share one port GUID are one port, of which
    the logical one has IsSMDisabled set. The planes of a device belong to its parent's first port, as in mlx5.
    """
    devices = sorted(entries(root / "class/infiniband") or (), key=natural)
    parents = {d.name: d.parent for d in told or () if d.kind == "smi" and d.parent in devices and d.name in devices}
    for smi, parent in _same_guid(root, [d for d in devices if d not in parents]).items():
        parents.setdefault(smi, parent)
    planes: dict[Port, list[Port]] = defaultdict(list)
    for smi in sorted(parents, key=natural):
        first = min(ports_of(root, parents[smi] or ""), default=1)
        planes[parents[smi] or "", first] += [(smi, port) for port in ports_of(root, smi)]
    return {port: tuple(mine) for port, mine in planes.items() if mine}


def _same_guid(root: Path, devices: list[str]) -> dict[str, str]:
    """Device of planes -> logical device, for those that share a port GUID."""
    groups: dict[str, dict[str, bool]] = defaultdict(dict)
    for device in devices:
        for port in ports_of(root, device)[:1]:
            path = root / "class/infiniband" / device / "ports" / str(port)
            guid = (read(path / "gids/0") or "")[-19:]  # the last 64 of 128 bits, in groups of four digits
            if read(path / "link_layer") == "InfiniBand" and guid.strip("0:"):
                mask = read(path / "cap_mask") or ""
                groups[guid][device] = bool(_hex(mask) & _SM_DISABLED)
    parents = {}
    for group in groups.values():
        logical = [device for device, disabled in group.items() if disabled]
        if len(logical) == 1:
            parents.update({device: logical[0] for device in group if device != logical[0]})
    return parents


def _hex(text: str) -> int:
    try:
        return int(text, 16)
    except ValueError:
        return 0


def is_bonded(device: str) -> bool:
    """True for a device that mlx5 makes of several ports: it is called `mlx5_bond_N` (mlx5 main.c)."""
    return "bond" in device


def interface_of(root: Path, device: str, port: int) -> str | None:
    """The network interface of a RoCE port, for a bond that of the bond; None where there is none."""
    name = read(root / "class/infiniband" / device / "ports" / str(port) / "gid_attrs/ndevs/0")
    if not name or "/" in name:
        return None
    master = root / "class/net" / name / "master"
    return master.resolve().name if entries(master / "bonding") is not None else name
