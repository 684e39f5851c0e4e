"""Which port of the wiring a device's own name for an interface means: `Ethernet8` of a leaf, `mlx5_3` of a host.

A site may say it; else the wiring's own names are tried, then numbers. A name that cannot be placed gives nothing:
a reading at the wrong port is worse than none.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from math import gcd

import numpy as np

from collectors.netdev import match_names
from twin.errors import InputError
from twin.topology.importers.hints import host_port, is_switch_port
from twin.topology.importers.ports import number_ports
from twin.topology.model import Topology

ANY = "*"


class PortNames:
    """Interfaces of the devices of one wiring, to addresses.

    given: device (or `*`) -> interface -> port, as a site file has it: `p3`, `nic0/p1` or a whole address. Raises
    InputError for a device or a port of one that the wiring does not have.
    """

    def __init__(self, topology: Topology, given: Mapping[str, Mapping[str, str]] | None = None) -> None:
        self._topology = topology
        self._given = given or {}
        self._known = topology.rows("port")
        self._switches = topology.rows("switch")
        self._nodes = topology.rows("node")
        ordinals = topology.ports.ordinal[topology.ports.switch >= 0]
        self._base = int(ordinals.min()) if len(ordinals) else 0
        cabled: dict[int, list[int]] = defaultdict(list)
        rows = np.flatnonzero((topology.ports.switch >= 0) & (topology.ports.link >= 0))
        for switch, ordinal in zip(
            topology.ports.switch[rows].tolist(), topology.ports.ordinal[rows].tolist(), strict=True
        ):
            cabled[switch].append(ordinal)
        self._cabled = cabled
        self._of_node: dict[str, set[str]] = defaultdict(set)
        of_nics = int(np.count_nonzero(topology.ports.nic >= 0))  # they come first
        for address in topology.port_names[:of_nics]:
            self._of_node[address.split("/", 1)[0]].add(address)
        self._check()

    def _check(self) -> None:
        """Every mistake of what the site says, but for `*`, which need not fit all devices."""
        problems = []
        for device, ports in self._given.items():
            if device == ANY:
                continue
            if not self.has(device):
                near = get_close_matches(device, [*self._switches, *self._nodes], 1)
                hint = f"; did you mean {near[0]}?" if near else ""
                problems.append(f"ports: {self._topology.name} has no switch or node {device!r}{hint}")
                continue
            wrong = [f"{i}: {port}" for i, port in ports.items() if self._said(device, i) == ""]
            problems.extend(f"ports: {device} has no such port in {self._topology.name}: {text}" for text in wrong)
        if problems:
            raise InputError(problems)

    def has(self, device: str) -> bool:
        """True where the wiring has a switch or node of that name."""
        return device in self._switches or device in self._nodes

    def place(self, device: str, interfaces: Iterable[str]) -> dict[str, str]:
        """Interface -> address for those of one device that are ports of the wiring; no address twice.

        Give all interfaces that the device lists: numbers are read by looking at all of them.
        """
        names = list(dict.fromkeys(interfaces))
        placed: dict[str, str] = {}
        rest = []
        for name in names:
            address = self._said(device, name)
            if address is None:
                rest.append(name)
            elif address:
                placed[name] = address
        more = self._switch(device, rest) if device in self._switches else self._host(device, rest)
        taken = set(placed.values())
        for name, address in more.items():
            if address in self._known and address not in taken:
                placed[name] = address
                taken.add(address)
        return placed

    def _said(self, device: str, name: str) -> str | None:
        """What the site says; "" where it says an address that is not in the wiring, None where it says nothing."""
        for whose in (device, ANY):
            said = self._given.get(whose, {}).get(name)
            if said is not None:
                address = said if said in self._known else f"{device}/{said}"
                return address if address in self._known else ""
        address = f"{device}/{name}"
        return address if address in self._known else None

    def _switch(self, device: str, names: list[str]) -> dict[str, str]:
        physical = [n for n in names if is_switch_port(n) or re.fullmatch(r"(?:[Pp]ort ?)?\d+", n)]
        if not physical:
            return {}
        numbers = number_ports(physical)
        cabled = set(self._cabled.get(self._switches[device], ()))
        for found in _readings(numbers):
            shift = self._base - min(1, min(found.values()))
            if cabled <= {n + shift for n in found.values()}:
                return {name: f"{device}/p{n + shift}" for name, n in found.items()}
        found = next(iter(_readings(numbers)))  # some cabled ports are not listed: the plainest reading
        shift = self._base - min(1, min(found.values()))
        return {name: f"{device}/p{n + shift}" for name, n in found.items()}

    def _host(self, device: str, names: list[str]) -> dict[str, str]:
        mine = self._of_node[device]
        placed = match_names(names, device, mine)
        labels = {word: a for a in mine for word in self._topology.labels.get(a, "").split()}
        for name in names:
            if name in labels:
                placed.setdefault(name, labels[name])
            elif name not in placed and (place := host_port(name)) is not None:
                nic, port = place
                ports = sorted(a for a in mine if a.startswith(f"{device}/nic{nic}/"))
                if port is None and len(ports) == 1:
                    placed[name] = ports[0]
                elif port is not None and (address := f"{device}/nic{nic}/p{port}") in mine:
                    placed[name] = address
        return placed


def _readings(numbers: Mapping[str, int]) -> list[dict[str, int]]:
    """The numbers as they are, and with the step between them taken out: SONiC counts lanes, Ethernet0, Ethernet4."""
    found = [dict(numbers)]
    step = 0
    for number in numbers.values():
        step = gcd(step, number)
    if step > 1 and 0 in numbers.values():
        found.insert(0, {name: number // step for name, number in numbers.items()})
    return found
