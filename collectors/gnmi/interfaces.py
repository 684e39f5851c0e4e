"""What is known of the interfaces of one switch: a table that notifications write and frames are read from."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from collectors.gnmi.paths import COUNTERS, HOLDS, LEAVES, STATES, Spot, readings, spot
from collectors.gnmi.values import counter, plain, speed, up
from twin.frames import UNKNOWN_U64, Column

MOST = 8192  # interfaces of one switch, with its VLANs and loopbacks; more are left out
_MOST_PATHS, _LONGEST_PATH = 65536, 512  # remembered, and bytes of each; a switch of 512 ports has 10,000
_GROWTH = 64  # rows

_N = len(COUNTERS)
_INDEX = {leaf: number for number, leaf in enumerate((*COUNTERS, *STATES))}
_STATUS = _INDEX["oper-status"]
_PORT_SPEED, _NEGOTIATED = _INDEX["port-speed"] - _N, _INDEX["negotiated-port-speed"] - _N
_PLAIN = {
    "tx_bytes": "out-octets",
    "rx_bytes": "in-octets",
    "tx_discards": "out-discards",
    "rx_errors": "in-errors",
    "fec_uncorrected": "rs-fec-uncorrectable-blocks",
    "symbol_errors": "symbol-errors",
}
_KINDS = ("unicast", "multicast", "broadcast")

U64 = npt.NDArray[np.uint64]
F64 = npt.NDArray[np.float64]
Rows = npt.NDArray[np.intp]
_Known = dict[bytes, tuple[Spot | None, int, int]]  # a path as bytes -> where it leads, row and leaf (-1 none)


class Interfaces:
    """A row an interface, in the order in which they were first named.

    names: of the rows. counted: when the newest of the counters that came since the last `settle` was taken, ns;
    0 none. full: more than `MOST` were named, and the rest is left out.
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        self.full = False
        self.counted = 0
        self._row: dict[str, int] = {}
        self._paths: dict[bytes, _Known] = {}
        self._remembered = 0
        self._counts: U64 = np.empty((_N, 0), np.uint64)
        self._states: F64 = np.empty((len(STATES), 0), np.float64)
        self._fresh = np.zeros(0, bool)
        self._told: set[str] = set()  # metrics that were known once

    def forget(self) -> None:
        """Everything is unknown again; the rows remain."""
        self._counts.fill(UNKNOWN_U64)
        self._states.fill(np.nan)
        self._fresh.fill(False)
        self.counted = 0

    # --- in ---

    def take(self, notification: Any, time: int) -> None:
        """Writes what a Notification says. time: when that was so, ns."""
        prefix = notification.prefix
        known = self._known(prefix)
        if notification.atomic:
            self._delete(spot(prefix, type(prefix)()))
        for path in notification.delete:  # before the updates, as the specification has it (2.1)
            self._delete(spot(prefix, path))
        for update in notification.update:
            path = update.path
            key = path.SerializeToString()
            found = known.get(key)
            if found is None:
                found = self._find(prefix, path)
                if len(key) <= _LONGEST_PATH:
                    known[key] = found
                    self._remembered += 1
            at, row, leaf = found
            if at is None:
                continue
            value = plain(update.val)
            if row >= 0 and not isinstance(value, dict):
                self._write(row, leaf, value, time)
            else:
                for interface, leaf, one in readings(at, value):
                    row = self._row_of(interface)
                    if row >= 0:
                        self._write(row, leaf, one, time)

    def _known(self, prefix: Any) -> _Known:
        """The paths remembered under a prefix."""
        if self._remembered > _MOST_PATHS:
            self._paths.clear()
            self._remembered = 0
        key = prefix.SerializeToString()
        known = self._paths.get(key)
        if known is None:
            known = {}
            if len(key) <= _LONGEST_PATH:
                self._paths[key] = known
                self._remembered += 1
        return known

    def _find(self, prefix: Any, path: Any) -> tuple[Spot | None, int, int]:
        """Where a path leads; row and leaf where that is one leaf of one interface."""
        at = spot(prefix, path)
        if at is None or at.interface is None or at.path not in LEAVES:
            return at, -1, -1
        return at, self._row_of(at.interface), LEAVES[at.path]

    def _row_of(self, name: str) -> int:
        """The row of an interface, a new one for a new name; -1 where there are too many."""
        row = self._row.get(name)
        if row is not None:
            return row
        row = len(self.names)
        if row == MOST:
            self.full = True
            return -1
        if row == self._fresh.size:
            self._counts = np.pad(self._counts, ((0, 0), (0, _GROWTH)), constant_values=UNKNOWN_U64)
            self._states = np.pad(self._states, ((0, 0), (0, _GROWTH)), constant_values=np.nan)
            self._fresh = np.pad(self._fresh, (0, _GROWTH))
        self._row[name] = row
        self.names.append(name)
        return row

    def _write(self, row: int, leaf: int, value: Any, time: int) -> None:
        if leaf < _N:
            count = counter(value)
            self._counts[leaf, row] = UNKNOWN_U64 if count is None else count
            self._fresh[row] = True
            if time > self.counted:
                self.counted = time
        else:
            self._states[leaf - _N, row] = up(value) if leaf == _STATUS else speed(value)

    def _delete(self, at: Spot | None) -> None:
        if at is None:
            return
        rows: slice | int = slice(None)
        if at.interface is not None:
            if at.interface not in self._row:
                return
            rows = self._row[at.interface]
        for leaf in HOLDS[at.path]:
            if leaf < _N:
                self._counts[leaf, rows] = UNKNOWN_U64
                self._fresh[rows] = True
            else:
                self._states[leaf - _N, rows] = np.nan

    # --- out ---

    def states(self, rows: Rows) -> dict[str, Column]:
        """float64[rows]: `up` and `speed_bits_per_second`; a port that is not up has no speed."""
        states = self._states[:, rows]
        is_up, negotiated, configured = states[_STATUS - _N], states[_NEGOTIATED], states[_PORT_SPEED]
        rate = np.where(np.isnan(negotiated), configured, negotiated)
        return {"up": is_up, "speed_bits_per_second": np.where(is_up == 1, rate, np.nan)}

    def fresh(self, rows: Rows) -> npt.NDArray[np.bool_]:
        """bool[rows]: a counter of it came in since the last `settle`."""
        return self._fresh[rows]

    def settle(self) -> None:
        """What has come in so far has been read."""
        self._fresh.fill(False)
        self.counted = 0

    def counts(self, rows: Rows) -> dict[str, Column]:
        """uint64[rows] of every metric that this switch has ever told of."""
        read = self._counts[:, rows]
        columns = {metric: read[_INDEX[leaf]] for metric, leaf in _PLAIN.items()}
        columns["tx_packets"] = self._packets(read, "out")
        columns["rx_packets"] = self._packets(read, "in")
        changes = read[_INDEX["carrier-transitions"]]
        # a down and an up are two transitions
        columns["link_downed"] = np.where(changes == UNKNOWN_U64, UNKNOWN_U64, changes // np.uint64(2))
        self._told.update(metric for metric, values in columns.items() if (values != UNKNOWN_U64).any())
        return {metric: values for metric, values in columns.items() if metric in self._told}

    def _packets(self, read: U64, way: str) -> U64:
        """All packets of one direction: as the switch counts them, or the sum of the three kinds.

        One or the other for all rows, so that a port does not change between two ways of counting.
        """
        whole = _INDEX[f"{way}-pkts"]
        total: U64 = read[whole]
        if (self._counts[whole] != UNKNOWN_U64).any():
            return total
        kinds = read[[_INDEX[f"{way}-{kind}-pkts"] for kind in _KINDS]]
        total = np.where((kinds == UNKNOWN_U64).any(axis=0), UNKNOWN_U64, kinds.sum(axis=0, dtype=np.uint64))
        return total
