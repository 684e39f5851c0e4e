"""Readable addresses of entities: `n012/gpu3`, `n012/nic3/p1`, `B-leaf-07/p33`, `r03/feedA`."""

from __future__ import annotations

import re

from twin.metrics import Kind

_TAIL: tuple[tuple[re.Pattern[str], Kind], ...] = (
    (re.compile(r"nvlink\d+"), "nvlink"),
    (re.compile(r"gpu\d+"), "gpu"),
    (re.compile(r"p\d+"), "port"),
    (re.compile(r"psu\d+"), "psu"),
    (re.compile(r"feed\w+"), "feed"),
)
_UNFIT = re.compile(r"[/\s]+")
_DIGITS = re.compile(r"(\d+)")


def kind_of(address: str) -> Kind:
    """The kind of entity an address names: two ends are a link, else its last part tells; a bare name is a node."""
    if "--" in address and "/" in address:
        return "link"
    head, slash, tail = address.rpartition("/")
    if slash and head:
        for pattern, kind in _TAIL:
            if pattern.fullmatch(tail):
                return kind
    return "node"


def clean(name: str) -> str:
    """`name` made fit to be a node or switch name: no `/`, no whitespace."""
    return _UNFIT.sub("_", name.strip()) or "unnamed"


def natural(name: str) -> list[tuple[int, int, str]]:
    """A sort key under which `n2` comes before `n10`."""
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in _DIGITS.split(name) if part]


def link_name(a: str, b: str) -> str:
    """The name of the link that joins ports `a` and `b`."""
    return f"{a}--{b}"


def inside(address: str, scope: frozenset[str]) -> bool:
    """Whether an address, or either end of a link, is in a scope or below something that is.

    A job's use of a plane, `train-7/plane:B`, is inside both of them.
    """
    for end in address.split("--"):
        parts = end.split("/")
        if any("/".join(parts[: n + 1]) in scope for n in range(len(parts))):
            return True
        if parts[-1].startswith("plane:") and parts[-1] in scope:
            return True
    return False
