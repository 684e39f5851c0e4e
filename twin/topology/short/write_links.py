"""The links of a Topology as entries of a wiring file, regular sets of them as one entry each."""

from __future__ import annotations

from typing import Any

import numpy as np

from twin.topology.explicit import shared_cables, show_exact
from twin.topology.joining import I64
from twin.topology.model import NONE, Topology
from twin.topology.short.links import PER_NIC, cages
from twin.topology.short.shape import Axis, Form, Item, find, forms, write

_OWN, _NIC, _NAMED, _CAGE = 0, 1, 2, 3  # how a link's cable is written; _CAGE + n: n links of a switch share it


def short_links(topo: Topology) -> list[dict[str, Any]]:
    if not len(topo.links.a):
        return []
    ends = _Ends(topo)
    how = _cables(topo)
    speeds, speed = np.unique(topo.links.speed, return_inverse=True)
    mixed = ((ends.shape_a * (ends.shapes + 1) + ends.shape_b) * len(speeds) + speed) * (int(how.max()) + 1) + how
    _, first, kinds = np.unique(mixed, return_index=True, return_inverse=True)

    def texts(row: int, axes: tuple[Axis, ...]) -> list[str] | None:
        a, b = ends.forms(row)
        return write(a, [b], ends.values[row].tolist(), axes, paired=True)

    out: list[dict[str, Any]] = []
    for item in find(ends.values, kinds.tolist(), lambda kind, axes: texts(int(first[kind]), axes) is not None):
        kind = int(how[item.first])
        if item.rows > 1 and (kind < _CAGE or _are_cages(topo, item, kind - _CAGE)) and kind != _NAMED:
            made = texts(item.first, item.axes)
            assert made is not None
            cable = {_OWN: None, _NIC: PER_NIC}.get(kind, kind - _CAGE)
            out.append(_link(made[0], made[1], float(topo.links.speed[item.first]), cable))
        else:
            out.extend(_single(topo, row, int(how[row])) for row in range(item.first, item.first + item.rows))
    return out


def _link(a: str, b: str, speed: float, cable: str | int | None) -> dict[str, Any]:
    out = {"a": a, "b": b, "speed": show_exact(speed), "cable": cable}
    return {k: v for k, v in out.items() if v is not None}


def _single(topo: Topology, row: int, how: int) -> dict[str, Any]:
    names, links = topo.port_names, topo.links
    cable = {_OWN: None, _NIC: PER_NIC}.get(how, f"c{links.cable[row]}")
    return _link(names[links.a[row]], names[links.b[row]], float(links.speed[row]), cable)


class _Ends:
    """Both ends of every link in numbers. values: int64[links, numbers], those of the name, NIC and port of a, then
    of b; shape_a, shape_b: int64[links], which literals are around them."""

    def __init__(self, topo: Topology) -> None:
        names = (*topo.nodes.name, *topo.switches.name)
        self._shapes, numbers = forms(names)
        self._nodes = len(topo.nodes.name)
        known: dict[Any, int] = {}
        shape = np.array(
            [known.setdefault((s, k < self._nodes), len(known)) for k, s in enumerate(self._shapes)], np.int64
        )
        self.shapes = len(known)
        self._wide = max(len(row) for row in numbers)
        table = np.zeros((len(names), self._wide), np.int64)
        for k, row in enumerate(numbers):
            table[k, : len(row)] = row
        self._device, columns, shapes = [], [], []
        for ports in (topo.links.a, topo.links.b):
            nic = topo.ports.nic[ports]
            node = topo.nics.node[nic] if len(topo.nics.node) else nic
            device = np.where(nic >= 0, node, self._nodes + topo.ports.switch[ports])
            number = topo.nics.ordinal[nic] if len(topo.nics.node) else nic
            columns += [table[device], np.where(nic >= 0, number, 0)[:, None], topo.ports.ordinal[ports][:, None]]
            self._device.append(device)
            shapes.append(shape[device])
        self.values: I64 = np.concatenate(columns, axis=1).astype(np.int64)
        self.shape_a, self.shape_b = shapes

    def forms(self, row: int) -> tuple[Form, Form]:
        a, b = (self._form(int(device[row]), k * (self._wide + 2)) for k, device in enumerate(self._device))
        return a, b

    def _form(self, device: int, at: int) -> Form:
        literals, widths = self._shapes[device]
        after = ["/nic", "/p"] if device < self._nodes else ["/p"]
        nic, port = at + self._wide, at + self._wide + 1
        return Form(
            (*literals[:-1], literals[-1] + after[0], *after[1:], ""),
            (*widths, *(0 for _ in after)),
            (*range(at, at + len(widths)), *((nic, port) if device < self._nodes else (port,))),
        )


def _cables(topo: Topology) -> I64:
    """int64[links], how the cable of each is written."""
    links, ports = topo.links, topo.ports
    count = np.bincount(links.cable)
    shared = np.zeros(len(count), bool)
    shared[list(shared_cables(topo))] = True
    nic = _common(links.cable, ports.nic[links.a], len(count))
    switch = _common(links.cable, ports.switch[links.a], len(count))
    split = shared & (nic >= 0)
    times = np.bincount(nic[split], minlength=len(topo.nics.node) + 1)
    split &= times[nic] == 1  # else the words "of one NIC" would not tell two cables apart
    how = np.where(split, _NIC, np.where(shared & (switch >= 0), _CAGE + count, np.where(shared, _NAMED, _OWN)))
    out: I64 = how[links.cable].astype(np.int64)
    return out


def _common(cable: I64 | Any, owner: I64 | Any, count: int) -> I64:
    """For each cable the owner that all its links have, or -1."""
    low, high = np.full(count, np.iinfo(np.int64).max), np.full(count, NONE, np.int64)
    np.minimum.at(low, cable, owner)
    np.maximum.at(high, cable, owner)
    return np.where(low == high, low, NONE)


def _are_cages(topo: Topology, item: Item, size: int) -> bool:
    """Whether each `size` links of a switch of the item share a cable that no other link has."""
    rows = slice(item.first, item.first + item.rows)
    cage = cages(topo.ports.switch[topo.links.a[rows]], size)
    pairs = np.unique(np.stack([cage, topo.links.cable[rows]]), axis=1).shape[1]
    return bool(pairs == cage.max() + 1 == len(np.unique(topo.links.cable[rows])) and pairs * size == item.rows)
