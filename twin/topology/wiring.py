"""The explicit form of the wiring: what `topology export` prints and `file:` reads (design, section 5)."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from twin.catalog import max_switch_ports
from twin.errors import InputError
from twin.topology.builder import Builder
from twin.topology.model import NONE, ROLES, TIERS, Topology
from twin.units import bits_per_second
from twin.yamlfile import Document, Place

_NAME = re.compile(r"[^/\s]+")
_PORT = re.compile(r"(?P<owner>.+)/p(?P<port>\d+)")
_NIC = re.compile(r"(?P<node>[^/]+)/nic(?P<nic>\d+)")
_GPU = re.compile(r"(?P<node>[^/]+)/gpu(?P<gpu>\d+)")


def _check_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is not a name: it must not be empty nor hold '/' or whitespace")
    return name


Name = Annotated[str, BeforeValidator(lambda v: str(v) if isinstance(v, int) else v), AfterValidator(_check_name)]
Speed = Annotated[float, BeforeValidator(bits_per_second)]


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class NodeSpec(Strict):
    name: Name
    rack: Name | None = None
    role: Literal["compute", "storage", "management", "other"] = "compute"
    gpu_model: str = "unknown"
    gpus: int = Field(0, ge=0, le=1024)
    nics: int | list[int] = 0
    ports_per_nic: int = Field(1, ge=1, le=64)
    first_port: int = Field(0, ge=0, le=1)
    nic_of_gpu: list[int] | None = None
    psus: int = Field(0, ge=0, le=64)
    psu_watts: float | None = None
    label: str | None = None


class SwitchSpec(Strict):
    name: Name
    tier: Literal["leaf", "spine", "core"]
    plane: str | None = None
    model: str = "unknown"
    ports: int = Field(0, ge=0)
    rail: int | None = None
    label: str | None = None


class LinkSpec(Strict):
    a: str
    b: str
    speed: Speed | None = None  # unknown: such a link is never slow
    cable: str | None = None


class DomainSpec(Strict):
    name: Name
    gpus: list[str]
    switches: list[str] = []
    links_per_gpu: int = Field(0, ge=0, le=64)
    speed: Speed = 400e9  # of one link in one direction: 50GB/s, NVLink 5


class FeedSpec(Strict):
    name: str
    watts: float


class RackSpec(Strict):
    name: Name
    nodes: list[str] = []
    feeds: list[FeedSpec] = []
    redundancy: str = "none"


class JobSpec(Strict):
    name: str
    nodes: list[str]
    collective: str = "allreduce"


class Wiring(Strict):
    name: str
    planes: list[str] = []
    nodes: list[NodeSpec]
    switches: list[SwitchSpec] = []
    links: list[LinkSpec] = []
    domains: list[DomainSpec] = []
    racks: list[RackSpec] = []
    jobs: list[JobSpec] = []


def read_wiring(document: Document) -> Topology:
    """A Topology from an explicit wiring file. Raises InputError with every mistake in it."""
    wiring, problems = document.validate(Wiring)
    if wiring is not None:
        return _Reader(document, wiring).topology()
    rest = _without(document, [place for place, _ in problems])
    wiring, _ = rest.validate(Wiring)
    more: list[str] = []
    if wiring is not None:  # what is left is well formed: look at its references too
        try:
            _Reader(rest, wiring).topology()
        except InputError as problem:
            more = problem.problems
    raise InputError([text for _, text in problems] + more)


class _Rest(Document):
    """A document without the entries that are malformed; places mean the original. forgiven: their names."""

    def __init__(self, whole: Document, data: dict[str, Any], kept: dict[str, list[int]], forgiven: set[str]) -> None:
        self.path, self.whole, self.data, self.kept, self.forgiven = whole.path, whole, data, kept, forgiven

    def line(self, place: Place) -> int:
        return self.whole.line(self._original(place))

    def problem(self, place: Place, message: str) -> str:
        return self.whole.problem(self._original(place), message)

    def _original(self, place: Place) -> Place:
        if len(place) > 1 and place[0] in self.kept and isinstance(place[1], int):
            return (place[0], self.kept[str(place[0])][place[1]], *place[2:])
        return place


def _without(document: Document, places: list[Place]) -> _Rest:
    if not isinstance(document.data, dict):
        return _Rest(document, {}, {}, set())
    bad = {place[:2] for place in places if len(place) > 1}
    data, kept, forgiven = {}, {}, set()
    for key, value in document.data.items():
        if (key,) in places:
            continue
        if isinstance(value, list):
            kept[key] = [i for i in range(len(value)) if (key, i) not in bad]
            data[key] = [value[i] for i in kept[key]]
            dropped = [v for i, v in enumerate(value) if (key, i) in bad and isinstance(v, dict)]
            forgiven |= {str(v.get("name")) for v in dropped}
        else:
            data[key] = value
    return _Rest(document, data, kept, forgiven)


class _Reader:
    def __init__(self, document: Document, wiring: Wiring) -> None:
        self.document, self.wiring = document, wiring
        self.forgiven: set[str] = getattr(document, "forgiven", set())
        self.problems: list[str] = []
        self.builder = Builder(wiring.name, tuple(wiring.planes))
        self.nodes: dict[str, int] = {}
        self.switches: dict[str, int] = {}
        self.used: dict[str, int] = {}  # port address -> line of the link that uses it
        self.cables: dict[str, int] = {}
        self.radix: dict[str, int] = {}

    def topology(self) -> Topology:
        racks = self._racks()
        for i, node in enumerate(self.wiring.nodes):
            self._node(i, node, racks)
        for i, switch in enumerate(self.wiring.switches):
            self._switch(i, switch)
        for i, link in enumerate(self.wiring.links):
            self._link(i, link)
        self._domains()
        for i, job in enumerate(self.wiring.jobs):
            rows = [self._find_node(n, ("jobs", i, "nodes", k)) for k, n in enumerate(job.nodes)]
            self.builder.jobs.append((job.name, tuple(r for r in rows if r is not None), job.collective))
        if self.problems:
            raise InputError(self.problems)
        return self.builder.build()

    def _wrong(self, place: Place, message: str) -> None:
        self.problems.append(self.document.problem(place, message))

    def _racks(self) -> dict[str, int]:
        rows: dict[str, int] = {}
        for i, rack in enumerate(self.wiring.racks):
            if rack.name in rows:
                self._wrong(("racks", i, "name"), f"{rack.name!r} is used twice")
            rows[rack.name] = self.builder.rack(rack.name, rack.redundancy, [(f.name, f.watts) for f in rack.feeds])
        for node in self.wiring.nodes:
            if node.rack is not None and node.rack not in rows:
                rows[node.rack] = self.builder.rack(node.rack)
        self.rack_of = {name: rows[r.name] for r in self.wiring.racks for name in r.nodes}
        return rows

    def _node(self, i: int, node: NodeSpec, racks: dict[str, int]) -> None:
        if node.name in self.nodes:
            self._wrong(("nodes", i, "name"), f"{node.name!r} is used twice")
            return
        count = node.nics if isinstance(node.nics, int) else len(node.nics)
        nic_of_gpu = node.nic_of_gpu
        if nic_of_gpu is not None and (len(nic_of_gpu) != node.gpus or any(not -1 <= n < count for n in nic_of_gpu)):
            self._wrong(
                ("nodes", i, "nic_of_gpu"),
                f"{nic_of_gpu}: expected {node.gpus} values, each from 0 to {count - 1} (the place of a NIC) or -1",
            )
            nic_of_gpu = None
        if nic_of_gpu is None and node.role != "compute":
            nic_of_gpu = [NONE] * node.gpus
        rack = racks[node.rack] if node.rack is not None else self.rack_of.get(node.name, NONE)
        self.nodes[node.name] = self.builder.node(
            node.name, gpus=node.gpus, nics=node.nics, ports_per_nic=node.ports_per_nic,
            first_port=node.first_port, gpu_model=node.gpu_model, rack=rack, role=ROLES.index(node.role),
            nic_of_gpu=nic_of_gpu, psus=node.psus, psu_watts=node.psu_watts or float("nan"),
        )  # fmt: skip
        if node.label:
            self.builder.labels[node.name] = node.label

    def _switch(self, i: int, switch: SwitchSpec) -> None:
        if switch.name in self.switches or switch.name in self.nodes:
            self._wrong(("switches", i, "name"), f"{switch.name!r} is used twice")
            return
        plane = NONE
        if switch.plane is not None:
            if switch.plane in self.wiring.planes:
                plane = self.wiring.planes.index(switch.plane)
            else:
                known = ", ".join(self.wiring.planes) or "none is listed under planes"
                self._wrong(("switches", i, "plane"), f"{switch.plane!r} is not a plane; expected one of: {known}")
        self.radix[switch.name] = switch.ports or max_switch_ports(switch.model)
        self.switches[switch.name] = self.builder.switch(
            switch.name, TIERS.index(switch.tier), plane, model=switch.model,
            rail=NONE if switch.rail is None else switch.rail, radix=self.radix[switch.name],
        )  # fmt: skip
        if switch.label:
            self.builder.labels[switch.name] = switch.label

    # --- links ---

    def _link(self, i: int, link: LinkSpec) -> None:
        ends = [self._end(("links", i, side), address) for side, address in (("a", link.a), ("b", link.b))]
        a, b = ends
        if a is None or b is None:
            return
        speed = float("nan") if link.speed is None else link.speed
        cable = NONE
        if link.cable is not None:
            cable = self.cables.setdefault(link.cable, 0) or self.builder.cable()
            self.cables[link.cable] = cable
        if a[0] == "switch" and b[0] == "nic":
            a, b = b, a
        if a[0] == "nic" and b[0] == "switch":
            self.builder.host_link(a[1], b[1], b[2], speed, cable)
        elif a[0] == "switch":
            self.builder.switch_link(a[1], a[2], b[1], b[2], speed, cable)
        else:
            self.builder.direct_link(a[1], b[1], speed, cable)

    def _end(self, place: Place, address: str) -> tuple[str, int, int] | None:
        match = _PORT.fullmatch(address)
        if match is None:
            self._wrong(place, f"{address!r} is not a port; expected NODE/nicN/pN or SWITCH/pN")
            return None
        if address in self.used:
            self._wrong(place, f"port {address!r} is used twice, first on line {self.used[address]}")
            return None
        self.used[address] = self.document.line(place)
        number = int(match["port"])
        nic = _NIC.fullmatch(match["owner"])
        return self._nic_end(place, address, nic, number) if nic else self._switch_end(place, match["owner"], number)

    def _nic_end(self, place: Place, address: str, nic: re.Match[str], number: int) -> tuple[str, int, int] | None:
        row = self._find_node(nic["node"], place)
        if row is None:
            return None
        node = self.builder.nodes[row]
        if int(nic["nic"]) not in node.nics:
            self._wrong(place, f"{address!r}: node {node.name} has no nic{nic['nic']}; it has {len(node.nics)} NICs")
            return None
        if not 0 <= number - node.first_port < node.ports_per_nic:
            last = node.first_port + node.ports_per_nic - 1
            self._wrong(place, f"{address!r} does not exist: ports of its NICs go from p{node.first_port} to p{last}")
            return None
        position = node.nics.index(int(nic["nic"]))
        return "nic", self.builder.nic_port(row, position, number - node.first_port), 0

    def _switch_end(self, place: Place, owner: str, number: int) -> tuple[str, int, int] | None:
        row = self.switches.get(owner)
        if row is None:
            if owner not in self.forgiven:
                self._wrong(place, f"{owner + '/p' + str(number)!r}: there is no switch {owner!r}")
            return None
        radix = self.radix[owner]
        if radix and number > radix:
            self._wrong(place, f"{owner + '/p' + str(number)!r} does not exist: {owner} has {radix} ports")
            return None
        return "switch", row, number

    def _find_node(self, name: str, place: Place) -> int | None:
        row = self.nodes.get(name)
        if row is None and name not in self.forgiven:
            self._wrong(place, f"there is no node {name!r}")
        return row

    def _domains(self) -> None:
        taken: dict[int, str] = {}
        for i, domain in enumerate(self.wiring.domains):
            rows = []
            for k, address in enumerate(domain.gpus):
                place: Place = ("domains", i, "gpus", k)
                match = _GPU.fullmatch(address)
                node = self.nodes.get(match["node"]) if match else None
                if match is None or node is None or int(match["gpu"]) >= self.builder.nodes[node].gpus:
                    self._wrong(place, f"there is no GPU {address!r}; expected NODE/gpuN")
                    continue
                row = self.builder.nodes[node].gpu0 + int(match["gpu"])
                if row in taken:
                    self._wrong(place, f"{address!r} is in two domains: {taken[row]} and {domain.name}")
                taken[row] = domain.name
                rows.append(row)
            self.builder.domain(domain.name, rows, domain.switches, domain.links_per_gpu, domain.speed / 8)
