"""NVLinks that are down, to the smallest cause: a link, a GPU, a node, a switch chip or tray, a domain.

Kinds: nvlink_down, nvswitch_down, nvlink_domain_split. The wiring says which links there are, so a part without
NVLink has none that could be missing. Where it names no switch chips (found on hosts, or bridges that may not be
fitted) a link is there once it was read healthy, or most of its domain was. Traffic says nothing: NVSwitch counters
that stand at zero under load are common.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
import numpy.typing as npt

from twin.detectors.finding import NO_LINKS, Finding
from twin.detectors.nvlink_fabric import FabricWatch
from twin.detectors.nvlink_tell import NvlinkTeller
from twin.detectors.rules import Rules, ns
from twin.detectors.scene import I64, Lasting, Scene
from twin.topology.model import Topology

Rows = npt.NDArray[np.intp]
Bool = npt.NDArray[np.bool_]

_TRAYS = 9  # of a rack-scale domain: NVL72 of every generation so far (catalog, racks)
_MANY = 3  # links of one GPU that are its trouble and not theirs
_CONTRARY = 0.1  # of a device's links may still say up: sources repeat old readings
_DEVICES = ("domain", "chip")
_KINDS = {"domain": "nvlink_domain_split", "chip": "nvswitch_down"}


@dataclass(frozen=True, slots=True)
class NvlinkCause:
    """What took NVLinks (`links`, rows) down. what: domain, chip, node, gpu or link. rows: of what, more than one
    for the chips of a tray. whole: all of its links. sure: no larger cause may yet turn out to be behind it."""

    what: str
    rows: tuple[int, ...]
    links: Rows
    since: int
    whole: bool = True
    sure: bool = True


class NvlinkDetector:
    """Remembers which NVLinks are down; unknown neither starts nor ends that."""

    def __init__(self, topo: Topology, rules: Rules) -> None:
        self.topo, self.rules = topo, rules
        self.teller = NvlinkTeller(topo)
        self.fabric = FabricWatch(topo, rules)
        self._gpu = topo.nvlink_gpu
        n = len(self._gpu)
        self._down = Lasting(n)
        self._late = np.zeros(n, np.int64)  # until when a link may come up later than the device it went down with
        self._domain = topo.gpus.domain[self._gpu]
        self._there = topo.nvlink_switch >= 0
        self._order = np.argsort(self._domain, kind="stable")
        self._bounds = np.searchsorted(self._domain[self._order], np.arange(len(topo.domains.name) + 1))

    def findings(self, scene: Scene) -> list[Finding]:
        found = [self._finding(c, scene.now) for c in self._causes(scene)]
        told = {f.key for f in found}
        return found + [f for f in self.fabric.findings(scene) if f.key not in told]

    # --- causes ---

    def _causes(self, scene: Scene) -> list[NvlinkCause]:
        series = scene.table("nvlink").get("up") if len(self._gpu) else None
        if series is None:
            return []
        up, time = series.value, series.time
        if not self._there.all():
            self._believe(up == 1)
        since = self._down.note(np.where(np.isnan(up) | ~self._there, np.nan, up == 0), time)
        down = since > 0
        if not down.any():
            return []
        alive = scene.fresh("nvlink", "up") == 1
        out: list[NvlinkCause] = []
        for d in np.unique(self._domain[down]).tolist():
            rows = self._order[self._bounds[d] : self._bounds[d + 1]]
            found = _Domain(self, d, rows, down[rows], alive[rows], since[rows], time[rows], scene.now).causes()
            for cause in found:
                if cause.what in _DEVICES:
                    self._late[cause.links] = scene.now + ns(self.rules.settle)
            out += found
        return out

    def _believe(self, up: Bool) -> None:
        self._there |= up
        share = np.bincount(self._domain, self._there) / np.bincount(self._domain).clip(1)
        self._there |= (share > 0.5)[self._domain]

    # --- what is said ---

    def _finding(self, cause: NvlinkCause, now: int) -> Finding:
        kind, address = _KINDS.get(cause.what, "nvlink_down"), self.teller.address(cause.what, cause.rows)
        ready = cause.sure and now - cause.since >= ns(self.rules.link_debounce)
        signature = (cause.what, cause.whole, cause.links.tobytes())
        tell = partial(self.teller.down, cause.what, cause.rows, cause.links, cause.whole)
        scope = self.teller.scope(cause.what, cause.rows, cause.links)
        return Finding(kind, address, cause.since, ready, NO_LINKS, signature, tell, scope=scope)


class _Domain:
    """The NVLinks of one domain in one evaluation. Arrays are over its links; `rows` are theirs in the table."""

    def __init__(
        self, of: NvlinkDetector, domain: int, rows: Rows, down: Bool, alive: Bool, since: I64, time: I64, now: int
    ) -> None:
        self.of, self.domain, self.rows = of, domain, rows
        self.down, self.alive, self.since, self.time, self.now = down, alive, since, time, now
        self.gpu, self.chip = of._gpu[rows], of.topo.nvlink_switch[rows]
        self.waiting = of._late[rows] > now
        self.burst, self.debounce = ns(of.rules.burst), ns(of.rules.link_debounce)

    def causes(self) -> list[NvlinkCause]:
        if self._whole(np.ones(len(self.rows), bool)) == "yes":
            return self._when_ready([self._cause("domain", (self.domain,), self.down)])
        out: list[NvlinkCause] = []
        left = self.down.copy()
        for chip in np.unique(self.chip[self.down & (self.chip >= 0)]).tolist():
            mine = self.chip == chip
            verdict = self._whole(mine)
            if verdict == "yes":
                out.append(self._cause("chip", (chip,), mine & self.down))
                left &= ~mine
            elif verdict == "open":
                self.waiting |= mine
        return [*self._when_ready(self._trays(out)), *self._gpus(left)]

    def _whole(self, mine: Bool) -> Literal["yes", "no", "open"]:
        """Whether the device went down that all these links, of several GPUs, lead to: nearly none was read to be up
        since they fell. It is open while most of them were not read since."""
        down = mine & self.down
        many = int(down.sum())
        if many < 2 or len(np.unique(self.gpu[down])) < 2:
            return "no"
        fell = int(np.sort(self.since[down])[many // 2])  # most of them: an older trouble inside it is not the onset
        up = mine & self.alive & ~self.down
        contrary = int((up & (self.time >= fell)).sum())
        if contrary > _CONTRARY * many:
            return "no"
        return "yes" if int(up.sum()) - contrary <= many else "open"

    def _cause(self, what: str, rows: tuple[int, ...], links: Bool, *, whole: bool = True) -> NvlinkCause:
        times = np.sort(self.since[links])
        onset = times[len(times) // 2] - self.burst
        sure = what in _DEVICES or not (links & self.waiting).any()
        return NvlinkCause(what, rows, self.rows[links], int(times[times >= onset][0]), whole, sure)

    def _when_ready(self, causes: list[NvlinkCause]) -> list[NvlinkCause]:
        """A device is named only when it is sure: until then its links wait with it."""
        return [c for c in causes if self.now - c.since >= self.debounce]

    def _trays(self, chips: list[NvlinkCause]) -> list[NvlinkCause]:
        """Chips of one switch tray that went together are one cause."""
        names = self.of.topo.domains.switches[self.domain]
        each = len(names) // _TRAYS
        if len(chips) < 2 or len(names) % _TRAYS or each < 2 or not self.of.teller.rack_scale(self.domain):
            return chips
        first = self.of.teller.first_chip(self.domain)
        trays: dict[int, list[NvlinkCause]] = {}
        for c in chips:
            trays.setdefault((c.rows[0] - first) // each, []).append(c)
        out = []
        for tray in trays.values():
            if max(c.since for c in tray) - min(c.since for c in tray) <= self.burst:
                links = np.concatenate([c.links for c in tray])
                rows = tuple(c.rows[0] for c in tray)
                out.append(NvlinkCause("chip", rows, links, min(c.since for c in tray)))
            else:
                out += tray
        return out

    def _gpus(self, left: Bool) -> list[NvlinkCause]:
        """GPUs with nothing left or with many links down, nodes of which all GPUs are so, and single links."""
        out, dead = [], []
        node = self.of.topo.gpus.node
        for g in np.unique(self.gpu[left]).tolist():
            mine = left & (self.gpu == g)
            whole = bool(self.down[self.gpu == g].all()) and int(mine.sum()) > 1
            if whole or mine.sum() >= _MANY:
                out.append(self._cause("gpu", (g,), mine, whole=whole))
                dead += [g] if whole else []
            else:
                out += [self._cause("link", (int(self.rows[i]),), _only(int(i), left)) for i in np.flatnonzero(mine)]
        for n in {int(node[g]) for g in dead}:
            mine = [g for g in dead if node[g] == n]
            all_ = np.unique(self.gpu[node[self.gpu] == n])
            if len(mine) == len(all_) > 1 and len(all_) < len(np.unique(self.gpu)):
                out = [c for c in out if c.what != "gpu" or c.rows[0] not in mine]
                out.append(self._cause("node", (n,), left & (node[self.gpu] == n)))
        return out


def _only(i: int, like: Bool) -> Bool:
    out = np.zeros_like(like)
    out[i] = True
    return out
