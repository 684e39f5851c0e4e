"""Findings about links, switches and planes: plane_down, plane_degraded, switch_down, link_down, link_slow,
link_flapping. Causes that are open stay with their incident while their links stay down (`Claim`)."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from twin.capacity import CapacityModel
from twin.detectors.causes import Cause, CauseFinder
from twin.detectors.finding import Finding, LinkRows, Story
from twin.detectors.rules import Rules, ns
from twin.detectors.tell import LinkTeller
from twin.linkstate import LinkState
from twin.topology.model import HOST_LEAF, Topology

Bool = npt.NDArray[np.bool_]

_DOWN_KINDS = {
    "plane": "plane_down",
    "part": "plane_degraded",
    "switch": "switch_down",
    "node": "link_down",
    "nic": "link_down",
    "link": "link_down",
}
_SCOPES = 256  # remembered, since findings come again with every evaluation
SAME = object()  # signature of a finding about which nothing is new


class Claim(NamedTuple):
    """What an open incident says of links. faded: since when it no longer holds as a whole, 0 while it does."""

    key: tuple[str, str]
    links: LinkRows
    faded: int


class LinkDetector:
    """Looks at the state of all links and names causes."""

    def __init__(self, topo: Topology, model: CapacityModel, rules: Rules) -> None:
        self.topo, self.rules = topo, rules
        self.finder = CauseFinder(topo, model, rules)
        self.teller = LinkTeller(topo, model)
        self._scopes: dict[tuple[str, bytes], frozenset[str]] = {}

    def findings(self, now: int, state: LinkState, claims: list[Claim]) -> list[Finding]:
        """claims: open incidents that explain links which are, or were, down."""
        out = self._downs(now, state, claims)
        out.extend(self._slow(now, state))
        out.extend(self._flapping(state))
        return out

    # --- down ---

    def _downs(self, now: int, state: LinkState, claims: list[Claim]) -> list[Finding]:
        held = np.zeros(len(state.down), bool)
        standing = []
        for claim in claims:
            still = claim.links[state.down[claim.links]]
            if len(still) == len(claim.links):
                standing.append(claim)
            elif len(claim.links) > 1:  # it recovers: links that have been down all along are still its own
                held[still[state.since[still] <= (claim.faded or now)]] = True
        found = [(self._down_key(c), c) for c in self.finder.find(now, state, held)]
        kept: list[Finding] = []
        for claim in sorted(standing, key=lambda c: -len(c.links)):
            if any(key == claim.key or _takes_over(key, c, claim) for key, c in found):
                continue
            found = [(key, c) for key, c in found if not _inside(c.links, claim.links)]
            scope = self.scope(claim.key[1], claim.links)
            kept.append(Finding(*claim.key, 0, True, claim.links, SAME, _nothing_new, scope=scope))
        return kept + [self._down(key, cause, state) for key, cause in found]

    def _down_key(self, cause: Cause) -> tuple[str, str]:
        kind = _DOWN_KINDS[cause.what] if cause.whole else "link_down"
        return kind, self.address(cause.what, cause.row)

    def _down(self, key: tuple[str, str], cause: Cause, state: LinkState) -> Finding:
        signature = (cause.what, cause.whole, cause.links.tobytes())
        tell = partial(self.teller.down, cause, state)
        scope = self.scope(key[1], cause.links)
        return Finding(*key, cause.since, cause.ready, cause.links, signature, tell, scope=scope)

    def scope(self, cause: str, links: LinkRows) -> frozenset[str]:
        """What the trouble of these links accounts for: the cause itself and the ports at both ends."""
        key = cause, links.tobytes()
        if key not in self._scopes:
            if len(self._scopes) > _SCOPES:
                self._scopes.clear()
            ports, ends = self.topo.port_names, (self.topo.links.a[links], self.topo.links.b[links])
            self._scopes[key] = frozenset((cause, *(ports[p] for end in ends for p in end.tolist())))
        return self._scopes[key]

    def address(self, what: str, row: int) -> str:
        """How a cause is named; a host link by its NIC port, a link between switches by both ends."""
        topo = self.topo
        if what in ("plane", "part"):
            return f"plane:{topo.planes[row]}"
        if what == "link":
            host = topo.links.tier[row] == HOST_LEAF
            return str(topo.port_names[topo.links.a[row]]) if host else topo.link_name(row)
        names: dict[str, tuple[str, ...]] = {
            "switch": topo.switches.name,
            "node": topo.nodes.name,
            "nic": topo.nic_names,
        }
        return names[what][row]

    # --- slow and flapping ---

    def _slow(self, now: int, state: LinkState) -> list[Finding]:
        bad = state.slow & ~state.down
        if not bad.any():
            return []
        known = (state.up == 1) & ~np.isnan(state.speed)
        out = []
        for cause in self.finder.group(bad, known | bad, state.slow_since):
            kind = "plane_degraded" if cause.what == "plane" else "link_slow"
            ready = now - cause.since >= ns(self.rules.link_debounce) and bool(known[cause.links].any())
            signature = (cause.links.tobytes(), state.speed[cause.links].tobytes())
            out.append(
                Finding(
                    kind, self.address(cause.what, cause.row), cause.since, ready, cause.links,
                    signature if known[cause.links].all() else SAME, partial(self.teller.slow, cause, state),
                    scope=self.scope(self.address(cause.what, cause.row), cause.links),
                )
            )  # fmt: skip
        return out

    def _flapping(self, state: LinkState) -> list[Finding]:
        if not state.flapping.any():
            return []
        out = []
        for cause in self.finder.group(state.flapping, ~np.isnan(state.up) | state.flapping, state.first_fall):
            falls = int(state.falls[cause.links].max())
            out.append(
                Finding(
                    "link_flapping", self.address(cause.what, cause.row), cause.since,
                    falls >= self.rules.flap_count, cause.links, (falls, cause.links.tobytes()),
                    partial(self.teller.flapping, cause, falls, self.rules.flap_window), falls,
                    scope=self.scope(self.address(cause.what, cause.row), cause.links),
                )
            )  # fmt: skip
        return out


def _takes_over(key: tuple[str, str], cause: Cause, claim: Claim) -> bool:
    """Whether a cause explains all that an open incident does, and more: more links, or the device as a whole."""
    if not cause.ready or not _inside(claim.links, cause.links):
        return False
    upgrade = cause.whole and cause.what == "switch" and claim.key[0] == "link_down" and len(claim.links) > 1
    return (upgrade and key != claim.key) or len(cause.links) > len(claim.links)


def _inside(some: LinkRows, all_: LinkRows) -> bool:
    return bool(np.isin(some, all_, assume_unique=True).all())


def _nothing_new() -> Story:
    raise AssertionError("a finding without news is not told")
