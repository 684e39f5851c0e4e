"""What one discovery of a plane found: nodes, cables, ports without a far end.

Two GUIDs name a channel adapter. Its node GUID heads its block in a full dump; each of its ports has a GUID
of its own, and that is all a port list, `iblinkinfo` and the error rows of `ibqueryerrors` print. On today's
single-port adapters both are the same number, on older or two-port ones they are not: `Discovery.port_guids`
leads from port to node. A switch has one GUID for both.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from twin.ibtools.dump import Warnings

NodeKind = Literal["switch", "ca", "router"]
Form = Literal["topology", "ports"]
End = tuple[str, int]  # GUID, port number
Rate = tuple[str | None, str | None]  # width, speed


@dataclass(frozen=True, slots=True)
class Node:
    """A switch, channel adapter or router; `nports` and `lid` are None where the dump does not say."""

    guid: str
    kind: NodeKind
    description: str
    nports: int | None = None
    lid: int | None = None


@dataclass(frozen=True, slots=True)
class Link:
    """A cable, seen once, its lower end (by GUID, then port) first; `width` like `4x`, `speed` like `NDR`."""

    a_guid: str
    a_port: int
    b_guid: str
    b_port: int
    width: str | None = None
    speed: str | None = None


@dataclass(frozen=True, slots=True)
class DanglingPort:
    """A port without a far end. What it says of its speed is often a leftover: it is down, not slow."""

    guid: str
    port: int
    width: str | None = None
    speed: str | None = None


@dataclass(slots=True)
class Discovery:
    """One dump. In the `ports` form GUIDs of adapters are port GUIDs, and `nports` is not known."""

    form: Form
    origin: str | None = None  # the node that ibnetdiscover ran on, where the dump says so
    nodes: dict[str, Node] = field(default_factory=dict)
    links: list[Link] = field(default_factory=list)
    dangling: list[DanglingPort] = field(default_factory=list)
    port_guids: dict[str, str] = field(default_factory=dict)  # of adapters and routers: port -> node
    warnings: list[str] = field(default_factory=list)


class Builder:
    """Gathers what the lines say into a `Discovery`, in which each cable appears once."""

    def __init__(self, form: Form, warnings: Warnings) -> None:
        self.found = Discovery(form)
        self.warnings = warnings
        self._cables: dict[tuple[End, End], Rate] = {}
        self._far: dict[End, End] = {}
        self._loose: dict[End, Rate] = {}

    def node(self, guid: str, kind: NodeKind, description: str, nports: int | None, lid: int | None) -> None:
        """Note a node that speaks for itself: its own block or its own rows."""
        known = self.found.nodes.get(guid)
        if known is not None:  # what is new wins, what it leaves out is kept
            nports = known.nports if nports is None else nports
            lid = known.lid if lid is None else lid
        self.found.nodes[guid] = Node(guid, kind, description, nports, lid)

    def peer(self, guid: str, kind: NodeKind, description: str, lid: int | None) -> None:
        """Note a node that another one names as its far end: good only until it speaks for itself."""
        if guid not in self.found.nodes:
            self.found.nodes[guid] = Node(guid, kind, description, None, lid)

    def cable(self, line: int, near: End, far: End, rate: Rate) -> None:
        """Note a cable, from whichever end; the rate read first is kept, unless it was not known."""
        if near == far:
            self.warnings.add(line, f"port {near[1]} of {near[0]} is cabled to itself")
            self._loose[near] = rate
        elif self._far.get(near, far) != far or self._far.get(far, near) != near:
            self.warnings.add(line, f"port {near[1]} of {near[0]} has two far ends; the first is kept")
        else:
            self._far[near], self._far[far] = far, near
            ends = (near, far) if near < far else (far, near)
            known = self._cables.setdefault(ends, rate)
            if known != rate:
                self._cables[ends] = self._reconciled(line, known, rate)

    def loose_end(self, end: End, rate: Rate) -> None:
        self._loose[end] = rate

    def done(self) -> Discovery:
        self.found.links = [Link(*a, *b, *rate) for (a, b), rate in self._cables.items()]
        # A port listed twice may have gained its far end between the two.
        loose = {end: rate for end, rate in self._loose.items() if end not in self._far}
        self.found.dangling = [DanglingPort(*end, *rate) for end, rate in loose.items()]
        self.found.warnings = self.warnings.done()
        return self.found

    def _reconciled(self, line: int, known: Rate, rate: Rate) -> Rate:
        merged = (known[0] or rate[0], known[1] or rate[1])
        if merged != (rate[0] or known[0], rate[1] or known[1]):
            self.warnings.add(line, f"the ends of a cable differ, {known} and {rate}; the first is kept")
        return merged
