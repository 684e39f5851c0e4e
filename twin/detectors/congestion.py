"""Findings about congestion: one for each root, with those that it holds up.

A share of time lost to waiting, or of packets marked or dropped, must cost more than is tolerated (`Excess`); then
the trail of waiting ports is followed to its root (`BackPressure`). A root that was told keeps its ports until they
are calm: what is left while a jam dissolves is no new one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import numpy.typing as npt

from twin.detectors.backpressure import BackPressure, Root, Trail
from twin.detectors.congestion_tell import CongestionTeller
from twin.detectors.excess import Excess
from twin.detectors.finding import NO_LINKS, Finding, Story
from twin.detectors.links import SAME
from twin.detectors.reports import one_report
from twin.detectors.rules import Rules, ns
from twin.detectors.scene import Scene
from twin.detectors.waiting import PortView, PortWatch
from twin.topology.model import Topology

F64 = npt.NDArray[np.float64]
Bool = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.intp]

_SETTLED = 1.0  # reports for which a root must have been the same
_LOST = 3.0  # and one that is only where the trail is lost, or a guess: the rest may be read in a moment
_NEWEST, _PAST = 0.25, 0.1  # weight of the newest reading in an average: of late, and over some ten readings
_SHORT = 2.5  # times the marks that are usual: so many more say that a queue stands out


@dataclass(slots=True)
class _Told:
    root: Root
    ports: Rows
    since: int
    tell: Callable[[], Story]
    signature: object


class CongestionDetector:
    def __init__(self, topo: Topology, rules: Rules) -> None:
        self.topo, self.rules = topo, rules
        n = len(topo.ports.link)
        self._watch = PortWatch(topo, rules)
        self._pressure = BackPressure(topo, rules)
        self._teller = CongestionTeller(topo)
        self._wait, self._queue = (Excess(n, rules.congestion_share, rules.congestion_cost) for _ in range(2))
        self._load, self._load_before, self._usual, self._marks = (np.full(n, np.nan) for _ in range(4))
        self._first: dict[str, int] = {}  # when each root was first seen as such
        self._told: dict[str, _Told] = {}

    def findings(self, scene: Scene) -> list[Finding]:
        if not self._watch.heard(scene):
            return []
        view = self._watch.at(scene)
        self._wait.note(view.wait, view.time)
        self._queue.note(view.queue, view.time)
        self._load_before, self._load = self._load, view.load
        self._usual, self._marks = _moved(self._usual, view.load, _PAST), _moved(self._marks, view.marked, _NEWEST)
        if not (self._told or self._wait.brewing() or self._queue.brewing()):
            self._first.clear()
            return []
        roots = {r.cause: r for r in self._pressure.roots(self._trail(scene))}
        elsewhere = self._mask([roots[cause].held for cause in self._told if cause in roots])
        known = [(told, roots.pop(cause, None)) for cause, told in self._told.items()]
        found = [f for told, root in known if (f := self._go_on(told, root, elsewhere, scene, view)) is not None]
        taken = self._mask([told.ports for told in self._told.values()])
        self._first = {cause: self._first.get(cause, scene.now) for cause in roots}
        for root in roots.values():
            found.extend(self._new(root, taken, scene, view))
        return found

    def _trail(self, scene: Scene) -> Trail:
        lately = np.minimum(self._load, self._load_before)
        full = lately >= self.rules.full_port
        queue = (
            self._queue.over & (np.nan_to_num(self._queue.steady) >= self.rules.congestion_share)
        ) | self._queue.on
        paused = np.zeros(len(full), bool)
        if scene.heard("port", "rx_pause_seconds") or scene.heard("port", "tx_pause_seconds"):
            paused[:] = np.isnan(scene.fresh("port", "tx_wait_ticks"))
        return Trail(self._wait.steady, queue, self._short(), self._load, lately - self._usual, full, paused)

    def _short(self) -> Bool:
        """bool[ports]: packets are marked there no more often than elsewhere; nowhere if nobody marks any."""
        marks = self._marks[~np.isnan(self._marks)]
        if not marks.any():
            return np.zeros(len(self._marks), bool)
        short: Bool = self._marks <= _SHORT * np.median(marks)
        return short

    # --- told already ---

    def _go_on(self, told: _Told, root: Root | None, elsewhere: Bool, scene: Scene, view: PortView) -> Finding | None:
        """The finding of a root that was told, while any of its ports is not calm; unknown is not calm.

        elsewhere: ports that wait for a root that is seen now. Of one that is not those ports are no sign any more.
        """
        still = told.ports[self._busy()[told.ports]]
        if root is None:
            still = still[~elsewhere[still]]
        if not len(still):
            del self._told[told.root.cause]
            return None
        if root is None:
            told.ports = still
            return self._finding(told.root.cause, told.since, True, SAME, told.tell)
        if (told.root.form, root.form) == ("pause_storm", "slow_receiver"):
            root = replace(root, form="pause_storm")  # it is one still while it ends within a reading
        told.ports = np.union1d(still, self._hard(root))
        told.root = root
        told.signature, told.tell = self._news(root, scene, view)
        return self._finding(root.cause, told.since, True, told.signature, told.tell)

    def _mask(self, ports: list[Rows]) -> Bool:
        out = np.zeros(len(self.topo.ports.link), bool)
        for rows in ports:
            out[rows] = True
        return out

    def _busy(self) -> Bool:
        return self._wait.on | self._wait.over | self._queue.on | self._queue.over

    # --- new ---

    def _new(self, root: Root, taken: Bool, scene: Scene, view: PortView) -> list[Finding]:
        ports = self._hard(root)
        ports = ports[~taken[ports]]
        if not len(ports):
            return []
        costly = (self._wait.on | self._queue.on)[ports].any()
        settled = scene.now - self._first[root.cause] >= self._settling(root, scene)
        starts = np.concatenate([self._wait.since[ports], self._queue.since[ports]])
        since = int(starts[starts > 0].min(initial=scene.now))
        signature, tell = self._news(root, scene, view)
        if costly and settled:
            self._told[root.cause] = _Told(root, ports, since, tell, signature)
        return [self._finding(root.cause, since, bool(costly and settled), signature, tell)]

    @staticmethod
    def _settling(root: Root, scene: Scene) -> int:
        """How long a root must have been the same: until all have been read, and with some doubt a few times."""
        return ns(one_report(scene.sources) * (_LOST if root.lost or root.unsure else _SETTLED))

    def _hard(self, root: Root) -> Rows:
        """Those of its ports that wait, or have a queue, beyond what is tolerated."""
        return root.held[self._busy()[root.held]]

    def _news(self, root: Root, scene: Scene, view: PortView) -> tuple[object, Callable[[], Story]]:
        wait = np.nan_to_num(self._wait.share)
        cost = self._teller.cost(root, wait)
        tell = partial(self._teller.tell, root, view, cost, self._teller.senders(root, scene))
        return (root.form, root.lost, root.unsure, *cost.size()), tell

    def _finding(self, cause: str, since: int, ready: bool, signature: object, tell: Callable[[], Story]) -> Finding:
        return Finding("congestion", cause, since, ready, NO_LINKS, signature, tell, scope=frozenset({cause}))


def _moved(average: F64, newest: F64, weight: float) -> F64:
    """The average with the newest reading in it; where one of them is unknown, the other."""
    moved = average + weight * (newest - average)
    out: F64 = np.where(np.isnan(moved), np.fmax(average, newest), moved)
    return out
