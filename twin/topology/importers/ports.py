"""Interface names to the numbers that addresses need: NIC and port of a host, port of a switch."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from twin.address import natural
from twin.topology.importers import hints
from twin.topology.importers.sketch import End, Sketch

_PARTS = (1, 2, 4, 8)  # into how many a switch port is split
_MAX_NUMBER = 100_000


@dataclass(slots=True)
class HostPorts:
    """Where each interface of a host is: interface -> (NIC number, port number). rails: NICs named as a rail."""

    of: dict[str, tuple[int, int]]
    first_port: int
    rails: frozenset[int]

    @property
    def nics(self) -> list[int]:
        return sorted({nic for nic, _ in self.of.values()})

    @property
    def per_nic(self) -> int:
        return max((port for _, port in self.of.values()), default=self.first_port) - self.first_port + 1


def name_ports(sketch: Sketch) -> None:
    """Gives names to ports that the input leaves unnamed, in the order of its cables."""
    taken = {(end.device, end.port) for cable in sketch.cables for end in (cable.a, cable.b)}
    next_: Counter[str] = Counter()

    def named(end: End) -> End:
        if end.port is not None:
            return end
        while True:
            host = sketch.devices[end.device].kind == "host"
            name = f"nic{next_[end.device]}" if host else f"p{next_[end.device] + 1}"
            next_[end.device] += 1
            if (end.device, name) not in taken:
                return replace(end, port=name)

    unnamed = sum(end.port is None for cable in sketch.cables for end in (cable.a, cable.b))
    hosts = {d.name for d in sketch.devices.values() if d.kind == "host"}
    for cable in sorted(sketch.cables, key=lambda c: not {c.a.device, c.b.device} & hosts):  # uplinks come last
        cable.a, cable.b = named(cable.a), named(cable.b)
    if unnamed:
        sketch.notes.append(
            f"{unnamed} port numbers are made up in the order of the input, which does not name ports"
        )


def host_ports(sketch: Sketch) -> dict[str, HostPorts]:
    """Every host's interfaces with their numbers. Hosts alike get numbers alike, a missing cable or not."""
    names: dict[str, set[str]] = {d.name: set() for d in sketch.devices.values() if d.kind == "host"}
    for cable in sketch.cables:
        for end in (cable.a, cable.b):
            if end.device in names and end.port is not None:
                names[end.device].add(end.port)
    said = {port: hints.host_port(port) for ports in names.values() for port in ports}
    numbers = [place[1] for place in said.values() if place is not None and place[1] is not None]
    first = int(bool(numbers) and min(numbers) > 0)
    bases = {host: _bases(p for p in ports if said[p] is None) for host, ports in names.items()}
    usual = Counter(tuple(b) for b in bases.values() if b).most_common(1)
    common = list(usual[0][0]) if usual else []
    out = {}
    for host, ports in names.items():
        own = bases[host]
        out[host] = _place(ports, said, common if set(own) <= set(common) else own, first)
    _note_host_ports(sketch, out, said)
    return out


def _bases(ports: Iterable[str]) -> list[str]:
    return sorted({hints.adapter_of(p)[0] for p in ports}, key=natural)


def _place(
    ports: set[str], said: Mapping[str, tuple[int, int | None] | None], bases: list[str], first: int
) -> HostPorts:
    of: dict[str, tuple[int, int]] = {}
    taken: set[tuple[int, int]] = set()
    rest: list[str] = []
    for port in sorted(ports, key=natural):
        place = said[port]
        number = None if place is None else (place[0], first if place[1] is None else place[1])
        if number is None or number in taken:
            rest.append(port)
        else:
            of[port] = number
            taken.add(number)
    start = max((nic for nic, _ in taken), default=-1) + 1
    for port in rest:
        base, index = hints.adapter_of(port)
        nic = start + (bases.index(base) if base in bases else len(bases))
        number = (nic, first + index)
        while number in taken:  # only where names contradict each other
            number = (number[0] + 1, first)
        of[port] = number
        taken.add(number)
    return HostPorts(of, first, frozenset(nic for port, (nic, _) in of.items() if hints.is_rail(port)))


def _note_host_ports(
    sketch: Sketch, placed: dict[str, HostPorts], said: Mapping[str, tuple[int, int | None] | None]
) -> None:
    shown: dict[bool, tuple[str, str]] = {}
    for ports in placed.values():
        for port, (nic, number) in ports.of.items():
            shown.setdefault(said[port] is not None, (port, f"nic{nic}/p{number}"))
    if True in shown and shown[True][0] != shown[True][1].split("/")[0]:
        sketch.notes.append(
            f"NIC and port numbers are those of interface names: {shown[True][0]} is {shown[True][1]}"
        )
    if False in shown:
        sketch.notes.append(
            f"interfaces without such numbers are counted in the order of their names: {shown[False][0]} is "
            f"{shown[False][1]}"
        )


def switch_ports(sketch: Sketch) -> dict[tuple[str, str], int]:
    """(switch, interface) -> port number, unique within the switch."""
    names: dict[str, set[str]] = defaultdict(set)
    for cable in sketch.cables:
        for end in (cable.a, cable.b):
            if sketch.devices[end.device].kind == "switch" and end.port is not None:
                names[end.device].add(end.port)
    out: dict[tuple[str, str], int] = {}
    example: tuple[str, int, int] | None = None
    for switch, ports in names.items():
        numbers = number_ports(ports)
        out |= {(switch, port): number for port, number in numbers.items()}
        split = [port for port in ports if hints.split_port(port)]
        if split and example is None:
            port = min(split, key=natural)
            example = port, numbers[port], _parts(ports)
    if example:
        port, number, parts = example
        sketch.notes.append(
            f"parts of split switch ports are counted through: {port} of {parts} parts a port is p{number}"
        )
    return out


def _parts(ports: Iterable[str]) -> int:
    """Into how many parts the ports of a switch are split at most, from names like `swp3s1`."""
    most = max((split[1] for port in ports if (split := hints.split_port(port)) is not None), default=0)
    return next((p for p in _PARTS if p > most), most + 1)


def number_ports(ports: Collection[str]) -> dict[str, int]:
    """A number a port of one switch: the name's own where that tells ports apart."""
    ordered = sorted(ports, key=natural)
    parts = _parts(ordered)
    wanted: dict[str, int] = {}
    several = Counter(found[-1] for port in ordered if (found := hints.numbers(port)))
    for port in ordered:
        found = hints.numbers(port)
        if (split := hints.split_port(port)) is not None:
            wanted[port] = (split[0] - 1) * parts + split[1] + 1
        elif found and port.lower().startswith("swp") and parts > 1:
            wanted[port] = (found[0] - 1) * parts + 1
        elif found and (len(found) == 1 or max(several.values()) == 1):
            wanted[port] = found[-1]
        elif found:  # Ethernet5/1 beside Ethernet6/1: the first number that differs, in parts
            wanted[port] = (found[-2] - 1) * max(several_parts(ordered), 1) + found[-1]
    out: dict[str, int] = {}
    taken: set[int] = set()
    late = []
    for port in ordered:
        number = wanted.get(port, -1)
        if 0 <= number < _MAX_NUMBER and number not in taken:
            out[port] = number
            taken.add(number)
        else:
            late.append(port)
    free = 1
    for port in late:
        while free in taken:
            free += 1
        out[port] = free
        taken.add(free)
    return out


def several_parts(ports: Iterable[str]) -> int:
    """The most that the last number of a port name reaches: into how many parts ports are split."""
    return max((found[-1] for port in ports if len(found := hints.numbers(port)) > 1), default=1)
