"""New names for all that a trace names, the same one wherever a name stands: the first half of anonymising.

A name is replaced by what it is and a number, in the order of the old names, so that what is sorted by name stays in
its order. The parts below a device (`/gpu3`, `/nic0/p1`) say nothing and stay.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from twin.address import natural
from twin.sources import SUPERVISOR, device_of

_PART = re.compile(r"(gpu\d+|nvlink\d+|nic\d+|p\d+|psu\d+|feed[A-Z\d]?|nvsw\d+)")
_PLAIN_PLANE = re.compile(r"[A-Za-z]{1,2}|\d{1,2}")
_READERS = frozenset((
    "host", "infiniband", "nvml", "gnmi", "snmp", "prometheus", "exporter", "redfish", "mqtt", "agent", "ethtool",
    "bond", "rdma", "dcgm-exporter", "gnmic", "infiniband-exporter", "infiniband-exporter-ibqueryerrors",
    "node-exporter-infiniband", "node-exporter-network", "snmp-if-mib",
))  # fmt: skip
# what new names begin with: the first row none of whose names holds an old one is taken
_FAMILIES: tuple[Mapping[str, str], ...] = (
    {"node": "host", "switch": "switch", "rack": "rack", "domain": "domain", "job": "job", "plane": "plane"},
    {"node": "hst", "switch": "swt", "rack": "rck", "domain": "dmn", "job": "jb", "plane": "pln"},
    {"node": "computer", "switch": "router", "rack": "cabinet", "domain": "island", "job": "task", "plane": "layer"},
)
_SHORT = 3  # a name of fewer letters is found inside others by chance


class Naming:
    """old -> new for every name of a wiring, for names that only frames know, and for sources.

    wiring: in its explicit form. strangers: first parts of addresses that it does not have. sources: of frames.
    """

    def __init__(self, wiring: Mapping[str, Any], strangers: Iterable[str] = (), sources: Iterable[str] = ()) -> None:
        self.names: dict[str, str] = {}
        classes = {
            "node": [n["name"] for n in wiring["nodes"]],
            "switch": [s["name"] for s in wiring["switches"]],
            "rack": [r["name"] for r in wiring["racks"]],
            "domain": [d["name"] for d in wiring["domains"]],
            "job": [j["name"] for j in wiring.get("jobs", ())],
            "plane": [p for p in wiring["planes"] if not _PLAIN_PLANE.fullmatch(p)],
        }
        long = [name for names in classes.values() for name in names if len(name) >= _SHORT]
        held = re.compile(_tree(long), re.IGNORECASE)
        words = {word: _FAMILIES[0].get(word, "other") for word in classes}
        for family in _FAMILIES:
            made = [new for word, names in classes.items() for new in _numbered(family[word], names).values()]
            words = dict(family)
            if not long or not any(map(held.search, made)):
                break
        for word, names in classes.items():
            fresh = _numbered(words[word], [name for name in names if name not in self.names])
            self.names.update(fresh)
        self.names.update(_numbered("other", [s for s in set(strangers) if s not in self.names]))
        self._odd: dict[str, str] = {}  # parts below a device that say something
        devices = {*classes["node"], *classes["switch"], *classes["rack"]}
        self.sources = self._of_sources(sorted(sources, key=natural), devices)
        self.original = wiring["name"]
        self._labels = [t["label"] for part in ("nodes", "switches") for t in wiring[part] if t.get("label")]

    def _of_sources(self, sources: list[str], devices: set[str]) -> dict[str, str]:
        out, counts = {}, dict[str, int]()
        for source in sources:
            device = device_of(source, devices)
            reader = source.rpartition(":")[2] if device is not None and source != device else ""
            if source == SUPERVISOR:
                out[source] = source
            elif device is not None and (not reader or all(part in _READERS for part in reader.split("+"))):
                out[source] = self.names[device] + (f":{reader}" if reader else "")
            else:
                kind = re.split(r"[:{/]", source)[0]
                word = f"{self.names[device]}:reader" if device is not None else kind
                word = word if device is not None or kind in _READERS else "source"
                counts[word] = counts.get(word, 0) + 1
                out[source] = f"{word}-{counts[word]:02d}"
        return out

    # --- addresses ---

    def address(self, old: str) -> str:
        """A new address: of an entity, of a link (both ends), of a plane or domain."""
        whole = self.names.get(old) or self.sources.get(old)
        if whole is not None:
            return whole
        ends = old.split("--")
        if len(ends) == 2 and all("/" in end for end in ends):
            return "--".join(map(self._end, ends))
        return self._end(old)

    def _end(self, old: str) -> str:
        head, *parts = old.split("/")
        word, colon, rest = head.partition(":")
        if head in self.names:
            first = self.names[head]
        elif colon and word in ("plane", "domain", "rail"):
            first = f"{word}:{self.names.get(rest, rest)}"
        else:
            first = head
        return "/".join([first, *map(self._below, parts)])

    def _below(self, part: str) -> str:
        if part in self.names:
            return self.names[part]
        if part.startswith("plane:"):
            return self._end(part)
        if _PART.fullmatch(part):
            return part
        return self._odd.setdefault(part, f"part{len(self._odd):02d}")

    # --- words ---

    def replacer(self) -> Callable[[str], str]:
        """Replaces every old name in a text, the longest that fits, where it stands as a word, in whatever case."""
        table: dict[str, str] = dict.fromkeys(self._labels, "label")
        table |= {self.original: "fabric", **self._odd, **self.sources, **self.names}
        table = {old: new for old, new in table.items() if old and old != new}
        if not table:
            return str
        low = {old.casefold(): new for old, new in table.items()}
        pattern = re.compile(rf"(?<![A-Za-z0-9_])(?:{_tree(table)})(?![A-Za-z0-9_])", re.IGNORECASE)
        return lambda text: pattern.sub(lambda m: table.get(m[0]) or low.get(m[0].casefold(), "[name]"), text)


def _numbered(word: str, names: Iterable[str]) -> dict[str, str]:
    ordered = sorted(set(names), key=natural)
    width = max(2, len(str(len(ordered))))
    return {old: f"{word}-{i:0{width}d}" for i, old in enumerate(ordered, 1)}


def _tree(words: Iterable[str]) -> str:
    """A pattern that matches any of `words`, the longest first, in time that does not grow with their number."""
    root: dict[str, Any] = {}
    for word in words:
        place = root
        for letter in word.lower() if len(word.lower()) == len(word) else word:
            place = place.setdefault(letter, {})
        place[""] = {}
    return _branch(root)


def _branch(place: dict[str, Any]) -> str:
    prefix = ""
    while len(place) == 1 and "" not in place:  # one way on
        letter, place = next(iter(place.items()))
        prefix += re.escape(letter)
    ways = [re.escape(letter) + _branch(rest) for letter, rest in place.items() if letter]
    if not ways:
        return prefix
    return f"{prefix}(?:{'|'.join(ways)}){'?' if '' in place else ''}"
