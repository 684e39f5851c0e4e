"""Announced work: what is expected to break from when to when, so that it is kept and counted in no verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from twin.address import inside
from twin.errors import InputError
from twin.frames import NS
from twin.incident import Incident, Word
from twin.topology.model import Topology
from twin.topology.resolve import resolve

Rows = npt.NDArray[np.intp]


@dataclass(frozen=True)
class Window:
    """Work on `what` from `start` until `until` (event time, ns). scope: addresses that lie in it, with all below
    them; links: rows that do."""

    what: str
    start: int
    until: int
    why: str
    scope: frozenset[str]
    links: Rows

    @property
    def word(self) -> Word:
        return Word("maintenance", self.start, self.until, self.why or f"work on {self.what}")

    def holds(self, now: int, incident: Incident, links: Rows) -> bool:
        """Whether an incident that explains these links lies in it now."""
        if not self.start <= now < self.until:
            return False
        return inside(incident.cause, self.scope) or bool(len(links) and np.isin(links, self.links).all())


def window(topo: Topology, what: str, start: int, until: int, why: str = "") -> Window:
    """Raises InputError where the fabric has no such address."""
    target = resolve(topo, what)
    ends = np.concatenate([topo.links.a[target.links], topo.links.b[target.links]])
    tables = (
        (topo.switches.name, target.switches), (topo.nodes.name, target.nodes), (topo.port_names, ends),
        (topo.gpu_names, target.gpus), (topo.psu_names, target.psus), (topo.feeds.name, target.feeds),
        (topo.racks.name, target.racks),
    )  # fmt: skip
    scope = {what, *(names[row] for names, rows in tables for row in rows.tolist())}
    if len(target.nvlinks) and not len(target.gpus):
        scope.update(topo.nvlink_names[row] for row in target.nvlinks.tolist())
    return Window(what, start, until, why, frozenset(scope), target.links)


def windows(topo: Topology, entries: Any) -> tuple[Window, ...]:
    """Those of a site file as it was recorded; what cannot be understood is left out."""
    out = []
    for entry in entries if isinstance(entries, list) else ():
        try:
            given: Mapping[str, Any] = entry
            times = event_time(given["from"]), event_time(given["until"])
            out.append(window(topo, str(given["what"]), *times, str(given.get("why", ""))))
        except (InputError, ValueError, KeyError, TypeError, AttributeError):
            continue
    return tuple(out)


def event_time(value: Any) -> int:
    """A time of a site file in ns: `2026-01-02T03:00Z`, a date, or seconds since the epoch; UTC where it has no zone.

    Raises ValueError where it is none.
    """
    if isinstance(value, int | float) and not isinstance(value, bool):
        return round(value * 1e6) * 1000
    try:
        if isinstance(value, date) and not isinstance(value, datetime):
            value = datetime(value.year, value.month, value.day)
        moment = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    except ValueError:
        raise ValueError(f"{value!r} is not a time; expected for example 2026-01-02T03:00Z") from None
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1e6) * (NS // 1_000_000)
