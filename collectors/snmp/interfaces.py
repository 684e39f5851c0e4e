"""IF-MIB (RFC 2863): the columns of an interface that are read, and what their cells mean for a port.

Pure functions on what the library hands over; whatever a cell holds, it becomes a number that it says or unknown.
Pause frames (EtherLike-MIB, dot3HCInPauseFrames) are not read: they count frames, each of any length, and tell no
seconds. 32-bit octet counters are not read either: at 400 Gbit/s they wrap eleven times a second.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from collectors.snmp.agent import Cells, Value
from twin.frames import UNKNOWN_U64

F64 = npt.NDArray[np.float64]
U64 = npt.NDArray[np.uint64]

_IF, _IFX = "1.3.6.1.2.1.2.2.1", "1.3.6.1.2.1.31.1.1.1"
NAME, DESCR, ALIAS = f"{_IFX}.1", f"{_IF}.2", f"{_IFX}.18"
STATUS, SPEED = f"{_IF}.8", f"{_IFX}.15"
DISCONTINUITY = f"{_IFX}.19"
IN_OCTETS, OUT_OCTETS = f"{_IFX}.6", f"{_IFX}.10"  # 64 bits
# counter -> the columns whose sum it is: unicast, multicast and broadcast packets are counted apart
COUNTERS: dict[str, tuple[str, ...]] = {
    "tx_bytes": (OUT_OCTETS,),
    "rx_bytes": (IN_OCTETS,),
    "tx_packets": (f"{_IFX}.11", f"{_IFX}.12", f"{_IFX}.13"),
    "rx_packets": (f"{_IFX}.7", f"{_IFX}.8", f"{_IFX}.9"),
    "tx_discards": (f"{_IF}.19",),
    "rx_errors": (f"{_IF}.14",),
}
COUNTER_COLUMNS = tuple(column for columns in COUNTERS.values() for column in columns)

# ifOperStatus: up, down, testing, dormant, notPresent, lowerLayerDown; `unknown` (4) says nothing
_UP = {1: 1.0, 2: 0.0, 3: 0.0, 5: 0.0, 6: 0.0, 7: 0.0}
_UNSAID = 2**32 - 1  # a Gauge32 at its limit: this or more
_NONE = int(UNKNOWN_U64)


def whole(cell: Value) -> int | None:
    """A number that is not negative and fits a column; None for all else."""
    return cell if type(cell) is int and 0 <= cell < _NONE else None


def text(cell: Value) -> str:
    """A name, up to its zero byte where it has one; empty where the cell is none."""
    return cell.decode("utf-8", "replace").partition("\0")[0].strip() if isinstance(cell, bytes) else ""


def unsigned(cells: Cells, indices: Sequence[str]) -> U64:
    """uint64[indices] from one column, all ones where unknown."""
    found = (whole(cells.get(i)) for i in indices)
    return np.array([_NONE if n is None else n for n in found], dtype=np.uint64)


def counters(columns: Mapping[str, Cells], indices: Sequence[str]) -> dict[str, U64]:
    """Each counter as uint64[indices]; a sum is unknown where a part of it is."""
    out = {}
    for metric, parts in COUNTERS.items():
        values = np.stack([unsigned(columns.get(part, {}), indices) for part in parts])
        out[metric] = np.where((values == UNKNOWN_U64).any(axis=0), UNKNOWN_U64, values.sum(axis=0, dtype=np.uint64))
    return out


def ups(cells: Cells, indices: Sequence[str]) -> F64:
    """float64[indices]: 1 up, 0 not able to pass packets, NaN unknown. From ifOperStatus."""
    found = (whole(cells.get(i)) for i in indices)
    return np.array([np.nan if n is None else _UP.get(n, np.nan) for n in found], dtype=np.float64)


def speeds(cells: Cells, indices: Sequence[str]) -> F64:
    """float64[indices], bits/s, from ifHighSpeed (Mbit/s). 0 and the largest number stand for unknown."""
    found = (whole(cells.get(i)) for i in indices)
    return np.array([n * 1e6 if n is not None and 0 < n < _UNSAID else np.nan for n in found], dtype=np.float64)
