"""Which address of the wiring a supply has: makers count bays from 0 or 1, shelf by shelf, the wiring from 0 on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from collectors.redfish.discovery import Bay, Group
from twin.address import natural
from twin.topology.model import Topology


@dataclass(frozen=True, slots=True)
class Target:
    """What a BMC belongs to: a node, a rack with its shelves, or a feed, which is one shelf of its rack.

    owner: before `/psuN` in addresses. expected: supplies by the wiring, 0 where it does not say. shelf, shelves: of
    a feed, its place among those of its rack.
    """

    name: str
    kind: str
    owner: str
    expected: int
    shelf: int = 0
    shelves: int = 1

    @classmethod
    def of(cls, topology: Topology, name: str) -> Target | None:
        """None where the wiring has no node, rack or feed of that name."""
        node, rack, feed = (topology.rows(kind).get(name) for kind in ("node", "rack", "feed"))
        if node is not None:
            return cls(name, "node", name, int(topology.nodes.n_psus[node]))
        if rack is not None:
            return cls(name, "rack", name, int(topology.racks.n_psus[rack]))
        if feed is None:
            return None
        row = int(topology.feeds.rack[feed])
        mine = np.flatnonzero(topology.feeds.rack == row).tolist()
        expected = int(topology.racks.n_psus[row])
        return cls(name, "feed", topology.racks.name[row], expected, mine.index(feed), len(mine))


class Places:
    """Bays to addresses; remembers which chassis count from 0, as an empty first bay may be left out later."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._from_zero: set[str] = set()

    def of(self, groups: Sequence[Group]) -> tuple[dict[str, Bay], list[str]]:
        """Address -> bay, and a warning for each that the wiring has no place for.

        Chassis that list no bay 0 count from 1. Shelves follow each other in the order of their names, each with its
        share of the supplies that the wiring has, where no shelf has more.
        """
        target = self._target
        filled = sorted((g for g in groups if g.bays), key=lambda g: natural(g.name))
        self._from_zero |= {g.name for g in filled if any(bay.number == 0 for bay in g.bays)}
        bases = [0 if g.name in self._from_zero else 1 for g in filled]
        sizes = [max(bay.number for bay in g.bays) - base + 1 for g, base in zip(filled, bases, strict=True)]
        share = target.expected // (target.shelves * len(filled)) if filled else 0
        if max(sizes, default=0) <= share:
            sizes = [share] * len(filled)
        first = target.shelf * sum(sizes)
        end = target.expected if target.kind != "feed" else (target.shelf + 1) * (target.expected // target.shelves)
        found, warnings = {}, []
        for group, base, size in zip(filled, bases, sizes, strict=True):
            for bay in group.bays:
                place = first + bay.number - base
                if not target.expected or place < end:
                    found[f"{target.owner}/psu{place}"] = bay
                else:
                    warnings.append(f"{target.name}: the wiring has no place for supply {bay.number} of {group.name}")
            first += size
        return found, warnings
