"""Findings about links, switches and planes: plane_down, plane_degraded, switch_down, link_down, link_slow,
link_flapping. Each says what it costs by taking just these links out of the designed fabric."""

from __future__ import annotations

import numpy as np

from twin.capacity import Capacity, CapacityModel
from twin.detectors.causes import Cause, CauseFinder
from twin.detectors.finding import Finding, LinkRows, Story
from twin.detectors.rules import Rules, ns
from twin.incident import Affected, Evidence
from twin.linkstate import LinkState
from twin.topology.model import HOST_LEAF, TIERS, Topology
from twin.units import show_speed

_SHOWN = 4  # readings quoted as evidence
_KIND_OF = {
    "plane": "plane_down",
    "part": "plane_degraded",
    "switch": "switch_down",
    "node": "link_down",
    "nic": "link_down",
    "link": "link_down",
}


class LinkDetector:
    """Looks at the state of all links and names causes."""

    def __init__(self, topo: Topology, model: CapacityModel, rules: Rules) -> None:
        self.topo, self.model, self.rules = topo, model, rules
        self.finder = CauseFinder(topo, model, rules)

    def findings(self, now: int, state: LinkState, held: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> list[Finding]:
        """held: links that an incident which is recovering still explains."""
        out = [self._down(cause, state) for cause in self.finder.find(now, state, held)]
        rows = np.flatnonzero(state.flapping & self.topo.compute_links).tolist()
        out.extend(self._flapping(row, state) for row in rows)
        out.extend(self._slow(now, state))
        return out

    def _address(self, what: str, row: int) -> str:
        topo = self.topo
        if what in ("plane", "part"):
            return f"plane:{topo.planes[row]}"
        if what == "link":
            return self.link_address(row)
        names: dict[str, tuple[str, ...]] = {
            "switch": topo.switches.name,
            "node": topo.nodes.name,
            "nic": topo.nic_names,
        }
        return names[what][row]

    def link_address(self, link: int) -> str:
        """How a link is named as a cause: by its NIC port where it has one, else by both ends."""
        if self.topo.links.tier[link] == HOST_LEAF:
            return str(self.topo.port_names[self.topo.links.a[link]])
        return self.topo.link_name(link)

    # --- down ---

    def _down(self, cause: Cause, state: LinkState) -> Finding:
        what, row, links, since, ready = cause
        kind, address = _KIND_OF[what], self._address(what, row)
        return Finding(
            kind, address, since, ready, links, (what, links.tobytes()), lambda: self._tell_down(cause, state)
        )

    def _tell_down(self, cause: Cause, state: LinkState) -> Story:
        capacity = self.model.without(cause.links.tolist())
        affected, least = self._affected(capacity)
        effect = self._effect(cause.links, capacity, least)
        summary, advice = self._words(cause, affected, effect)
        cut_off = least <= 0.5 or cause.what == "plane"
        severity = "critical" if cut_off and (affected.gpus > 1 or least == 0) else "warning"
        return Story(severity, affected, effect, self._down_evidence(cause, effect), summary, advice)

    def _words(self, cause: Cause, affected: Affected, effect: dict[str, float]) -> tuple[str, str]:
        what, row, links, *_ = cause
        topo, n = self.topo, len(links)
        cost = _cost(affected, effect)
        if what == "plane":
            dead = self._dead_switches(links)
            spines = [s for s in dead if topo.switches.tier[s] > 0]
            where = f" ({_names(topo, dead)})" if dead else ""
            look = (
                f"Look at its spines first: {_names(topo, spines)}."
                if spines
                else f"Look for what its switches share (power feed, controller, last change); {n} links are down."
            )
            return (
                f"plane {topo.planes[row]} is down{where}: {cost}",
                f"{look} Jobs run on over the other planes at reduced bandwidth; do not drain nodes for it.",
            )
        if what == "part":
            left = effect.get("plane_capacity_fraction", float("nan"))
            return (
                f"plane {topo.planes[row]} has {left:.0%} of its capacity left, {n} links are down: {cost}",
                "Several parts went within seconds: look for what they share "
                f"({_names(topo, self._dead_switches(links)) or 'line card, power feed, last change'}).",
            )
        if what == "switch":
            return (
                f"{TIERS[topo.switches.tier[row]]} {topo.switches.name[row]} is down, {n} links with it: {cost}",
                f"Check power and management of {topo.switches.name[row]}: its links went together, no cable did.",
            )
        if what == "node":
            return (
                f"all {n} fabric links of node {topo.nodes.name[row]} are down: {cost}",
                f"Check whether {topo.nodes.name[row]} is powered and booted before you look at cables.",
            )
        if what == "nic":
            return (
                f"all {n} ports of {topo.nic_names[row]} are down: {cost}",
                f"Check the NIC and its split cable at {topo.nic_names[row]}: its ports went together.",
            )
        a, b = topo.port_names[topo.links.a[row]], topo.port_names[topo.links.b[row]]
        kept = effect.get("plane_capacity_fraction")
        plane = f", plane {topo.planes[topo.links.plane[row]]} keeps {kept:.2%}" if kept is not None else ""
        return (
            f"link {a}--{b} is down{plane}: {cost}",
            f"Reseat or swap the cable between {a} and {b}; if it stays down swap the transceiver at {b} first.",
        )

    def _dead_switches(self, links: LinkRows) -> list[int]:
        """Switches all of whose links are among `links`."""
        topo = self.topo
        ends = np.concatenate([topo.ports.switch[topo.links.a], topo.ports.switch[topo.links.b]])
        hit = np.zeros(len(topo.links.a), bool)
        hit[links] = True
        count = len(topo.switches.name)
        total = np.bincount(ends[ends >= 0], minlength=count)
        dead = np.bincount(ends[np.tile(hit, 2) & (ends >= 0)], minlength=count)
        return [int(s) for s in np.flatnonzero((total > 0) & (dead == total))]

    def _down_evidence(self, cause: Cause, effect: dict[str, float]) -> tuple[Evidence, ...]:
        topo = self.topo
        out: list[Evidence] = []
        if cause.what in ("plane", "part"):
            left = effect.get("plane_capacity_fraction")
            out.append(Evidence(f"plane:{topo.planes[cause.row]}", "capacity_fraction", left, 1.0))
        for row in cause.links[:_SHOWN]:
            out.append(Evidence(topo.port_names[topo.links.a[row]], "up", 0.0, 1.0))
            if topo.links.tier[row] != HOST_LEAF:
                out.append(Evidence(topo.port_names[topo.links.b[row]], "up", 0.0, 1.0))
        return tuple(out)

    # --- slow and flapping ---

    def _slow(self, now: int, state: LinkState) -> list[Finding]:
        rows = np.flatnonzero(state.slow & ~state.down & self.topo.compute_links)
        return [self._slow_link(int(row), now, state) for row in rows]

    def _slow_link(self, row: int, now: int, state: LinkState) -> Finding:
        since, speed, design = int(state.slow_since[row]), float(state.speed[row]), float(self.topo.links.speed[row])
        ready = now - since >= ns(self.rules.link_debounce) and speed == speed

        def tell() -> Story:
            capacity = self.model.without([row], speed / design)
            affected, least = self._affected(capacity)
            a, b = self.topo.port_names[self.topo.links.a[row]], self.topo.port_names[self.topo.links.b[row]]
            effect = self._effect(np.array([row]), capacity, least)
            effect["speed_fraction"] = speed / design
            return Story(
                "warning",
                affected,
                effect,
                (Evidence(a, "speed_bits_per_second", speed, design),),
                f"link {a}--{b} runs at {show_speed(speed)} instead of {show_speed(design)}: "
                f"{_cost(affected, effect)}",
                f"Lanes lost or speed negotiated down: reseat the cable at {a}, then compare the settings of {b}.",
            )

        return Finding("link_slow", self.link_address(row), since, ready, np.array([row]), speed, tell)

    def _flapping(self, row: int, state: LinkState) -> Finding:
        falls = int(state.falls[row])

        def tell() -> Story:
            capacity = self.model.without([row])
            affected, least = self._affected(capacity)
            a, b = self.topo.port_names[self.topo.links.a[row]], self.topo.port_names[self.topo.links.b[row]]
            effect = self._effect(np.array([row]), capacity, least)
            minutes = self.rules.flap_window / 60
            return Story(
                "warning",
                affected,
                effect,
                (Evidence(a, "falls", float(falls), 0.0),),
                f"link {a}--{b} went down {falls} times within {minutes:g} min; while down {_cost(affected, effect)}",
                f"Take {a} out of use until it is mended: every flap stalls the job. Swap cable, then transceivers.",
            )

        since = min(int(state.first_fall[row]), int(state.since[row]) or int(state.first_fall[row]))
        return Finding(
            "link_flapping",
            self.link_address(row),
            since,
            falls >= self.rules.flap_count,
            np.array([row]),
            falls,
            tell,
            falls,
        )

    # --- cost ---

    def _affected(self, capacity: Capacity) -> tuple[Affected, float]:
        """Who loses bandwidth, and the least share that any of them keeps."""
        hit = np.flatnonzero(capacity.gpu < 1 - 1e-9)
        return affected(self.topo, hit), float(capacity.gpu[hit].min()) if len(hit) else 1.0

    def _effect(self, links: LinkRows, capacity: Capacity, least: float) -> dict[str, float]:
        effect = {"bandwidth_fraction": least}
        planes = np.unique(self.topo.links.plane[links])
        if len(planes) == 1 and planes[0] >= 0:
            effect["plane_capacity_fraction"] = float(capacity.plane[planes[0]])
        return effect


def affected(topo: Topology, gpus: LinkRows) -> Affected:
    """GPU rows as an operator names them: whole nodes where all their GPUs are in it."""
    nodes = topo.gpus.node[gpus]
    rows, counts = np.unique(nodes, return_counts=True)
    whole = set(rows[counts == topo.nodes.n_gpus[rows]].tolist())
    names = [topo.nodes.name[n] for n in rows.tolist() if n in whole]
    names += [topo.gpu_names[g] for g, n in zip(gpus.tolist(), nodes.tolist(), strict=True) if n not in whole]
    return Affected(len(gpus), len(rows), tuple(names))


def _cost(who: Affected, effect: dict[str, float]) -> str:
    if not who.gpus:
        return "no GPU loses bandwidth"
    gpus = "1 GPU" if who.gpus == 1 else f"{who.gpus} GPUs"
    return f"{gpus} at {_percent(effect['bandwidth_fraction'])} of network bandwidth"


def _percent(share: float) -> str:
    return f"{share:.0%}" if round(share, 2) < 1 or share == 1 else f"{share:.1%}"


def _names(topo: Topology, switches: list[int]) -> str:
    names = [topo.switches.name[s] for s in switches[:3]]
    return ", ".join(names) + (f" and {len(switches) - 3} more" if len(switches) > 3 else "")
