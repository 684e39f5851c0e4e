"""Whether the downs of a link are its own, or those of something larger that it is a part of.

A plane that failed twice took each of its links down twice: when one of them goes down once more in its own right it
does not flap. A down is shared if at least half of the links of its plane, or of a device at one of its ends, went
down at about the same time.
"""

from __future__ import annotations

from typing import Self

import numpy as np
import numpy.typing as npt

from twin.topology.model import Topology

I64 = npt.NDArray[np.int64]
Bool = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.intp]

_MOST = 0.5  # of the links of a plane or device
_LEAST_LINKS = 4  # of fewer, half is hardly more than the link itself


class SharedFalls:
    """Holds only what follows from the wiring."""

    def __init__(self, topo: Topology) -> None:
        links, ports = topo.links, topo.ports
        ends = (links.a, links.b)
        groups = [links.plane, *(ports.switch[end] for end in ends), topo.port_node[links.a]]
        self._groups = [np.asarray(g, np.intp) for g in groups]
        self._members = [_members(g) for g in self._groups]

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self

    def own(self, rows: Rows, falls: I64, since: int, within: int) -> tuple[I64, I64]:
        """int64[rows] twice: how many downs of these links after `since` are their own, and how many are shared.

        falls: int64[links, k], times of the last downs of every link, ns, 0 for none. within: ns.
        """
        recent = falls[rows] > since
        shared = np.zeros(recent.shape, bool)
        for group, members in zip(self._groups, self._members, strict=True):
            mine = group[rows]
            for g in np.unique(mine[mine >= 0]).tolist():
                if len(members[g]) < _LEAST_LINKS:
                    continue
                times, asked = falls[members[g]], mine == g
                for time in np.unique(falls[rows[asked]][recent[asked]]).tolist():
                    together = (np.abs(times - time) <= within).any(axis=1).mean() >= _MOST
                    if together:
                        shared[asked] |= falls[rows[asked]] == time
        shared &= recent
        return (recent & ~shared).sum(axis=1), shared.sum(axis=1)


def _members(group: Rows) -> list[Rows]:
    order = np.argsort(group, kind="stable")
    bounds = np.searchsorted(group[order], np.arange(int(group.max(initial=-1)) + 2))
    return [order[a:b] for a, b in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)]
