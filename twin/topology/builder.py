"""Builds a Topology row by row: presets, the explicit form and discovery all come through here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from twin.topology.joining import I64, LinkBlock, Numbers, join, plane_kind
from twin.topology.model import (
    COMPUTE,
    NONE,
    Domains,
    Feeds,
    Gpus,
    Links,
    Nics,
    Nodes,
    Ports,
    Psus,
    Racks,
    Switches,
    Topology,
)


def _i32(values: Iterable[int]) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    return np.fromiter(values, dtype=np.int32)


@dataclass
class _Node:
    name: str
    rack: int
    role: int
    gpu_model: str
    gpus: int
    nics: tuple[int, ...]  # their numbers
    ports_per_nic: int
    first_port: int
    nic_of_gpu: tuple[int, ...]  # position in `nics`, or -1
    psus: int
    psu_watts: float
    gpu0: int
    nic0: int
    port0: int


@dataclass
class _Rack:
    name: str
    redundancy: str
    psus: int
    psu_watts: float


@dataclass
class _Domain:
    name: str
    gpus: list[int]
    switches: tuple[str, ...]
    links_per_gpu: int
    speed: float


@dataclass
class Builder:
    """Collects nodes, switches and links by row number, then compiles them."""

    name: str
    planes: tuple[str, ...]
    nodes: list[_Node] = field(default_factory=list)
    labels: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    jobs: list[tuple[str, tuple[int, ...], str]] = field(default_factory=list)
    site_watts: float | None = None
    _switches: list[tuple[str, str, int, int, int, int]] = field(default_factory=list)
    _links: list[tuple[int, int, int, int, float, int]] = field(default_factory=list)  # not yet in a block
    _blocks: list[LinkBlock] = field(default_factory=list)
    _racks: list[_Rack] = field(default_factory=list)
    _feeds: list[tuple[str, int, float]] = field(default_factory=list)
    _domains: list[_Domain] = field(default_factory=list)
    _gpus: int = 0
    _nics: int = 0
    _nic_ports: int = 0
    _cables: int = 0

    def rack(
        self,
        name: str,
        redundancy: str = "none",
        feeds: Sequence[tuple[str, float]] = (),
        *,
        psus: int = 0,
        psu_watts: float = float("nan"),
    ) -> int:
        """Adds a rack and returns its row. psus: the supplies of its power shelves, shelf after shelf."""
        self._racks.append(_Rack(name, redundancy, psus, psu_watts))
        row = len(self._racks) - 1
        self._feeds.extend((feed, row, watts) for feed, watts in feeds)
        return row

    def node(
        self,
        name: str,
        *,
        gpus: int,
        nics: int | Sequence[int],
        ports_per_nic: int = 1,
        first_port: int = 0,
        gpu_model: str = "unknown",
        rack: int = NONE,
        role: int = COMPUTE,
        nic_of_gpu: Sequence[int] | None = None,
        psus: int = 0,
        psu_watts: float = float("nan"),
    ) -> int:
        """Adds a node and returns its row. nic_of_gpu: for each GPU the position of its NIC, -1 for none."""
        numbers = tuple(range(nics)) if isinstance(nics, int) else tuple(nics)
        if nic_of_gpu is None:
            nic_of_gpu = default_nic_of_gpu(gpus, len(numbers))
        self.nodes.append(
            _Node(
                name, rack, role, gpu_model, gpus, numbers, ports_per_nic, first_port, tuple(nic_of_gpu),
                psus, psu_watts, self._gpus, self._nics, self._nic_ports,
            )
        )  # fmt: skip
        self._gpus += gpus
        self._nics += len(numbers)
        self._nic_ports += len(numbers) * ports_per_nic
        return len(self.nodes) - 1

    def switch(
        self,
        name: str,
        tier: int,
        plane: int = NONE,
        *,
        model: str = "unknown",
        rail: int = NONE,
        radix: int = 0,
    ) -> int:
        self._switches.append((name, model, tier, plane, rail, radix))
        return len(self._switches) - 1

    def nic_port(self, node: int, nic: int, port: int) -> int:
        """Row of port `port` (0-based) of NIC `nic` (position) of node row `node`."""
        n = self.nodes[node]
        return n.port0 + nic * n.ports_per_nic + port

    def cable(self) -> int:
        """A number for a cable that several links share."""
        self._cables += 1
        return -1 - self._cables

    def host_link(self, nic_port: int, switch: int, number: int, speed: float, cable: int = NONE) -> None:
        """Joins NIC port row `nic_port` to port `number` of switch row `switch`."""
        self._links.append((nic_port, NONE, switch, number, speed, cable))

    def switch_link(self, a: int, a_number: int, b: int, b_number: int, speed: float, cable: int = NONE) -> None:
        """Joins port `a_number` of switch row `a` to port `b_number` of switch row `b`."""
        if self._switches[a][2] > self._switches[b][2]:
            a, a_number, b, b_number = b, b_number, a, a_number
        self._links.append((-2 - a, a_number, b, b_number, speed, cable))

    def direct_link(self, a: int, b: int, speed: float, cable: int = NONE) -> None:
        """Joins two NIC port rows without a switch."""
        self._links.append((a, NONE, -2 - b, NONE, speed, cable))

    def links(
        self,
        a: Numbers,
        b: Numbers,
        b_number: Numbers,
        speed: float,
        *,
        a_number: Numbers | None = None,
        cable: Numbers | None = None,
    ) -> None:
        """Many links at once, arrays of one length: NIC port rows `a` to switch rows `b`, or, where `a_number`
        is given, switch rows `a` to switch rows `b` of a higher tier."""
        low = a if a_number is None else -2 - a
        number = np.full(len(a), NONE) if a_number is None else a_number
        shared = np.full(len(a), NONE) if cable is None else cable
        self._flush()
        self._blocks.append(LinkBlock(low, number, b, b_number, np.full(len(a), speed), shared))

    def cables(self, count: int) -> I64:
        """`count` numbers for cables that several links share."""
        first = -2 - self._cables
        self._cables += count
        return first - np.arange(count, dtype=np.int64)

    def _flush(self) -> None:
        """Links that were added one by one become a block, so that links keep the order they came in."""
        if self._links:
            self._blocks.append(LinkBlock(*(np.array(column) for column in zip(*self._links, strict=True))))
            self._links = []

    def domain(
        self, name: str, gpus: Iterable[int], switches: Sequence[str], links_per_gpu: int, speed: float
    ) -> None:
        """An NVLink domain over GPU rows. speed: bytes/s of one link in one direction."""
        self._domains.append(_Domain(name, list(gpus), tuple(switches), links_per_gpu, speed))

    # --- compile ---

    def build(self) -> Topology:
        nodes = self._build_nodes()
        gpus = self._build_gpus()
        ports, links = self._build_ports()
        nics = self._build_nics(gpus)
        ports = self._mark_compute(ports, gpus)
        return Topology(
            name=self.name,
            planes=self.planes,
            nodes=nodes,
            gpus=gpus,
            nics=nics,
            switches=self._build_switches(ports, links, nics),
            ports=ports,
            links=links,
            domains=Domains(
                tuple(d.name for d in self._domains),
                tuple(_i32(d.gpus) for d in self._domains),
                tuple(d.switches for d in self._domains),
                _i32(d.links_per_gpu for d in self._domains),
                np.array([d.speed for d in self._domains], dtype=np.float64),
            ),
            racks=self._build_racks(),
            feeds=Feeds(
                tuple(f[0] for f in self._feeds),
                _i32(f[1] for f in self._feeds),
                np.array([f[2] for f in self._feeds], dtype=np.float64),
            ),
            psus=self._build_psus(),
            jobs=tuple(self.jobs),
            labels=dict(self.labels),
            notes=tuple(self.notes),
            plane_kind=plane_kind(ports, nics),
            site_watts=self.site_watts,
        )

    def _build_nodes(self) -> Nodes:
        ns = self.nodes
        psus = _i32(n.psus for n in ns)
        return Nodes(
            name=tuple(n.name for n in ns),
            rack=_i32(n.rack for n in ns),
            role=_i32(n.role for n in ns),
            gpu_model=tuple(n.gpu_model for n in ns),
            gpu0=_i32(n.gpu0 for n in ns),
            n_gpus=_i32(n.gpus for n in ns),
            nic0=_i32(n.nic0 for n in ns),
            n_nics=_i32(len(n.nics) for n in ns),
            psu0=(np.cumsum(psus) - psus).astype(np.int32),
            n_psus=psus,
        )

    def _build_racks(self) -> Racks:
        psus = _i32(r.psus for r in self._racks)
        before = sum(n.psus for n in self.nodes)
        return Racks(
            name=tuple(r.name for r in self._racks),
            redundancy=tuple(r.redundancy for r in self._racks),
            psu0=(before + np.cumsum(psus) - psus).astype(np.int32),
            n_psus=psus,
        )

    def _build_psus(self) -> Psus:
        nodes, racks = len(self.nodes), len(self._racks)
        owners: list[_Node | _Rack] = [*self.nodes, *self._racks]
        count = [o.psus for o in owners]
        none = np.full(max(nodes, racks), NONE, np.int32)
        return Psus(
            node=np.repeat(np.r_[np.arange(nodes, dtype=np.int32), none[:racks]], count),
            rack=np.repeat(np.r_[none[:nodes], np.arange(racks, dtype=np.int32)], count),
            ordinal=_i32(i for n in count for i in range(n)),
            watts=np.repeat(np.array([o.psu_watts for o in owners], dtype=np.float64), count),
        )

    def _build_gpus(self) -> Gpus:
        domain = np.full(self._gpus, NONE, np.int32)
        for row, d in enumerate(self._domains):
            domain[d.gpus] = row
        return Gpus(
            node=np.repeat(np.arange(len(self.nodes), dtype=np.int32), [n.gpus for n in self.nodes]),
            ordinal=_i32(i for n in self.nodes for i in range(n.gpus)),
            nic=_i32(n.nic0 + k if k >= 0 else NONE for n in self.nodes for k in n.nic_of_gpu),
            domain=domain,
        )

    def _build_nics(self, gpus: Gpus) -> Nics:
        ns = self.nodes
        n_ports = _i32(n.ports_per_nic for n in ns for _ in n.nics)
        rail = np.full(self._nics, NONE, np.int32)
        used = np.unique(gpus.nic[gpus.nic >= 0])
        if len(used):  # the rail of a NIC is its place among those of its node that GPUs use
            node = np.repeat(np.arange(len(ns)), [len(n.nics) for n in ns])[used]
            start = np.flatnonzero(np.r_[True, node[1:] != node[:-1]])
            rail[used] = np.arange(len(used)) - np.repeat(start, np.diff(np.r_[start, len(used)]))
        return Nics(
            node=np.repeat(np.arange(len(ns), dtype=np.int32), [len(n.nics) for n in ns]),
            ordinal=_i32(i for n in ns for i in n.nics),
            rail=rail,
            port0=(np.cumsum(n_ports) - n_ports).astype(np.int32),
            n_ports=n_ports,
        )

    def _build_ports(self) -> tuple[Ports, Links]:
        self._flush()
        planes, tiers = _i32(s[3] for s in self._switches), _i32(s[2] for s in self._switches)
        return join(self._blocks, self._empty_ports, self._nic_ports, planes, tiers)

    def _empty_ports(self, count: int) -> Ports:
        """`count` ports without links, the first of them those of NICs."""
        nic, ordinal = np.full(count, NONE, np.int32), np.zeros(count, np.int32)
        n_nics = _i32(len(n.nics) for n in self.nodes)
        per_nic = np.repeat(_i32(n.ports_per_nic for n in self.nodes), n_nics)
        first = np.repeat(_i32(n.first_port for n in self.nodes), n_nics)
        start = np.cumsum(per_nic) - per_nic
        nic[: self._nic_ports] = np.repeat(np.arange(self._nics), per_nic)
        ordinal[: self._nic_ports] = np.arange(self._nic_ports) - np.repeat(start - first, per_nic)
        none = [np.full(count, NONE, np.int32) for _ in range(4)]
        switch, plane, link, peer = none
        return Ports(nic, switch, ordinal, plane, link, peer, np.zeros(count, bool))

    def _mark_compute(self, ports: Ports, gpus: Gpus) -> Ports:
        used = np.zeros(self._nics + 1, bool)
        used[gpus.nic[gpus.nic >= 0]] = True
        ports.compute[:] = used[ports.nic] & (ports.nic >= 0)
        return ports

    def _build_switches(self, ports: Ports, links: Links, nics: Nics) -> Switches:
        rail = _i32(s[4] for s in self._switches)
        host = np.flatnonzero(links.tier == 0)
        switch, of_nic = ports.switch[links.b[host]], nics.rail[ports.nic[links.a[host]]]
        switch, of_nic = switch[of_nic != NONE], of_nic[of_nic != NONE]
        lowest, highest = np.full(len(rail), np.iinfo(np.int32).max, np.int32), np.full(len(rail), NONE, np.int32)
        np.minimum.at(lowest, switch, of_nic)
        np.maximum.at(highest, switch, of_nic)
        told = (rail == NONE) & (lowest == highest)  # hosts of one rail only
        rail[told] = lowest[told]
        return Switches(
            name=tuple(s[0] for s in self._switches),
            model=tuple(s[1] for s in self._switches),
            tier=_i32(s[2] for s in self._switches),
            plane=_i32(s[3] for s in self._switches),
            rail=rail,
            radix=_i32(s[5] for s in self._switches),
        )


def default_nic_of_gpu(gpus: int, nics: int) -> tuple[int, ...]:
    """GPU i uses NIC i where counts match; several GPUs share a NIC where there are fewer NICs."""
    if not nics:
        return (NONE,) * gpus
    if nics >= gpus:
        return tuple(range(gpus))
    return tuple(i * nics // gpus for i in range(gpus))
