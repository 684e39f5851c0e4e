"""Which links are down or slow and which sources are silent at a time of a scenario."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from twin.errors import InputError
from twin.power import PowerModel
from twin.simulator.errors import check_corrupt
from twin.simulator.failing import check_silence
from twin.simulator.gpufaults import check_hurt
from twin.simulator.jams import check_congest
from twin.simulator.jobs import EVERYONE, plane_of
from twin.simulator.lag import check_lag
from twin.simulator.nvlinks import check_nvlink_errors
from twin.simulator.power import check_power, unpowered
from twin.simulator.scenario import Fault
from twin.simulator.world import Active
from twin.topology.model import HOST_LEAF, Topology
from twin.topology.resolve import Target, resolve

F64 = npt.NDArray[np.float64]
Rows = npt.NDArray[np.intp]


class FaultState:
    """Applies faults by their times. Raises InputError for a target that the fabric does not have."""

    def __init__(self, topo: Topology, faults: Sequence[Fault]) -> None:
        self.topo = topo
        self.silent: set[str] = set()
        self._faults = [(f, self._target(f)) for f in faults]
        self._power = PowerModel(topo)
        self._fraction = np.ones(len(topo.links.a))
        self.active: list[Active] = []
        self.dead: set[str] = set()  # nodes and switches without power
        self.restarted: set[str] = set()
        self.restarted_ports = self.fell = np.zeros(0, np.intp)

    def _target(self, fault: Fault) -> Target:
        if fault.action in ("silence", "lag") and fault.target == "all":
            none = np.zeros(0, np.intp)
            return Target("all", none, np.arange(len(self.topo.switches.name)), np.arange(len(self.topo.nodes.name)))
        if fault.action == "abandon":
            return self._workers(fault)
        target = resolve(self.topo, fault.target)
        check_power(fault, target)
        check_hurt(fault, target)
        check_nvlink_errors(fault, target)
        if fault.action == "congest":
            check_congest(self.topo, fault, target)
        if fault.action == "corrupt":
            check_corrupt(fault, target)
        if fault.action == "mute" and not len(target.links):
            raise InputError(f"mute: {fault.target!r} has no links; expected a plane, a switch, a port or a link")
        if fault.action == "swap" and (len(target.links) != 1 or len(resolve(self.topo, fault.other).links) != 1):
            raise InputError(
                f"swap: {fault.target!r} and {fault.other!r}: expected two cables, by port or by both ends"
            )
        if fault.action in ("silence", "lag") and not len(target.switches) and not len(target.nodes):
            raise InputError(
                f"{fault.action}: {fault.target!r} is no source; expected a node, a switch, a plane or all"
            )
        check_silence(fault)
        check_lag(fault)
        check_restart(fault, target)
        return target

    def _workers(self, fault: Fault) -> Target:
        """The nodes of a job by its name, of all (`job`), or one node; checks the plane that they leave."""
        plane_of(self.topo, fault.other)
        none = np.zeros(0, np.intp)
        jobs = {name: nodes for name, nodes, _ in self.topo.jobs}
        if fault.target not in jobs and fault.target != EVERYONE:
            target = resolve(self.topo, fault.target)
            if not len(target.nodes):
                raise InputError(
                    f"abandon: {fault.target!r} is no job and no node; jobs are {', '.join(jobs) or EVERYONE}"
                )
            return target
        nodes = jobs.get(fault.target, range(len(self.topo.nodes.name)))
        return Target(fault.target, none, none, np.array(nodes, np.intp))

    def advance(self, t: float) -> None:
        """Moves to t seconds: what is under way, whose power is gone or back, which links just fell."""
        before = self._fraction > 0
        fraction = np.ones(len(self.topo.links.a))
        silent: set[str] = set()
        dead: set[str] = set()
        earlier = {now.fault for now in self.active}
        self.active = [
            Active(fault, target, t - fault.at)
            for fault, target in self._faults
            if fault.at <= t and (fault.until is None or t < fault.until)
        ]
        for now in self.active:
            self._apply(now, fraction)
            if now.fault.action in ("fail", "silence") or _is_away(now):
                names = self._source_names(now.target)
                silent |= names
                dead |= names if now.fault.action != "silence" else set()
        dark = self._without_power(fraction)
        silent, dead = silent | dark, dead | dark
        self.restarted = self.dead - dead
        self.dead, self.silent, self._fraction = dead, silent, fraction
        fell = np.flatnonzero(before & (fraction <= 0))
        links = self.topo.links
        self.restarted_ports = self._ports_of(self.restarted | self._reloaded(earlier))
        self.fell = np.concatenate([links.a[fell], links.b[fell]]).astype(np.intp)

    def _reloaded(self, earlier: set[Fault]) -> set[str]:
        """Nodes that restart their counters now; `earlier`: faults that were under way before."""
        fresh = (a for a in self.active if a.fault.action == "restart" and a.fault not in earlier)
        return {self.topo.nodes.name[n] for a in fresh for n in a.target.nodes}

    def _without_power(self, fraction: F64) -> set[str]:
        """Nodes that supplies and feeds which failed leave without power; their links go down."""
        nodes = unpowered(self._power, self.active)
        if len(nodes):
            links, owner = self.topo.links, self.topo.port_node
            fraction[np.isin(owner[links.a], nodes) | np.isin(owner[links.b], nodes)] = 0.0
        return {self.topo.nodes.name[n] for n in nodes}

    def cables(self, t: float) -> list[tuple[int, int]]:
        """Port rows of every cable as a discovery at t seconds would find it."""
        links = self.topo.links
        ends = links.b.tolist()
        for fault, target in self._faults:
            if fault.action == "swap" and fault.at <= t and (fault.until is None or t < fault.until):
                one, two = int(target.links[0]), int(resolve(self.topo, fault.other).links[0])
                ends[one], ends[two] = ends[two], ends[one]
        return list(zip(links.a.tolist(), ends, strict=True))

    def _apply(self, now: Active, fraction: F64) -> None:
        fault, rows = now.fault, now.target.links
        if fault.action == "fail" or _is_away(now):
            fraction[rows] = 0.0
        elif fault.action == "flap":
            if now.age % fault.period < fault.down:
                fraction[rows] = 0.0
        elif fault.action == "degrade":
            if fault.speed_fraction is not None:
                fraction[rows] *= fault.speed_fraction
            if fault.capacity_fraction is not None:
                fraction[self._part(rows, 1 - fault.capacity_fraction)] = 0.0

    def _part(self, rows: Rows, share: float) -> Rows:
        """A share of the uplinks among `rows` (of the host links where there are none), evenly spread."""
        uplinks = rows[self.topo.links.tier[rows] != HOST_LEAF]
        pool = uplinks if len(uplinks) else rows
        step = np.floor(np.arange(len(pool) + 1) * share)
        chosen: Rows = pool[np.diff(step) > 0]
        return chosen

    def _source_names(self, target: Target) -> set[str]:
        topo = self.topo
        return {topo.switches.name[s] for s in target.switches} | {topo.nodes.name[n] for n in target.nodes}

    def _ports_of(self, names: set[str]) -> Rows:
        if not names:
            return np.zeros(0, np.intp)
        switches = [self.topo.rows("switch")[n] for n in names if n in self.topo.rows("switch")]
        nodes = [self.topo.rows("node")[n] for n in names if n in self.topo.rows("node")]
        mine = np.isin(self.topo.ports.switch, switches) | np.isin(self.topo.port_node, nodes)
        return np.flatnonzero(mine)

    def link_speed(self) -> F64:
        """float64[links], bits/s now, 0 where down."""
        return self._fraction * self.topo.links.speed

    def ports(self) -> tuple[F64, F64]:
        """For each port: up (1, 0) and negotiated speed in bits/s, NaN while down or without a cable."""
        link = self.topo.ports.link
        up = np.where(link >= 0, (self._fraction > 0)[link], np.nan) if len(self._fraction) else link * np.nan
        speed = np.where(up == 1, self.link_speed()[link], np.nan) if len(self._fraction) else up
        return up.astype(np.float64), speed.astype(np.float64)


def check_restart(fault: Fault, target: Target) -> None:
    """Raises InputError for a restart of nothing that counts, or of a switch that never comes back."""
    if fault.action != "restart":
        return
    if not (len(target.switches) or len(target.nodes) or len(target.gpus)):
        raise InputError(f"restart: {fault.target!r} has no counters; expected a switch, a plane, a node or a GPU")
    if len(target.switches) and fault.until is None:
        raise InputError(f"restart: {fault.target!r}: 'until' is missing (when the switch is back)")


def _is_away(now: Active) -> bool:
    """A switch that restarts, which takes its links along; a node reloads its drivers while it runs."""
    return now.fault.action == "restart" and len(now.target.switches) > 0
