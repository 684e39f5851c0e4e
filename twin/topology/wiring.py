"""Reads a wiring file: what `topology export` prints and `file:` names (design, section 5; docs/wiring.md)."""

from __future__ import annotations

import re

from twin.catalog import max_switch_ports
from twin.errors import InputError
from twin.topology.builder import Builder
from twin.topology.model import NONE, ROLES, TIERS, Topology
from twin.topology.short.entries import Entry
from twin.topology.short.links import Known, LinkReader, more, switch_port
from twin.topology.short.pattern import holds_range
from twin.topology.wiring_rest import without
from twin.topology.wiring_spec import Accept, LinkSpec, NodeSpec, SwitchSpec, Wiring
from twin.yamlfile import Document, Place

__all__ = ["Accept", "Wiring", "read_wiring"]

MOST_ROWS = 10_000_000  # nodes, GPUs, NIC ports and supplies together: more is a mistake or an attack
_PORT = re.compile(r"(?P<owner>.+)/p(?P<port>\d+)")
_NIC = re.compile(r"(?P<node>[^/]+)/nic(?P<nic>\d+)")


def read_wiring(document: Document) -> Topology:
    """A Topology from an explicit wiring file. Raises InputError with every mistake in it."""
    wiring, problems = document.validate(Wiring)
    if wiring is not None:
        return _Reader(document, wiring).topology()
    rest = without(document, [place for place, _ in problems])
    wiring, _ = rest.validate(Wiring)
    more: list[str] = []
    if wiring is not None:  # what is left is well formed: look at its references too
        try:
            _Reader(rest, wiring).topology()
        except InputError as problem:
            more = problem.problems
    raise InputError([text for _, text in problems] + more)


class _Reader:
    def __init__(self, document: Document, wiring: Wiring) -> None:
        self.document, self.wiring = document, wiring
        self.forgiven: set[str] = getattr(document, "forgiven", set())
        self.problems: dict[tuple[Place, str], list[str]] = {}  # by place and kind, what an entry says more than once
        self.builder = Builder(wiring.name, tuple(wiring.planes))
        self.nodes: dict[str, int] = {}
        self.switches: dict[str, int] = {}
        self.rack_of: dict[str, int] = {}  # by node, as racks say
        self.radix: list[int] = []  # of switch rows
        self.tiers: list[int] = []
        self.bulk = LinkReader(
            Known(
                self.builder, self.nodes, self.switches, self.radix, self.tiers, self.forgiven,
                self._wrong, document.line,
            )
        )  # fmt: skip
        self.used = self.bulk.used

    def topology(self) -> Topology:
        nodes = [entry for i, node in enumerate(self.wiring.nodes) for entry in self._node_entries(i, node)]
        racks = self._racks(nodes)
        for i, name, rack, label in nodes:
            self._node(i, name, rack, label, racks)
        for i, switch in enumerate(self.wiring.switches):
            entry = self._entry(("switches", i, "name"), switch.name)
            labels = self._labels(("switches", i, "label"), entry, switch.label)
            for name, label in zip(entry.names, labels, strict=True):
                self._switch(i, switch, name, label)
        for i, link in enumerate(self.wiring.links):
            if self.wiring.ranges and (holds_range(link.a) or holds_range(link.b)):
                self.bulk.read(i, link)
            else:
                self._link(i, link)
        self._domains()
        for i, job in enumerate(self.wiring.jobs):
            named = self._lists(("jobs", i, "nodes"), Entry("", self.wiring.ranges), job.nodes)[0]
            rows = [self._find_node(n, ("jobs", i, "nodes", k)) for k, n in named]
            self.builder.jobs.append((job.name, tuple(r for r in rows if r is not None), job.collective))
        self.builder.site_watts = self.wiring.site_watts
        if self.problems:
            raise InputError([told[0] + more(len(told)) for told in self.problems.values()])
        return self.builder.build()

    def _wrong(self, place: Place, message: str, kind: str = "") -> None:
        """kind: told once a place, however many of the names that an entry stands for have it."""
        self.problems.setdefault((place, kind), []).append(self.document.problem(place, message))

    # --- entries ---

    def _entry(self, place: Place, name: str) -> Entry:
        try:
            return Entry(name, self.wiring.ranges)
        except ValueError as problem:
            self._wrong(place, str(problem))
            return Entry(name, False)

    def _along(self, place: Place, entry: Entry, text: str | None) -> list[str | None]:
        try:
            return entry.along(text)
        except ValueError as problem:
            self._wrong(place, str(problem))
            return [None] * len(entry.names)

    def _lists(self, place: Place, entry: Entry, several: list[str]) -> list[list[tuple[int, str]]]:
        try:
            return entry.lists(several)
        except ValueError as problem:
            self._wrong(place, str(problem))
            return [[] for _ in entry.names]

    def _labels(self, place: Place, entry: Entry, label: str | None) -> list[str | None]:
        """A label may hold brackets that are no range, where the name has none."""
        return self._along(place, entry, label) if entry.is_several else [label]

    def _node_entries(self, i: int, node: NodeSpec) -> list[tuple[int, str, str | None, str | None]]:
        """Place in the file, name, rack and label of each node that an entry stands for."""
        entry = self._entry(("nodes", i, "name"), node.name)
        count = len(entry.names)
        nics = node.nics if isinstance(node.nics, int) else len(node.nics)
        if count * (1 + node.gpus + nics * node.ports_per_nic + node.psus) > MOST_ROWS:
            self._wrong(("nodes", i, "name"), f"{node.name!r} and what is in these nodes is more than {MOST_ROWS:,}")
            return []
        racks = self._along(("nodes", i, "rack"), entry, node.rack)
        labels = self._labels(("nodes", i, "label"), entry, node.label)
        return [(i, *found) for found in zip(entry.names, racks, labels, strict=True)]

    def _racks(self, nodes: list[tuple[int, str, str | None, str | None]]) -> dict[str, int]:
        rows: dict[str, int] = {}
        for i, rack in enumerate(self.wiring.racks):
            entry = self._entry(("racks", i, "name"), rack.name)
            if len(entry.names) * (1 + rack.psus) > MOST_ROWS:
                self._wrong(("racks", i, "name"), f"{rack.name!r} and their supplies are more than {MOST_ROWS:,}")
                continue
            held = self._lists(("racks", i, "nodes"), entry, rack.nodes)
            feeds = self._lists(("racks", i, "feeds"), entry, [feed.name for feed in rack.feeds])
            for name, nodes_held, own in zip(entry.names, held, feeds, strict=True):
                if name in rows:
                    self._wrong(("racks", i, "name"), f"{name!r} is used twice")
                watts = [(feed, rack.feeds[k].watts) for k, feed in own]
                rows[name] = self.builder.rack(
                    name, rack.redundancy, watts, psus=rack.psus, psu_watts=rack.psu_watts or float("nan")
                )
                self.rack_of |= {node: rows[name] for _, node in nodes_held}
        for _, _, named, _ in nodes:
            if named is not None and named not in rows:
                rows[named] = self.builder.rack(named)
        return rows

    def _node(self, i: int, name: str, in_rack: str | None, label: str | None, racks: dict[str, int]) -> None:
        node = self.wiring.nodes[i]
        if name in self.nodes:
            self._wrong(("nodes", i, "name"), f"{name!r} is used twice")
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
        rack = racks[in_rack] if in_rack is not None else self.rack_of.get(name, NONE)
        self.nodes[name] = self.builder.node(
            name, gpus=node.gpus, nics=node.nics, ports_per_nic=node.ports_per_nic,
            first_port=node.first_port, gpu_model=node.gpu_model, rack=rack, role=ROLES.index(node.role),
            nic_of_gpu=nic_of_gpu, psus=node.psus, psu_watts=node.psu_watts or float("nan"),
        )  # fmt: skip
        if label:
            self.builder.labels[name] = label

    def _switch(self, i: int, switch: SwitchSpec, name: str, label: str | None) -> None:
        if name in self.switches or name in self.nodes:
            self._wrong(("switches", i, "name"), f"{name!r} is used twice")
            return
        plane = NONE
        if switch.plane is not None:
            if switch.plane in self.wiring.planes:
                plane = self.wiring.planes.index(switch.plane)
            else:
                known = ", ".join(self.wiring.planes) or "none is listed under planes"
                self._wrong(("switches", i, "plane"), f"{switch.plane!r} is not a plane; expected one of: {known}")
        self.radix.append(switch.ports or max_switch_ports(switch.model))
        self.tiers.append(TIERS.index(switch.tier))
        self.switches[name] = self.builder.switch(
            name, self.tiers[-1], plane, model=switch.model,
            rail=NONE if switch.rail is None else switch.rail, radix=self.radix[-1],
        )  # fmt: skip
        if label:
            self.builder.labels[name] = label

    # --- links ---

    def _link(self, i: int, link: LinkSpec) -> None:
        ends = [self._end(("links", i, side), address) for side, address in (("a", link.a), ("b", link.b))]
        a, b = ends
        if a is None or b is None:
            return
        speed = float("nan") if link.speed is None else link.speed
        if a[0] == "switch" and b[0] == "nic":
            a, b = b, a
        cable = NONE
        if isinstance(link.cable, int):
            self._wrong(("links", i, "cable"), f"{link.cable}: expected a name, where an entry is one link")
        elif link.cable is not None:
            cable = self.bulk.cable(link.cable, a[1] if a[0] == "nic" else None)
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
        number = int(match["port"])
        nic = _NIC.fullmatch(match["owner"])
        end = self._nic_end(place, address, nic, number) if nic else self._switch_end(place, match["owner"], number)
        if end is None:
            return None
        port = end[1] if nic else switch_port(end[1], number)
        if port in self.used:
            self._wrong(place, f"port {address!r} is used twice, first on line {self.used[port]}")
            return None
        self.used[port] = self.document.line(place)
        return end

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
        radix = self.radix[row]
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
            entry = self._entry(("domains", i, "name"), domain.name)
            gpus = self._lists(("domains", i, "gpus"), entry, domain.gpus)
            chips = self._lists(("domains", i, "switches"), entry, domain.switches)
            for name, mine, over in zip(entry.names, gpus, chips, strict=True):
                rows = self._gpus(i, name, mine, taken)
                self.builder.domain(name, rows, [c for _, c in over], domain.links_per_gpu, domain.speed / 8)

    def _gpus(self, i: int, domain: str, addresses: list[tuple[int, str]], taken: dict[int, str]) -> list[int]:
        rows = []
        for k, address in addresses:
            name, _, number = address.rpartition("/gpu")
            node = self.nodes.get(name)
            if node is None or not number.isdecimal() or int(number) >= self.builder.nodes[node].gpus:
                place: Place = ("domains", i, "gpus", k)
                self._wrong(place, f"there is no GPU {address!r}; expected NODE/gpuN", "unknown")
                continue
            row = self.builder.nodes[node].gpu0 + int(number)
            if row in taken:
                place = ("domains", i, "gpus", k)
                self._wrong(place, f"{address!r} is in two domains: {taken[row]} and {domain}", "twice")
            taken[row] = domain
            rows.append(row)
        return rows
