"""How far an incident reaches, drawn on the wiring: switches by tier and plane, below them every node.

What is the same for all incidents, the fabric at rest, is one symbol that each picture uses; only what is hit is
drawn again. So a picture of 10,000 nodes costs its damage, not its size.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil, sqrt

import numpy as np

from replay.report.markup import Markup, tag
from twin.errors import InputError
from twin.incident import Incident
from twin.topology.model import TIERS, Topology
from twin.topology.resolve import resolve

_WIDTH = 360.0
_LABEL = 38.0  # left of the rows: their tier
_GAP = 16.0  # between rows of switches, and between planes
_MOST_LINKS = 400  # drawn one by one
_SYMBOL = "fabric-at-rest"
Box = tuple[float, float, float]  # x, y, size


@dataclass(frozen=True)
class Map:
    """Where everything is. switches, nodes: row -> box."""

    topology: Topology
    switches: dict[int, Box]
    nodes: dict[int, Box]
    labels: tuple[tuple[str, float, float], ...]
    height: float

    @classmethod
    def of(cls, topology: Topology) -> Map:
        """Lays a fabric out, 360 units wide."""
        switches: dict[int, Box] = {}
        labels: list[tuple[str, float, float]] = []
        y = 14.0
        tiers = topology.switches.tier
        planes = sorted(set(topology.switches.plane.tolist()))
        for tier in sorted(set(tiers.tolist()), reverse=True):
            groups = [np.flatnonzero((tiers == tier) & (topology.switches.plane == p)).tolist() for p in planes]
            height = 0.0
            share = (_WIDTH - _LABEL) / max(1, len(planes))
            for i, rows in enumerate(groups):
                x = _LABEL + i * share
                cells, used = _grid(rows, x, y, share - _GAP, 12.0, 2)
                switches |= cells
                height = max(height, used)
                if tier == tiers.max() and planes[i] >= 0:
                    labels.append((f"plane {topology.planes[planes[i]]}", x, y - 4))
            labels.append((TIERS[tier], 0.0, y + 9))
            y += height + _GAP
        nodes, used = _grid(list(range(len(topology.nodes.name))), _LABEL, y, _WIDTH - _LABEL, 12.0, 12)
        labels.append(("node", 0.0, y + 9))
        return cls(topology, switches, nodes, tuple(labels), y + used + 4)

    def symbol(self) -> Markup:
        """The fabric at rest, to be put once into the page."""
        path = "".join(_square(box) for box in (*self.switches.values(), *self.nodes.values()))
        texts = [tag("text", text, class_="label", x=round(x, 1), y=round(y, 1)) for text, x, y in self.labels]
        inside = tag("symbol", tag("path", class_="rest", d=path), texts, id=_SYMBOL, viewBox=self._view)
        return tag("svg", inside, width=0, height=0, class_="symbols", aria_hidden="true")

    @property
    def _view(self) -> str:
        return f"0 0 {_WIDTH:g} {self.height:.1f}"

    def damage(self, incident: Incident) -> Markup | None:
        """The same with what an incident hits; None where it hits nothing that is drawn."""
        hit = reach(self.topology, incident)
        if not (hit.switches or hit.nodes):
            return None
        marks: list[Markup] = [tag("use", href=f"#{_SYMBOL}", width=f"{_WIDTH:g}", height=f"{self.height:.1f}")]
        if len(hit.links) <= _MOST_LINKS:
            marks.extend(self._links(hit.links))
        names = self.topology.nodes.name
        for row, share in hit.nodes.items():
            class_ = "cause" if row in hit.cause_nodes else "all" if share >= 1 else "some"
            title = f"{names[row]}: {share:.0%} of its GPUs affected" if share else names[row]
            marks.append(_cell(self.nodes[row], class_, title))
        for row in hit.switches:
            class_ = "cause" if row in hit.cause_switches else "near"
            marks.append(_cell(self.switches[row], class_, self.topology.switches.name[row]))
        return tag(
            "svg", tag("title", f"reach of {incident.cause}"), marks, viewBox=self._view, class_="wiring", role="img"
        )

    def _links(self, links: Iterable[int]) -> list[Markup]:
        topo, out = self.topology, []
        for link in links:
            ends = [self._box(int(port[link])) for port in (topo.links.a, topo.links.b)]
            if ends[0] is not None and ends[1] is not None:
                (xa, ya, a), (xb, yb, b) = ends[0], ends[1]
                out.append(
                    tag(
                        "line", class_="link", x1=round(xa + a / 2, 1), y1=round(ya + a / 2, 1),
                        x2=round(xb + b / 2, 1), y2=round(yb + b / 2, 1),
                    )
                )  # fmt: skip
        return out

    def _box(self, port: int) -> Box | None:
        switch, node = int(self.topology.ports.switch[port]), int(self.topology.port_node[port])
        return self.switches.get(switch) if switch >= 0 else self.nodes.get(node)


@dataclass(frozen=True, slots=True)
class Reach:
    """Rows that an incident hits. nodes: row -> share of its GPUs that pay; links: those of the cause."""

    cause_switches: frozenset[int]
    cause_nodes: frozenset[int]
    switches: tuple[int, ...]
    nodes: dict[int, float]
    links: tuple[int, ...]


def reach(topology: Topology, incident: Incident) -> Reach:
    """From an incident's cause, victims and affected names to rows of the wiring."""
    switches, nodes = topology.rows("switch"), topology.rows("node")
    links: list[int] = []
    cause_switches, cause_nodes = set[int](), set[int]()
    try:
        target = resolve(topology, incident.cause)
    except InputError:
        target = None
    if target is not None:
        links = target.links.tolist()
        cause_switches.update(target.switches.tolist())
        cause_nodes.update(target.nodes.tolist())
    for end in incident.cause.split("--"):
        head = end.split("/")[0]
        if head in switches:
            cause_switches.add(switches[head])
        elif head in nodes:
            cause_nodes.add(nodes[head])
    near = dict.fromkeys(sorted(cause_switches))
    for port in [int(p[link]) for link in links for p in (topology.links.a, topology.links.b)]:
        if topology.ports.switch[port] >= 0:
            near.setdefault(int(topology.ports.switch[port]))
    named = [*incident.victims, *(e.entity for e in incident.evidence)]
    near |= dict.fromkeys(switches[head] for name in named if (head := name.split("/")[0]) in switches)
    hurt: dict[int, float] = dict.fromkeys(sorted(cause_nodes), 0.0)
    for name in incident.affected.names:
        head, *rest = name.split("/")
        if head in nodes:
            row = nodes[head]
            share = 1 / max(1, int(topology.nodes.n_gpus[row])) if rest else 1.0
            hurt[row] = min(1.0, hurt.get(row, 0.0) + share)
    return Reach(frozenset(cause_switches), frozenset(cause_nodes), tuple(near), hurt, tuple(links))


def _grid(
    rows: list[int], x: float, y: float, width: float, largest: float, most_lines: int
) -> tuple[dict[int, Box], float]:
    """Squares in lines of a given width, as large as they fit into `most_lines`; and the height that they take."""
    if not rows:
        return {}, 0.0
    size = max(
        min(largest, width / ceil(len(rows) / most_lines), sqrt(width * largest * most_lines / len(rows))), 3.0
    )
    columns = max(1, int(width / size + 1e-9))
    boxes = {row: (x + (i % columns) * size, y + (i // columns) * size, size * 0.82) for i, row in enumerate(rows)}
    return boxes, ceil(len(rows) / columns) * size


def _square(box: Box) -> str:
    x, y, size = box
    return f"M{x:.1f} {y:.1f}h{size:.1f}v{size:.1f}h-{size:.1f}z"


def _cell(box: Box, class_: str, title: str) -> Markup:
    x, y, size = box
    kept = {"x": f"{x:.1f}", "y": f"{y:.1f}", "width": f"{size:.1f}", "height": f"{size:.1f}"}
    return tag("rect", tag("title", title), class_=class_, **kept)
