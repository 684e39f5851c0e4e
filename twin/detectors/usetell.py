"""Findings about unused bandwidth in words and numbers. Every link is up, so the words say how sure the cause is."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np

from twin.capacity import CapacityModel
from twin.detectors.finding import Story
from twin.detectors.foretold import foretold
from twin.detectors.jobs import JobCost, job_words
from twin.detectors.linkuse import LinkUse
from twin.detectors.tell import affected, cost_words
from twin.frames import NS
from twin.incident import Evidence
from twin.topology.model import HOST_LEAF, TIERS, Topology
from twin.units import show_speed

if TYPE_CHECKING:
    from twin.detectors.planeuse import Silent

_SHOWN = 4  # readings quoted as evidence


class UseTeller:
    """Tells stories of silent links."""

    def __init__(self, topo: Topology) -> None:
        self.topo = topo
        self._model: CapacityModel | None = None  # made when there is something to tell

    def tell(self, cause: Silent, use: LinkUse) -> Story:
        topo, rows = self.topo, cause.links
        if self._model is None:
            self._model = CapacityModel(topo)
        capacity = self._model.without(rows.tolist())
        share = capacity.gpu
        if topo.plane_kind == "rail":
            share = self._model.nodes(capacity)[topo.gpus.node]
        hit = np.flatnonzero(share < 1 - 1e-9)
        least = float(share[hit].min(initial=1.0))
        unused = float(np.nansum(topo.links.speed[rows]))
        effect = {"bandwidth_fraction": least, "unused_bits_per_second": unused}
        who, jobs = affected(topo, hit), JobCost(topo).of(share)
        broad = cause.what in ("plane", "switch")
        critical = broad and least <= 0.5 and who.gpus > 1
        gives = f"{show_speed(unused)}b/s lie idle"
        return Story(
            "critical" if critical else "warning", who, effect, self._evidence(cause, use),
            f"{self._subject(cause, use)}: {gives}, {cost_words(who, effect)}{job_words(jobs)}",
            self._advice(cause), jobs,
        )  # fmt: skip

    def _evidence(self, cause: Silent, use: LinkUse) -> tuple[Evidence, ...]:
        """What is carried, as a share of the speed, against what the siblings carry."""

        def seen(name: str, load: float, expected: float) -> Evidence:
            return Evidence(name, "load_fraction", _rounded(load), _rounded(expected))

        rows = cause.links
        out = []
        if cause.what == "plane":
            known = ~np.isnan(use.load[rows]) & ~np.isnan(use.expected[rows])
            if known.any():
                load, expected = use.load[rows][known].mean(), use.expected[rows][known].mean()
                out.append(seen(cause.cause, float(load), float(expected)))
        out += self._foretold(cause, use)
        ports = self.topo.links.a[rows[:_SHOWN]].tolist()
        out += [
            seen(self.topo.port_names[p], float(use.load[r]), float(use.expected[r]))
            for p, r in zip(ports, rows.tolist(), strict=False)
        ]
        return tuple(out)

    def _foretold(self, cause: Silent, use: LinkUse) -> list[Evidence]:
        """What the jobs' collectives would send over these links from the hosts, where the wiring names jobs."""
        links = self.topo.links
        if cause.what not in ("plane", "job") or not self.topo.jobs:
            return []
        load = np.full(len(self.topo.ports.link), np.nan)
        load[links.a] = use.load
        host = cause.links[links.tier[cause.links] == HOST_LEAF]
        should = foretold(self.topo, load)[0][host]
        known = ~np.isnan(should) & ~np.isnan(use.load[host])
        if not known.any():
            return []
        seen, said = float(use.load[host][known].mean()), float(should[known].mean())
        return [Evidence(cause.cause, "load_fraction_of_model", _rounded(seen), _rounded(said))]

    # --- words ---

    def _subject(self, cause: Silent, use: LinkUse) -> str:
        topo = self.topo
        plane = self._planes(cause)
        count, since = len(cause.links), _clock(cause.since)
        if cause.what in ("plane", "switch"):
            name = plane if cause.what == "plane" else f"{TIERS[topo.switches.tier[cause.row]]} {self._switch(cause)}"
            beside = {"plane": "the other planes carry"}.get(cause.what, "their siblings carry")
            what = f"{name} is up and silent, {count} links carry next to nothing while {beside}"
            if cause.history == "returned":
                return f"{what}; it is up again since {_clock(cause.back)} and no load came back"
            return f"{what}, {'since' if cause.history == 'stopped' else 'ever since it was first seen at'} {since}"
        user = cause.cause.split("/")[0]
        who = {"job": f"job {user}", "node": f"node {user}"}.get(cause.what, "")
        if cause.what in ("port", "nic"):
            who = cause.cause
        elif cause.what == "nodes":
            who = f"traffic of {len(np.unique(topo.port_node[topo.links.a[cause.links]]))} nodes"
        if cause.history == "returned":
            return f"{who} never returned to {plane}, which came back at {_clock(cause.back)}"
        if cause.history == "stopped":
            return f"{who} uses {plane} no more since {since}, though {count} links to it are up"
        return f"{who} has not used {plane} since it was first seen at {since}, though {count} links to it are up"

    def _planes(self, cause: Silent) -> str:
        """`plane B`, or `planes B, C and D`."""
        names = [self.topo.planes[p] for p in np.unique(self.topo.links.plane[cause.links]).tolist() if p >= 0]
        if not names:
            return "the fabric"
        return f"plane {names[0]}" if len(names) == 1 else f"planes {', '.join(names[:-1])} and {names[-1]}"

    def _advice(self, cause: Silent) -> str:
        if cause.what in ("job", "node", "nodes"):
            who = "The job" if cause.what == "job" else "What runs there"
            if cause.history == "returned":
                return (
                    f"{who} gave the plane up when it failed and will not come back by itself: restart it at the "
                    "next checkpoint. Nearly certain: the links were down before, and are up and unused since."
                )
            if cause.history == "never":
                return (
                    f"{who} is likely set to fewer planes than there are: compare queue pairs, NIC merging and the "
                    "list of NICs (for NCCL: NCCL_IB_QPS_PER_CONNECTION, NCCL_NET_MERGE_LEVEL, NCCL_IB_HCA). Another "
                    "job that uses the plane on the same nodes would confirm it; if none can, suspect the plane."
                )
            return (
                f"{who} left the plane while its links stayed up: look for errors or timeouts on it at that time in "
                "the job's log, then restart it. If other work on these nodes avoids the plane too, suspect its "
                "routing."
            )
        if cause.what in ("port", "nic"):
            return (
                f"Check that {cause.cause} has its addresses and routes there and that the job lists it; a test over "
                "it alone tells the port from the job's settings."
            )
        if cause.what == "switch":
            name = self._switch(cause)
            return (
                f"Its links are up, so look at what forwards: routes and forwarding tables of {name}, what the "
                "fabric manager or BGP says of it, its last change. Likely, not certain: a test over it alone tells."
            )
        if cause.history == "returned":
            return (
                "Its links came back and no job did, as collectives do that gave a plane up: restart jobs at their "
                "next checkpoint. If a fresh test over this plane alone does not pass either, its routing is broken."
            )
        return (
            "No link state shows it: look at routing and forwarding of the plane (routes, BGP or subnet manager, "
            "last change), then at whether jobs are set to one plane. A test over this plane alone tells the two "
            "apart."
        )

    def _switch(self, cause: Silent) -> str:
        return self.topo.switches.name[cause.row]


def _clock(time: int) -> str:
    return datetime.fromtimestamp(time // NS, UTC).strftime("%H:%M:%SZ")


def _rounded(share: float) -> float | None:
    return None if share != share else round(share, 4)
