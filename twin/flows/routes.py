"""Which directed links each flow crosses, as a sparse matrix in compressed rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]
Bool = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Routes:
    """A row a flow: its entries are start[f] to start[f + 1].

    start: int64[flows + 1]. link: int64[entries], rows of directed links. share: float64[entries], the part of the
    flow's rate that goes over the link: 1 on every link of a single path, less where a flow is split. A flow
    without entries stays inside a host and has no limit here.
    """

    start: I64
    link: I64
    share: F64

    @classmethod
    def of_paths(cls, paths: Sequence[Sequence[int]]) -> Self:
        """Every flow on one path, given as link rows."""
        count = np.array([len(path) for path in paths], np.int64)
        link = np.array([row for path in paths for row in path], np.int64)
        return cls(offsets(count), link, np.ones(len(link)))

    @classmethod
    def of_entries(cls, flows: int, flow: I64, link: I64, share: F64) -> Self:
        """From entries in any order. flow: int64[entries], below `flows`."""
        order = np.argsort(flow, kind="stable")
        return cls(offsets(np.bincount(flow, minlength=flows)), link[order], share[order])

    @property
    def flow(self) -> I64:
        """int64[entries], the flow of each entry."""
        return np.repeat(np.arange(len(self.start) - 1), np.diff(self.start))

    def take(self, flows: I64) -> Routes:
        """The rows of these flows, in this order."""
        row, entry = ragged(self.start[flows], np.diff(self.start)[flows])
        return Routes(offsets(np.bincount(row, minlength=len(flows))), self.link[entry], self.share[entry])

    def load(self, rate: F64, links: int) -> F64:
        """float64[links], what all flows together put on each link at these rates (float64[flows])."""
        return sums(self.link, self.share * rate[self.flow], links)


def offsets(count: I64) -> I64:
    """int64[rows + 1], where each row begins, from how many entries it has."""
    return np.concatenate([[0], np.cumsum(count)]).astype(np.int64)


def sums(row: I64, value: F64, rows: int) -> F64:
    """float64[rows], the sum of the values of each row. row: int64[values]."""
    out: F64 = np.bincount(row, value, rows).astype(np.float64, copy=False)
    return out


def ragged(start: I64, count: I64) -> tuple[I64, I64]:
    """The entries of rows that begin at `start` and have `count` each: (position of the row, entry)."""
    row = np.repeat(np.arange(len(start)), count)
    before = np.cumsum(count) - count
    return row, np.arange(len(row)) - (before - start)[row]
