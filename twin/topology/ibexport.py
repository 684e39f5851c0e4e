"""Wiring as an `ibnetdiscover` dump, which people can diff and the simulator `ibsim` can load."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from twin.errors import InputError
from twin.ibtools.speeds import speed_of_link
from twin.topology.ibports import ib_numbers
from twin.topology.model import Topology

MOST_PORTS = 254  # of an InfiniBand node: a port number is a byte, 255 means any; a larger switch says what it uses
_SWITCH_GUID, _ADAPTER_GUID = 0x0002C9_1000000000, 0x0002C9_2000000000


def to_ibnetdiscover(topo: Topology, plane: str | None = None) -> str:
    """One plane of `topo` in the full form. Raises InputError where it has several and none is named."""
    if plane is None and len(topo.planes) > 1:
        raise InputError(f"{topo.name} has planes {', '.join(topo.planes)}: a dump holds one, name it with --plane")
    if plane is not None and plane not in topo.planes:
        raise InputError(f"{topo.name} has no plane {plane!r}; it has {', '.join(topo.planes)}")
    return "\n".join(_Dump(topo, plane).lines()) + "\n"


class _Dump:
    def __init__(self, topo: Topology, plane: str | None) -> None:
        self.topo = topo
        inside = np.ones(len(topo.links.a), bool)
        if plane is not None:
            inside = topo.links.plane == topo.planes.index(plane)
        self.rows = np.flatnonzero(inside)
        self.numbers = ib_numbers(topo)

    def lines(self) -> Iterator[str]:
        topo = self.topo
        yield from ("#", f"# Topology file: {topo.name}, exported by fabrictwin", "#")
        by_switch: dict[int, list[tuple[int, int, int]]] = {}
        by_nic: dict[int, list[tuple[int, int, int]]] = {}
        for row in self.rows.tolist():
            a, b = int(topo.links.a[row]), int(topo.links.b[row])
            for near, far in ((a, b), (b, a)):
                switch, nic = int(topo.ports.switch[near]), int(topo.ports.nic[near])
                (by_switch.setdefault(switch, []) if switch >= 0 else by_nic.setdefault(nic, [])).append(
                    (self._number(near), far, row)
                )
        for switch, cables in sorted(by_switch.items()):
            used, radix = max(number for number, *_ in cables), int(topo.switches.radix[switch])
            radix = used if radix > MOST_PORTS else max(radix, used)
            guid = f"{_SWITCH_GUID + switch:016x}"
            yield from ("", "vendid=0x2c9", "devid=0xd2f2", f"sysimgguid=0x{guid}", f"switchguid=0x{guid}({guid})")
            yield f'Switch\t{radix} "S-{guid}"\t\t# "{topo.switches.name[switch]}" enhanced port 0 lid 0 lmc 0'
            for number, far, row in sorted(cables):
                yield f"[{number}]\t{self._end(far)} \t\t# {self._far_name(far)} lid 0 {self._speed(row)}"
        for nic, cables in sorted(by_nic.items()):
            guid = f"{_ADAPTER_GUID + nic * 256:016x}"
            ports = max(number for number, *_ in cables)
            yield from ("", "vendid=0x2c9", "devid=0x1021", f"sysimgguid=0x{guid}", f"caguid=0x{guid}")
            yield f'Ca\t{ports} "H-{guid}"\t\t# "{self._adapter_name(nic)}"'
            for number, far, row in sorted(cables):
                port_guid = f"{_ADAPTER_GUID + nic * 256 + number - 1:016x}"
                far_name = f"lid 0 lmc 0 {self._far_name(far)}"
                yield f"[{number}]({port_guid}) \t{self._end(far)}\t\t# {far_name} lid 0 {self._speed(row)}"

    def _number(self, port: int) -> int:
        return int(self.numbers[port])

    def _end(self, port: int) -> str:
        switch, nic, number = int(self.topo.ports.switch[port]), int(self.topo.ports.nic[port]), self._number(port)
        if switch >= 0:
            return f'"S-{_SWITCH_GUID + switch:016x}"[{number}]'
        guid = _ADAPTER_GUID + nic * 256
        return f'"H-{guid:016x}"[{number}]({guid + number - 1:016x})'

    def _adapter_name(self, nic: int) -> str:
        return f"{self.topo.nodes.name[self.topo.nics.node[nic]]} mlx5_{self.topo.nics.ordinal[nic]}"

    def _far_name(self, port: int) -> str:
        switch = int(self.topo.ports.switch[port])
        name = self.topo.switches.name[switch] if switch >= 0 else self._adapter_name(int(self.topo.ports.nic[port]))
        return f'"{name}"'

    def _speed(self, row: int) -> str:
        speed = float(self.topo.links.speed[row])
        for width in ("4x", "2x", "1x"):
            if name := speed_of_link(width, speed):
                return f"{width}{name}"
        return "4xSDR"
