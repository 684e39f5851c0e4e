"""Two racks of eight servers on two feeds each, one leaf: small enough to be simulated often."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from twin.frames import NS, Frame
from twin.incident import Incident
from twin.simulator.scenario import Fault, Phase, Scenario
from twin.simulator.simulation import EPOCH, Simulation
from twin.topology.model import Topology
from twin.topology.wiring import read_wiring
from twin.twin import Twin
from twin.yamlfile import Document

WIRING = """\
name: power
planes: [A]
nodes:
  - {name: "n[0-7]", rack: r0, gpu_model: rtx-pro-6000, gpus: 8, nics: 1, psus: 4, psu_watts: 3200}
  - {name: "n[8-15]", rack: r1, gpu_model: rtx-pro-6000, gpus: 8, nics: 1, psus: 4, psu_watts: 3200}
switches: [{name: A-leaf-0, tier: leaf, plane: A, ports: 64}]
links: [{a: "n[0-15]/nic0/p0", b: "A-leaf-0/p[0-15]", speed: 400G}]
racks:
  - name: "r[0-1]"
    feeds: [{name: "{name}/feedA", watts: 60000}, {name: "{name}/feedB", watts: 60000}]
    redundancy: N+N
"""
UP, DOWN, UNKNOWN = 1.0, 0.0, float("nan")


def read(text: str = WIRING) -> Topology:
    return read_wiring(Document("power.yaml", text))


def run(
    *faults: Fault,
    topo: Topology | None = None,
    duration: float = 60,
    seed: int = 7,
    noise: float = 1.0,
    workload: tuple[Phase, ...] = (Phase("allreduce"),),
    interval: float = 1.0,
) -> list[Incident]:
    """Simulates and returns the incidents that no other took over."""
    scenario = Scenario(
        "power", "", faults=faults, duration=duration, seed=seed, workload=workload, interval=interval
    )
    simulation = Simulation(scenario, topo or read(), noise=noise)
    twin = Twin(simulation.topology)
    twin.ingest_all(simulation.frames())
    twin.finish()
    return [i for i in twin.incidents if i.superseded_by is None]


def told(incidents: Sequence[Incident]) -> list[tuple[str, str]]:
    return [(i.kind, i.cause) for i in incidents]


class Meters:
    """Readings of power given by hand, one source an owner, once a second."""

    def __init__(self, topo: Topology) -> None:
        self.topo, self.twin, self.t = topo, Twin(topo), 0.0
        self.values: dict[str, dict[str, dict[str, float]]] = {}  # kind -> entity -> metric -> value
        self.silent: set[str] = set()

    def set(self, kind: str, metric: str, values: Mapping[str, float]) -> None:
        for entity, value in values.items():
            self.values.setdefault(kind, {}).setdefault(entity, {})[metric] = value

    def run(self, seconds: float, interval: float = 1.0) -> None:
        until = self.t + seconds
        while self.t < until:
            for kind, entities in self.values.items():
                for owner in sorted({e.split("/")[0] for e in entities} - self.silent):
                    mine = {e: m for e, m in entities.items() if e.split("/")[0] == owner}
                    metrics = sorted({metric for m in mine.values() for metric in m})
                    columns = {
                        metric: np.array([m.get(metric, UNKNOWN) for m in mine.values()]) for metric in metrics
                    }
                    phase = 0.1 + 0.8 * (sum(owner.encode()) % 7) / 7
                    time = EPOCH + round((self.t + phase * interval) * 1e6) * 1000
                    self.twin.ingest(Frame(time, owner, kind, tuple(mine), columns))
            self.t += interval

    def incidents(self) -> list[Incident]:
        """Those that no other took over."""
        self.twin.finish()
        return [i for i in self.twin.incidents if i.superseded_by is None]


def seconds(time: int | None) -> float:
    """Since the start, NaN for None."""
    return float("nan") if time is None else (time - EPOCH) / NS
