"""The series of one source that have been met: their keys as rows of a table, and those that have no place."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from collectors.base import CollectorError
from collectors.prometheus.places import Place, Places
from collectors.prometheus.table import Naming, Rows, Table
from twin.errors import FabrictwinError

Split = Callable[[bytes], tuple[str, dict[str, str]]]  # a key -> name and labels


class Known:
    """A key is what the source writes for a series, byte for byte; it is taken apart once, when it is new."""

    def __init__(self, places: Places, naming: Naming, split: Split) -> None:
        self._places, self._naming, self._split = places, naming, split
        self.forget()

    def forget(self) -> None:
        """Starts anew, where most of what is known has gone."""
        self.table = Table(self._naming)
        self._rows: dict[bytes, int] = {}
        self._lost: dict[bytes, str] = {}  # series without a place -> why

    def rows(self, keys: Sequence[bytes]) -> Rows:
        """intp[keys]. Raises CollectorError for a key that cannot be read."""
        row = self._rows.get
        rows = np.array([row(key, -1) for key in keys], np.intp)
        if (new := np.flatnonzero(rows < 0)).size:
            self._learn(list(dict.fromkeys(keys[i] for i in new.tolist())))
            rows[new] = [self._rows[keys[i]] for i in new.tolist()]
        return rows

    def _learn(self, keys: list[bytes]) -> None:
        try:
            series = [self._split(key) for key in keys]
        except FabrictwinError as problem:
            raise CollectorError(str(problem)) from problem
        if self._lost and any(self._places.joins(name) for name, _ in series):  # what they lacked may have come
            again = [key for key in self._lost if key not in keys]
            self._lost.clear()
            keys, series = [*keys, *again], [*series, *map(self._split, again)]
        found = self._places.learn(series)
        first = len(self.table)
        self.table.add([p if isinstance(p, Place) else None for p in found])
        self._rows.update(zip(keys, range(first, first + len(keys)), strict=True))
        self._lost.update({key: p for key, p in zip(keys, found, strict=True) if isinstance(p, str) and p})

    def warnings(self) -> list[str]:
        """One line for all series without a place, one for devices none of whose interfaces has one."""
        out = []
        if self._lost:
            key, why = next(iter(self._lost.items()))
            example = key.decode("utf-8", "replace")
            shown = example if len(example) <= 160 else example[:159] + "…"
            out.append(f"{len(self._lost)} series have no place: {why}, and so on; see `names` (such as {shown})")
        if bare := self._places.bare():
            listed = ", ".join(" ".join(filter(None, i[:1])) for i in list(bare[0].seen)[:4])
            more = f", nor of {len(bare) - 1} others" if len(bare) > 1 else ""
            out.append(f"no interface of {bare[0].name} ({listed}) is a port of the wiring{more}; see `ports`")
        return out
