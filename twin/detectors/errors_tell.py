"""Errors of links in words: which counter of which end, against which budget, and what to swap first."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from twin.detectors.causes import Cause
from twin.detectors.finding import Story
from twin.detectors.rules import Rules
from twin.detectors.tell import affected
from twin.incident import Evidence
from twin.topology.model import Topology

_WORDS = {
    "symbol_errors": ("symbol error", "symbol errors"),
    "rx_errors": ("packet received with an error", "packets received with an error"),
    "fec_uncorrected": ("block beyond repair", "blocks beyond repair"),
}


@dataclass(frozen=True, slots=True)
class Quality:
    """One counter beyond its budget. port: where it is worst; errors in so many seconds; ports: all that count it."""

    metric: str
    port: int
    errors: float
    seconds: float
    ports: tuple[int, ...]


class ErrorTeller:
    def __init__(self, topo: Topology, rules: Rules) -> None:
        self.topo, self.rules = topo, rules
        self._budget = {
            "symbol_errors": rules.symbol_errors_short,
            "rx_errors": rules.rx_errors_short,
            "fec_uncorrected": rules.fec_uncorrected_short,
        }

    def tell(self, cause: Cause, address: str, found: tuple[Quality, ...]) -> Story:
        topo = self.topo
        worst = max(found, key=lambda q: q.errors / self._budget[q.metric])
        one, many = _WORDS[worst.metric]
        span = f"{worst.seconds:.0f} s" if worst.seconds < 90 else f"{worst.seconds / 60:.0f} min"
        count = f"{worst.errors:,.0f} {one if worst.errors == 1 else many} in {span}"
        here = topo.port_names[worst.port]
        peer = int(topo.ports.peer[worst.port])
        there = topo.port_names[peer] if peer >= 0 else "its peer"
        ports = sorted({p for q in found for p in q.ports})
        if len(cause.links) > 1:
            summary = f"{len(cause.links)} links of {address} have errors, the worst {here}: {count}"
            advice = f"So many are no cables: look at {address} itself (temperature, firmware, power, last change)."
        elif peer in ports:
            summary = f"both ends of {here}--{there} count errors, {here} {count}"
            advice = f"Both ends count: clean and reseat, then swap the cable between {here} and {there}."
        else:
            summary = f"{here} receives errors from {there}: {count}"
            advice = (
                f"Only {here} counts: suspect what sends to it. Clean and reseat the cable at {there}, then swap the "
                f"transceiver at {there}, then the cable."
            )
        evidence = tuple(
            Evidence(topo.port_names[q.port], q.metric, q.errors, round(self._budget[q.metric], 2)) for q in found
        )
        nics = np.unique(
            topo.ports.nic[[p for link in cause.links for p in (topo.links.a[link], topo.links.b[link])]]
        )
        gpus = np.flatnonzero(np.isin(topo.gpus.nic, nics[nics >= 0]))
        return Story("warning", affected(topo, gpus), {}, evidence, summary, advice)
