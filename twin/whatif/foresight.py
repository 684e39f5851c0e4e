"""Which incidents a change would bring about, and which it would end: today's detectors, asked of a state that is
not there.

They see the designed fabric, then the state before for a minute and the state after for another, with every part read
at once, as if all sources had reported; a node without power says nothing. What congestion, errors or jobs would make
of it is not foreseen: that needs traffic.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from twin.capacity import Capacity
from twin.detectors.explain import Explainer
from twin.detectors.finding import Finding, Story
from twin.detectors.gpus import GpuDetector
from twin.detectors.links import LinkDetector
from twin.detectors.nvlink import NvlinkDetector
from twin.detectors.power import PowerDetector
from twin.detectors.rules import Rules
from twin.detectors.scene import Detector, Scene
from twin.frames import NS
from twin.linkstate import LinkState
from twin.sources import Sources
from twin.state import KindState
from twin.whatif.figures import Meter
from twin.whatif.state import F64, State, designed

_MINUTE = 60 * NS
_NOW = 1_000 * _MINUTE  # any time will do that is not 0, which means never
_SOURCE = "whatif"
_ALIVE = 50.0  # a temperature: whatever is read of a GPU says that it is there


@dataclass(frozen=True, slots=True)
class Foreseen:
    """An incident that would follow, told as the twin would tell it."""

    kind: str
    cause: str
    story: Story


class Foresight:
    """Holds the detectors that remember nothing; the others are made anew for each question."""

    def __init__(self, meter: Meter, rules: Rules) -> None:
        self.meter, self.rules = meter, rules
        self._whole = designed(meter.topo)
        self._links = LinkDetector(meter.topo, meter.capacity, rules)

    def standing(self, state: State) -> dict[tuple[str, str], Finding]:
        """What is wrong with a state that lasts."""
        return self.after(state, state)

    def after(self, before: State, state: State) -> dict[tuple[str, str], Finding]:
        """What is wrong a minute after a state has taken the place of another, by kind and cause."""
        links = _link_state(before, state, self.rules, self.meter, _NOW)
        capacity = self.meter.capacity.at(state.speed)
        found = self._links.findings(_NOW, links, [])
        shown = [(3, self._whole), (2, before), (1, state), (0, state)]
        detectors = self._needed(before, state)
        scenes = [self._scene(_NOW - ago * _MINUTE, what, links, capacity) for ago, what in shown if detectors]
        for detector, last in detectors:
            found.extend([detector.findings(scene) for scene in scenes[-last:]][-1])
        return {f.key: f for f in Explainer(self.rules).reduce(_NOW, found, ()) if f.ready}

    def _needed(self, before: State, state: State) -> list[tuple[Detector, int]]:
        """Detectors that have something to look at, without a memory, and how many of the last scenes they must see.
        NVLinks are many: what went before is shown only where it matters."""
        topo, out = self.meter.topo, list[tuple[Detector, int]]()
        if not state.nvlink_up.all():
            last = 4 if (topo.nvlink_switch < 0).any() else 2 if before.nvlink_up.all() else 3
            out.append((NvlinkDetector(topo, self.rules), last))
        if state.gpu_lost.any():
            out.append((GpuDetector(topo, self.rules), 4))
        if len(state.psu_lost) or len(state.feed_dark):
            out.append((PowerDetector(topo, self.rules), 4))
        return out

    def _scene(self, now: int, state: State, links: LinkState, capacity: Capacity) -> Scene:
        sources = Sources(self.rules)
        sources.declare(_SOURCE, 1.0)
        sources.heard(_SOURCE, now, now, 1)
        return Scene(now, self.meter.topo, links, capacity, sources, _tables(self.meter, state, now, sources))


def told(finding: Finding) -> Foreseen:
    return Foreseen(finding.kind, finding.cause, finding.tell())


def _link_state(before: State, state: State, rules: Rules, meter: Meter, now: int) -> LinkState:
    """Links that went down or slow a minute ago, or have been for long."""
    n, design = len(state.speed), np.nan_to_num(meter.topo.links.speed)
    down = state.speed == 0
    slow = ~down & (state.speed < design * rules.link_slow_fraction)
    long_ago, lately = now - 2 * _MINUTE, now - _MINUTE
    zero, no = np.zeros(n, np.int64), np.zeros(n, bool)
    return LinkState(
        up=np.where(down, 0.0, 1.0),
        down=down,
        ends_down=(down, down),
        since=np.where(down, np.where(before.speed == 0, long_ago, lately), 0),
        sampled=np.full(n, now),
        awaited=~no,
        speed=state.speed,
        slow=slow,
        slow_since=np.where(slow, np.where(before.speed == state.speed, long_ago, lately), 0),
        flapping=no,
        falls=zero,
        first_fall=zero,
    )


def _tables(meter: Meter, state: State, now: int, sources: Sources) -> Callable[[str], KindState]:
    """The readings that such a state gives, all taken now."""
    topo = meter.topo
    silent = np.bincount(topo.gpus.node[state.gpu_lost], minlength=len(topo.nodes.name)) >= np.maximum(
        topo.nodes.n_gpus, 1
    )
    lit = np.bincount(topo.feeds.rack[~state.feed_dark], minlength=len(topo.racks.name))
    with np.errstate(divide="ignore", invalid="ignore"):
        share = (state.rack_watts / lit)[topo.feeds.rack]
    readings: dict[tuple[str, str], F64] = {
        ("nvlink", "up"): np.where(silent[topo.gpus.node[topo.nvlink_gpu]], np.nan, state.nvlink_up),
        ("gpu", "temperature_celsius"): np.where(state.gpu_lost, np.nan, _ALIVE),
        ("psu", "up"): np.where(state.psu_lost, 0.0, 1.0),
        ("psu", "capacity_watts"): state.psu_watts,
        ("node", "power_watts"): state.node_watts,
        ("feed", "power_watts"): np.where(state.feed_dark, 0.0, share),
        ("feed", "capacity_watts"): state.feed_watts,
    }
    made: dict[str, KindState] = {}

    def table(kind: str) -> KindState:
        if kind not in made:
            made[kind] = KindState(kind, next((len(v) for (of, _), v in readings.items() if of == kind), 0))
            rows = np.arange(made[kind].n)
            times, source = np.full(len(rows), now), np.zeros(len(rows), np.int32)
            for (of, metric), values in readings.items():
                if of == kind:
                    made[kind].update(metric, rows, values, times, times, source, sources.patience())
        return made[kind]

    return table
