"""Twin: frames go in through one door, incidents and snapshots come out. It never asks what time it is.

Event time advances with the frames. The twin evaluates at whole multiples of its tick, when the first
frame later than that tick comes in, so what it says depends on the order of frames alone.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from twin.capacity import CapacityModel
from twin.clock import Clocks
from twin.detectors.cabling import CablingDetector
from twin.detectors.congestion import CongestionDetector
from twin.detectors.errors import ErrorDetector
from twin.detectors.explain import Explainer
from twin.detectors.gpus import GpuDetector
from twin.detectors.links import LinkDetector
from twin.detectors.nvlink import NvlinkDetector
from twin.detectors.nvlink_errors import NvlinkErrorDetector
from twin.detectors.planeuse import PlaneUse
from twin.detectors.power import PowerDetector
from twin.detectors.rules import Rules
from twin.detectors.saturated import SaturatedDetector
from twin.detectors.scene import Detector, Scene
from twin.detectors.stragglers import StragglerDetector
from twin.detectors.telemetry import TelemetryDetector
from twin.frames import NS, Frame
from twin.incident import Incident, Word
from twin.incidents import Ledger
from twin.intake import Intake
from twin.linkstate import LinkState, LinkTracker
from twin.maintenance import Window
from twin.metrics import KINDS
from twin.observe import Observer
from twin.snapshot import NO_POWER, Event, Snapshot
from twin.sources import SUPERVISOR, Sources
from twin.state import KindState
from twin.topology.model import Topology

# beside links, cabling and telemetry: one question each, of the same scene
DETECTORS: tuple[Callable[[Topology, Rules], Detector], ...] = (
    CongestionDetector,
    ErrorDetector,
    SaturatedDetector,
    PlaneUse,
    PowerDetector,
    NvlinkDetector,
    NvlinkErrorDetector,
    GpuDetector,
    StragglerDetector,
)
TICK = NS
_SAID = ("up", "failures", "interval_seconds", "duration_seconds", "late", "clock_offset_seconds")  # of a source
_MAX_IDLE_TICKS = 120  # silence longer than this is skipped: nothing can change any more


class Twin:
    """The state of one fabric, and what is wrong with it."""

    def __init__(self, topology: Topology, rules: Rules | None = None, maintenance: Sequence[Window] = ()) -> None:
        self.topology = topology
        self.rules = rules or Rules.load()
        self.time = 0  # of the last evaluation
        self.frames = 0
        self.capacity_model = CapacityModel(topology)
        self._kinds: dict[str, KindState] = {
            k: KindState(k, len(topology.names(k))) for k in KINDS if k not in ("nvlink", "link", "source")
        }
        self._limit_rates()
        self._sources = Sources(self.rules)
        self._clocks = Clocks()
        self._tracker = LinkTracker(topology, self.rules)
        self._links = LinkDetector(topology, self.capacity_model, self.rules)
        self._cabling = CablingDetector(topology)
        self._detectors: list[Detector] = [make(topology, self.rules) for make in DETECTORS]
        self._explainer = Explainer(self.rules)
        self._telemetry = TelemetryDetector(topology, self.rules)
        self._ledger = Ledger(self.rules, len(topology.links.a), maintenance)
        self._observer = Observer(topology)
        self._intake = Intake(topology, self._sources)

    def _limit_rates(self) -> None:
        ceiling = self.topology.port_speed / 8
        ceiling = np.where(np.isnan(ceiling), np.inf, ceiling)
        self._kinds["port"].ceilings = {"tx_bytes": ceiling, "rx_bytes": ceiling}

    # --- in ---

    def ingest(self, frame: Frame) -> None:
        """Takes one frame. Evaluates first, when the frame is the first one past a tick."""
        interval = self._sources.typical(frame.source)
        ours = frame.kind == "source" and frame.source == SUPERVISOR
        time = self._clocks.correct(frame.source, frame.time, interval, trusted=ours)
        if not self.time:
            self.time = time // TICK * TICK
        elif time > self.time + TICK:
            self._catch_up((time - 1) // TICK * TICK)
        self.frames += 1
        if frame.kind == "source":
            self._hear_collectors(frame, time)
        elif frame.kind == "link":
            self._cabling.take(frame)
        else:
            self._intake.add(frame, time, self._clocks.now)

    def ingest_all(self, frames: Iterable[Frame]) -> None:
        for frame in frames:
            self.ingest(frame)

    def finish(self) -> None:
        """The stream has ended: judges what came in since the last tick."""
        if self.frames:
            self._evaluate(self.time + TICK)

    # --- the words of people; they change what counts, not what is found ---

    def acknowledge(self, id: str, who: str, until: int) -> bool:
        """Somebody takes care of an incident until then (event time, ns); whether it is open."""
        return self._ledger.acknowledge(self.time, id, Word(who, self.time, until))

    def silence(self, what: str, who: str, until: int) -> None:
        """Nobody wants to hear until then of an address, all below it, or a kind of incident."""
        self._ledger.silence(self.time, what, Word(who, self.time, until))

    def recall(self, incident: Mapping[str, Any]) -> bool:
        """Takes the words that a recorded incident (in its JSON form) carries; whether it is open here too."""
        words = (Word.from_json(incident.get(name)) for name in ("acknowledged", "silenced"))
        return self._ledger.recall(self.time, str(incident.get("id")), *words)

    def _catch_up(self, until: int) -> None:
        ticks = 0
        while self.time < until:
            ticks += 1
            self._evaluate(self.time + TICK if ticks <= _MAX_IDLE_TICKS else until)

    def _table(self, kind: str) -> KindState:
        if kind not in self._kinds:  # NVLinks: the largest table, made when first heard of
            self._kinds[kind] = KindState(kind, len(self.topology.names(kind)))
        return self._kinds[kind]

    def _hear_collectors(self, frame: Frame, time: int) -> None:
        nothing = np.full(len(frame.names), np.nan)
        columns = (np.asarray(frame.columns.get(m, nothing), dtype=np.float64).tolist() for m in _SAID)
        for name, up, failures, interval, *measured in zip(frame.names, *columns, strict=True):
            if interval > 0:
                self._sources.declare(name, interval)
            self._sources.failed(name, time, up, failures)
            self._sources.measured(name, *measured)
            self._clocks.measure(name, measured[-1])

    # --- judge ---

    def _evaluate(self, now: int) -> None:
        self.time = now
        self._intake.flush(self._table)
        ports = self._kinds["port"]
        links = self._tracker.at(now, ports, self._sources)
        capacity = self.capacity_model.at(np.where(links.down, 0.0, links.speed))
        found = self._links.findings(now, links, self._ledger.claims())
        found.extend(self._cabling.findings())
        scene = Scene(now, self.topology, links, capacity, self._sources, self._table)
        for detector in self._detectors:
            found.extend(detector.findings(scene))
        found = self._explainer.reduce(now, found, self._ledger.open_keys)
        self._sources.excuse(now, self._dark(links))
        found.extend(self._telemetry.findings(now, self._sources))
        self._ledger.reconcile(now, found, links.down, int(self._sources.interval().max()))
        self._observer.note(now, links, capacity, ports, self._ledger.n_open)

    def _dark(self, links: LinkState) -> list[str]:
        """Nodes and switches that cannot be there: a link of theirs is down, or leads to such a device, and
        none is up. That they are silent is no news."""
        names = self.topology.nodes.name + self.topology.switches.name
        n = len(names)
        a, b = self.topology.link_ends
        up, down = links.up == 1, links.down
        alive = np.bincount(a[up], minlength=n) + np.bincount(b[up], minlength=n) > 0
        dark = np.zeros(n, bool)
        for _ in range(3):  # host, leaf, spine, core
            lost = down | (~up & (dark[a] | dark[b]))
            dark = (np.bincount(a[lost], minlength=n) + np.bincount(b[lost], minlength=n) > 0) & ~alive
        return [names[i] for i in np.flatnonzero(dark)]

    # --- out ---

    @property
    def incidents(self) -> tuple[Incident, ...]:
        """Every incident so far in the order of detection."""
        return self._ledger.history

    @property
    def unknown_names(self) -> dict[str, int]:
        """Names in frames that the wiring does not have."""
        return self._intake.unknown_names

    @property
    def events(self) -> list[Event]:
        """All that was said, in order."""
        return self._ledger.events

    def snapshot(self) -> Snapshot:
        """The twin as of its last evaluation; shares nothing with it that changes."""
        power = next((d.view() for d in self._detectors if isinstance(d, PowerDetector)), NO_POWER)
        events = tuple(self.events[-200:])
        return self._observer.snapshot(
            self.time, self._kinds, self._sources, self._clocks, self._ledger.incidents, events, power
        )

    def fork(self) -> Twin:
        """An independent copy; the wiring is shared, it never changes."""
        shared = {id(o): o for o in (self.topology, self.rules, self.capacity_model, self._links)}
        return copy.deepcopy(self, shared)
