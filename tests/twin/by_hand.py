"""A fabric read by hand: one source a node and a switch, each port's state set by the test."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from twin.frames import NS, Frame
from twin.incident import Incident
from twin.simulator.simulation import EPOCH
from twin.topology.model import Topology
from twin.topology.resolve import resolve
from twin.twin import Twin


class ByHand:
    """up: 1, 0 or NaN of every link; silent: sources that say nothing; ahead: seconds a source's clock is ahead."""

    def __init__(
        self,
        topo: Topology,
        *,
        interval: float = 1.0,
        sources: Callable[[str], bool] = lambda name: True,
        seed: int = 3,
    ) -> None:
        self.topo, self.twin, self.interval = topo, Twin(topo), interval
        self.up = np.ones(len(topo.links.a))
        self.speed = topo.links.speed.copy()
        self.silent: set[str] = set()
        self.ahead: dict[str, float] = {}
        rng = np.random.default_rng(3)
        owner = np.array([p.split("/")[0] for p in topo.port_names])
        self._sources = [
            (name, rows, tuple(topo.port_names[r] for r in rows))
            for name in (*topo.nodes.name, *topo.switches.name)
            if sources(name) and len(rows := np.flatnonzero(owner == name))
        ]
        phase = rng.uniform(0.02, 0.98, len(self._sources)) * interval
        self._due = [(float(t), i) for i, t in enumerate(phase)]

    def links(self, *addresses: str) -> np.ndarray:
        return np.concatenate([resolve(self.topo, a).links for a in addresses])

    def run(self, until: float) -> None:
        """Reports of all sources up to `until` seconds."""
        while True:
            self._due.sort()
            t, i = self._due[0]
            if t >= until:
                return
            self._due[0] = (t + self.interval, i)
            self._report(t, *self._sources[i])

    def _report(self, t: float, name: str, rows: np.ndarray, names: tuple[str, ...]) -> None:
        if name in self.silent:
            return
        link = self.topo.ports.link[rows]
        up = self.up[link]
        columns = {"up": up, "speed_bits_per_second": np.where(up == 1, self.speed[link], np.nan)}
        time = EPOCH + round((t + self.ahead.get(name, 0.0)) * 1e6) * 1000
        self.twin.ingest(Frame(time, name, "port", names, columns))

    def finish(self) -> list[Incident]:
        """Incidents that no other took over, in the order of detection."""
        self.twin.finish()
        return [i for i in self.twin.incidents if i.superseded_by is None]


def told(incidents: list[Incident]) -> list[tuple[str, str]]:
    return [(i.kind, i.cause) for i in incidents]


def seconds(time: int | None) -> float:
    """Seconds since the start, NaN for None."""
    return float("nan") if time is None else (time - EPOCH) / NS
