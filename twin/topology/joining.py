"""Links as columns, joined to ports in one step, and what their planes mean."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from twin.topology.model import DIRECT, I32, NONE, Links, Nics, PlaneKind, Ports

I64 = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.integer[Any]]


class LinkBlock(NamedTuple):
    """Columns of one length. a: NIC port row, or -2 - switch row; b: switch row, or -2 - NIC port row; a_number,
    b_number: port of the switch; speed: bits/s; cable: links of one cable share a number below -1, -1 is its own."""

    a: Numbers
    a_number: Numbers
    b: Numbers
    b_number: Numbers
    speed: npt.NDArray[np.float64]
    cable: Numbers


def join(
    blocks: Sequence[LinkBlock], empty_ports: Callable[[int], Ports], nic_ports: int, planes: I32, tiers: I32
) -> tuple[Ports, Links]:
    """NIC ports, then switch ports in the order of their links, the lower end of each first.

    empty_ports makes that many ports without links, the first `nic_ports` of them those of NICs; planes, tiers: of
    each switch.
    """
    none = LinkBlock(*(np.zeros(0, np.int64),) * 4, np.zeros(0), np.zeros(0, np.int64))
    low, low_number, high, high_number, speed, cables = (
        np.concatenate(column) for column in zip(none, *blocks, strict=True)
    )
    n = len(low)
    from_switch, to_switch = low <= -2, high >= 0
    new = from_switch.astype(np.int64) + to_switch
    row = nic_ports + np.cumsum(new) - new
    a = np.where(from_switch, row, low).astype(np.int32)
    b = np.where(to_switch, row + from_switch, -2 - high).astype(np.int32)
    ports = empty_ports(nic_ports + int(new.sum()))
    ports.switch[a[from_switch]] = -2 - low[from_switch]
    ports.ordinal[a[from_switch]] = low_number[from_switch]
    ports.switch[b[to_switch]] = high[to_switch]
    ports.ordinal[b[to_switch]] = high_number[to_switch]
    rows = np.arange(n, dtype=np.int32)
    ports.link[a], ports.link[b] = rows, rows
    ports.peer[a], ports.peer[b] = b, a
    plane = np.append(planes, np.int32(NONE))[ports.switch[b]]
    ports.plane[a], ports.plane[b] = plane, plane
    above = np.append(np.minimum(tiers + 1, 2), np.int32(NONE))[ports.switch[a]]
    tier = np.where(from_switch, above, np.where(to_switch, 0, DIRECT)).astype(np.int32)
    own = np.where(cables == NONE, -10_000_000 - np.arange(n), cables)
    cable = np.unique(own, return_inverse=True)[1].astype(np.int32)
    return ports, Links(a, b, speed.astype(np.float64), plane, tier, cable)


def plane_kind(ports: Ports, nics: Nics) -> PlaneKind:
    """`split` where a NIC that GPUs use has ports in several planes, `rail` where only a node's NICs together do."""
    rows = np.flatnonzero(ports.compute & (ports.plane >= 0))
    if not len(rows):
        return "none"

    def spread(owner: npt.NDArray[np.int32]) -> bool:
        lowest = np.full(int(owner.max()) + 1, np.iinfo(np.int32).max, np.int32)
        highest = np.full(len(lowest), NONE, np.int32)
        np.minimum.at(lowest, owner, ports.plane[rows])
        np.maximum.at(highest, owner, ports.plane[rows])
        return bool((highest > lowest)[highest >= 0].any())

    if spread(ports.nic[rows]):
        return "split"
    return "rail" if spread(nics.node[ports.nic[rows]]) else "none"
