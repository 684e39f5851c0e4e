"""Findings about power: psu_down, feed_down, redundancy_lost, power_headroom, power_swing.

Each node, rack and feed, and the site as a whole, has a load and a capacity that is left in service. Three states are
told of one that loses no supply: above its capacity (power_headroom, it will trip), above what one more loss would
leave (redundancy_lost), and above what the losses that it is designed for would leave, or close to it and growing
(power_headroom). What a lost supply or feed brings about is told with that loss.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
import numpy.typing as npt

from twin.detectors.finding import NO_LINKS, Finding
from twin.detectors.loads import Loads
from twin.detectors.powertell import Moment, PowerTeller
from twin.detectors.rules import Rules, ns
from twin.detectors.scene import Lasting, Scene
from twin.detectors.supplies import FeedLoss, Outage, Supplies
from twin.frames import NS
from twin.power import PowerModel, PowerState
from twin.snapshot import NO_POWER, PowerView
from twin.topology.model import Topology

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
Bool = npt.NDArray[np.bool_]

SITE = "site"
_TURNS = 4  # of a swing: up and down twice; a job that starts or stops is one
_MANY = 3  # nodes of a rack that lost their redundancy alike and are told as one
_HEARD = (("psu", "up"), ("psu", "output_watts"), ("node", "power_watts"), ("feed", "power_watts"))


class PowerDetector:
    """Columns of its arrays: nodes, racks, feeds, the site."""

    def __init__(self, topo: Topology, rules: Rules) -> None:
        self.topo, self.rules = topo, rules
        self.model = PowerModel(topo)
        self.teller = PowerTeller(self.model)
        self.state: PowerState | None = None  # of the last evaluation
        self._supplies = Supplies(self.model, rules)
        self._n = self.model.n + len(topo.feeds.name) + 1
        self._loads = Loads(self._n)
        self._over, self._near = Lasting(self._n), Lasting(self._n)
        self._cut, self._thin = Lasting(self.model.n), Lasting(self.model.n)

    def findings(self, scene: Scene) -> list[Finding]:
        """Every cause of power seen now."""
        if not any(scene.heard(*metric) for metric in _HEARD):
            return []
        outage = self._supplies.at(scene)
        state = self.state = self.model.at(scene.fresh, outage.since > 0, outage.feeds)
        self._loads.note(scene.now, np.r_[state.load, state.feed_load, _whole(state)])
        load = self._loads.smooth()
        load[-1] = state.site_load if np.isnan(load[-1]) else load[-1]
        moment = Moment(state, load, scene)
        out = [self._feed(loss, moment) for loss in outage.losses]
        out += [self._psu(scene.now, psu, outage, moment) for psu in outage.alone]
        out += self._levels(moment, outage)
        out += self._swings(scene.now)
        return out

    def view(self) -> PowerView:
        """The last evaluation as screens and reports show it."""
        state, n, nodes = self.state, self.model.n, self.model.n_nodes
        if state is None:
            return NO_POWER
        feeds, racks = len(self.topo.feeds.name), self.topo.feeds.rack
        on = np.bincount(racks[state.feed_capacity > 0], minlength=self.model.n_racks)[racks]
        share = state.load[nodes:][racks] / np.where(on > 1, on - 1, np.nan)  # when another feed of the rack is lost
        with_power = np.flatnonzero(~np.isnan(state.capacity) | ~np.isnan(state.load))
        held, alone = with_power[with_power >= nodes], with_power[with_power < nodes]
        order = np.r_[held, n + np.arange(feeds), alone, n + feeds]
        watts = np.r_[state.load, state.feed_load, state.site_load][order]
        capacity = np.r_[state.capacity, state.feed_capacity, self.model.site_watts][order]
        after = np.r_[state.after_next - state.load, state.feed_capacity - share, np.nan][order]
        lost = np.r_[state.lost_units, state.feed_capacity == 0, 0][order]
        kinds = ("rack",) * len(held) + ("feed",) * feeds + ("node",) * len(alone) + ("site",)
        names = tuple(self.name(i) for i in order.tolist())
        return PowerView(names, kinds, watts, capacity, capacity - watts, after, lost.astype(np.intp))

    # --- losses ---

    def _feed(self, loss: FeedLoss, moment: Moment) -> Finding:
        nodes, psus = self.topo.nodes.name, self.topo.psu_names
        level = self.teller.after_feed(loss, moment)
        scope = {psus[p] for p in loss.psus.tolist()} | {nodes[n] for n in loss.nodes.tolist()}
        scope |= {self.topo.racks.name[loss.rack], loss.cause}
        signature = (level, loss.psus.tobytes())
        tell = partial(self.teller.feed, loss, moment)
        owner, links = self.topo.port_node, self.topo.links
        gone = np.flatnonzero(np.isin(owner[links.a], loss.nodes) | np.isin(owner[links.b], loss.nodes))
        return Finding(
            "feed_down", loss.cause, loss.since, loss.ready, gone, signature, tell,
            covers=frozenset(self.topo.feeds.name[f] for f in loss.feeds.tolist()), scope=frozenset(scope),
        )  # fmt: skip

    def _psu(self, now: int, psu: int, outage: Outage, moment: Moment) -> Finding:
        since, holder = int(outage.since[psu]), int(self.model.psu_holder[psu])
        ready = psu not in outage.waiting and now - since >= ns(self.rules.power_hold)
        down = np.flatnonzero((outage.since > 0) & (self.model.psu_holder == holder))
        signature = (self.teller.level(holder, moment), len(down))
        tell = partial(self.teller.psu, psu, down, moment)
        name, scope = self.topo.psu_names[psu], frozenset((self.model.name(holder),))
        return Finding("psu_down", name, since, ready, NO_LINKS, signature, tell, scope=scope)

    # --- levels ---

    def _levels(self, moment: Moment, outage: Outage) -> Iterator[Finding]:
        state, n = moment.state, self.model.n
        load, now = moment.load, moment.scene.now
        capacity = np.r_[state.capacity, np.where(outage.feeds, np.nan, state.feed_capacity), self.model.site_watts]
        told = np.zeros(self._n, bool)  # with a loss of its own
        told[:n] = np.bincount(self.model.psu_holder[outage.since > 0], minlength=n) > 0
        for loss in outage.losses:
            told[self.model.n_nodes + loss.rack] = True
            told[n:-1] |= self.topo.feeds.rack == loss.rack
        promised = self.model.spare > 0
        reserve = np.where(promised & (self.model.spare > state.lost_units), state.after_loss, np.nan)
        next_ = np.where(promised, state.after_next, np.nan)
        time = self._times(moment.scene)
        over = self._hold(self._over, load, capacity, told, time)
        cut = self._hold(self._cut, load[:n], next_, told[:n], time[:n])
        thin = self._hold(self._thin, load[:n], reserve, told[:n], time[:n])
        yield from self._overs(over, capacity, moment)
        alone = (cut > 0) & (over[:n] == 0)
        yield from self._cuts(cut, alone, now, moment)
        for i in np.flatnonzero((thin > 0) & (cut == 0) & (over[:n] == 0)).tolist():
            yield self._headroom(i, int(thin[i]), "thin", float(reserve[i]), moment)
        limit = capacity.copy()
        limit[:n] = np.where(np.isnan(reserve), capacity[:n], reserve)
        busy = over > 0
        busy[:n] |= (cut > 0) | (thin > 0)
        yield from self._nears(limit, busy | told, time, moment)

    def _hold(self, lasting: Lasting, load: F64, limit: F64, told: Bool, time: I64) -> I64:
        """Since when the load is above the limit, 0 where not. It has to fall well below to end."""
        with np.errstate(invalid="ignore"):
            clear = load < limit * (1 - self.rules.power_clear)
        holds = np.where(load > limit, 1.0, np.where(clear | told | np.isnan(limit), 0.0, np.nan))
        return lasting.note(np.where(told, 0.0, holds), time)

    def _times(self, scene: Scene) -> I64:
        """Of the reading that each load rests on; now where it is made of several."""
        out = np.full(self._n, scene.now, np.int64)
        for kind, metric, at in (("node", "power_watts", 0), ("feed", "power_watts", self.model.n)):
            read = scene.time(kind, metric)
            out[at : at + len(read)] = np.where(read > 0, read, scene.now)
        return out

    def _overs(self, over: I64, capacity: F64, moment: Moment) -> Iterator[Finding]:
        n = self.model.n
        racks = over[self.model.n_nodes : n] > 0
        for i in np.flatnonzero(over).tolist():
            if n <= i < self._n - 1 and racks[self.topo.feeds.rack[i - n]]:
                continue  # the rack has too much on all its feeds
            yield self._headroom(i, int(over[i]), "over", float(capacity[i]), moment)

    def _headroom(
        self, i: int, since: int, level: str, limit: float, moment: Moment, seconds: float = 0.0
    ) -> Finding:
        name = self.name(i)
        scope = {name}
        if level == "over":  # its GPUs are braked
            scope |= {self.topo.nodes.name[k] for k in self.nodes_of(i).tolist()}
        tell = partial(self.teller.headroom, i, name, level, limit, seconds, moment)
        ready = moment.scene.now - since >= ns(self.rules.power_hold)
        return Finding("power_headroom", name, since, ready, NO_LINKS, level, tell, scope=frozenset(scope))

    def _cuts(self, cut: I64, alone: Bool, now: int, moment: Moment) -> Iterator[Finding]:
        n_nodes, nodes = self.model.n_nodes, self.topo.nodes
        together: set[int] = set()
        mine = np.flatnonzero(alone[:n_nodes])
        for rack in np.unique(nodes.rack[mine]).tolist():
            rows = mine[nodes.rack[mine] == rack]
            many = len(rows) >= _MANY and 2 * len(rows) >= np.count_nonzero((nodes.rack == rack) & (nodes.n_psus > 0))
            if rack >= 0 and (many or alone[n_nodes + rack]):
                together |= set(rows.tolist())
                if not alone[n_nodes + rack]:
                    yield self._cut_finding(n_nodes + rack, int(cut[rows].min()), rows.tolist(), moment)
        for i in np.flatnonzero(alone).tolist():
            if i not in together:
                yield self._cut_finding(i, int(cut[i]), [i], moment)

    def _cut_finding(self, holder: int, since: int, cut: list[int], moment: Moment) -> Finding:
        name = self.model.name(holder)
        names = frozenset(self.model.name(i) for i in cut)
        tell = partial(self.teller.cut, holder, cut, moment)
        ready = moment.scene.now - since >= ns(self.rules.power_hold)
        return Finding(
            "redundancy_lost", name, since, ready, NO_LINKS, len(cut), tell,
            covers=names, takes=frozenset({("power_headroom", name)}),
        )  # fmt: skip

    def _nears(self, limit: F64, told: Bool, time: I64, moment: Moment) -> Iterator[Finding]:
        load, standing = moment.load, self._near.since > 0
        with np.errstate(invalid="ignore"):
            margin = self.rules.power_margin + self.rules.power_clear * standing
            close = (load > limit * (1 - margin)) & ~told
            left = limit - load
        holds = np.where(np.isnan(load) & ~told, np.nan, 0.0)
        soon = np.full(self._n, np.inf)
        for i in np.flatnonzero(close).tolist():
            growth = self._loads.growth(i)
            soon[i] = left[i] / growth if growth > 0 else np.inf
            holds[i] = 1.0 if soon[i] < self.rules.power_soon or standing[i] else 0.0
        since = self._near.note(holds, time)
        for i in np.flatnonzero(since).tolist():
            yield self._headroom(i, int(since[i]), "near", float(limit[i]), moment, float(soon[i]))

    # --- swings ---

    def _swings(self, now: int) -> Iterator[Finding]:
        """Racks whose load goes up and down; several at once are the work of one job, told of the site."""
        n_nodes, n, window = self.model.n_nodes, self.model.n, round(self.rules.swing_window)
        share = self._loads.swing(window)
        with np.errstate(invalid="ignore"):
            wide = share > self.rules.swing_fraction
        places = [*range(n_nodes, n), self._n - 1]
        turns = {i: self._loads.turns(i, window) for i in places if wide[i]}
        found = [i for i, (count, _) in turns.items() if count >= _TURNS]
        racks = [i for i in found if i < n]
        site = len(racks) != 1 and bool(found) and (self._n - 1 in found or len(racks) >= _MANY)
        for i in [self._n - 1] if site else racks:
            rows = self._loads.rows[-window:, i].copy()
            tell = partial(self.teller.swing, self.nodes_of(i), self.name(i), rows, len(racks))
            covers = frozenset(self.model.name(r) for r in racks) if site else frozenset[str]()
            since = now - turns[i if i in turns else racks[0]][1] * NS
            yield Finding("power_swing", self.name(i), since, True, NO_LINKS, None, tell, covers=covers)

    # --- names ---

    def name(self, column: int) -> str:
        n = self.model.n
        if column < n:
            return self.model.name(column)
        return SITE if column == self._n - 1 else self.topo.feeds.name[column - n]

    def nodes_of(self, column: int) -> npt.NDArray[np.intp]:
        """Node rows that a column feeds."""
        n = self.model.n
        if n <= column < self._n - 1:
            return self.model.nodes_of(self.model.n_nodes + int(self.topo.feeds.rack[column - n]))
        return self.model.nodes_of(min(column, n))


def _whole(state: PowerState) -> float:
    """Load of the site where all of it is known."""
    return state.site_load if state.site_known == 1 else float("nan")
