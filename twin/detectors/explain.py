"""What is only the symptom of something else found at the same time, by the fabric's own dependencies.

A finding has a scope: addresses that it accounts for, with all below them (`n012` stands for `n012/gpu3/nvlink7`). A
finding of a kind that the other's kind explains is its symptom where its cause lies in the other's scope, or its
links are all links of the other: it is not told, and where it was told already it is taken over. While an explanation
may yet become ready, and for a while after it has gone, its symptoms wait.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from twin.address import inside
from twin.detectors.finding import Finding
from twin.detectors.rules import Rules, ns

Key = tuple[str, str]

_GPU = ("gpu_error", "gpu_throttled", "gpu_straggler", "nvlink_down", "nvlink_errors")
_PORT = ("link_slow", "link_errors", "congestion", "plane_silent")
# kind -> the kinds it explains within its scope
EXPLAINS: dict[str, tuple[str, ...]] = {
    "feed_down": (
        "psu_down",
        "redundancy_lost",
        "power_headroom",
        "plane_down",
        "plane_degraded",
        "switch_down",
        "link_down",
        "link_flapping",
        "gpu_lost",
        *_GPU,
    ),
    "psu_down": ("redundancy_lost", "power_headroom"),
    "power_headroom": ("gpu_throttled", "gpu_straggler", "redundancy_lost"),
    "plane_down": ("plane_silent", "link_errors", "link_slow", "congestion"),
    "plane_degraded": ("congestion", "plane_silent"),
    "plane_silent": ("congestion",),
    "switch_down": _PORT,
    "link_down": ("gpu_lost", "nvlink_down", "psu_down", *_GPU, *_PORT),
    "link_flapping": ("link_down", "link_errors", "congestion", "link_slow"),
    "link_slow": ("congestion", "link_errors", "gpu_straggler"),
    "link_errors": ("congestion",),
    "nvswitch_down": ("nvlink_down", "nvlink_errors", "nvlink_domain_split"),
    "nvlink_domain_split": ("nvlink_down", "gpu_straggler"),
    "gpu_lost": _GPU,
    "gpu_error": ("gpu_straggler", "nvlink_down", "nvlink_errors", "congestion"),
    "gpu_throttled": ("gpu_straggler", "congestion"),
    "gpu_straggler": ("congestion",),
    "nvlink_down": ("nvlink_errors", "gpu_straggler", "nvlink_domain_split"),
}
# What makes jobs stop and go makes power swing with them, wherever that is.
STOP_AND_GO = frozenset(("plane_down", "plane_degraded", "plane_silent", "switch_down", "link_down", "link_flapping"))


class Explainer:
    """Remembers explanations that have just gone: what they accounted for may take a moment longer to recover."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self._gone: dict[Key, tuple[int, Finding]] = {}
        self._last: dict[Key, Finding] = {}

    def reduce(self, now: int, findings: Iterable[Finding], open_: Iterable[Key]) -> list[Finding]:
        """Findings without the symptoms of others; those that remain say which open incidents they take over."""
        found = list(findings)
        giving = {f.key: f for f in found if f.scope and f.kind in EXPLAINS}
        for key, before in self._last.items():
            if key not in giving and key[0] != "link_flapping":  # that ends in a link that stays up, or stays down
                self._gone[key] = (now, before)
        self._last = giving
        wait = ns(self.rules.settle)
        self._gone = {k: g for k, g in self._gone.items() if k not in giving and now - g[0] < wait}
        if not giving and not self._gone:
            return found
        standing = set(open_)
        out = []
        for f in found:
            by = [g for g in giving.values() if _explains(g, f.kind, f.cause) or _has_links_of(g, f)]
            if any(g.ready or g.key in standing for g in by):
                continue
            late = any(_explains(g, f.kind, f.cause) or _has_links_of(g, f) for _, g in self._gone.values())
            if f.key not in standing and (by or late):
                f = replace(f, ready=False)
            taken = frozenset(k for k in standing if f.scope and k != f.key and _explains(f, *k))
            out.append(replace(f, takes=taken) if taken else f)
        return out


def _explains(upper: Finding, kind: str, cause: str) -> bool:
    if kind == "power_swing" and upper.kind in STOP_AND_GO:
        return True
    return (kind, cause) != upper.key and kind in EXPLAINS.get(upper.kind, ()) and inside(cause, upper.scope)


def _has_links_of(upper: Finding, f: Finding) -> bool:
    """Whether the links of a finding are all among those that `upper` accounts for, of a kind that it explains."""
    few = 0 < len(f.links) <= len(upper.links) and upper.key != f.key
    return few and f.kind in EXPLAINS.get(upper.kind, ()) and bool(np.isin(f.links, upper.links).all())
