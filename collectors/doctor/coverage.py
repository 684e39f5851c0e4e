"""What of a wiring was read, by one source and by all together: boolean arrays over the rows of each kind."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import numpy as np
import numpy.typing as npt

from collectors.doctor.check import Coverage, Gap, Partly
from twin.frames import Frame, as_float
from twin.metrics import metrics_of
from twin.topology.model import Topology

Bool = npt.NDArray[np.bool_]
_EVENTS = {("gpu", "xid")}  # told by the driver even of what does not answer any more
KINDS = ("node", "gpu", "nvlink", "port", "psu", "feed")  # that a wiring has rows of


class Seen:
    """Which metrics of which entities are known from some frames; a later frame adds to an earlier one."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self.strangers: dict[str, None] = {}  # names that the wiring does not have
        self._known: dict[tuple[str, str], Bool] = {}

    def take(self, frames: Iterable[Frame]) -> None:
        """Notes what each frame knows; kinds without rows (links, sources) say nothing of entities."""
        for frame in frames:
            if frame.kind not in KINDS:
                continue
            index = self.topology.rows(frame.kind)
            rows = np.fromiter((index.get(n, -1) for n in frame.names), np.intp, len(frame.names))
            self.strangers |= {frame.names[i]: None for i in np.flatnonzero(rows < 0).tolist()}
            mine = rows >= 0
            for metric, values in frame.columns.items():
                known = self._known.setdefault((frame.kind, metric), np.zeros(len(index), bool))
                known[rows[mine & ~np.isnan(as_float(values))]] = True

    def known(self, kind: str, metric: str) -> Bool:
        """bool[rows of kind]: where the metric is known."""
        return self._known.get((kind, metric), np.zeros(len(self.topology.names(kind)), bool))

    def read(self, kind: str) -> Bool:
        """bool[rows of kind]: where anything is known."""
        found = [known for key, known in self._known.items() if key[0] == kind and key not in _EVENTS]
        return np.logical_or.reduce(found) if found else np.zeros(len(self.topology.names(kind)), bool)

    def kinds(self) -> tuple[str, ...]:
        """Kinds of which something is known."""
        return tuple(kind for kind in KINDS if self.read(kind).any())

    def metrics(self, kind: str) -> tuple[tuple[str, ...], tuple[str, ...], tuple[Partly, ...]]:
        """Metrics of the registry that are known somewhere, that are known nowhere, and where some are missing."""
        here, names = self.read(kind), self.topology.names(kind)
        some: list[str] = []
        never: list[str] = []
        partly = []
        for metric in metrics_of(kind):
            known = self.known(kind, metric.name)
            (some if known.any() else never).append(metric.name)
            lacking = np.flatnonzero(here & ~known)
            if known.any() and len(lacking):
                partly.append(Partly(kind, metric.name, len(lacking), int(here.sum()), names[lacking[0]]))
        return tuple(some), tuple(never), tuple(partly)


def merged(all_seen: Collection[Seen], topology: Topology) -> Seen:
    """What several sources know together."""
    out = Seen(topology)
    for seen in all_seen:
        for key, known in seen._known.items():
            out._known[key] = out._known.get(key, np.zeros(len(known), bool)) | known
    return out


def cabled(topology: Topology) -> Bool:
    """bool[ports]: those with a cable; all of them in a wiring without cables."""
    return topology.ports.link >= 0 if len(topology.links.a) else np.ones(len(topology.ports.link), bool)


def covered(kind: str, read: Bool, expected: Bool, topology: Topology, *, meant: bool = True) -> Coverage:
    """read, expected: bool[rows of kind]."""
    lacking = np.flatnonzero(expected & ~read)
    example = topology.names(kind)[lacking[0]] if len(lacking) else None
    return Coverage(kind, int((expected & read).sum()), int(expected.sum()), example, meant)


def gaps(all_seen: Collection[Seen], topology: Topology) -> list[Gap]:
    """What of the wiring no source reads, the worst first."""
    seen = merged(all_seen, topology)
    return [*_links(seen.known("port", "up"), topology), *_entities(seen, topology)]


def _links(up: Bool, topology: Topology) -> Iterator[Gap]:
    """Links that nothing is known of, and ports whose links are judged from the other end alone."""
    links, ports = topology.links, topology.ports
    blind = np.flatnonzero(~up[links.a] & ~up[links.b])
    if len(blind):
        text = f"links: {len(blind):,} of {len(links.a):,} are read at neither end: their state is unknown"
        yield Gap("links", len(blind), len(links.a), topology.link_name(int(blind[0])), text, blind=True)
    wired = ports.link >= 0
    other = np.zeros(len(wired), bool)
    other[wired] = up[ports.peer[wired]]
    for what, mine in (("switch ports", ports.switch >= 0), ("NIC ports", ports.nic >= 0)):
        unread = np.flatnonzero(wired & mine & ~up & other)
        if len(unread):
            total = int((wired & mine).sum())
            end = "NIC" if (ports.nic[ports.peer[unread]] >= 0).all() else "other"
            text = (
                f"{what}: {len(unread):,} of {total:,} are read by no source; "
                f"their links are judged from the {end} end alone"
            )
            yield Gap(what, len(unread), total, topology.port_names[unread[0]], text)


_MEANING = {
    "gpu": ("GPUs", "their faults, load and power are not seen (sources: nvml, or dcgm-exporter through prometheus)"),
    "nvlink": ("NVLinks", "a scale-up fault is not seen (sources: nvml, or dcgm-exporter)"),
    "psu": ("power supplies", "a lost supply is not seen (source: redfish)"),
}


def _entities(seen: Seen, topology: Topology) -> Iterator[Gap]:
    for kind, (what, meaning) in _MEANING.items():
        read = seen.read(kind)
        unread = np.flatnonzero(~read)
        if len(unread):
            text = f"{what}: {len(unread):,} of {len(read):,} are read by no source: {meaning}"
            yield Gap(what, len(unread), len(read), topology.names(kind)[unread[0]], text)
