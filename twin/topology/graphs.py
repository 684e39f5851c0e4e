"""A fabric as a drawing: Graphviz `dot` and Mermaid, with devices merged until it can be read."""

from __future__ import annotations

from collections.abc import Iterator

from twin.topology.model import Topology
from twin.topology.quotient import Box, Drawing, Edge, draw
from twin.units import show_speed

_COLOURS = ("#dae8fc", "#d5e8d4", "#ffe6cc", "#f8cecc")  # hosts, leaf, spine, core
_SHAPES = ("box", "box3d", "box3d", "box3d")
_LONGEST = 60


def to_dot(topo: Topology) -> str:
    """For `dot -Tsvg`: spines on top, hosts at the bottom, a cluster a plane."""
    return "\n".join(_dot(draw(topo))) + "\n"


def to_mermaid(topo: Topology) -> str:
    """A Mermaid flowchart, which Markdown viewers draw."""
    return "\n".join(_mermaid(draw(topo))) + "\n"


def _by_plane(drawing: Drawing) -> dict[str, list[tuple[int, Box]]]:
    out: dict[str, list[tuple[int, Box]]] = {}
    for row, box in enumerate(drawing.boxes):
        out.setdefault(box.plane, []).append((row, box))
    return out


def _title(box: Box) -> str:
    title = box.title
    return title if len(title) <= _LONGEST else title[: _LONGEST - 1] + "…"


def _label(edge: Edge) -> str:
    speed = show_speed(edge.speed) if edge.speed == edge.speed else ""
    return f"{edge.links} × {speed}".rstrip(" ×") if edge.links > 1 else speed


def _dot(drawing: Drawing) -> Iterator[str]:
    yield f"graph {_dot_text(drawing.name)} {{"
    yield '  graph [rankdir=TB, ranksep=1.2, fontname="sans-serif"];'
    yield '  node [style=filled, fontname="sans-serif"];'
    yield '  edge [fontname="sans-serif", fontsize=10];'
    for i, (plane, boxes) in enumerate(_by_plane(drawing).items()):
        indent = "    " if plane else "  "
        if plane:
            yield f"  subgraph cluster_{i} {{"
            yield f"    label={_dot_text(f'plane {plane}')};"
        for row, box in boxes:
            label = _dot_text(f"{_title(box)}\n{box.detail}")
            yield f'{indent}d{row} [label={label}, shape={_SHAPES[box.rank]}, fillcolor="{_COLOURS[box.rank]}"];'
        if plane:
            yield "  }"
    for edge in drawing.edges:
        label = _label(edge)
        yield f"  d{edge.high} -- d{edge.low}" + (f" [label={_dot_text(label)}];" if label else ";")
    yield "}"


def _dot_text(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def _mermaid(drawing: Drawing) -> Iterator[str]:
    yield "flowchart TB"
    for i, (plane, boxes) in enumerate(_by_plane(drawing).items()):
        indent = "    " if plane else "  "
        if plane:
            yield f"  subgraph plane{i}[{_mermaid_text(f'plane {plane}')}]"
        for row, box in boxes:
            yield f"{indent}d{row}[{_mermaid_text(f'{_title(box)}<br>{box.detail}')}]"
        if plane:
            yield "  end"
    for edge in drawing.edges:
        label = _label(edge)
        yield f"  d{edge.high} ---" + (f"|{_mermaid_text(label)}| " if label else " ") + f"d{edge.low}"
    for rank, colour in enumerate(_COLOURS):
        mine = [f"d{row}" for row, box in enumerate(drawing.boxes) if box.rank == rank]
        if mine:
            yield f"  classDef rank{rank} fill:{colour},stroke:#444,color:#000"
            yield f"  class {','.join(mine)} rank{rank}"


def _mermaid_text(text: str) -> str:
    parts = text.split("<br>")
    safe = ("".join(c if c not in '"#<>&`|' else f"#{ord(c)};" for c in part) for part in parts)
    return '"' + "<br>".join(safe) + '"'
