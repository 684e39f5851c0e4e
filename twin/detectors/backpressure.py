"""From ports that wait to the port that makes them wait, along the wiring.

A port that waits points at the device it sends to, which takes no more. If that is a host, the host cannot drain. If
it is a switch, one of its other ports holds it up: one that waits too, and the trail goes on there, or one that is
full, where it ends. Where a full port has equals that are idle the load is unequal; where they are all full there is
more than they carry.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from twin.detectors.rules import Rules
from twin.topology.model import Topology

F64 = npt.NDArray[np.float64]
Bool = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.intp]

_MOST = 0.8  # of equal paths are full: there are no idle ones left
_UNEQUAL = 1.3  # times the load of its equals
_MANY = 3  # devices of a plane where the trail is lost and which are told as one
_PART = 0.5  # of the longest wait behind it: a port that waits less than that is not what holds them up
_STALLED = 0.1  # of its speed: next to nothing gets through


@dataclass(frozen=True, slots=True)
class Root:
    """Where it begins. port: its row, or the first of several. held: ports that wait for it, the root's own among
    them. full: those that send all they can. lost: what lies behind it is not read, or does not show why."""

    cause: str
    form: str
    port: int
    held: Rows
    full: tuple[int, ...] = ()
    lost: bool = False
    unsure: bool = False  # others could be it as well


@dataclass(slots=True)
class Trail:
    """What is known of all ports: wait (shares that lasted), queue (bool: too long a queue), short (bool: known to be
    no longer than that of others), load, and by how much it has risen of late, full,
    paused."""

    wait: F64
    queue: Bool
    short: Bool
    load: F64
    risen: F64
    full: Bool
    paused: Bool  # by pause frames, which InfiniBand does not have
    known: Bool = field(init=False)

    def __post_init__(self) -> None:
        self.known = ~np.isnan(self.load)


class BackPressure:
    """The wiring as ports that lead to devices: nodes first, then switches."""

    def __init__(self, topo: Topology, rules: Rules) -> None:
        self.topo, self.rules = topo, rules
        nodes = len(topo.nodes.name)
        switch = topo.ports.switch
        self._nodes = nodes
        self._device = np.where(switch >= 0, switch + nodes, topo.port_node).astype(np.intp)
        peer = topo.ports.peer
        self.peer = np.where(peer >= 0, peer, -1).astype(np.intp)
        self._to = np.where(peer >= 0, self._device[peer], -1)
        self._tier = np.concatenate([np.full(nodes, -1, np.int32), topo.switches.tier, [-1]])
        self._names = topo.nodes.name + topo.switches.name
        self._plane = np.concatenate([np.full(nodes, -1, np.int32), topo.switches.plane, [-1]])

    def roots(self, trail: Trail) -> list[Root]:
        """Roots of all that waits, by the rows of their ports; each wait belongs to at least one."""
        waits = (np.nan_to_num(trail.wait) >= self.rules.congestion_share / 2) & (self._to >= 0)
        waits &= ~trail.full  # what is full waits for its turn now and then
        rows = np.flatnonzero(waits)
        out: dict[str, Root] = {}
        ends = self._ends(waits, rows, trail)
        for port in ends[self._to[ends] < self._nodes].tolist():
            self._add(out, self._stuck(port, trail, waits))
        for device in np.unique(self._to[ends[self._to[ends] >= self._nodes]]).tolist():
            for root in self._behind(device, trail, waits, ends):
                self._add(out, root)
        ups, hosts = self._standing_out(rows, trail)
        for port in ups.tolist():
            self._add(out, self._full(port, "imbalance", waits))
        for root in self._busy_hosts(hosts, list(out.values()), trail, waits):
            self._add(out, root)
        for root in self._queued(trail, waits):
            self._add(out, root)
        return self._join_lost(out)

    def _ends(self, waits: Bool, rows: Rows, trail: Trail) -> Rows:
        """Ports that wait for a device none of whose other ports waits; in a circle, the one that waits longest."""
        longest = np.zeros(len(self._names))
        np.maximum.at(longest, self._to[rows], trail.wait[rows])
        counts = np.zeros(len(waits), bool)
        counts[rows] = trail.wait[rows] >= _PART * longest[self._device[rows]]
        on = np.bincount(self._device[counts], minlength=len(self._names))
        others = on[self._to[rows]] - counts[self.peer[rows]]
        ends = rows[(self._to[rows] < self._nodes) | (others <= 0)]
        if not len(ends) and len(rows):
            ends = rows[[int(np.argmax(trail.wait[rows]))]]
        return ends

    def _add(self, out: dict[str, Root], root: Root) -> None:
        before = out.get(root.cause)
        if before is None:
            out[root.cause] = root
        else:
            held = np.union1d(before.held, root.held)
            form = root.form if before.lost and not root.lost else before.form
            full = tuple(dict.fromkeys((*before.full, *root.full)))
            lost = before.lost and root.lost
            out[root.cause] = replace(before, form=form, held=held, full=full, lost=lost)

    # --- kinds of roots ---

    def _stuck(self, port: int, trail: Trail, waits: Bool) -> Root:
        """A port whose far end takes too little."""
        storm = trail.wait[port] >= self.rules.pause_storm and bool(trail.paused[port])
        storm = storm and not trail.load[port] > _STALLED
        return Root(
            self.name(port), "pause_storm" if storm else "slow_receiver", port,
            self._held(waits & (trail.wait <= trail.wait[port] / _PART), self._device[port], [port]),
            lost=self._to[port] >= self._nodes,
        )  # fmt: skip

    def _behind(self, device: int, trail: Trail, waits: Bool, ends: Rows) -> list[Root]:
        """What holds up a switch whose ports do not wait: the full ones among them."""
        into = ends[self._to[ends] == device]
        mine = np.flatnonzero((self._device == device) & trail.known & (self._to >= 0))
        mine = mine[~np.isin(mine, self.peer[into])] if len(into) == 1 else mine
        if len(full := mine[trail.full[mine]]):
            up = self._tier[self._to[full]] > self._tier[device]
            if up.any():
                return self._uplinks(device, full[up], mine, trail, waits)
            hosts = full[self._to[full] < self._nodes]
            queued = hosts[~trail.short[hosts]]
            hosts = queued if len(queued) else hosts
            return self._incasts(hosts, trail, waits) if len(hosts) else self._downlinks(full, trail, waits)
        if len(into) == 1:
            return [self._stuck(int(into[0]), trail, waits)]
        held = self._held(waits, device, [])
        return [Root(self._names[device], "oversubscription", int(into[0]), held, lost=True)]

    def _uplinks(self, device: int, full: Rows, mine: Rows, trail: Trail, waits: Bool) -> list[Root]:
        ups = mine[self._tier[self._to[mine]] > self._tier[device]]
        if len(full) < _MOST * len(ups):
            rest = trail.load[ups[~np.isin(ups, full)]]
            return [
                self._full(
                    p, "imbalance" if trail.load[p] >= _UNEQUAL * np.median(rest) else "oversubscription", waits
                )
                for p in full.tolist()
            ]
        held = self._held(waits, device, [])
        return [Root(self._names[device], "oversubscription", int(full[0]), held, tuple(full.tolist()))]

    def _downlinks(self, full: Rows, trail: Trail, waits: Bool) -> list[Root]:
        """Ports of a spine that lead down to a leaf: its equals are those of other spines to the same leaf."""
        out = []
        for leaf in np.unique(self._to[full]).tolist():
            equals = np.flatnonzero((self._to == leaf) & (self._device >= self._nodes) & trail.known)
            hot = equals[trail.full[equals]]
            devices = np.unique(self._device[hot])
            held = np.unique(np.concatenate([self._held(waits, d, []) for d in devices]))
            if len(hot) >= _MOST * len(equals) and len(equals) > 1:
                out.append(Root(self._names[leaf], "oversubscription", int(hot[0]), held, tuple(hot.tolist())))
            else:
                out.extend(self._full(p, "imbalance", waits) for p in full[self._to[full] == leaf].tolist())
        return out

    def _standing_out(self, rows: Rows, trail: Trail) -> tuple[Rows, Rows]:
        """Full ports that others wait for, far above their equals, though the switch has ports that wait as well:
        those that lead up, and those that lead to hosts. Of ports down to switches the equals are elsewhere."""
        fed = np.zeros(len(self._names) + 1, bool)
        fed[self._to[rows]] = True
        full = np.flatnonzero(trail.full & fed[self._device] & (self._device >= self._nodes) & (self._to >= 0))
        tier = self._tier[self._to[full]]
        full, tier = (x[(tier < 0) | (tier > self._tier[self._device[full]])] for x in (full, tier))
        far = [self._is_far_above(p, t, trail) for p, t in zip(full.tolist(), tier.tolist(), strict=True)]
        full, tier = full[np.flatnonzero(far)], tier[np.flatnonzero(far)]
        return full[tier >= 0], full[tier < 0]

    def _is_far_above(self, port: int, tier: int, trail: Trail) -> bool:
        equals = (self._device == self._device[port]) & (self._tier[self._to] == tier) & trail.known & (self._to >= 0)
        equals[port] = False
        return bool(equals.any() and trail.load[port] >= _UNEQUAL * np.median(trail.load[equals]))

    def _busy_hosts(self, ports: Rows, others: list[Root], trail: Trail, waits: Bool) -> list[Root]:
        """Incasts at full ports to hosts, which may just be busy: where there is a queue, or where somebody waits
        whom no other root explains."""
        explained = np.zeros(len(waits), bool)
        for other in others:
            explained[other.held] |= not other.lost
        out = []
        for device in np.unique(self._device[ports]).tolist():
            mine = ports[(self._device[ports] == device) & ~trail.short[ports]]
            out += [
                root
                for root in self._incasts(mine, trail, waits)
                if trail.queue[root.port] or not explained[root.held[root.held != root.port]].all()
            ]
        return out

    def _incasts(self, hosts: Rows, trail: Trail, waits: Bool) -> list[Root]:
        """Of full ports of a switch to hosts all with a queue; where none has one, that whose load has risen most."""
        queued = hosts[trail.queue[hosts]]
        if len(queued) or not len(hosts):
            return [self._full(p, "incast", waits) for p in queued.tolist()]
        risen = int(hosts[np.argmax(trail.risen[hosts])])
        return [replace(self._full(risen, "incast", waits), unsure=len(hosts) > 1)]

    def _queued(self, trail: Trail, waits: Bool) -> list[Root]:
        """Ports with a long queue that do not wait: behind full ports of their plane, or full themselves."""
        queued = np.flatnonzero(trail.queue & ~waits & (self._to >= 0))
        planes = self._plane[self._device[queued]]
        out: list[Root] = []
        for plane in np.unique(planes).tolist():
            mine = queued[planes == plane]
            shared = self._full_between(plane, trail, waits)
            if not shared or len(mine) < _MANY:  # many at once are rather behind what they share
                alone = mine[trail.full[mine]]
                out.extend(self._full(p, "incast", waits) for p in alone[self._to[alone] < self._nodes].tolist())
                mine = mine[~trail.full[mine]]
            if len(mine):
                out.extend(replace(r, held=np.union1d(r.held, mine)) for r in shared)
        return out

    def _full_between(self, plane: int, trail: Trail, waits: Bool) -> list[Root]:
        """Roots at the full uplinks of a plane."""
        fabric = (self._device >= self._nodes) & (self._to >= self._nodes)
        full = trail.full & fabric & (self._plane[self._device] == plane)
        devices = np.unique(self._device[full]).tolist()
        return [root for device in devices for root in self._full_uplinks(device, trail, waits)]

    def _full_uplinks(self, device: int, trail: Trail, waits: Bool) -> list[Root]:
        mine = np.flatnonzero((self._device == device) & trail.known & (self._to >= 0))
        full = mine[trail.full[mine] & (self._tier[self._to[mine]] > self._tier[device])]
        return self._uplinks(device, full, mine, trail, waits) if len(full) else []

    def _full(self, port: int, form: str, waits: Bool) -> Root:
        return Root(self.name(port), form, port, self._held(waits, self._device[port], [port]), (port,))

    # --- shared ---

    def name(self, port: int) -> str:
        """A port as a cause: of a link to a host, the NIC's port."""
        names, other = self.topo.port_names, int(self.peer[port])
        return names[other] if other >= 0 and self.topo.ports.nic[other] >= 0 else names[port]

    def _held(self, waits: Bool, device: int, first: list[int]) -> Rows:
        """These ports, and all that wait for a device, directly or through other switches."""
        held = np.zeros(len(waits), bool)
        held[first] = True
        reached = np.zeros(len(self._names) + 1, bool)
        reached[device] = True
        for _ in range(6):  # at most up and down again over three tiers
            into = waits & reached[self._to] & (self._device != device)
            if not (into & ~held).any():
                break
            held |= into
            reached[self._device[into & (self._device >= self._nodes)]] = True
        return np.flatnonzero(held)

    def _join_lost(self, out: dict[str, Root]) -> list[Root]:
        """Where the trail is lost at many devices of one plane, something of the plane holds them up."""
        lost = [r for r in out.values() if r.lost]
        planes: dict[int, list[Root]] = {}
        for root in lost:
            planes.setdefault(int(self._plane[self._to[root.port]]), []).append(root)
        for plane, roots in planes.items():
            if plane < 0 or len({int(self._to[r.port]) for r in roots}) < _MANY:
                continue
            held = np.unique(np.concatenate([r.held for r in roots]))
            cause = f"plane:{self.topo.planes[plane]}"
            out[cause] = Root(cause, "oversubscription", roots[0].port, held, lost=True)
            for root in roots:
                del out[root.cause]
        return list(out.values())
