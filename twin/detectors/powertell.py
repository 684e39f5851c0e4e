"""Findings about power in words and numbers: what is left, for what load, after the next loss, and what to do."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

import numpy as np
import numpy.typing as npt

from twin.catalog import hardware
from twin.detectors.finding import Story
from twin.detectors.scene import Scene
from twin.detectors.supplies import FeedLoss
from twin.detectors.tell import affected
from twin.incident import Affected, Evidence
from twin.power import PowerModel, PowerState, lower_limit, more_gpus
from twin.topology.model import Topology
from twin.units import show_watts

F64 = npt.NDArray[np.float64]
Rows = npt.NDArray[np.intp]
_SHOWN = 4  # readings quoted as evidence
_ORDER = ("unknown", "kept", "lost", "over")  # levels, the worst last


@dataclass(frozen=True, slots=True)
class Moment:
    """load: float64[nodes, racks, feeds, site], W over the last seconds."""

    state: PowerState
    load: F64
    scene: Scene


class PowerTeller:
    """Tells stories of power."""

    def __init__(self, model: PowerModel) -> None:
        self.model, self.topo = model, model.topo

    def level(self, holder: int, m: Moment) -> str:
        """How a holder stands: over (more than it has), lost (not after one more loss), kept, unknown."""
        load = m.load[holder]
        if np.isnan(load) or np.isnan(m.state.capacity[holder]):
            return "unknown"
        if load > m.state.capacity[holder]:
            return "over"
        return "lost" if load > m.state.after_next[holder] else "kept"

    def after_feed(self, loss: FeedLoss, m: Moment) -> str:
        """The worst level of the rack and of the nodes that lost supplies; dark where nodes have no power at all."""
        if len(loss.nodes):
            return "dark"
        return max((self.level(h, m) for h in self._hit(loss)), key=_ORDER.index)

    def _hit(self, loss: FeedLoss) -> list[int]:
        """The holders that a lost feed touches."""
        return [self.model.n_nodes + loss.rack, *np.unique(self.model.psu_holder[loss.psus]).tolist()]

    # --- losses ---

    def psu(self, psu: int, down: Rows, m: Moment) -> Story:
        topo, holder = self.topo, int(self.model.psu_holder[psu])
        name, level = topo.psu_names[psu], self.level(holder, m)
        total = int(np.count_nonzero(self.model.psu_holder == holder))
        what = "node" if holder < self.model.n_nodes else "rack"
        owner = self.model.name(holder)
        evidence = (Evidence(name, "up", 0.0, 1.0), *self._load_evidence(holder, m))
        advice = f"Look at its input first (cable, breaker, feed): with power at its input {name} is to be replaced."
        if level == "over":
            advice = f"{self.relief(self.model.nodes_of(holder), self._excess(holder, m), m)} {advice}"
        elif level == "lost":
            advice += f" Until then {owner} must not lose another one."
        return Story(
            "critical" if level == "over" else "warning",
            self._at_risk(holder, level),
            self.effect(holder, m),
            evidence,
            f"supply {name} is down, {total - len(down)} of {total} of {what} {owner} are left: "
            f"{self._standing(holder, level, m)}",
            advice,
        )

    def feed(self, loss: FeedLoss, m: Moment) -> Story:
        topo, rack = self.topo, self.model.n_nodes + loss.rack
        level = self.after_feed(loss, m)
        drawn = m.scene.fresh("feed", "power_watts")
        evidence = [Evidence(topo.feeds.name[f], "power_watts", _known(drawn[f]), None) for f in loss.feeds.tolist()]
        evidence += [Evidence(topo.psu_names[p], "up", 0.0, 1.0) for p in loss.psus.tolist()]
        hit = [h for h in self._hit(loss) if self.level(h, m) == level]
        who = Affected()
        if level == "dark":
            who = affected(topo, np.flatnonzero(np.isin(topo.gpus.node, loss.nodes)))
            cost = f"{len(loss.nodes)} nodes have no other power"
        elif level in ("lost", "over"):
            who = affected(topo, np.flatnonzero(np.isin(topo.gpus.node, self._nodes(hit))))
            cost = self._standing(hit[0], level, m, self.model.name(hit[0]))
        else:
            cost = self._standing(rack, level, m, self.model.name(rack))
        what = f"feed {loss.cause} has" if len(loss.feeds) else f"half the supplies of rack {loss.cause} have"
        if len(loss.feeds) > 1:
            total = len(self.model.rack_feeds[loss.rack])
            many = "all" if len(loss.feeds) == total else f"{len(loss.feeds)} of"
            what = f"{many} {total} feeds of rack {loss.cause} have"
        lost = f", {len(loss.psus)} supplies with it" if len(loss.psus) else ""
        look = "what they are plugged into"
        if len(loss.feeds):
            look = "its breaker and distribution unit" if len(loss.feeds) == 1 else "what these feeds share"
        advice = f"One cause upstream, no supply failed: look at {look}."
        if level == "over":
            worst = hit[0]
            advice = f"{self.relief(self.model.nodes_of(worst), self._excess(worst, m), m)} {advice}"
        elif level == "lost":
            advice += " What is left has no reserve: keep people away from the other side."
        severity = "critical" if level in ("dark", "over", "lost") else "warning"
        effect = self.effect(hit[0] if hit else rack, m)
        if level == "dark":
            effect = {"capacity_watts": float(m.state.capacity[rack])}
        return Story(severity, who, effect, tuple(evidence[:_SHOWN]), f"{what} lost power{lost}: {cost}", advice)

    # --- loads ---

    def cut(self, holder: int, cut: list[int], m: Moment) -> Story:
        """redundancy_lost: no supply is down, but the load (or what supplies can give) leaves none to lose."""
        owner, worst = self.model.name(holder), max(cut, key=lambda i: m.load[i] - m.state.after_next[i])
        many = f"{len(cut)} nodes of " if cut != [holder] else ""
        nodes = self._nodes(cut)
        excess = float(m.load[worst] - m.state.after_next[worst])
        return Story(
            "warning",
            affected(self.topo, np.flatnonzero(np.isin(self.topo.gpus.node, nodes))),
            self.effect(worst, m),
            tuple(e for i in cut[:_SHOWN] for e in self._load_evidence(i, m, after=True)),
            f"{many}{owner} would not survive one more loss: {show_watts(m.load[worst])} drawn by "
            f"{self.model.name(worst)}, {show_watts(m.state.after_next[worst])} would be left",
            f"No supply is down, the load has outgrown them. {self.relief(self.model.nodes_of(worst), excess, m)}",
        )

    def headroom(self, i: int, name: str, level: str, limit: float, seconds: float, m: Moment) -> Story:
        """power_headroom: level over, thin (above what the design's losses leave) or near (a limit, and growing)."""
        load, nodes = float(m.load[i]), self._column_nodes(i)
        gap = load - limit
        if level == "near":
            soon = f"at this pace in {_show(seconds)}" if np.isfinite(seconds) else "and was growing"
            words = f"comes close to its limit of {show_watts(limit)}, {soon}"
            fit = more_gpus(-gap, self._limit(nodes, m))
            room = f"for {fit} more GPUs at full power, not more" if fit else "for not one more GPU at full power"
            advice = f"There is room {room}: start no further work there."
        else:
            words = (
                f"draws {gap / limit:.0%} more than the {show_watts(limit)} it may: it will trip"
                if level == "over"
                else f"draws more than the {show_watts(limit)} that the losses it is designed for would leave"
            )
            advice = self.relief(nodes, gap, m)
        gpus = np.flatnonzero(np.isin(self.topo.gpus.node, nodes))
        capacity = float(self._capacity(i, m))
        return Story(
            "critical" if level == "over" else "warning",
            affected(self.topo, gpus) if level == "over" else Affected(),
            _effect(load, capacity, float(m.state.after_loss[i]) if i < self.model.n else np.nan),
            (Evidence(name, "power_watts", round(load, 1), round(limit, 1)),),
            f"{name} {words} ({show_watts(load)} drawn, {show_watts(abs(gap))} {'over' if gap > 0 else 'left'})",
            advice,
        )

    def swing(self, nodes: Rows, name: str, rows: F64, racks: int) -> Story:
        low, high = float(rows.min()), float(rows.max())
        gpus = np.flatnonzero(np.isin(self.topo.gpus.node, nodes))
        where = f", {racks} racks in step" if racks > 1 else ""
        return Story(
            "warning",
            affected(self.topo, gpus),
            {"swing_watts": round(high - low, 1), "swing_fraction": round((high - low) / high, 4)},
            (Evidence(name, "power_watts", round(low, 1), round(high, 1)),),
            f"the load of {name} swings between {show_watts(low)} and {show_watts(high)} "
            f"({(high - low) / high:.0%}) within seconds{where}",
            "GPUs work and wait in step. Turn on power smoothing or a floor for their power; "
            "tell whoever runs the feed before it is their generator that says so.",
        )

    # --- pieces ---

    def relief(self, nodes: Rows, excess: float, m: Moment) -> str:
        """What takes `excess` W off the GPUs of these nodes."""
        gpus = np.flatnonzero(np.isin(self.topo.gpus.node, nodes))
        limits = self._limits(gpus, m)
        drawn = m.scene.fresh("gpu", "power_watts")[gpus]
        sure = "" if not np.isnan(drawn).all() else " (by their limits; what they draw is unknown)"
        draws = np.where(np.isnan(drawn), limits, drawn)
        draws = draws[~np.isnan(draws)]
        if not len(draws):
            return f"Take {show_watts(excess)} of load off."
        stop = min(len(draws), ceil(excess / max(float(draws.mean()), 1.0)))
        limit = lower_limit(draws, excess, least_limit(self.topo, nodes))
        if limit is None:
            return f"Power limits alone do not suffice: take the work off {stop} of its {len(gpus)} GPUs{sure}."
        return f"Set the limit of its {len(gpus)} GPUs to {limit:.0f} W, or take the work off {stop} of them{sure}."

    def effect(self, holder: int, m: Moment) -> dict[str, float]:
        """What an incident of a holder costs, in W."""
        state = m.state
        return _effect(float(m.load[holder]), float(state.capacity[holder]), float(state.after_next[holder]))

    def _standing(self, holder: int, level: str, m: Moment, owner: str = "") -> str:
        state, load = m.state, m.load[holder]
        who = f"{owner} has " if owner else ""
        have = f"{who}{show_watts(state.capacity[holder])} for {show_watts(load)}"
        if level == "unknown":
            return f"{who}an unknown load or rating, so whether the next loss is survived is unknown"
        if level == "over":
            return f"{have}: too little, it will trip"
        after = show_watts(state.after_next[holder])
        return (
            f"{have}; redundancy is lost, the next loss leaves {after}"
            if level == "lost"
            else (f"{have}; the next loss is survived, it leaves {after}")
        )

    def _at_risk(self, holder: int, level: str) -> Affected:
        return affected(self.topo, self.model.gpus_of(holder)) if level in ("lost", "over") else Affected()

    def _load_evidence(self, holder: int, m: Moment, *, after: bool = False) -> tuple[Evidence, ...]:
        load = m.load[holder]
        limit = m.state.after_next[holder] if after else m.state.capacity[holder]
        if np.isnan(load):
            return ()
        return (Evidence(self.model.name(holder), "power_watts", round(float(load), 1), _known(limit)),)

    def _excess(self, holder: int, m: Moment) -> float:
        return float(m.load[holder] - m.state.capacity[holder])

    def _capacity(self, i: int, m: Moment) -> float:
        n = self.model.n
        every = np.r_[m.state.capacity, m.state.feed_capacity, self.model.site_watts]
        return float(every[i]) if i < len(every) else float(every[n])

    def _nodes(self, holders: list[int]) -> Rows:
        parts = [self.model.nodes_of(h) for h in holders]
        return np.unique(np.concatenate(parts)) if parts else np.zeros(0, np.intp)

    def _column_nodes(self, i: int) -> Rows:
        n = self.model.n
        if n <= i < n + len(self.topo.feeds.name):
            return self.model.nodes_of(self.model.n_nodes + int(self.topo.feeds.rack[i - n]))
        return self.model.nodes_of(min(i, n))

    def _limits(self, gpus: Rows, m: Moment) -> F64:
        """float64[gpus]: power limits as read, else as the catalogue has them."""
        models = hardware()["gpu"]
        read = m.scene.fresh("gpu", "power_limit_watts")[gpus]
        names = [self.topo.nodes.gpu_model[n] for n in self.topo.gpus.node[gpus].tolist()]
        known = np.array([float(models.get(name, {}).get("power_limit_watts", np.nan)) for name in names])
        out: F64 = np.where(np.isnan(read), known, read)
        return out

    def _limit(self, nodes: Rows, m: Moment) -> float:
        limits = self._limits(np.flatnonzero(np.isin(self.topo.gpus.node, nodes)), m)
        known = limits[~np.isnan(limits)]
        return float(known.max()) if len(known) else np.inf


def least_limit(topo: Topology, nodes: Rows) -> float:
    """The lowest power limit (W) that GPUs of these nodes take, 0 where the catalogue does not say."""
    models = hardware()["gpu"]
    names = {topo.nodes.gpu_model[n] for n in nodes.tolist()}
    return max((float(models.get(name, {}).get("least_power_limit_watts", 0.0)) for name in names), default=0.0)


def _effect(load: float, capacity: float, after: float) -> dict[str, float]:
    """Known figures only."""
    out = {
        "load_watts": load,
        "capacity_watts": capacity,
        "headroom_watts": capacity - load,
        "headroom_fraction": (capacity - load) / capacity if capacity else -1.0,
        "headroom_after_loss_watts": after - load,
    }
    return {name: round(value, 4) for name, value in out.items() if value == value}


def _known(value: float) -> float | None:
    return round(float(value), 1) if value == value else None


def _show(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
