"""Which supplies are down, and which of them are down because a feed is.

A feed has lost its power when it carried a load before and carries none now, or when all its supplies that were read
since the first of them went down are down; a supply that is up, or a feed that still carries a load, speaks against
it. Where no feed of the wiring explains why many nodes of a rack lost supplies at once, the rack is named.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from twin.detectors.rules import Rules, ns
from twin.detectors.scene import Lasting, Scene
from twin.power import PowerModel

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
Bool = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.intp]

_NOTHING_SHARE, _NOTHING_WATTS = 0.01, 10.0  # of its rating, or this much: what a meter shows of a dead feed
_FEW = 2  # supplies that make a feed when they go together
_MANY = 3  # nodes that do where the wiring names no feed for it


@dataclass(frozen=True, slots=True)
class FeedLoss:
    """Feeds that lost power as one. feeds: their rows, none where only the rack is known. psus: lost with them.
    nodes: rows of those that have no other power."""

    cause: str
    rack: int
    since: int
    ready: bool
    feeds: Rows
    psus: Rows
    nodes: Rows


@dataclass(frozen=True, slots=True)
class Outage:
    """since: int64[psus], 0 while up. alone: rows of supplies down for a reason of their own; waiting: those of
    which it is too early to say so."""

    since: I64
    feeds: Bool
    losses: list[FeedLoss]
    alone: list[int]
    waiting: set[int]


class Supplies:
    """Remembers what was last known: a supply that is down stays so until it is seen up."""

    def __init__(self, model: PowerModel, rules: Rules) -> None:
        self.model, self.rules = model, rules
        topo = model.topo
        self._down = Lasting(len(topo.psus.node))
        self._dead = Lasting(len(topo.feeds.name))
        self._carried = np.zeros(len(topo.feeds.name), bool)
        node = topo.psus.node
        rack_of_node = np.append(topo.nodes.rack, -1)
        self._rack = np.where(topo.psus.rack >= 0, topo.psus.rack, rack_of_node[node]).astype(np.intp)
        self._least = np.fmax(_NOTHING_SHARE * topo.feeds.watts, _NOTHING_WATTS)

    def at(self, scene: Scene) -> Outage:
        """What is down now, or was when last read."""
        up, read = scene.fresh("psu", "up"), scene.time("psu", "up")
        since = self._down.note(np.where(np.isnan(up), np.nan, up == 0), read)
        power, metered = scene.fresh("feed", "power_watts"), scene.time("feed", "power_watts")
        self._carried |= power > 2 * self._least
        dead = np.where(np.isnan(power), np.nan, (power <= self._least) & self._carried)
        look = _Look(self, scene.now, up, read, since, power, metered, self._dead.note(dead, metered))
        losses = [loss for rack in look.racks() for loss in look.losses(rack)]
        dark = np.zeros(len(power), bool)
        explained = np.zeros(len(since), bool)
        for loss in losses:
            dark[loss.feeds] = explained[loss.psus] = True
        alone = np.flatnonzero((since > 0) & ~explained).tolist()
        return Outage(since, dark, losses, alone, {i for i in alone if look.too_early(i)})


class _Look:
    """One evaluation of the racks where something is wrong."""

    def __init__(
        self, memory: Supplies, now: int, up: F64, read: I64, since: I64, power: F64, metered: I64, dead: I64
    ) -> None:
        self.model, self.topo, self.rules = memory.model, memory.model.topo, memory.rules
        self.rack, self.least = memory._rack, memory._least
        self.now, self.up, self.read, self.since = now, up, read, since
        self.power, self.metered, self.dead = power, metered, dead
        self.burst = ns(self.rules.burst)

    def racks(self) -> list[int]:
        """Racks with a supply or a feed that is down."""
        wrong = np.r_[self.rack[self.since > 0], self.topo.feeds.rack[self.dead > 0]]
        return [r for r in np.unique(wrong).tolist() if r >= 0]

    def losses(self, rack: int) -> list[FeedLoss]:
        feeds = self.model.rack_feeds.get(rack, [])
        dark = {f: found for f in feeds if (found := self._feed(f)) is not None}
        down = np.flatnonzero((self.rack == rack) & (self.since > 0))
        out = []
        for group in self._together(dark, every=len(dark) == len(feeds)):
            start, ready = min(dark[f][0] for f in group), all(dark[f][1] for f in group)
            mine = down[np.isin(self.model.psu_feed[down], group)]
            if not all(self._as_wired(f) for f in group):
                mine = down[np.abs(self.since[down] - start) <= self.burst]
            cause = self.topo.feeds.name[group[0]] if len(group) == 1 else self.topo.racks.name[rack]
            out.append(self._loss(cause, rack, start, ready, np.array(group), mine))
        rest = np.setdiff1d(down, np.concatenate([loss.psus for loss in out])) if out else down
        return out + self._unnamed(rack, rest)

    def _together(self, dark: dict[int, tuple[int, bool]], *, every: bool) -> list[list[int]]:
        """Feeds that lost power as one: those of one burst, or all that a rack has."""
        groups: list[list[int]] = []
        for feed in sorted(dark, key=lambda f: dark[f][0]):
            if groups and (every or dark[feed][0] - dark[groups[-1][0]][0] <= self.burst):
                groups[-1].append(feed)
            else:
                groups.append([feed])
        return [sorted(group) for group in groups]

    def _loss(self, cause: str, rack: int, since: int, ready: bool, feeds: Rows, psus: Rows) -> FeedLoss:
        return FeedLoss(cause, rack, since, ready, feeds, psus, self._dark(rack, feeds))

    def _feed(self, feed: int) -> tuple[int, bool] | None:
        """Since when it is without power, and whether that is sure; None while it has power, or nothing is known."""
        mine = np.flatnonzero(self.model.psu_feed == feed)
        lost = mine[self.since[mine] > 0]
        known = mine[~np.isnan(self.up[mine])]
        start = int(self.dead[feed])
        if not start:
            if len(lost) < _FEW:
                return None
            start = int(self.since[lost].min())
            if self.power[feed] > self.least[feed] and self.metered[feed] >= start:
                return None
        since_then = known[self.read[known] >= start]
        if (self.up[since_then] == 1).any() and self._as_wired(feed):
            return None
        enough = self.dead[feed] > 0 or 2 * len(since_then) >= len(known)
        start = min(start, int(self.since[lost].min(initial=start)))
        return start, bool(enough and self.now - start >= ns(self.rules.power_hold))

    def _as_wired(self, feed: int) -> bool:
        """Whether supplies went down on this feed alone, or nowhere: where they went down on others as well, they
        are plugged in otherwise than assumed."""
        start = int(self.dead[feed])
        mine = (self.model.psu_feed == feed) & ~np.isnan(self.up) & (self.read >= start)
        if not start or (self.up[mine] == 0).all():
            return True
        near = (self.since > 0) & (np.abs(self.since - start) <= self.burst)
        on = self.model.psu_feed[near & (self.rack == self.topo.feeds.rack[feed])]
        return bool((on == feed).all()) or not bool((on == feed).any())

    def _dark(self, rack: int, feeds: Rows) -> Rows:
        """Nodes of the rack all of whose power comes over these feeds."""
        nodes = np.flatnonzero(self.topo.nodes.rack == rack)
        all_ = len(feeds) > 0 and len(feeds) == len(self.model.rack_feeds.get(rack, []))
        own = self.topo.psus.node >= 0
        total = np.bincount(self.topo.psus.node[own], minlength=self.model.n_nodes)[nodes]
        on = own & np.isin(self.model.psu_feed, feeds)
        gone = np.bincount(self.topo.psus.node[on], minlength=self.model.n_nodes)[nodes]
        out: Rows = nodes[all_ | ((total > 0) & (gone == total))]
        return out

    def _unnamed(self, rack: int, down: Rows) -> list[FeedLoss]:
        """Supplies of many nodes of a rack that went at once, on no feed of the wiring."""
        down = down[self.topo.psus.node[down] >= 0]
        down = down[np.argsort(self.since[down], kind="stable")]
        out: list[FeedLoss] = []
        while len(down):
            start = int(self.since[down[0]])
            together = down[self.since[down] - start <= self.burst]
            down = down[len(together) :]
            nodes = np.unique(self.topo.psus.node[together])
            with_supplies = np.count_nonzero((self.topo.nodes.rack == rack) & (self.topo.nodes.n_psus > 0))
            if len(nodes) >= _MANY and 2 * len(nodes) >= with_supplies:
                ready = self.now - start >= ns(self.rules.power_hold)
                none = np.zeros(0, np.intp)
                name = self.topo.racks.name[rack]
                out.append(FeedLoss(name, rack, start, ready, none, np.sort(together), none))
                break
        return out

    def too_early(self, psu: int) -> bool:
        """Whether other nodes on the same feed report, but none has since this supply went down."""
        holder = self.model.psu_holder
        same = (self.rack == self.rack[psu]) & (self.rack >= 0) & (holder != holder[psu])
        same &= (self.model.psu_feed == self.model.psu_feed[psu]) & ~np.isnan(self.up)
        return bool(same.any() and not (self.read[same] >= self.since[psu]).any())
