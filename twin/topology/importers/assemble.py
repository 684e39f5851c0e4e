"""A sketch to a Topology: roles, planes, tiers, port numbers and speeds, each decision with its reason as a note."""

from __future__ import annotations

from collections import Counter, defaultdict
from math import isnan

from twin.address import clean, natural
from twin.catalog import max_switch_ports
from twin.errors import InputError
from twin.topology.builder import Builder, default_nic_of_gpu
from twin.topology.importers import hints, kinds
from twin.topology.importers.planes import Placed, planes
from twin.topology.importers.ports import HostPorts, host_ports, name_ports, switch_ports
from twin.topology.importers.sketch import ASSUMED_GPUS, ASSUMED_SPEED, Cable, Device, End, Sizes, Sketch
from twin.topology.importers.source import printable
from twin.topology.model import NONE, ROLES, TIERS, Topology
from twin.topology.rolenames import role_said
from twin.units import show_speed

_COMMON, _MOST = 0.5, 0.6  # as for InfiniBand discoveries: a usual NIC number, a GPU host's least share of NICs
_MAX_GPUS = 1024
_LONGEST_NAME = 200


def assemble(sketch: Sketch, sizes: Sizes | None = None) -> Topology:
    """The Topology of a sketch. Raises InputError where there is nothing to make one of."""
    if not sketch.devices:
        raise InputError(f"{sketch.name}: no devices found; expected hosts and switches")
    return _Assembly(sketch, sizes or Sizes()).topology()


class _Assembly:
    def __init__(self, sketch: Sketch, sizes: Sizes) -> None:
        self.sketch, self.sizes, self.notes = sketch, sizes, sketch.notes
        kinds.decide(sketch)
        kinds.leave_out_management(sketch)
        name_ports(sketch)
        self.hosts = sorted((d for d in sketch.devices.values() if d.kind == "host"), key=lambda d: natural(d.name))
        self.switches = [d for d in sketch.devices.values() if d.kind == "switch"]
        self.ports: dict[str, HostPorts] = host_ports(sketch)
        self.numbers = switch_ports(sketch)
        self.names = self._names()
        self.roles, self.usual = self._roles()
        self.rows: dict[str, int] = {}
        self.nics: dict[str, list[int]] = {}

    def topology(self) -> Topology:
        compute = {name for name, role in self.roles.items() if role == "compute"}
        placed: Placed = {(h, port): place for h, ports in self.ports.items() for port, place in ports.of.items()}
        labels, self.plane = planes(self.sketch, placed, compute)
        self.tiers = self._tiers()
        if len(labels) > 1:
            self._note_narrow_nics(placed, compute)
        self.builder = Builder(self.sketch.name, labels)
        self._add_hosts()
        self._add_switches(labels)
        self._add_links()
        self._add_domains()
        self.builder.notes.extend(self.notes)
        return self.builder.build()

    def _note_narrow_nics(self, placed: Placed, compute: set[str]) -> None:
        seen = defaultdict[tuple[str, int], set[str | None]](set)
        for cable in self.sketch.cables:
            for end, other in ((cable.a, cable.b), (cable.b, cable.a)):
                if end.device in compute:
                    seen[end.device, placed[end.device, end.port][0]].add(self.plane.get(other.device))
        if seen and all(len(planes_of_nic) < 2 for planes_of_nic in seen.values()):
            self.notes.append(
                "no NIC has ports in two planes: where planes are ports of one NIC, change nics and ports"
            )

    def _names(self) -> dict[str, str]:
        """The input's names made fit for addresses, and unique."""
        names: dict[str, str] = {}
        taken: set[str] = set()
        for raw in self.sketch.devices:
            printable = "".join(c if c.isprintable() else "_" for c in raw.strip())
            wanted = name = clean(printable)[:_LONGEST_NAME]
            count = 1
            while name in taken:
                count += 1
                name = f"{wanted}-{count}"
            names[raw] = name
            taken.add(name)
        return names

    # --- hosts ---

    def _roles(self) -> tuple[dict[str, str], list[int]]:
        """Host -> role, and the NIC numbers that GPU hosts usually have for GPU traffic."""
        roles = {d.name: d.role or role_said(d.name) or "compute" for d in self.hosts}
        for_gpus = {name: self._gpu_nics(name) for name, role in roles.items() if role == "compute"}
        count = Counter(len(nics) for nics in for_gpus.values()).most_common(1)
        few = [name for name, nics in for_gpus.items() if count and len(nics) < _MOST * count[0][0]]
        for name in few:
            if self.sketch.devices[name].gpus is None and self.sketch.devices[name].role is None:
                roles[name] = "other"
                del for_gpus[name]
        seen = Counter(nic for nics in for_gpus.values() for nic in nics)
        usual = [nic for nic, n in sorted(seen.items()) if n >= _COMMON * len(for_gpus)]
        told = Counter(role for role in roles.values() if role != "compute")
        if told:
            what = ", ".join(f"{n} {role}" for role, n in told.items())
            self.notes.append(f"not counted as GPU hosts: {what} (by name, or with far fewer NICs than most)")
        return roles, usual

    def _gpu_nics(self, host: str) -> list[int]:
        """NICs that may carry GPU traffic: those named as rails, else all that do not lead to storage alone."""
        ports = self.ports[host]
        if ports.rails:
            return sorted(ports.rails)
        if not hasattr(self, "_storage"):
            self._storage = self._storage_ports()
        return sorted({nic for port, (nic, _) in ports.of.items() if (host, port) not in self._storage})

    def _storage_ports(self) -> set[tuple[str, str | None]]:
        """Ends at hosts of cables to a switch whose name says storage or management."""
        out = set()
        for cable in self.sketch.cables:
            for end, other in ((cable.a, cable.b), (cable.b, cable.a)):
                device = self.sketch.devices[other.device]
                if device.kind == "switch" and role_said(device.name) is not None:
                    out.add((end.device, end.port))
        return out

    def _add_hosts(self) -> None:
        racks: dict[str, int] = {}
        assumed = set()
        for device in self.hosts:
            ports, compute = self.ports[device.name], self.roles[device.name] == "compute"
            own = self._gpu_nics(device.name)
            usual = self.usual if len(own) >= _MOST * len(self.usual) else own
            for_gpus = sorted(set(usual) | set(own) if ports.rails else usual) if compute else []
            nics = sorted({*ports.nics, *for_gpus})
            gpus = self._gpus(device, len(for_gpus)) if compute else 0
            if compute and device.gpus is None and self.sizes.gpus_per_node is None:
                assumed.add(gpus)
            rack = device.rack or hints.rack_of(device.name)
            if rack is not None and rack not in racks:
                racks[rack] = self.builder.rack(clean(rack))
            self.rows[device.name] = self.builder.node(
                self.names[device.name], gpus=gpus, nics=nics,
                ports_per_nic=min(max(ports.per_nic, device.nic_ports or 1), hints.MAX_PORTS),
                first_port=ports.first_port, role=ROLES.index(self.roles[device.name]),
                rack=NONE if rack is None else racks[rack], gpu_model=self.sizes.gpu_model or "unknown",
                nic_of_gpu=[
                    nics.index(for_gpus[n]) if n >= 0 else NONE for n in default_nic_of_gpu(gpus, len(for_gpus))
                ],
            )  # fmt: skip
            self.nics[device.name] = nics
            self._label(device.name)
        named = next((self.nics[h][0] for h, p in self.ports.items() if p.rails and self.nics[h][0]), None)
        if named is not None:
            self.notes.append(f"rails are counted from 0 in the order of NICs: rail 0 is nic{named} of a host")
        if assumed:
            each = " or ".join(str(n) for n in sorted(assumed))
            self.notes.append(f"{ASSUMED_GPUS} ({each} a host); --gpus-per-node or --nvidia-smi say better")

    def _gpus(self, device: Device, nics: int) -> int:
        gpus = device.gpus if self.sizes.gpus_per_node is None else self.sizes.gpus_per_node
        return max(0, min(nics if gpus is None else gpus, _MAX_GPUS))

    def _label(self, raw: str) -> None:
        if self.names[raw] != raw:
            self.builder.labels[self.names[raw]] = printable(raw)

    # --- switches ---

    def _tiers(self) -> dict[str, int]:
        """A switch's tier as the input or its name says; else by how far it is from hosts."""
        near, around = set(), defaultdict[str, set[str]](set)
        switches = {d.name for d in self.switches}
        for cable in self.sketch.cables:
            for end, other in ((cable.a, cable.b), (cable.b, cable.a)):
                if end.device in switches and other.device in switches:
                    around[end.device].add(other.device)
                elif end.device in switches:
                    near.add(end.device)
        said = {d.name: d.tier if d.tier is not None else hints.tier_of(d.name) for d in self.switches}
        tiers = {name: tier for name, tier in said.items() if tier is not None}
        inferred = switches - set(tiers)
        tiers |= dict.fromkeys(inferred & near, 0)
        edge = set(tiers)
        while edge and len(tiers) < len(switches):
            found = {n: tiers[e] + 1 for e in sorted(edge, key=tiers.__getitem__, reverse=True) for n in around[e]}
            edge = set(found) - set(tiers)
            tiers |= {name: min(found[name], len(TIERS) - 1) for name in edge}
        if inferred:
            self.notes.append(f"the tier of {len(inferred)} switches is how far they are from hosts")
        return {name: tiers.get(name, 0) for name in switches}

    def _add_switches(self, labels: tuple[str, ...]) -> None:
        highest: dict[str, int] = defaultdict(int)
        for (switch, _), number in self.numbers.items():
            highest[switch] = max(highest[switch], number)

        def order(d: Device) -> tuple[int, str, list[tuple[int, int, str]]]:
            return self.tiers[d.name], self.plane[d.name] or "~", natural(d.name)

        for device in sorted(self.switches, key=order):
            plane, model = self.plane[device.name], clean(device.model).lower()
            known = max_switch_ports(model)
            self.rows[device.name] = self.builder.switch(
                self.names[device.name], self.tiers[device.name], NONE if plane is None else labels.index(plane),
                model=model, radix=highest[device.name] if known and highest[device.name] > known else 0,
            )  # fmt: skip
            self._label(device.name)

    # --- links ---

    def _add_links(self) -> None:
        used: set[End] = set()
        twice: list[str] = []
        unknown = 0
        speed = self._usual_speed()

        def order(cable: Cable) -> tuple[list[int], list[list[tuple[int, int, str]]]]:
            ends = self._ends(cable.a, cable.b)
            return [self.tiers.get(e.device, -1) for e in ends], [natural(f"{e.device}/{e.port}") for e in ends]

        cables = sorted(self.sketch.cables, key=order)
        for cable in cables:
            a, b = self._ends(cable.a, cable.b)
            if a in used or b in used or a.device == b.device:
                twice.append(f"{a.device} {a.port} to {b.device} {b.port}")
                continue
            used |= {a, b}
            unknown += isnan(cable.speed)
            self._add_link(a, b, speed if isnan(cable.speed) else cable.speed)
        if unknown and self.sizes.link_speed is None:
            self.notes.append(
                f"the speed of {unknown} links is not in the input: {show_speed(speed)} is assumed (--link-speed)"
            )
        if twice:
            self.notes.append(
                f"left out: {len(twice)} cables whose port has another one already, or that lead back: "
                + ", ".join(printable(t)[:80] for t in twice[:3]) + (" …" if len(twice) > 3 else "")
            )  # fmt: skip

    def _ends(self, a: End, b: End) -> tuple[End, End]:
        """The host first, else the lower tier."""
        rank = {e: self.tiers.get(e.device, -1) for e in (a, b)}
        return (b, a) if (rank[b], natural(b.device)) < (rank[a], natural(a.device)) else (a, b)

    def _usual_speed(self) -> float:
        if self.sizes.link_speed is not None:
            return self.sizes.link_speed
        known = Counter(c.speed for c in self.sketch.cables if not isnan(c.speed)).most_common(1)
        return known[0][0] if known else ASSUMED_SPEED

    def _add_link(self, a: End, b: End, speed: float) -> None:
        if a.device in self.ports and b.device in self.ports:
            self.builder.direct_link(self._nic_port(a), self._nic_port(b), speed)
        elif a.device in self.ports:
            self.builder.host_link(self._nic_port(a), self.rows[b.device], self._number(b), speed)
        else:
            self.builder.switch_link(
                self.rows[a.device], self._number(a), self.rows[b.device], self._number(b), speed
            )

    def _number(self, end: End) -> int:
        return self.numbers[end.device, end.port or ""]

    def _nic_port(self, end: End) -> int:
        ports = self.ports[end.device]
        nic, port = ports.of[end.port or ""]
        return self.builder.nic_port(self.rows[end.device], self.nics[end.device].index(nic), port - ports.first_port)

    def _add_domains(self) -> None:
        taken: set[int] = set()
        for domain in self.sketch.domains:
            rows = []
            for host in (h for h in domain.hosts if h in self.ports):
                node = self.builder.nodes[self.rows[host]]
                rows += [r for r in range(node.gpu0, node.gpu0 + node.gpus) if r not in taken]
            taken |= set(rows)
            if rows:
                speed = 50e9 if isnan(domain.speed) else domain.speed
                self.builder.domain(clean(domain.name), rows, (), domain.links_per_gpu, speed)
