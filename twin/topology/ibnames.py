"""Names for what an InfiniBand discovery found: node descriptions to addresses, GPU hosts told from others.

Adapters describe themselves as `HOST DEVICE` (`a05-c01 HCA-1`, `n000 mlx5_0`), switches as the subnet manager
named them (`MF0;A09-LEAF-04:MQM9701/U1`). A name keeps what an operator says and drops the frame around it;
the whole description stays as a label. What has no host name is told by its GUID and is no GPU host.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from twin.address import clean, natural
from twin.ibtools.discovery import Discovery, Node
from twin.topology.rolenames import role_said

_MLX = re.compile(r"(?P<host>.+?)\s+(?P<device>mlx[45]_(?P<number>\d+)|HCA-(?P<hca>\d+)|ib\w+|rocep\w+)")
_MANAGED_SWITCH = re.compile(r"MF\d+;(?P<name>.+):(?P<model>[^:/]+)/\w+\d*")
_AGGREGATION = re.compile(r"aggregation node", re.IGNORECASE)
_MOST = 0.6  # a GPU host has at least this share of the usual number of adapters


@dataclass(slots=True)
class Host:
    """adapters: device number -> node GUID, in the order of their numbers."""

    name: str
    role: str
    adapters: dict[int, str] = field(default_factory=dict)


@dataclass(slots=True)
class Names:
    """switch: GUID -> name. model: GUID -> model. adapter: GUID -> (host name, NIC number)."""

    switch: dict[str, str] = field(default_factory=dict)
    model: dict[str, str] = field(default_factory=dict)
    adapter: dict[str, tuple[str, int]] = field(default_factory=dict)
    hosts: dict[str, Host] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)  # name -> description as found
    aggregation: int = 0
    unnamed: int = 0

    def port(self, guid: str, number: int) -> str | None:
        """The address of a port, None for what is no part of the fabric."""
        if guid in self.switch:
            return f"{self.switch[guid]}/p{number}"
        if guid in self.adapter:
            host, nic = self.adapter[guid]
            return f"{host}/nic{nic}/p{number}"
        return None


def name_all(discoveries: Iterable[Discovery]) -> Names:
    """Names over one or several fabrics that serve the same hosts."""
    names = Names()
    devices: dict[str, dict[str, str]] = {}  # host -> device -> GUID
    for found in discoveries:
        for node in found.nodes.values():
            if node.kind == "switch":
                _name_switch(names, node)
            elif _AGGREGATION.search(node.description):
                names.aggregation += 1
            elif match := _MLX.fullmatch(node.description.strip()):
                devices.setdefault(clean(match["host"]), {})[match["device"]] = node.guid
            else:
                names.unnamed += 1
                alone = f"ca-{node.guid}"
                names.labels[alone] = node.description
                names.hosts[alone] = Host(alone, "other", {0: node.guid})
    for name, found_devices in devices.items():
        names.hosts[name] = Host(name, "compute", _number(found_devices))
    _tell_roles(names, set(devices))
    names.hosts = dict(sorted(names.hosts.items(), key=lambda item: natural(item[0])))
    for host in names.hosts.values():
        names.adapter |= {guid: (host.name, nic) for nic, guid in host.adapters.items()}
    return names


def _name_switch(names: Names, node: Node) -> None:
    description = node.description.strip()
    managed = _MANAGED_SWITCH.fullmatch(description)
    name = clean(managed["name"] if managed else description)
    if name in names.switch.values() or not description:
        name = f"{name}-{node.guid[-6:]}" if description else f"sw-{node.guid}"
    names.switch[node.guid] = name
    names.model[node.guid] = managed["model"].lower() if managed else "unknown"
    if name != description:
        names.labels[name] = description


def _number(devices: dict[str, str]) -> dict[int, str]:
    """NIC numbers from device names: mlx5_N is N, HCA-N is N - 1; other names are counted in order."""
    numbers: dict[int, str] = {}
    rest = []
    for device in sorted(devices, key=natural):
        digits = re.fullmatch(r"mlx[45]_(\d+)", device) or re.fullmatch(r"HCA-(\d+)", device)
        if digits is None:
            rest.append(device)
        else:
            number = int(digits[1]) - device.startswith("HCA-")
            numbers.setdefault(max(number, 0), devices[device])
    free = (n for n in range(len(devices) + len(numbers) + 1) if n not in numbers)
    return dict(sorted({**numbers, **{next(free): devices[d] for d in rest}}.items()))


def _tell_roles(names: Names, named: set[str]) -> None:
    """GPU hosts have as many adapters as most hosts do; names that say storage or management are believed."""
    usual = Counter(len(names.hosts[h].adapters) for h in named).most_common(1)
    for host in (names.hosts[h] for h in named):
        if (said := role_said(host.name)) is not None:
            host.role = said
        elif usual and len(host.adapters) < _MOST * usual[0][0]:
            host.role = "other"
