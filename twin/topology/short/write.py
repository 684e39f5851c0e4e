"""A Topology as a wiring file with short entries: what is regular becomes ranges, the rest stays as it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from twin.topology import explicit
from twin.topology.joining import I64
from twin.topology.model import HOST_LEAF, I32, NONE, Topology
from twin.topology.short.entries import NAME
from twin.topology.short.pattern import holds_range
from twin.topology.short.shape import Axis, Form, find, forms, write, write_list
from twin.topology.short.write_links import short_links

Row = dict[str, Any]


def to_short(topo: Topology) -> Row:
    """The wiring with short entries; reading it gives the same tables as the explicit form does."""
    if explicit.has_brackets(topo):
        return explicit.to_wiring(topo)
    switches = explicit.switches(topo)
    for switch, rail, told in zip(switches, topo.switches.rail.tolist(), _rails_of_hosts(topo).tolist(), strict=True):
        if rail == told:
            switch.pop("rail", None)
    out: Row = {"name": topo.name, "planes": list(topo.planes)}
    out["nodes"] = fold(explicit.nodes(topo), ("rack", "label"))
    out["switches"] = fold(switches, ("label",))
    out["links"] = short_links(topo)
    out["domains"] = _domains(topo)
    out["racks"] = fold([_rack(rack) for rack in explicit.racks(topo)], ())
    if topo.site_watts is not None:
        out["site_watts"] = topo.site_watts
    if topo.jobs:
        out["jobs"] = [{**job, "nodes": _one(fold_list(job["nodes"]))} for job in explicit.jobs(topo)]
    return out


def _rails_of_hosts(topo: Topology) -> I32:
    """The rail of a switch whose hosts are all of one; it need not be written."""
    links, ports = topo.links, topo.ports
    host = np.flatnonzero(links.tier == HOST_LEAF)
    switch, rail = ports.switch[links.b[host]], topo.nics.rail[ports.nic[links.a[host]]]
    switch, rail = switch[rail != NONE], rail[rail != NONE]
    low = np.full(len(topo.switches.name), np.iinfo(np.int32).max, np.int32)
    high = np.full(len(low), NONE, np.int32)
    np.minimum.at(low, switch, rail)
    np.maximum.at(high, switch, rail)
    return np.where(low == high, low, NONE).astype(np.int32)


# --- entries with names ---


class _Table:
    """Texts of rows as forms over columns of one matrix."""

    def __init__(self, *texts: Sequence[str | None]) -> None:
        self.shapes: list[list[Any]] = []
        self.forms: list[list[Form]] = []
        blocks: list[I64] = []
        at = 0
        for column in texts:
            shapes, numbers = forms([text or "" for text in column])
            wide = max((len(row) for row in numbers), default=0)
            block = np.zeros((len(column), wide), np.int64)
            for k, row in enumerate(numbers):
                block[k, : len(row)] = row
            self.forms.append([Form(lits, widths, tuple(range(at, at + len(widths)))) for lits, widths in shapes])
            self.shapes.append(list(shapes))
            blocks.append(block)
            at += wide
        self.values: I64 = np.concatenate(blocks, axis=1)

    def kinds(self, more: Sequence[Any]) -> tuple[list[int], list[int]]:
        """A number for rows with the same forms and the same `more`, and for each number its first row."""
        known: dict[Any, int] = {}
        first: list[int] = []
        out = []
        for k, key in enumerate(zip(more, *self.shapes, strict=True)):
            if key not in known:
                known[key] = len(known)
                first.append(k)
            out.append(known[key])
        return out, first


def fold(entries: Sequence[Row], along: Sequence[str]) -> list[Row]:
    """Entries that follow each other and differ only in the numbers of their names, and of the texts of `along`."""
    several = [[entry.get(key) for entry in entries] for key in along]
    table = _Table([entry["name"] for entry in entries], *several)
    rest = [
        repr([(k, None if k == "name" or k in along else v) for k, v in entry.items()])
        + (f" {i}" if any(holds_range(entry.get(key) or "") for key in along) else "")
        for i, entry in enumerate(entries)
    ]
    kinds, first = table.kinds(rest)

    def texts(row: int, axes: tuple[Axis, ...]) -> list[str] | None:
        lead, *others = (form[row] for form in table.forms)
        return write(lead, others, table.values[row].tolist(), axes, paired=False)

    out = []
    for item in find(table.values, kinds, lambda kind, axes: texts(first[kind], axes) is not None):
        made = texts(item.first, item.axes)
        assert made is not None
        written = dict(zip(("name", *along), made, strict=True))
        out.append({k: written.get(k, v) for k, v in entries[item.first].items()})
    return out


def fold_list(names: Sequence[str], more: Sequence[Any] = ()) -> list[tuple[str, Any]]:
    """A list of names with ranges, each with its `more`, which is alike for all that it stands for."""
    with_each = list(more) or [None] * len(names)
    table = _Table(names)
    kinds, first = table.kinds([repr(m) for m in with_each])

    def text(row: int, axes: tuple[Axis, ...]) -> list[str] | None:
        return write(table.forms[0][row], (), table.values[row].tolist(), axes, paired=False)

    out = []
    for item in find(table.values, kinds, lambda kind, axes: text(first[kind], axes) is not None):
        made = text(item.first, item.axes)
        assert made is not None
        out.append((made[0], with_each[item.first]))
    return out


def _one(found: list[tuple[str, Any]]) -> str | list[str]:
    """A single text stands for itself where a list is expected."""
    return found[0][0] if len(found) == 1 else [text for text, _ in found]


def _of(name: str, texts: Sequence[str]) -> list[str]:
    """Texts below a name, with a placeholder for it."""
    below = name + "/"
    return [NAME + text[len(name) :] if text.startswith(below) else text for text in texts]


def _rack(rack: Row) -> Row:
    feeds = fold_list(_of(rack["name"], [f["name"] for f in rack["feeds"]]), [f["watts"] for f in rack["feeds"]])
    out: Row = {"name": rack["name"]}
    if feeds:
        out["feeds"] = [{"name": name, "watts": watts} for name, watts in feeds]
    if rack["redundancy"] != "none":
        out["redundancy"] = rack["redundancy"]
    out |= {key: rack[key] for key in ("psus", "psu_watts") if key in rack}
    return out


# --- NVLink domains ---


def _domains(topo: Topology) -> list[Row]:
    """Domains of one node each by their number of GPUs, those of whole nodes in a row by a range of nodes."""
    entries = explicit.domains(topo)
    whole = [_whole_nodes(topo, rows) for rows in topo.domains.gpu_rows]
    names = topo.nodes.name
    table = _Table(topo.domains.name, [names[found[0]] if found else None for found in whole])
    table.values = np.pad(table.values, ((0, 0), (0, 1)))  # the number of a GPU
    gpu = table.values.shape[1] - 1
    node_of = _Table(names)
    inner: list[tuple[Axis, ...]] = [()] * len(entries)

    def texts(row: int, axes: tuple[Axis, ...]) -> list[str] | None:
        start = table.values[row].tolist()
        if entries[row]["gpus"] != NAME:
            return write(table.forms[0][row], (), start, axes, paired=False)
        node = table.forms[1][row]
        gpus = Form((*node.literals[:-1], node.literals[-1] + "/gpu", ""), (*node.widths, 0), (*node.columns, gpu))
        return write_list(table.forms[0][row], gpus, start, (*axes, *inner[row]), len(axes))

    rest: list[Any] = []
    for i, (entry, found) in enumerate(zip(entries, whole, strict=True)):
        entry["switches"] = _one(fold_list(_of(entry["name"], entry["switches"]))) if entry["switches"] else []
        listed = entry["gpus"]
        if found and found[1] == 1 and names[found[0]] == entry["name"]:
            entry["gpus"] = found[2]
        elif found and (steps := _steps(node_of, found)) is not None:
            inner[i] = _inner(table.forms[1][i], steps, found, gpu)
            entry["gpus"] = NAME  # by nodes, see texts
        if entry["gpus"] == listed or texts(i, ()) is None:
            entry["gpus"], inner[i] = _one(fold_list(_of(entry["name"], listed))) if listed else [], ()
        alone = isinstance(entry["gpus"], list) or (isinstance(entry["gpus"], str) and NAME not in entry["gpus"])
        rest.append(repr([(k, v) for k, v in entry.items() if k != "name"] + [inner[i], i if alone else None]))
    kinds, first = table.kinds(rest)
    items = find(table.values, kinds, lambda kind, axes: texts(first[kind], axes) is not None)
    return [_domain(entries[item.first], texts(item.first, item.axes)) for item in items]


def _domain(entry: Row, texts: list[str] | None) -> Row:
    assert texts is not None
    written = dict(zip(("name", "gpus"), texts, strict=False))
    return {k: written.get(k, v) for k, v in entry.items() if v != [] or k == "gpus"}


def _whole_nodes(topo: Topology, rows: I32) -> tuple[int, int, int] | None:
    """Of a domain that is all GPUs of nodes in a row: the first node, how many, how many GPUs each."""
    if not len(rows) or np.any(np.diff(rows) != 1):
        return None
    first, last = int(topo.gpus.node[rows[0]]), int(topo.gpus.node[rows[-1]])
    each = topo.nodes.n_gpus[first : last + 1]
    if np.any(each != each[0]) or rows[0] != topo.nodes.gpu0[first] or len(rows) != each.sum():
        return None
    return first, last - first + 1, int(each[0])


def _steps(node_of: _Table, found: tuple[int, int, int]) -> list[int] | None:
    """What each node adds to the numbers of the one before; None where they are no row of names."""
    first, count, _ = found
    shapes, values = node_of.shapes[0][first : first + count], node_of.values[first : first + count]
    if any(shape != shapes[0] for shape in shapes):
        return None
    steps = np.diff(values, axis=0)
    if len(steps) and np.any(steps != steps[0]):
        return None
    return list((steps[0] if len(steps) else np.zeros(values.shape[1], np.int64)).tolist())


def _inner(form: Form, steps: list[int], found: tuple[int, int, int], gpu: int) -> tuple[Axis, ...]:
    """Axes inside a domain: its nodes, and the GPUs of each. gpu: column of the number of a GPU."""
    nodes, gpus = [0] * (gpu + 1), [0] * (gpu + 1)
    for column, step in zip(form.columns, steps, strict=False):
        nodes[column] = step
    gpus[gpu] = 1
    axes = (Axis(found[1], tuple(nodes)), Axis(found[2], tuple(gpus)))
    return tuple(axis for axis in axes if axis.size > 1)
