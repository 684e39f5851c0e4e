"""The rules of `topology validate` by name, and how a wiring or site file says of a finding: it is meant so.

`accept: [rails-cross, "uplinks-unequal:A-leaf-03"]` silences a rule altogether, or for one address and all below it.
`*` stands for any characters of an address.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches

RULES: dict[str, str] = {
    "planes-touch": "a link joins switches of two planes, so that a fault of one can reach the other",
    "plane-apart": "switches of one plane are not all joined, so hosts cannot reach each other in it",
    "port-plane": "a NIC port is in another plane than the same port of like nodes",
    "plane-missing": "a node has no cable into a plane that like nodes are in",
    "ports-missing": "a node has fewer cabled NIC ports than like nodes",
    "rails-cross": "a NIC is on a leaf of another rail, in a fabric that keeps rails apart",
    "uplinks-unequal": "a switch has other uplinks than its fellows of the same plane and tier",
    "links-unequal": "a switch spreads its uplinks unequally over the switches above",
    "cables-over-ports": "a switch has more cables than ports, or more bandwidth than it can switch",
    "switch-isolated": "a switch has no cable",
    "feeds-single": "a rack goes dark with one feed",
    "feeds-short": "the feeds that remain after the failure a rack is built for cannot carry it",
}


def check_accept(entry: str) -> str:
    """`entry` as it is. Raises ValueError where it names no rule."""
    rule = entry.partition(":")[0]
    if rule not in RULES:
        near = get_close_matches(rule, RULES, 1)
        hint = (
            f"did you mean {near[0]}?" if near else f"expected RULE or RULE:ADDRESS, RULE one of {', '.join(RULES)}"
        )
        raise ValueError(f"{rule!r} is not a rule of topology validate; {hint}")
    return entry


class Accepted:
    """What is meant so. `used`: the entries that silenced something."""

    def __init__(self, entries: Iterable[str] = ()) -> None:
        self.entries = tuple(dict.fromkeys(entries))
        self.used: set[str] = set()
        self._patterns = [(entry, *_pattern(entry)) for entry in self.entries]

    def __call__(self, rule: str, addresses: Iterable[str]) -> bool:
        """Whether a finding of `rule` about any of `addresses` is meant so."""
        names = tuple(addresses)
        hit = [e for e, r, p in self._patterns if r == rule and (p is None or any(p.fullmatch(n) for n in names))]
        self.used.update(hit)
        return bool(hit)

    @property
    def idle(self) -> tuple[str, ...]:
        return tuple(e for e in self.entries if e not in self.used)


def _pattern(entry: str) -> tuple[str, re.Pattern[str] | None]:
    rule, _, address = entry.partition(":")
    if not address:
        return rule, None
    body = "".join(".*" if part == "*" else re.escape(part) for part in re.split(r"(\*)", address))
    return rule, re.compile(rf"{body}(/.*)?")
