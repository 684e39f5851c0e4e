"""The wiring of a fabric as tables: one row an entity, one array an attribute (design, section 3).

Rows of a parent's children lie together: the GPUs of a node, its NICs, the ports of a NIC. Names are
made from the tables when they are asked for, so that 100,000 ports cost arrays, not strings.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from twin.address import link_name

I32 = npt.NDArray[np.int32]
F64 = npt.NDArray[np.float64]
Bool = npt.NDArray[np.bool_]

NONE = -1
TIERS: tuple[str, ...] = ("leaf", "spine", "core")
ROLES: tuple[str, ...] = ("compute", "storage", "management", "other")
COMPUTE = 0
# What losing a plane costs. split: every NIC has a port in each plane and keeps (P-1)/P of its bandwidth.
# rail: NIC i of a node sits in plane i alone, so one NIC of P is gone. none: one plane, or no planes.
PlaneKind = Literal["split", "rail", "none"]


@dataclass(frozen=True, slots=True)
class Nodes:
    """Hosts. gpu0, nic0, psu0: first row of the node's GPUs, NICs and supplies, n_* how many it has."""

    name: tuple[str, ...]
    rack: I32  # row of racks, or -1
    role: I32  # index into ROLES
    gpu_model: tuple[str, ...]
    gpu0: I32
    n_gpus: I32
    nic0: I32
    n_nics: I32
    psu0: I32
    n_psus: I32


@dataclass(frozen=True, slots=True)
class Gpus:
    """GPUs. nic: row of the NIC that carries its traffic, or -1. domain: its NVLink domain, or -1."""

    node: I32
    ordinal: I32
    nic: I32
    domain: I32


@dataclass(frozen=True, slots=True)
class Nics:
    """Network adapters. rail: which rail, or -1 when no GPU uses it. port0: first row of its ports."""

    node: I32
    ordinal: I32
    rail: I32
    port0: I32
    n_ports: I32


@dataclass(frozen=True, slots=True)
class Switches:
    """Switches. tier: index into TIERS. plane: row of planes, or -1. radix: ports it has, or 0 unknown."""

    name: tuple[str, ...]
    model: tuple[str, ...]
    tier: I32
    plane: I32
    rail: I32
    radix: I32


@dataclass(frozen=True, slots=True)
class Ports:
    """NIC ports first, then switch ports. nic or switch is -1; link is -1 for a port without a cable."""

    nic: I32
    switch: I32
    ordinal: I32
    plane: I32
    link: I32
    peer: I32
    compute: Bool  # a NIC port that carries the traffic of a GPU


@dataclass(frozen=True, slots=True)
class Links:
    """Links. a, b: port rows, the lower tier first. tier: a row of LINK_TIERS."""

    a: I32
    b: I32
    speed: F64  # bits/s, as designed
    plane: I32
    tier: I32
    cable: I32  # links with the same number share a cable


@dataclass(frozen=True, slots=True)
class Domains:
    """NVLink domains. speed: bytes/s of one link in one direction."""

    name: tuple[str, ...]
    gpu_rows: tuple[I32, ...]
    switches: tuple[tuple[str, ...], ...]
    links_per_gpu: I32
    speed: F64


@dataclass(frozen=True, slots=True)
class Feeds:
    name: tuple[str, ...]
    rack: I32
    watts: F64


@dataclass(frozen=True, slots=True)
class Racks:
    """Racks. psu0: first row of the supplies in the rack's power shelves, n_psus: how many, all shelves together."""

    name: tuple[str, ...]
    redundancy: tuple[str, ...]
    psu0: I32
    n_psus: I32


@dataclass(frozen=True, slots=True)
class Psus:
    """Supplies: those of nodes, then those in the power shelves of racks. Of node and rack, the other is -1."""

    node: I32
    rack: I32
    ordinal: I32  # in the node, or over all shelves of the rack, those of a feed together
    watts: F64


HOST_LEAF, LEAF_SPINE, SPINE_CORE, DIRECT = range(4)
LINK_TIERS: tuple[str, ...] = ("host_leaf", "leaf_spine", "spine_core", "direct")


@dataclass(frozen=True)
class Topology:
    """A fabric as designed, compiled to index arrays. It never changes; state is kept beside it."""

    name: str
    planes: tuple[str, ...]
    nodes: Nodes
    gpus: Gpus
    nics: Nics
    switches: Switches
    ports: Ports
    links: Links
    domains: Domains
    racks: Racks
    feeds: Feeds
    psus: Psus
    jobs: tuple[tuple[str, tuple[int, ...], str], ...] = ()  # (name, node rows, collective)
    labels: dict[str, str] = field(default_factory=dict)  # address -> original name
    notes: tuple[str, ...] = ()  # what an importer had to decide
    plane_kind: PlaneKind = "none"
    site_watts: float | None = None  # what the whole site may draw, where something says so

    # --- names ---

    @cached_property
    def gpu_names(self) -> tuple[str, ...]:
        node = self.nodes.name
        return tuple(
            f"{node[n]}/gpu{i}" for n, i in zip(self.gpus.node.tolist(), self.gpus.ordinal.tolist(), strict=True)
        )

    @cached_property
    def nic_names(self) -> tuple[str, ...]:
        node = self.nodes.name
        return tuple(
            f"{node[n]}/nic{i}" for n, i in zip(self.nics.node.tolist(), self.nics.ordinal.tolist(), strict=True)
        )

    @cached_property
    def port_names(self) -> tuple[str, ...]:
        nics, switches = self.nic_names, self.switches.name
        rows = zip(self.ports.nic.tolist(), self.ports.switch.tolist(), self.ports.ordinal.tolist(), strict=True)
        return tuple(f"{nics[n] if n >= 0 else switches[s]}/p{i}" for n, s, i in rows)

    @cached_property
    def psu_names(self) -> tuple[str, ...]:
        node, rack = self.nodes.name, self.racks.name
        rows = zip(self.psus.node.tolist(), self.psus.rack.tolist(), self.psus.ordinal.tolist(), strict=True)
        return tuple(f"{node[n] if n >= 0 else rack[r]}/psu{i}" for n, r, i in rows)

    @cached_property
    def nvlink_names(self) -> tuple[str, ...]:
        """Names of the NVLinks, the links of a GPU together, in row order."""
        gpus = self.gpu_names
        return tuple(
            f"{gpus[g]}/nvlink{i}" for g, count in enumerate(self.nvlinks_per_gpu.tolist()) for i in range(count)
        )

    def names(self, kind: str) -> tuple[str, ...]:
        """Every address of one kind, in row order."""
        tables = {
            "node": lambda: self.nodes.name,
            "gpu": lambda: self.gpu_names,
            "nvlink": lambda: self.nvlink_names,
            "port": lambda: self.port_names,
            "psu": lambda: self.psu_names,
            "feed": lambda: self.feeds.name,
        }
        return tables[kind]() if kind in tables else ()

    def link_name(self, link: int) -> str:
        ports: tuple[str, ...] = self.port_names
        return link_name(ports[self.links.a[link]], ports[self.links.b[link]])

    @cached_property
    def _rows(self) -> dict[str, dict[str, int]]:
        return {}

    def rows(self, kind: str) -> dict[str, int]:
        """Address to row, for one kind; also `switch`, `nic`, `link`, `plane`, `domain` and `rack`."""
        if kind not in self._rows:
            if kind == "link":
                names: tuple[str, ...] = tuple(self.link_name(i) for i in range(len(self.links.a)))
            else:
                extra = {
                    "switch": self.switches.name,
                    "nic": self.nic_names,
                    "plane": self.planes,
                    "domain": self.domains.name,
                    "rack": self.racks.name,
                }
                names = extra[kind] if kind in extra else self.names(kind)
            self._rows[kind] = {name: row for row, name in enumerate(names)}
        return self._rows[kind]

    # --- derived tables ---

    @cached_property
    def nvlinks_per_gpu(self) -> I32:
        per_domain = np.append(self.domains.links_per_gpu, np.int32(0))
        return per_domain[self.gpus.domain].astype(np.int32)

    @cached_property
    def nvlink_gpu(self) -> I32:
        """int32[nvlinks], the GPU of each NVLink."""
        return np.repeat(np.arange(len(self.gpus.node), dtype=np.int32), self.nvlinks_per_gpu)

    @cached_property
    def nvswitch_names(self) -> tuple[str, ...]:
        """Every NVLink switch chip, those of a domain together, in the order of domains."""
        return tuple(name for chips in self.domains.switches for name in chips)

    @cached_property
    def nvlink_switch(self) -> I32:
        """int32[nvlinks], the row in `nvswitch_names` that each NVLink goes to, or -1 in a domain without chips.

        The links of a GPU are spread over the chips of its domain in blocks: one to each of 18 on an NVL72, nine
        to each of two on an HGX B200. Where they do not divide evenly the outer chips get one more, which is how
        HGX H100 is wired: 5, 4, 4, 5 (Hot Chips 34, third-generation NVSwitch). Which of a GPU's link numbers
        goes to which chip of a board is not published; counts a chip are what a what-if may rest on.
        """
        out = np.full(len(self.nvlink_gpu), NONE, np.int32)
        chips = [len(c) for c in self.domains.switches]
        first = np.cumsum([0, *chips])
        start = np.cumsum(self.nvlinks_per_gpu) - self.nvlinks_per_gpu
        for row, gpus in enumerate(self.domains.gpu_rows):
            links = int(self.domains.links_per_gpu[row])
            if chips[row] and links:
                spread = first[row] + np.repeat(np.arange(chips[row]), links_by_chip(links, chips[row]))
                out[start[gpus][:, None] + np.arange(links)] = spread
        return out

    @cached_property
    def peer_switch(self) -> I32:
        """For each port: the switch at the other end of its cable, or -1."""
        peer = self.ports.peer
        return np.where(peer >= 0, self.ports.switch[peer], NONE).astype(np.int32)

    @cached_property
    def port_node(self) -> I32:
        """For each port: the node it belongs to, or -1 for a switch port."""
        nic = self.ports.nic
        if not len(self.nics.node):
            return np.full(len(nic), NONE, np.int32)
        return np.where(nic >= 0, self.nics.node[nic], NONE).astype(np.int32)

    @cached_property
    def port_speed(self) -> F64:
        """For each port: designed speed in bits/s, NaN for a port without a cable."""
        if not len(self.links.speed):
            return np.full(len(self.ports.link), np.nan)
        return np.where(self.ports.link >= 0, self.links.speed[self.ports.link], np.nan)

    @cached_property
    def port_gpu(self) -> I32:
        """For each port: a GPU that uses it (the first, where several share a NIC), or -1."""
        first = np.full(len(self.nics.node) + 1, NONE, np.int32)
        used = np.flatnonzero(self.gpus.nic >= 0)[::-1]
        first[self.gpus.nic[used]] = used
        return first[self.ports.nic]

    @cached_property
    def compute_links(self) -> Bool:
        """Links that carry GPU traffic: fabric links, and host links of a NIC that a GPU uses."""
        if not len(self.links.a):
            return np.zeros(0, bool)
        host = self.ports.nic[self.links.a] >= 0
        return np.where(host, self.ports.compute[self.links.a], True)

    @cached_property
    def link_ends(self) -> tuple[I32, I32]:
        """For each link, the device at either end: switch row + number of nodes, or node row."""
        offset = len(self.nodes.name)

        def device(ports: I32) -> I32:
            node, switch = self.port_node[ports], self.ports.switch[ports]
            return np.where(switch >= 0, switch + offset, node).astype(np.int32)

        return device(self.links.a), device(self.links.b)


def links_by_chip(links: int, chips: int) -> list[int]:
    """How many of a GPU's NVLinks go to each switch chip of its domain, the odd ones to the outer chips."""
    each, odd = divmod(links, chips)
    outer = [k // 2 if k % 2 == 0 else chips - 1 - k // 2 for k in range(odd)]
    return [each + (chip in outer) for chip in range(chips)]
