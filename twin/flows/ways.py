"""Ways between leaves, hop by hop: all shortest ones at once, or one of them drawn by hash."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from twin.flows.hops import NextHops
from twin.flows.routes import F64, I64, Routes, ragged, sums

U64 = npt.NDArray[np.uint64]
_Entries = tuple[I64, I64, F64]  # row, link, share


def split(hops: NextHops, switch: I64, leaf: I64) -> Routes:
    """A row for each pair of a switch and a leaf, over all shortest ways in proportion to what fits through each."""
    n, entries = len(switch), list[_Entries]()
    row, at, share = np.arange(n), switch, np.ones(n)
    while len(row):
        step = hops(at, leaf[row])
        asked, place = ragged(step.start, step.fan)
        part = share[asked] * step.room[place] / sums(asked, step.room[place], len(row))[asked]
        came, far = row[asked], step.far[place]
        entries.append((came, step.link[place], part))
        onward = np.flatnonzero(far != leaf[came])
        there, arrived = np.unique(came[onward] * hops.switches + far[onward], return_inverse=True)
        row, at = np.divmod(there, hops.switches)
        share = sums(arrived, part[onward], len(there))
    return _routes(n, entries)


def hashed(hops: NextHops, switch: I64, leaf: I64, key: U64) -> Routes:
    """A row for each pair of a switch and a leaf, over one of its shortest ways: at each hop the key draws a link."""
    n, entries = len(switch), list[_Entries]()
    row, at = np.arange(n), switch
    while len(row):
        step = hops(at, leaf[row])
        key = mix(key, len(entries))
        drawn = step.start + (key[row] % step.fan.astype(np.uint64)).astype(np.int64)
        entries.append((row, step.link[drawn], np.ones(len(row))))
        onward = step.far[drawn] != leaf[row]
        row, at = row[onward], step.far[drawn][onward]
    return _routes(n, entries)


def _routes(n: int, entries: list[_Entries]) -> Routes:
    none: _Entries = (np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))
    return Routes.of_entries(n, *(np.concatenate(column) for column in zip(none, *entries, strict=True)))


def mix(key: U64, value: I64 | int) -> U64:
    """Stirs values into keys: SplitMix64 (Steele, Lea, Flood, OOPSLA 2014), whose every output bit depends on all
    bits of the input, so that taking remainders by counts of links spreads evenly."""
    z = (key ^ np.asarray(value).astype(np.uint64)) + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    out: U64 = z ^ (z >> np.uint64(31))
    return out
