"""A fabric whose counters are set by the test: every node and switch reads its ports once an interval."""

from __future__ import annotations

import numpy as np

from twin.detectors.rules import Rules
from twin.frames import NS, Frame
from twin.incident import Incident
from twin.metrics import REGISTRY
from twin.simulator.simulation import EPOCH
from twin.topology.model import Topology
from twin.twin import Twin


class Counting:
    """rate: metric -> rates a second of every port; NaN: not read. value: where the counters stand."""

    def __init__(
        self, topo: Topology, *, interval: float = 1.0, unread: tuple[str, ...] = (), rules: Rules | None = None
    ) -> None:
        self.topo, self.twin, self.interval = topo, Twin(topo, rules), interval
        self.time = 0.0
        self.rate: dict[str, np.ndarray] = {}
        self.value: dict[str, np.ndarray] = {}
        self.silent: set[str] = set(unread)
        owner = np.array([p.split("/")[0] for p in topo.port_names])
        names = (*topo.nodes.name, *topo.switches.name)
        self._sources = [(n, np.flatnonzero((owner == n) & (topo.ports.link >= 0))) for n in names]

    def set(self, metric: str, rate: float, *ports: str, others: float = np.nan) -> None:
        """This rate at these ports (all, where none is named); `others` says what the rest counts if it is new."""
        n = len(self.topo.port_names)
        if metric not in self.rate:
            self.rate[metric], self.value[metric] = np.full(n, others), np.full(n, 1000.0)
        rows = [self.topo.rows("port")[p] for p in ports] or slice(None)
        self.rate[metric][rows] = rate

    def jump(self, metric: str, to: float, *ports: str) -> None:
        """The counters stand there now: after a restart, or at their limit."""
        self.value[metric][[self.topo.rows("port")[p] for p in ports]] = to

    def run(self, until: float) -> None:
        while self.time + self.interval <= until:
            self.time += self.interval
            for metric, rate in self.rate.items():
                self.value[metric] = self.value[metric] + np.nan_to_num(rate) * self.interval
            for i, (name, rows) in enumerate(self._sources):
                if name not in self.silent:
                    self._report(self.time + 0.3 + 0.4 * i / len(self._sources), name, rows)

    def _report(self, t: float, name: str, rows: np.ndarray) -> None:
        columns = {"up": np.ones(len(rows)), "speed_bits_per_second": self.topo.port_speed[rows]}
        for metric, rate in self.rate.items():
            read = np.where(np.isnan(rate[rows]), np.nan, self.value[metric][rows])
            if not np.isnan(read).all():
                whole = REGISTRY["port", metric].unit != "s"
                columns[metric] = np.floor(read) if whole else read
        names = tuple(self.topo.port_names[r] for r in rows)
        self.twin.ingest(Frame(EPOCH + round(t * NS), name, "port", names, columns))

    def finish(self) -> list[Incident]:
        self.twin.finish()
        return [i for i in self.twin.incidents if i.superseded_by is None]


def told(incidents: list[Incident]) -> list[tuple[str, str, str]]:
    return [(i.kind, i.class_, i.cause) for i in incidents]
