"""Finds bandwidth that is up and unused: plane_silent.

Links that are silent while their siblings carry (linkuse) are explained by the smallest cause that fits: a plane, a
switch, a job (`train-7/plane:B`), nodes (`n012/plane:B`, several: `nodes/plane:B`), a single port. A user that leaves
out several planes is named alone (`train-7`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from twin.detectors.finding import NO_LINKS, Finding, LinkRows
from twin.detectors.linkuse import LinkUse
from twin.detectors.rules import Rules, ns
from twin.detectors.scene import Scene
from twin.detectors.usetell import UseTeller
from twin.topology.model import Topology

Bool = npt.NDArray[np.bool_]
I64 = npt.NDArray[np.int64]

NEARLY_ALL = 0.9  # of the links of a cause that are compared with their siblings must be silent
ENOUGH = 0.3  # of a plane's or switch's links must be read, and of a plane's be compared
MANY_PORTS = 8  # single ports of one plane that are told as one
NODES = "nodes"  # the cause of several nodes that no job explains


@dataclass(frozen=True, slots=True)
class Silent:
    """A cause. what: `plane`, `switch`, `job`, `node`, `nodes`, `nic` or `port`; row: of its table (of links for a
    port, of topo.jobs for a job). plane: -1 for several. history: `stopped`, `returned` (its links came back, no load
    did) or `never`."""

    what: str
    row: int
    plane: int
    cause: str
    links: LinkRows
    history: str
    since: int
    back: int = 0


class PlaneUse:
    """Is there bandwidth that nobody uses while its siblings work?"""

    def __init__(self, topo: Topology, rules: Rules) -> None:
        self.topo, self.rules = topo, rules
        self.use = LinkUse(topo, rules)
        self.teller = UseTeller(topo)
        links, ports = topo.links, topo.ports
        self._node = np.where(ports.nic[links.a] >= 0, topo.port_node[links.a], -1)
        self._low = np.where(self._node >= 0, -1, ports.switch[links.a])
        self._high = ports.switch[links.b]
        self._host = np.zeros(len(links.a), bool)
        self._host[self.use.siblings.host.links] = True
        self._job = np.full(len(topo.nodes.name) + 1, -1)  # of each node; the last is for no node
        for job, (_, nodes, _) in enumerate(topo.jobs):
            self._job[list(nodes)] = job
        self._within = np.zeros(len(links.a), np.int64)  # until when each link was part of a cause that is told
        self._size = np.zeros(len(links.a), np.int64)  # and of how many links that was
        self._told: dict[str, tuple[LinkRows, bool]] = {}  # links of each cause that was found, and whether ready

    def findings(self, scene: Scene) -> list[Finding]:
        if not scene.heard("port", "tx_bytes") or not len(self._node):
            return []
        self.use.note(scene)
        if not self.use.silent.any():
            self._told.clear()
            return []
        found = self._over_planes(list(self._causes()))
        self._told = {c: told for c, told in self._told.items() if self.use.silent[told[0]].any()}
        return [self._finding(scene.now, cause, found) for cause in found if not self._over(scene.now, cause)]

    # --- causes ---

    def _causes(self) -> Iterator[Silent]:
        plane, silent = self.topo.links.plane, self.use.silent
        hosts, uplinks = silent & self._host, silent & ~self._host
        for row in np.unique(plane[hosts]).tolist():
            yield from self._in_plane(row, hosts & (plane == row))
        for spine in np.unique(self._high[uplinks]).tolist():
            of_spine = ~self._host & (self._high == spine)
            mine = self._compared(uplinks & of_spine, of_spine)
            leaves = len(np.unique(self._low[mine]))
            if leaves >= 2 and self._all(uplinks, mine) and self._read(mine, of_spine):
                yield self._cause("switch", spine, mine & uplinks)

    def _compared(self, silent: Bool, among: Bool) -> Bool:
        """Which of these links say something: those that are silent, and those that carried after that began, though
        their users may rest by now."""
        onset = np.median(self.use.since[silent])
        compared: Bool = among & (self.use.silent | (self.use.carried > onset))
        return compared

    def _over_planes(self, found: list[Silent]) -> list[Silent]:
        """Users that leave out several planes, and NICs that do, are told once: `train-7`, `n012/nic3`."""
        users: dict[tuple[str, int], list[Silent]] = {}
        for cause in found:
            row = int(self.topo.ports.nic[self.topo.links.a[cause.row]]) if cause.what == "port" else cause.row
            if cause.what in ("job", "node", "nodes", "port"):
                users.setdefault((cause.what, row if cause.what != "nodes" else 0), []).append(cause)
        for (what, row), mine in users.items():
            if len(mine) > 1:
                links = np.zeros(len(self._node), bool)
                links[np.concatenate([c.links for c in mine])] = True
                found = [c for c in found if c not in mine]
                found.append(self._cause("nic" if what == "port" else what, row, links, -1))
        return found

    def _in_plane(self, plane: int, silent: Bool) -> Iterator[Silent]:
        """The causes of what is silent at the hosts of one plane: what explains most comes first."""
        topo = self.topo
        of_plane = self._host & (topo.links.plane == plane)
        mine = self._compared(silent, of_plane)
        wide = plane >= 0 and topo.plane_kind != "none" and self._read(mine, of_plane)
        if wide and self._all(silent, mine) and len(np.unique(self._node[mine & silent])) > 1:
            yield self._plane_or_job(plane, mine & silent)
            return
        left = silent.copy()
        while left.any():
            options = [*self._switches(left, mine, of_plane)]
            if self.use.siblings.split and plane >= 0:
                options += self._users(plane, left, mine)
            best = max(options, key=_weight, default=None)
            if best is None:
                break
            yield best
            left[best.links] = False
        if self.use.siblings.split and plane >= 0:
            yield from self._ports(plane, left)

    def _plane_or_job(self, plane: int, links: Bool) -> Silent:
        """A plane that nothing uses is the doing of the only job there where the plane has just come back, or never
        was used; one that fell silent while it was up is a fault of the plane."""
        whole = self._cause("plane", plane, links)
        jobs = set(self._job[self._node[links]].tolist())
        if len(jobs) == 1 and -1 not in jobs and whole.history != "stopped" and self.use.siblings.split:
            return self._cause("job", jobs.pop(), links)
        return whole

    def _switches(self, left: Bool, judged: Bool, designed: Bool) -> Iterator[Silent]:
        """Leaves of several nodes nearly all of whose links are silent."""
        for leaf in np.unique(self._high[left]).tolist():
            at = self._high == leaf
            nodes = len(np.unique(self._node[left & at]))
            known = at & ~np.isnan(self.use.load)
            if nodes > 1 and self._all(left, judged & at) and self._read(known, designed & at):
                yield self._cause("switch", leaf, left & at)

    def _users(self, plane: int, left: Bool, judged: Bool) -> list[Silent]:
        """Jobs, and nodes without one, that use nothing of the plane."""
        count = len(self.topo.nodes.name)
        silent = np.bincount(self._node[left & judged], minlength=count)
        compared = np.bincount(self._node[judged], minlength=count)
        idle = (silent > 0) & (silent >= NEARLY_ALL * compared)
        several = idle & (compared > 1)
        out, single = [], idle & (self._job[:-1] < 0)
        for job in np.unique(self._job[:-1][idle & (self._job[:-1] >= 0)]).tolist():
            of_job = self._job[:-1] == job
            at_work = np.count_nonzero(of_job & (compared > 0))
            if np.count_nonzero(idle & of_job) >= NEARLY_ALL * at_work:
                out.append(self._cause("job", job, left & np.append(idle & of_job, False)[self._node], plane))
            else:
                single |= idle & of_job
        rows = np.flatnonzero(single & several)
        if len(rows):
            links = left & np.append(single & several, False)[self._node]
            out.append(self._cause("node" if len(rows) == 1 else "nodes", int(rows[0]), links, plane))
        return out

    def _ports(self, plane: int, left: Bool) -> Iterator[Silent]:
        rows = np.flatnonzero(left)
        if len(rows) > MANY_PORTS:
            yield self._cause("nodes", int(self._node[rows[0]]), left, plane)
            return
        for row in rows.tolist():
            one = np.zeros(len(left), bool)
            one[row] = True
            yield self._cause("port", row, one, plane)

    def _all(self, silent: Bool, judged: Bool) -> bool:
        return bool(np.count_nonzero(silent & judged) >= NEARLY_ALL * np.count_nonzero(judged) > 0)

    def _read(self, known: Bool, designed: Bool) -> bool:
        return bool(np.count_nonzero(known) >= ENOUGH * np.count_nonzero(designed))

    def _cause(self, what: str, row: int, links: Bool, plane: int | None = None) -> Silent:
        use, rows = self.use, np.flatnonzero(links)
        since = use.since[rows]
        middle = int(np.median(since))
        history, back = "never", int(np.median(use.back[rows]))
        if np.median(use.carried[rows]) > back:
            history = "stopped"
        elif back:
            history = "returned"
        began = int(since[since >= middle - ns(self.rules.burst)].min())
        in_plane = int(self.topo.links.plane[rows[0]]) if plane is None else plane
        return Silent(what, row, in_plane, self._address(what, row, in_plane), rows, history, began, back)

    def _address(self, what: str, row: int, plane: int) -> str:
        topo = self.topo
        if what == "switch":
            return topo.switches.name[row]
        if what == "port":
            port: str = topo.port_names[topo.links.a[row]]
            return port
        if what == "nic":
            return topo.nic_names[row]
        if what == "plane":
            return f"plane:{topo.planes[plane]}"
        user: str = topo.jobs[row][0] if what == "job" else topo.nodes.name[row] if what == "node" else NODES
        return user if plane < 0 else f"{user}/plane:{topo.planes[plane]}"

    # --- findings ---

    def _over(self, now: int, cause: Silent) -> bool:
        """Whether it is about users that have not worked for so long that they are taken to be gone."""
        idle = self.use.idle[cause.links]
        rest = ns(self.rules.plane_unused_idle)
        if cause.what in ("plane", "switch") or not ((idle > 0) & (now - idle >= rest)).all():
            return False
        self.use.forget(cause.links)
        return True

    def _ready(self, now: int, cause: Silent) -> bool:
        """Two readings of most links show a plane, a switch or a job; a few ports may be busy with a test for a
        while."""
        again = self.use.again[cause.links] > self.use.since[cause.links]
        sure = bool(np.count_nonzero(again) * 2 > len(again))
        many = cause.what in ("plane", "switch") or (cause.what == "job" and len(self.topo.jobs[cause.row][1]) > 1)
        held = many or now - cause.since >= ns(self.rules.plane_unused_hold)
        return sure and held and not self._remains(now, cause)

    def _remains(self, now: int, cause: Silent) -> bool:
        """Whether it is what is left of a larger cause that ends: its links may just be read a moment later."""
        recent = now - self._within[cause.links] < ns(self.rules.settle)
        return bool((recent & (self._size[cause.links] > len(cause.links))).any())

    def _finding(self, now: int, cause: Silent, found: list[Silent]) -> Finding:
        here = {c.cause for c in found}
        inside = {
            c: ready for c, (rows, ready) in self._told.items() if c not in here and np.isin(rows, cause.links).all()
        }
        ready = self._ready(now, cause) or any(inside.values())
        self._told[cause.cause] = cause.links, ready
        if ready:
            self._within[cause.links], self._size[cause.links] = now, len(cause.links)
        signature = (cause.what, cause.history, cause.links.tobytes())
        return Finding(
            "plane_silent", cause.cause, cause.since, ready, NO_LINKS, signature,
            partial(self.teller.tell, cause, self.use), covers=frozenset(inside), scope=self._scope(cause),
        )  # fmt: skip

    def _scope(self, cause: Silent) -> frozenset[str]:
        """The cause with the ports that are silent, and for a plane its switches."""
        topo = self.topo
        names = [cause.cause, *(topo.port_names[p] for p in topo.links.a[cause.links].tolist())]
        if cause.what == "plane":
            names += [topo.switches.name[s] for s in np.flatnonzero(topo.switches.plane == cause.plane)]
        return frozenset(names)


def _weight(cause: Silent) -> tuple[int, bool]:
    """Causes that explain more come first; of as many links a switch, unless they never carried since they are up."""
    return len(cause.links), cause.what == "job" and cause.history != "stopped"
