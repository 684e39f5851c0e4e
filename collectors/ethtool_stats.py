"""From the statistics of network drivers to metrics of ports, by the table `ethtool_stats.toml`."""

from __future__ import annotations

import contextlib
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from collectors.ethtool import U64, Ethtool
from collectors.ethtool_fec import FecCounters
from collectors.sysfs import LOOK_AGAIN, Value
from twin.errors import InputError
from twin.metrics import REGISTRY

TABLE = Path(__file__).with_suffix(".toml")
_SECONDS = {"us": 1e-6}
_KEYS = {"driver", "names", "metric", "unit", "source"}


@dataclass(frozen=True, slots=True)
class Rule:
    """All statistics of one driver that make up one metric. scale: the metric's unit a statistic's, None for 1."""

    driver: str
    names: re.Pattern[str]
    metric: str
    scale: float | None


@cache
def rules(table: Path = TABLE) -> tuple[Rule, ...]:
    """The table. Raises InputError naming every entry that is wrong."""
    found, problems = [], []
    for n, entry in enumerate(tomllib.loads(table.read_text())["statistic"], 1):
        known = REGISTRY.get(("port", entry.get("metric", "")))
        if set(entry) != _KEYS or known is None or not known.counter:
            problems.append(
                f"{table.name}: statistic {n}: expected {', '.join(sorted(_KEYS))}, and a counter of ports"
            )
        elif entry["unit"] != known.unit and not (known.unit == "s" and entry["unit"] in _SECONDS):
            problems.append(f"{table.name}: statistic {n}: unit {entry['unit']!r}, expected that of {known.name}")
        else:
            pattern = re.compile(entry["names"])
            found.append(Rule(entry["driver"], pattern, known.name, _SECONDS.get(entry["unit"])))
    if problems:
        raise InputError(problems)
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Plan:
    """How the statistics of one interface add up to metrics; worked out once, then one numpy step a sample.

    count: statistics it was made for. order: intp[summands], their rows, metric by metric; starts: where each begins.
    """

    count: int
    metrics: tuple[str, ...]
    scales: tuple[float | None, ...]
    order: npt.NDArray[np.intp]
    starts: npt.NDArray[np.intp]

    @classmethod
    def make(cls, driver: str, names: Sequence[str]) -> Plan:
        """The plan for a driver with statistics of these names, in this order."""
        chosen = []
        for rule in rules():
            rows = [row for row, name in enumerate(names) if rule.driver == driver and rule.names.fullmatch(name)]
            if rows:
                chosen.append((rule, rows))
        sizes = [0, *(len(rows) for _, rows in chosen)]
        return cls(
            len(names),
            tuple(rule.metric for rule, _ in chosen),
            tuple(rule.scale for rule, _ in chosen),
            np.array([row for _, rows in chosen for row in rows], np.intp),
            np.cumsum(sizes[:-1], dtype=np.intp),
        )

    def apply(self, values: U64) -> dict[str, Value]:
        """Metric to value. values: uint64[count]."""
        if not self.metrics:
            return {}
        sums = np.add.reduceat(values[self.order], self.starts).tolist()
        return {
            m: s if scale is None else s * scale for m, s, scale in zip(self.metrics, sums, self.scales, strict=True)
        }


class DriverStatistics:
    """What drivers count for the interfaces of this host. For one thread at a time; sockets open when first asked.

    ethtool, fec: what to ask the kernel by; new ones by default.
    """

    def __init__(self, ethtool: Ethtool | None = None, fec: FecCounters | None = None) -> None:
        self._ethtool, self._fec = ethtool, fec
        self._plans: dict[str, Plan] = {}
        self._known: dict[str, set[str]] = defaultdict(set)  # metrics that each interface once gave
        self._readings = 0

    def read(self, interfaces: Iterable[str]) -> dict[str, dict[str, Value]]:
        """Interface to its metrics. What one gave before and gives no more is None: it must not look like nothing."""
        if self._readings % LOOK_AGAIN == 0:  # statistics come and go with settings, such as PFC on a priority
            self._plans.clear()
        self._readings += 1
        blocks = self._blocks()
        found: dict[str, dict[str, Value]] = {}
        for interface in interfaces:
            values = {**self._statistics(interface), **blocks.get(interface, {})}
            known = self._known[interface]
            known.update(values)
            found[interface] = {metric: values.get(metric) for metric in sorted(known)}
        return found

    def close(self) -> None:
        for source in (self._ethtool, self._fec):
            if source is not None:
                source.close()
        self._ethtool = self._fec = None

    def _statistics(self, interface: str) -> dict[str, Value]:
        self._ethtool = self._ethtool or Ethtool()
        with contextlib.suppress(OSError):
            for _ in range(2):  # the second time where the number of statistics has changed since the plan was made
                plan = self._plans.get(interface)
                if plan is None:
                    driver, _ = self._ethtool.driver(interface)
                    plan = self._plans[interface] = Plan.make(driver, self._ethtool.names(interface))
                if not plan.metrics:
                    return {}
                values = self._ethtool.values(interface)
                if len(values) == plan.count:
                    return plan.apply(values)
                del self._plans[interface]
        return {}

    def _blocks(self) -> dict[str, dict[str, Value]]:
        with contextlib.suppress(OSError):
            self._fec = self._fec or FecCounters()
            return self._fec.read()
        return {}
