"""Congestion in words and numbers: where it begins, who waits, what is lost, and what to do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import log2

import numpy as np
import numpy.typing as npt

from twin.detectors.backpressure import Root
from twin.detectors.finding import Story
from twin.detectors.foretold import foretold
from twin.detectors.scene import Scene
from twin.detectors.tell import affected
from twin.detectors.waiting import PortView
from twin.incident import Affected, Evidence
from twin.topology.model import Topology
from twin.units import show_speed

F64 = npt.NDArray[np.float64]
Rows = npt.NDArray[np.intp]

_SHOWN = 4  # readings quoted as evidence
_NOTIFIED = 10.0  # times as many congestion notifications as usual: a sender that is slowed


@dataclass(frozen=True, slots=True)
class Cost:
    """victims: names of who waits. worst: the longest wait of a port, share of time."""

    who: Affected
    victims: tuple[str, ...]
    fraction: float
    worst: float

    def size(self) -> tuple[int, ...]:
        """Coarse, so that small changes are no news."""
        return int(log2(1 + self.who.gpus)), int(10 * self.fraction), int(5 * self.worst)


class CongestionTeller:
    def __init__(self, topo: Topology) -> None:
        self.topo = topo
        n = len(topo.nics.node)
        self._nic_ports = np.bincount(topo.ports.nic[topo.ports.nic >= 0], minlength=n)

    def cost(self, root: Root, wait: F64) -> Cost:
        """Who pays: the hosts that wait, and the host that does not get what is sent to it."""
        topo = self.topo
        lost = np.zeros(len(topo.nics.node) + 1)  # share of the bandwidth of each NIC, either way
        hit = np.zeros(len(topo.nics.node) + 1, bool)
        for ports in (root.held, topo.ports.peer[root.held]):
            mine = ports >= 0
            rows, share = topo.ports.nic[ports[mine]], wait[root.held[mine]]
            np.add.at(lost, rows[rows >= 0], share[rows >= 0])
            hit[rows[rows >= 0]] = True
        end = int(topo.ports.peer[root.port])
        receiver = int(topo.ports.nic[end]) if end >= 0 else -1
        if receiver >= 0 and root.form != "imbalance":
            hit[receiver] = True
        gpus = np.flatnonzero(hit[topo.gpus.nic] & (topo.gpus.nic >= 0))
        held = hit.copy()
        if receiver >= 0:
            held[receiver] = False
        waiting = gpus[held[topo.gpus.nic[gpus]]]
        share = 1 - lost[topo.gpus.nic[gpus]] / np.maximum(self._nic_ports, 1)[topo.gpus.nic[gpus]]
        victims = affected(topo, waiting).names
        if not victims:  # only switches are read
            others = root.held[root.held != root.port]
            victims = tuple(topo.port_names[p] for p in others.tolist())
        worst = float(wait[root.held].max(initial=0.0))
        return Cost(affected(topo, gpus), victims, float(np.clip(share.min(initial=1.0), 0, 1)), worst)

    def senders(self, root: Root, scene: Scene) -> int:
        """Hosts that send into it: those that wait, or that are told to slow down far more often than others."""
        topo = self.topo
        ports = set(root.held[topo.ports.nic[root.held] >= 0].tolist())
        if scene.heard("port", "cnp_handled_packets"):
            told = scene.fresh("port", "cnp_handled_packets")
            known = ~np.isnan(told)
            if known.any():
                ports |= set(np.flatnonzero(told > _NOTIFIED * max(float(np.median(told[known])), 1.0)).tolist())
        return len({int(topo.port_node[p]) for p in ports})

    # --- words ---

    def tell(self, root: Root, view: PortView, cost: Cost, senders: int) -> Story:
        summary, advice = self._words(root, view, cost, senders)
        severity = "critical" if root.form == "pause_storm" else "warning"
        effect = {"bandwidth_fraction": cost.fraction, "waiting_fraction": cost.worst}
        if np.isfinite(view.speed[root.port]) and np.isfinite(view.wait[root.port]):
            effect["lost_bits_per_second"] = float(view.wait[root.port] * view.speed[root.port])
        return Story(
            severity, cost.who, effect, self._evidence(root, view), f"{summary}: {_who(cost)}", advice,
            class_=root.form, victims=cost.victims,
        )  # fmt: skip

    def _words(self, root: Root, view: PortView, cost: Cost, senders: int) -> tuple[str, str]:
        port, names = root.port, self.topo.port_names
        here, peer = names[port], int(self.topo.ports.peer[port])
        there = names[peer] if peer >= 0 else "its peer"
        load, wait = view.load[port], view.wait[port]
        carried = f"{show_speed(load * view.speed[port])} of {show_speed(view.speed[port])}" if load == load else "?"
        if root.lost:
            return self._lost_words(root, carried, wait, here, there)
        if root.form == "pause_storm":
            return (
                f"{there} pauses {here} {wait:.0%} of the time and nothing drains",
                f"Take {there} out of the fabric or reset its NIC now: it stops others through back-pressure. Then "
                "look for a hung host, driver or firmware. Certain of the place: the wait ends there.",
            )
        if root.form == "slow_receiver":
            host = there.split("/")[0]
            return (
                f"{there} takes only {carried}, {here} waits {wait:.0%} of the time",
                f"The host {host} cannot drain, the network is not at fault: look at PCIe width and speed, memory "
                f"bandwidth, IOMMU and CPU of {host}. Certain of the place: nothing waits behind it.",
            )
        if root.form == "incast":
            many = f"{senders} hosts send" if senders > 1 else "more is sent"
            return (
                f"{many} to {there} at once, {here} is full ({carried})",
                f"Spread what is sent to {there}: look at which job or storage client targets it. Neither cable nor "
                "switch is at fault." + self._how_sure(root, here, senders),
            )
        if root.form == "imbalance":
            return (
                f"{here} to {there} is full ({carried}) while its equal paths are not",
                f"Look at load balancing on {here.split('/')[0]}: adaptive routing off, few large flows on one hash, "
                "or paths that it does not know. The capacity is there, it is not used.",
            )
        return (
            f"{len(root.full)} ports at {root.cause} are all full, more is wanted than they carry",
            f"Place jobs so that less crosses {root.cause}, or give it more uplinks; compare with links that are "
            "down or slow there.",
        )

    @staticmethod
    def _how_sure(root: Root, here: str, senders: int) -> str:
        if root.unsure:
            return (
                f" Not certain: other ports of {here.rpartition('/')[0]} are nearly as full, {here} was so longest."
            )
        return "" if senders > 1 else " Who sends is not read."

    def _lost_words(self, root: Root, carried: str, wait: float, here: str, there: str) -> tuple[str, str]:
        if root.form == "slow_receiver":
            return (
                f"{there} throttles {here}: {carried}, it waits {wait:.0%} of the time",
                f"The cause lies behind {there}, not at {here}: what {there.split('/')[0]} sends on is not read, or "
                "none of it is full. Read its ports to see which receiver is slow.",
            )
        return (
            f"{len(root.held)} ports wait for {root.cause} and none of its ports is seen to be full",
            f"The cause lies at {root.cause} or behind it, not at the hosts: read the ports of its switches to tell "
            "a slow receiver from too much load.",
        )

    def _evidence(self, root: Root, view: PortView) -> tuple[Evidence, ...]:
        names = self.topo.port_names
        loads = [p for p in (root.full or (root.port,))[:2] if not np.isnan(view.load[p])]
        should = self._foretold(root, view)
        out = [Evidence(names[p], "load_fraction", round(float(view.load[p]), 3), should(p)) for p in loads]
        waits = root.held[np.argsort(-np.nan_to_num(view.wait[root.held]), kind="stable")]
        waits = waits[np.nan_to_num(view.wait[waits]) > 0]
        out.extend(Evidence(names[p], "waiting_fraction", round(float(view.wait[p]), 3), 0.0) for p in waits[:_SHOWN])
        queues = root.held[np.nan_to_num(view.queue[root.held]) > 0]
        out.extend(Evidence(names[p], "queue_fraction", round(float(view.queue[p]), 3), 0.0) for p in queues[:1])
        return tuple(out)

    def _foretold(self, root: Root, view: PortView) -> Callable[[int], float | None]:
        """The load of a port that the jobs' collectives would give it, were equal paths used alike."""
        if root.form != "imbalance":
            return lambda port: None
        links, shares = self.topo.links, foretold(self.topo, view.load)

        def of(port: int) -> float | None:
            link = int(self.topo.ports.link[port])
            share = shares[int(links.a[link] != port), link]
            return round(float(share), 3) if share == share else None

        return of


def _who(cost: Cost) -> str:
    n = cost.who.gpus
    if not n:
        return "no GPU is known to wait" if not cost.victims else f"{len(cost.victims)} ports wait"
    return f"{n} GPU{'s' * (n != 1)} held up, the worst keeps {cost.fraction:.0%} of its bandwidth"
