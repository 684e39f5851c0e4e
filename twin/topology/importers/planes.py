"""Which plane each switch belongs to: as the input says, else by names that the wiring bears out, else by wiring."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from twin.address import natural
from twin.topology.importers import hints
from twin.topology.importers.sketch import Sketch
from twin.topology.rolenames import role_said

_BORNE_OUT = 0.9  # this share of the hosts must be wired to every plane that names suggest
Placed = Mapping[tuple[str, str | None], tuple[int, int]]  # (host, interface) -> (NIC number, port number)


def planes(sketch: Sketch, placed: Placed, hosts: set[str]) -> tuple[tuple[str, ...], dict[str, str | None]]:
    """(plane names, switch -> plane or None). hosts: the GPU hosts, by whose wiring a guess is judged."""
    switches = [d for d in sketch.devices.values() if d.kind == "switch"]
    compute = [d for d in switches if role_said(d.name) is None]
    named = {d.name: d.plane for d in switches if d.plane is not None}
    if named:
        sketch.notes.append(f"planes are those that the input names: {_list(named.values())}")
    else:
        touched = _touched(sketch, hosts)
        named = _by_names(sketch, [d.name for d in compute], touched) or _by_wiring(
            sketch, [d.name for d in compute], placed, hosts
        )
    if not named:
        sketch.notes.append("one plane, A: neither names nor wiring of the switches show several")
        return ("A",), {d.name: "A" if d in compute else None for d in switches}
    found: dict[str, str | None] = dict(named)
    labels = set(named.values())
    _spread(sketch, found, {d.name for d in switches})
    if len(labels) == 1:
        found |= {d.name: next(iter(labels)) for d in compute if d.name not in found}
    without = sum(found.get(d.name) is None for d in switches)
    if without:
        sketch.notes.append(f"{without} switches belong to no plane: they join several, or none that is known")
    return tuple(sorted(labels, key=natural)), {d.name: found.get(d.name) for d in switches}


def _touched(sketch: Sketch, hosts: set[str]) -> dict[str, set[str]]:
    """GPU host -> the switches it is cabled to."""
    touched: dict[str, set[str]] = defaultdict(set)
    for cable in sketch.cables:
        for end, other in ((cable.a, cable.b), (cable.b, cable.a)):
            if end.device in hosts and sketch.devices[other.device].kind == "switch":
                touched[end.device].add(other.device)
    return touched


def _by_names(sketch: Sketch, switches: list[str], touched: dict[str, set[str]]) -> dict[str, str]:
    read = {name: hints.plane_schemes(name) for name in switches}
    for scheme in sorted({s for found in read.values() for s in found}):
        named = {name: found[scheme] for name, found in read.items() if scheme in found}
        labels = set(named.values())
        direct = {s for found in touched.values() for s in found} & set(switches)
        if len(labels) < 2 or not direct <= set(named):
            continue
        across = sum(
            named[c.a.device] != named[c.b.device]
            for c in sketch.cables
            if c.a.device in named and c.b.device in named
        )
        whole = sum({named[s] for s in found if s in named} == labels for found in touched.values())
        if across or whole < _BORNE_OUT * len(touched):
            sketch.notes.append(
                f"{scheme} in switch names ({_list(labels)}) is no plane: "
                + (f"{across} cables join different ones" if across else "hosts are not wired to each of them")
            )
            continue
        example = min(named, key=natural)
        sketch.notes.append(f"planes {_list(labels)} are {scheme} in switch names, as in {example}")
        return named
    return {}


def _by_wiring(sketch: Sketch, switches: list[str], placed: Placed, hosts: set[str]) -> dict[str, str]:
    """Islands of switches are planes where the ports of one NIC lead to different ones, port by port."""
    island = _islands(sketch, switches)
    lanes: dict[tuple[str, int], dict[int, int]] = defaultdict(dict)  # (host, NIC) -> port -> island
    for cable in sketch.cables:
        for end, other in ((cable.a, cable.b), (cable.b, cable.a)):
            if end.device in hosts and other.device in island and (end.device, end.port) in placed:
                nic, port = placed[end.device, end.port]
                lanes[end.device, nic][port] = island[other.device]
    votes: dict[int, Counter[int]] = defaultdict(Counter)  # island -> port numbers that lead there
    for ports in lanes.values():
        for port, where in ports.items():
            votes[where][port] += 1
    several = [ports for ports in lanes.values() if len(ports) > 1]
    if (
        not several
        or any(len(set(p.values())) != len(p) for p in several)
        or any(len(v) != 1 for v in votes.values())
    ):
        return {}
    numbers = sorted({next(iter(v)) for v in votes.values()})
    letters = {number: chr(ord("A") + i) if len(numbers) <= 26 else f"p{number}" for i, number in enumerate(numbers)}
    sketch.notes.append(
        f"planes {_list(letters.values())} are told by wiring: ports of one NIC lead to unjoined switches; "
        + ", ".join(f"p{number} is {letter}" for number, letter in letters.items())
    )
    return {s: letters[next(iter(votes[i]))] for s, i in island.items() if i in votes}


def _islands(sketch: Sketch, switches: list[str]) -> dict[str, int]:
    """Switch -> number of its group; cables between switches join them."""
    up = {name: name for name in switches}

    def root(name: str) -> str:
        while up[name] != name:
            up[name] = up[up[name]]
            name = up[name]
        return name

    for cable in sketch.cables:
        if cable.a.device in up and cable.b.device in up:
            up[root(cable.a.device)] = root(cable.b.device)
    roots: dict[str, int] = {}
    return {name: roots.setdefault(root(name), len(roots)) for name in switches}


def _spread(sketch: Sketch, found: dict[str, str | None], switches: set[str]) -> None:
    """A switch whose name says nothing has the plane of those it is cabled to, where they agree."""
    around: dict[str, set[str]] = defaultdict(set)
    for cable in sketch.cables:
        if cable.a.device in switches and cable.b.device in switches:
            around[cable.a.device].add(cable.b.device)
            around[cable.b.device].add(cable.a.device)
    for _ in range(2):
        for name in sorted(switches - set(found), key=natural):
            planes_around = {found[n] for n in around[name] if n in found}
            if len(planes_around) == 1:
                found[name] = planes_around.pop()


def _list(labels: Iterable[str]) -> str:
    names = sorted(set(labels), key=natural)
    return ", ".join(names) if len(names) <= 8 else f"{', '.join(names[:7])} … {names[-1]}"
