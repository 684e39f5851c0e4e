"""Which part of openconfig-interfaces an update speaks of, and which of its leaves are read.

The model: github.com/openconfig/public, openconfig-interfaces and openconfig-if-ethernet. The phy leaves are those of
Cumulus Linux (docs.nvidia.com, gNMI Streaming), before and from release 5.15. What a switch may have besides and does
not fit: pause frames are counted as packets and not as time, `rs-fec-single-error-blocks` are only
some of the blocks repaired, `ecn-marked-pkts` of a queue are marks given and not received.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

LIST = "interfaces/interface"
COUNTERS = (
    "in-octets", "out-octets", "in-pkts", "out-pkts",
    "in-unicast-pkts", "in-multicast-pkts", "in-broadcast-pkts",
    "out-unicast-pkts", "out-multicast-pkts", "out-broadcast-pkts",
    "out-discards", "in-errors", "carrier-transitions",
    "rs-fec-uncorrectable-blocks", "symbol-errors",
)  # fmt: skip
STATES = ("oper-status", "port-speed", "negotiated-port-speed")
ALL = (*COUNTERS, *STATES)
_WHERE = {
    "rs-fec-uncorrectable-blocks": ("ethernet/phy/state", "phy/fec/state"),
    "symbol-errors": ("ethernet/phy/state", "phy/state"),
    "carrier-transitions": ("state/counters", "ethernet/state/counters"),
    "oper-status": ("state",),
    "port-speed": ("ethernet/state",),
    "negotiated-port-speed": ("ethernet/state",),
}
# path -> number of the leaf in ALL
LEAVES = {
    f"{LIST}/{place}/{leaf}": number
    for number, leaf in enumerate(ALL)
    for place in _WHERE.get(leaf, ("state/counters",))
}
# every leaf, and every path above one -> the leaves that it holds; "" is the root
HOLDS: dict[str, tuple[int, ...]] = {path: (leaf,) for path, leaf in LEAVES.items()}
for _path, _leaf in LEAVES.items():
    while _path:
        _path = _path.rpartition("/")[0]
        HOLDS[_path] = (*HOLDS.get(_path, ()), _leaf)


class Spot(NamedTuple):
    """A place in the model. interface: None for all of them."""

    interface: str | None
    path: str


def spot(prefix: Any, path: Any) -> Spot | None:
    """Where two Paths lead, one after the other; None for a place of no interest."""
    interface, names = None, []
    for elem in (*prefix.elem, *path.elem):
        names.append(bare(elem.name))
        if names == ["interfaces", "interface"]:
            interface = elem.key.get("name")
    whole = "/".join(names)
    if whole not in HOLDS:
        return None
    return Spot(None if interface == "*" else interface, whole)


def readings(at: Spot, value: Any) -> Iterator[tuple[str, int, Any]]:
    """What a value at a place says: interface, leaf and value of each. A value may be one leaf or a JSON tree."""
    last = at.path.rpartition("/")[2]
    if isinstance(value, dict) and len(value) == 1 and bare(next(iter(value))) == last:
        value = next(iter(value.values()))  # SONiC says the name of the node once more
    yield from _descend(at.interface, at.path, value)


def _descend(interface: str | None, path: str, value: Any) -> Iterator[tuple[str, int, Any]]:
    leaf = LEAVES.get(path)
    if leaf is not None:
        if interface is not None:
            yield interface, leaf, value
    elif path not in HOLDS:
        return
    elif isinstance(value, list) and path == LIST:
        for item in value:
            if isinstance(item, dict):
                yield from _descend(None, path, item)
    elif isinstance(value, dict):
        if path == LIST and interface is None:
            interface = next((v for k, v in value.items() if bare(k) == "name" and isinstance(v, str)), None)
        for key, item in value.items():
            yield from _descend(interface, f"{path}/{bare(key)}" if path else bare(key), item)


def bare(name: str) -> str:
    """A name without the module before it: `openconfig-interfaces:state`."""
    return name.rpartition(":")[2]
