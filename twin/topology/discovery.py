"""Wiring from `ibnetdiscover` dumps: one fabric a plane. What it has to guess it says in the notes."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path

from twin.errors import InputError
from twin.ibtools.discovery import Discovery
from twin.ibtools.dump import DumpError
from twin.ibtools.netdiscover import parse
from twin.ibtools.speeds import link_rate
from twin.topology.builder import Builder
from twin.topology.ibnames import Names, name_all
from twin.topology.model import COMPUTE, NONE, ROLES, Topology
from twin.topology.rolenames import STORAGE

_TIER_NAMES = ((re.compile(r"leaf|tor", re.I), 0), (re.compile(r"spine", re.I), 1), (re.compile(r"core", re.I), 2))
_COMMON = 0.5  # a NIC number that this share of the GPU hosts has belongs to the usual set


def discover_files(files: Mapping[str, Path]) -> Topology:
    """Wiring from dump files, plane to file. Raises InputError naming file and line."""
    found = {}
    for plane, path in files.items():
        try:
            found[plane] = parse(path.read_bytes())
        except DumpError as problem:
            raise InputError(f"{path}:{problem.line}: {problem.message}") from problem
        except OSError as problem:
            raise InputError(f"{path}: cannot be read: {problem.strerror}") from problem
    return discover(found, name=next(iter(files.values())).stem)


def discover(found: Mapping[str, Discovery], name: str = "discovered") -> Topology:
    """Wiring from discoveries, plane to discovery. Raises InputError where two planes hold the same switch."""
    owner: dict[str, str] = {}
    for plane, fabric in found.items():
        for guid in (n.guid for n in fabric.nodes.values() if n.kind == "switch"):
            if owner.setdefault(guid, plane) != plane:
                raise InputError(
                    f"planes {owner[guid]} and {plane} hold the same switch {guid}: is it one dump twice?"
                )
    return _Discovery(found, name).topology()


class _Discovery:
    def __init__(self, found: Mapping[str, Discovery], name: str) -> None:
        self.found = found
        self.names: Names = name_all(found.values())
        self.builder = Builder(name, tuple(found))
        self.nodes: dict[str, tuple[int, list[int]]] = {}  # host -> (row, NIC numbers)
        self.switches: dict[str, int] = {}  # GUID -> row
        self.aside = {guid for fabric in found.values() for guid in _storage(fabric)}

    def topology(self) -> Topology:
        self._add_hosts()
        for plane, fabric in enumerate(self.found.values()):
            self._add_switches(plane, fabric)
            self._add_links(fabric)
        self._add_notes()
        self.builder.labels.update(self.names.labels)
        return self.builder.build()

    def _add_hosts(self) -> None:
        compute = [h for h in self.names.hosts.values() if h.role == "compute"]
        apart = self._apart()
        seen = Counter(nic for h in compute for nic, guid in h.adapters.items() if guid not in apart)
        usual = [nic for nic, n in sorted(seen.items()) if n >= _COMMON * len(compute)]
        ports = self._ports_per_adapter()
        for host in self.names.hosts.values():
            gpus = host.role == "compute"
            nics = sorted(set(usual) | set(host.adapters)) if gpus else list(host.adapters)
            row = self.builder.node(
                host.name,
                gpus=len(usual) if gpus else 0,
                nics=nics,
                ports_per_nic=max((ports[guid] for guid in host.adapters.values()), default=1),
                first_port=1,
                role=ROLES.index(host.role),
                nic_of_gpu=[nics.index(nic) for nic in usual] if gpus else [],
            )
            self.nodes[host.name] = row, nics

    def _apart(self) -> set[str]:
        """Adapters all of whose cables lead to switches of storage: no GPU sends over them."""
        ends = defaultdict[str, set[bool]](set)
        for fabric in self.found.values():
            for link in fabric.links:
                ends[link.a_guid].add(link.b_guid in self.aside)
                ends[link.b_guid].add(link.a_guid in self.aside)
        return {guid for guid in self.names.adapter if ends[guid] == {True}}

    def _ports_per_adapter(self) -> dict[str, int]:
        """Adapters have as many ports as the dump says, or as the highest port number that is cabled."""
        ports: dict[str, int] = defaultdict(lambda: 1)
        for fabric in self.found.values():
            for link in fabric.links:
                for guid, port in ((link.a_guid, link.a_port), (link.b_guid, link.b_port)):
                    ports[guid] = max(ports[guid], port)
        return ports

    def _add_switches(self, plane: int, fabric: Discovery) -> None:
        tiers = self._tiers(fabric)
        for node in fabric.nodes.values():
            if node.kind == "switch" and node.guid not in self.switches:
                self.switches[node.guid] = self.builder.switch(
                    self.names.switch[node.guid], tiers[node.guid], NONE if node.guid in self.aside else plane,
                    model=self.names.model[node.guid], radix=node.nports or 0,
                )  # fmt: skip

    def _tiers(self, fabric: Discovery) -> dict[str, int]:
        """A switch's own name says its tier; else it is a leaf when hosts hang on it, a spine when leaves do."""
        switches = {n.guid for n in fabric.nodes.values() if n.kind == "switch"}
        hosts, peers = Counter[str](), defaultdict[str, set[str]](set)
        for link in fabric.links:
            for guid, other in ((link.a_guid, link.b_guid), (link.b_guid, link.a_guid)):
                if guid in switches and other in switches:
                    peers[guid].add(other)
                elif guid in switches and other in self.names.adapter:
                    host = self.names.hosts[self.names.adapter[other][0]]
                    hosts[guid] += 2 if host.role == "compute" else 1
        tiers: dict[str, int] = {}
        for guid in switches:
            said = [t for pattern, t in _TIER_NAMES if pattern.search(self.names.switch[guid])]
            if said or hosts[guid]:
                tiers[guid] = said[0] if said else 0
        for _ in range(2):
            for guid in switches - set(tiers):
                below = [tiers[p] for p in peers[guid] if p in tiers]
                if below:
                    tiers[guid] = min(min(below) + 1, 2)
        return {guid: tiers.get(guid, 0) for guid in switches}

    def _add_links(self, fabric: Discovery) -> None:
        for link in fabric.links:
            speed = link_rate(link.width, link.speed) or float("nan")
            ends = [(link.a_guid, link.a_port), (link.b_guid, link.b_port)]
            if ends[0][0] in self.switches:
                ends.reverse()  # the adapter first
            (a, a_port), (b, b_port) = ends
            if a in self.switches and b in self.switches:
                self.builder.switch_link(self.switches[a], a_port, self.switches[b], b_port, speed)
            elif a in self.names.adapter and b in self.switches:
                self.builder.host_link(self._nic_port(a, a_port), self.switches[b], b_port, speed)
            elif a in self.names.adapter and b in self.names.adapter:
                self.builder.direct_link(self._nic_port(a, a_port), self._nic_port(b, b_port), speed)

    def _nic_port(self, guid: str, port: int) -> int:
        host, nic = self.names.adapter[guid]
        row, nics = self.nodes[host]
        return self.builder.nic_port(row, nics.index(nic), port - 1)

    def _add_notes(self) -> None:
        roles = Counter(h.role for h in self.names.hosts.values())
        note = self.builder.notes.append
        if roles["compute"]:
            gpus = next(n.gpus for n in self.builder.nodes if n.role == COMPUTE)
            note(
                f"GPU hosts are those with most of the usual adapters; one GPU a NIC is assumed ({gpus} a host here)"
            )
        if self.aside:
            names = sorted(self.names.switch[guid] for guid in self.aside)
            note(f"{', '.join(names[:3])}{'…' if len(names) > 3 else ''}: of storage by name, and apart: in no plane")
        if self.names.aggregation:
            note(f"{self.names.aggregation} aggregation nodes of switches are left out: they are no hosts")
        if self.names.unnamed:
            note(f"{self.names.unnamed} adapters do not say their host; they are listed by GUID and count no GPU")
        for plane, fabric in self.found.items():
            if fabric.dangling:
                note(f"plane {plane}: {len(fabric.dangling)} ports without a far end are left out")
            for warning in fabric.warnings[:5]:
                note(f"plane {plane}: {warning}")


def _storage(fabric: Discovery) -> set[str]:
    """Switches whose names say storage and that have no cable to any that does not: a fabric of its own."""
    switches = [n for n in fabric.nodes.values() if n.kind == "switch"]
    out = {n.guid for n in switches if STORAGE.search(n.description)}
    every = {n.guid for n in switches}
    ends = [(link.a_guid, link.b_guid) for link in fabric.links if {link.a_guid, link.b_guid} <= every]
    while joined := {x for a, b in ends for x, y in ((a, b), (b, a)) if x in out and y not in out}:
        out -= joined
    return out if len(out) < len(switches) else set()  # a fabric of storage alone is what is asked about


__all__ = ["discover", "discover_files"]
