"""Findings about links in words and numbers: summary, advice, evidence, and what it costs.

The cost is that of just these links: the designed fabric without them.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from twin.capacity import Capacity, CapacityModel
from twin.detectors.causes import Cause
from twin.detectors.finding import LinkRows, Story
from twin.detectors.jobs import JobCost, job_words
from twin.incident import Affected, Evidence
from twin.linkstate import LinkState
from twin.topology.model import TIERS, Topology
from twin.units import show_speed

_SHOWN = 4  # readings quoted as evidence


class LinkTeller:
    """Tells stories of causes."""

    def __init__(self, topo: Topology, model: CapacityModel) -> None:
        self.topo, self.model = topo, model
        self._jobs = JobCost(topo)

    # --- down ---

    def down(self, cause: Cause, state: LinkState) -> Story:
        capacity = self.model.without(cause.links.tolist())
        who, effect = self._cost(cause.links, capacity)
        if self.topo.plane_kind == "rail" and cause.what in ("plane", "part", "switch"):
            who, effect = self._rail_cost(capacity, effect)
        least = effect["bandwidth_fraction"]
        cut_off = least <= 0.5 or (cause.what == "plane" and who.gpus > 0)
        if cut_off and (who.gpus > 1 or least == 0):
            severity = "critical"
        else:
            severity = "warning" if who.gpus or len(cause.links) > 1 else "info"
        summary, advice = self._down_words(cause, who, effect)
        jobs = self._jobs.of(self._shares(cause, capacity))
        evidence = self._down_evidence(cause, state, effect)
        return Story(severity, who, effect, evidence, summary + job_words(jobs), advice, jobs)

    def _shares(self, cause: Cause, capacity: Capacity) -> npt.NDArray[np.float64]:
        """float64[gpus]: what each GPU has left. Where a rail is a plane NVLink forwards to the other NICs."""
        if self.topo.plane_kind == "rail" and cause.what in ("plane", "part", "switch"):
            return self.model.nodes(capacity)[self.topo.gpus.node]
        return capacity.gpu

    def _down_words(self, cause: Cause, who: Affected, effect: dict[str, float]) -> tuple[str, str]:
        topo, row, cost = self.topo, cause.row, cost_words(who, effect)
        if cause.what == "plane":
            return self._plane_words(cause, effect, cost)
        if cause.what == "part":
            left = effect.get("plane_capacity_fraction", float("nan"))
            dead, many = self._names(self._dead_switches(cause.links)), len(cause.links)
            return (
                f"plane {topo.planes[row]} has {left:.0%} of its capacity left, {many} links are down: {cost}",
                "Several parts went within seconds: look for what they share "
                f"({dead or 'line card, power feed, last change'}).",
            )
        if cause.what == "link":
            return self._link_words(row, effect, cost)
        name, kind = self._device(cause)
        if not cause.whole:
            return (
                f"{self._how_many(cause)} links of {kind} {name} are down, they went at once: {cost}",
                f"Look for what they share at {name}: line card, breakout cables, plane or its last change.",
            )
        if cause.what == "switch":
            return (
                f"{kind} {name} is down, {len(cause.links)} links with it: {cost}",
                f"Check power and management of {name}: its links went together, no cable did.",
            )
        if cause.what == "node":
            return (
                f"all {len(cause.links)} known fabric links of node {name} are down: {cost}",
                f"Check whether {name} is powered and booted before you look at cables.",
            )
        return (
            f"all {len(cause.links)} known links of {name} are down: {cost}",
            f"Check the NIC and its cable at {name}: its ports went together.",
        )

    def _plane_words(self, cause: Cause, effect: dict[str, float], cost: str) -> tuple[str, str]:
        topo = self.topo
        dead = self._dead_switches(cause.links)
        spines = [s for s in dead if topo.switches.tier[s] > 0]
        where = f" ({self._names(dead)})" if dead else ""
        if spines:
            look = f"Look at its spines first: {self._names(spines)}."
        else:
            look = (
                "Look for what its switches share (power feed, controller, last change); "
                f"{len(cause.links)} links are down."
            )
        if topo.plane_kind == "rail":
            look += " Each node lost one NIC; its traffic can go over NVLink to the other NICs, if the job allows it."
        elif len(topo.planes) > 1 and effect["bandwidth_fraction"] > 0:
            look += " Jobs run on over the other planes at reduced bandwidth; do not drain nodes for it."
        else:
            look += " There is no other plane to carry the traffic: jobs across nodes stand still."
        return f"plane {topo.planes[cause.row]} is down{where}: {cost}", look

    def _link_words(self, row: int, effect: dict[str, float], cost: str) -> tuple[str, str]:
        a, b = self._ends(row)
        kept = effect.get("plane_capacity_fraction")
        plane = f", plane {self.topo.planes[self.topo.links.plane[row]]} keeps {kept:.2%}" if kept is not None else ""
        return (
            f"link {a}--{b} is down{plane}: {cost}",
            f"Reseat or swap the cable between {a} and {b}; if it stays down swap the transceiver at {b} first.",
        )

    def _down_evidence(self, cause: Cause, state: LinkState, effect: dict[str, float]) -> tuple[Evidence, ...]:
        """The ends that say so; a silent end says nothing."""
        topo, out = self.topo, []
        if cause.what in ("plane", "part"):
            left = effect.get("plane_capacity_fraction")
            out.append(Evidence(f"plane:{topo.planes[cause.row]}", "capacity_fraction", left, 1.0))
        ends = zip((topo.links.a, topo.links.b), state.ends_down, strict=True)
        said = sorted((int(row), int(port[row])) for port, down in ends for row in cause.links[down[cause.links]])
        out.extend(Evidence(topo.port_names[port], "up", 0.0, 1.0) for _, port in said[:_SHOWN])
        return tuple(out)

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

    # --- slow and flapping ---

    def slow(self, cause: Cause, state: LinkState) -> Story:
        rows = cause.links
        design = self.topo.links.speed[rows]
        speed = np.where(np.isnan(state.speed[rows]), design, state.speed[rows])
        capacity = self.model.without(rows.tolist(), speed / design)
        who, effect = self._cost(rows, capacity)
        jobs = self._jobs.of(capacity.gpu)
        worst = int((speed / design).argmin())
        effect["speed_fraction"] = float(speed[worst] / design[worst])
        what = f"runs at {show_speed(speed[worst])} instead of {show_speed(design[worst])}"
        cost = cost_words(who, effect)
        evidence = tuple(
            Evidence(self._ends(r)[0], "speed_bits_per_second", float(s), float(d))
            for r, s, d in list(zip(rows.tolist(), speed.tolist(), design.tolist(), strict=True))[:_SHOWN]
        )
        if cause.what == "link":
            a, b = self._ends(cause.row)
            summary = f"link {a}--{b} {what}: {cost}"
            advice = (
                f"Lanes lost or speed negotiated down: reseat the cable at {a}, then compare the settings of {b}."
            )
        else:
            name, kind = self._device(cause)
            summary = f"{self._how_many(cause)} links of {kind} {name} are slow, the worst {what}: {cost}"
            advice = f"So many are no cables: compare port settings and firmware at {name}, and its last change."
        severity = "critical" if cause.what == "plane" else "warning"
        return Story(severity, who, effect, evidence, summary + job_words(jobs), advice, jobs)

    def flapping(self, cause: Cause, falls: int, window: float) -> Story:
        capacity = self.model.without(cause.links.tolist())
        who, effect = self._cost(cause.links, capacity)
        jobs = self._jobs.of(capacity.gpu)
        cost = f"{falls} times within {window / 60:g} min; while down {cost_words(who, effect)}"
        evidence = tuple(
            Evidence(self._ends(r)[0], "falls", float(falls), 0.0) for r in cause.links[:_SHOWN].tolist()
        )
        if cause.what == "link":
            a, b = self._ends(cause.row)
            summary = f"link {a}--{b} went down {cost}"
            advice = (
                f"Take {a} out of use until it is mended: every flap stalls the job. Swap cable, then transceivers."
            )
        else:
            name, kind = self._device(cause)
            summary = f"{self._how_many(cause)} links of {kind} {name} went down {cost}"
            advice = f"They fall together: look at {name} itself (power, firmware, reboots), not at its cables."
        return Story("warning", who, effect, evidence, summary + job_words(jobs), advice, jobs)

    # --- shared ---

    def _cost(self, links: LinkRows, capacity: Capacity) -> tuple[Affected, dict[str, float]]:
        """Who loses bandwidth, the least share that any of them keeps, and what the plane keeps."""
        hit = np.flatnonzero(capacity.gpu < 1 - 1e-9)
        effect = {"bandwidth_fraction": float(capacity.gpu[hit].min()) if len(hit) else 1.0}
        planes = np.unique(self.topo.links.plane[links])
        if len(planes) == 1 and planes[0] >= 0 and not np.isnan(capacity.plane[planes[0]]):
            effect["plane_capacity_fraction"] = float(capacity.plane[planes[0]])
        return affected(self.topo, hit), effect

    def _rail_cost(self, capacity: Capacity, effect: dict[str, float]) -> tuple[Affected, dict[str, float]]:
        """Where NIC i sits in plane i alone a lost plane is one NIC of every node; NVLink forwards to the others."""
        share = self.model.nodes(capacity)
        hit = share < 1 - 1e-9
        gpus = np.flatnonzero(hit[self.topo.gpus.node])
        least = float(share[hit].min(initial=1.0))
        return affected(self.topo, gpus), {**effect, "bandwidth_fraction": least, "own_nic_fraction": 0.0}

    def _ends(self, link: int) -> tuple[str, str]:
        names = self.topo.port_names
        return names[self.topo.links.a[link]], names[self.topo.links.b[link]]

    def _device(self, cause: Cause) -> tuple[str, str]:
        """Its name, and what kind of thing an operator calls it."""
        topo, row = self.topo, cause.row
        if cause.what in ("plane", "part"):
            return topo.planes[row], "plane"
        if cause.what == "switch":
            return topo.switches.name[row], TIERS[topo.switches.tier[row]]
        if cause.what == "node":
            return topo.nodes.name[row], "node"
        return topo.nic_names[row], "NIC"

    def _how_many(self, cause: Cause) -> str:
        """`32 of 128`: how many of the device's links these are."""
        topo, links = self.topo, self.topo.links
        if cause.what in ("plane", "part"):
            total = np.count_nonzero(links.plane == cause.row)
        elif cause.what == "switch":
            total = np.count_nonzero(topo.ports.switch[links.a] == cause.row)
            total += np.count_nonzero(topo.ports.switch[links.b] == cause.row)
        elif cause.what == "node":
            total = np.count_nonzero(topo.port_node[links.a] == cause.row)
        else:
            total = np.count_nonzero(topo.ports.nic[links.a] == cause.row)
        return f"{len(cause.links)} of {total}"

    def _names(self, switches: list[int]) -> str:
        names = [self.topo.switches.name[s] for s in switches[:3]]
        return ", ".join(names) + (f" and {len(switches) - 3} more" if len(switches) > 3 else "")


def affected(topo: Topology, gpus: LinkRows) -> Affected:
    """GPU rows as an operator names them: whole nodes where all their GPUs are in it."""
    nodes = topo.gpus.node[gpus]
    rows, counts = np.unique(nodes, return_counts=True)
    whole = set(rows[counts == topo.nodes.n_gpus[rows]].tolist())
    names = [topo.nodes.name[n] for n in rows.tolist() if n in whole]
    names += [topo.gpu_names[g] for g, n in zip(gpus.tolist(), nodes.tolist(), strict=True) if n not in whole]
    return Affected(len(gpus), len(rows), tuple(names))


def cost_words(who: Affected, effect: dict[str, float]) -> str:
    if not who.gpus:
        return "no GPU loses bandwidth"
    gpus = "1 GPU" if who.gpus == 1 else f"{who.gpus} GPUs"
    share = effect["bandwidth_fraction"]
    percent = f"{share:.0%}" if round(share, 2) < 1 else f"{share:.1%}"
    return f"{gpus} at {percent} of network bandwidth"
