"""Reads links of a wiring file in bulk: `{a: "n[000-063]/nic0/p0", b: "A-leaf-00/p[0-63]"}`."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from twin.topology.builder import Builder
from twin.topology.joining import I64
from twin.topology.model import NONE
from twin.topology.short.pattern import MOST_NAMES, Pattern, Steps, Walk, at, column, parse
from twin.yamlfile import Place

_NUMBER = re.compile(r"[0-9]{1,9}")
_NO_PORT = "is not a port; expected NODE/nicN/pN or SWITCH/pN"
Row = TypeVar("Row", int, I64)
PER_NIC = "nic"  # cable: nic, links of one NIC share a cable


class Link(Protocol):
    """An entry of the file."""

    a: str
    b: str
    speed: float | None
    cable: str | int | None


class End(NamedTuple):
    """What one end of an entry names: NIC port rows (number 0), or switch rows and port numbers."""

    is_nic: bool
    row: I64
    number: I64

    @property
    def keys(self) -> list[int]:
        keys = self.row if self.is_nic else switch_port(self.row, self.number)
        return list(keys.tolist())


@dataclass
class Known:
    """What links may name. radix, tiers: of switch rows."""

    builder: Builder
    nodes: dict[str, int]
    switches: dict[str, int]
    radix: list[int]
    tiers: list[int]
    forgiven: set[str]
    wrong: Callable[[Place, str], None]
    line: Callable[[Place], int]


class LinkReader:
    """Adds links to a builder and says what is wrong with them, the same thing once an entry."""

    def __init__(self, known: Known) -> None:
        self.known, self.builder = known, known.builder
        self.used: dict[int, int] = {}  # port -> line of the entry that uses it
        self.cables: dict[str | int, int] = {}  # by its name, or by the NIC whose ports share it
        self.nic_of_port: list[int] | None = None

    def read(self, i: int, link: Link) -> None:
        """Adds the links of an entry with ranges."""
        a, b = self._ends((("links", i, "a"), ("links", i, "b")), link)
        if a is None or b is None:
            return
        if b.is_nic and not a.is_nic:
            a, b = b, a
        speed = float("nan") if link.speed is None else link.speed
        self._add(a, b, speed, self._cable(("links", i, "cable"), link.cable, a))

    def _try(self, place: Place, make: Callable[[], End]) -> End | None:
        """What `make` gives, or None when it raises ValueError, whose text is told (if it has one)."""
        try:
            return make()
        except ValueError as problem:
            if str(problem):
                self.known.wrong(place, str(problem))
            return None

    def _add(self, a: End, b: End, speed: float, cable: I64 | None) -> None:
        if a.is_nic and b.is_nic:
            shared = [NONE] * len(a.row) if cable is None else cable.tolist()
            for low, high, c in zip(a.row.tolist(), b.row.tolist(), shared, strict=True):
                self.builder.direct_link(low, high, speed, c)
        elif a.is_nic:
            self.builder.links(a.row, b.row, b.number, speed, cable=cable)
        else:
            tiers = np.array(self.known.tiers)
            swap = tiers[a.row] > tiers[b.row]
            low, high = np.where(swap, b.row, a.row), np.where(swap, a.row, b.row)
            low_number, high_number = np.where(swap, b.number, a.number), np.where(swap, a.number, b.number)
            self.builder.links(low, high, high_number, speed, a_number=low_number, cable=cable)

    # --- cables ---

    def cable(self, name: str, nic_port: int | None) -> int:
        """The number of the cable of that name; of that NIC port's NIC, where the name says so."""
        key = self._nics()[nic_port] if nic_port is not None and name == PER_NIC else f"={name}"
        number = self.cables.get(key)
        if number is None:
            number = self.cables[key] = self.builder.cable()
        return number

    def _cable(self, place: Place, cable: str | int | None, a: End) -> I64 | None:
        """A number for each link, the same for those that share a cable."""
        if cable is None:
            return None
        if isinstance(cable, str):
            ports: list[int | None] = list(a.row.tolist()) if a.is_nic else [None]
            numbers = [self.cable(cable, port) for port in (ports if cable == PER_NIC else [None])]
            return np.resize(np.array(numbers, np.int64), len(a.row))
        if a.is_nic:
            self.known.wrong(
                place, f"{cable}: expected {PER_NIC}, or a name that these links share, where a is a NIC"
            )
            return None
        cage = cages(a.row, cable)
        return self.builder.cables(int(cage.max()) + 1)[cage]

    def _nics(self) -> list[int]:
        """The NIC of each NIC port."""
        if self.nic_of_port is None:
            ports = [n.ports_per_nic for n in self.builder.nodes for _ in n.nics]
            self.nic_of_port = np.repeat(np.arange(len(ports)), ports).tolist()
        return self.nic_of_port

    # --- ends ---

    def _ends(self, places: tuple[Place, Place], link: Link) -> tuple[End | None, End | None]:
        try:
            place = places[0]
            a = parse(link.a)
            place = places[1]
            b = parse(link.b)
            walk = Walk(a)
            picks = walk.picks(a), walk.picks(b)
            if b.loose_count != a.loose_count or b.count != a.count:
                raise ValueError(f"{b.text!r} stands for {b.count} ports, {a.text!r} for {a.count}")
            if 2 * walk.count > MOST_NAMES - len(self.used):
                raise ValueError(f"{b.text!r}: more than {MOST_NAMES:,} ports in all")
        except ValueError as problem:
            self.known.wrong(place, str(problem))
            return None, None
        return (
            self._try(places[0], lambda: self._end(places[0], Spelled(a, picks[0]), walk.count)),
            self._try(places[1], lambda: self._end(places[1], Spelled(b, picks[1]), walk.count)),
        )

    def _end(self, place: Place, here: Spelled, count: int) -> End:
        parts = [parse(part) for part in here.pattern.text.split("/")]
        if len(parts) not in (2, 3):
            raise ValueError(f"{here.pattern.text!r} {_NO_PORT}")
        cuts = np.cumsum([0, *(len(p.ranges) for p in parts)])
        picks = [here.picks[cuts[k] : cuts[k + 1]] for k in range(len(parts))]
        number = _numbers(parts[-1], picks[-1], count, "p")
        nic = _numbers(parts[1], picks[1], count, "nic") if len(parts) == 3 else number
        if number is None or nic is None:
            raise ValueError(f"{here.pattern.text!r} {_NO_PORT}")
        table, kinds = (self.known.nodes, "nodes") if len(parts) == 3 else (self.known.switches, "switches")
        owner = np.array(column(parts[0], picks[0], count, lambda name: table.get(name, NONE)), np.int64)
        lost = dict.fromkeys(at(parts[0], picks[0], int(step)) for step in np.flatnonzero(owner == NONE))
        unknown = [name for name in lost if name not in self.known.forgiven]
        if lost and not unknown:
            raise ValueError
        if unknown:
            kind = "node" if kinds == "nodes" else "switch"
            raise ValueError(f"{here.pattern.text!r}: there is no {kind} {unknown[0]!r}{more(len(unknown), kinds)}")
        if len(parts) == 3:
            return self._nic_ports(place, owner, nic, number, here)
        return self._switch_ports(place, owner, number, here)

    def _nic_ports(self, place: Place, node: I64, nic: I64, number: I64, here: Spelled) -> End:
        nodes = self.builder.nodes
        different, which = np.unique(node, return_inverse=True)
        some = [nodes[row] for row in different.tolist()]
        many = np.array([len(n.nics) for n in some])[which]
        position = np.where(nic < many, nic, NONE)
        odd = np.array([n.nics != tuple(range(len(n.nics))) for n in some])[which]  # numbered in a way of their own
        for k in np.flatnonzero(odd).tolist():
            numbers = nodes[int(node[k])].nics
            position[k] = numbers.index(int(nic[k])) if int(nic[k]) in numbers else NONE
        wrong = np.flatnonzero(position == NONE)
        if len(wrong):
            n = nodes[int(node[wrong[0]])]
            raise ValueError(
                f"{here.at(wrong[0])!r}: node {n.name} has no nic{nic[wrong[0]]}; it has {len(n.nics)} NICs"
                + more(len(wrong))
            )
        ports = np.array([n.ports_per_nic for n in some])[which]
        port = number - np.array([n.first_port for n in some])[which]
        wrong = np.flatnonzero((port < 0) | (port >= ports))
        if len(wrong):
            n = nodes[int(node[wrong[0]])]
            last = n.first_port + n.ports_per_nic - 1
            raise ValueError(
                f"{here.at(wrong[0])!r} does not exist: ports of its NICs go from p{n.first_port} to p{last}"
                + more(len(wrong))
            )
        rows = np.array([n.port0 for n in some], np.int64)[which] + position * ports + port
        return self._take(place, End(True, rows, np.zeros(len(rows), np.int64)), here)

    def _switch_ports(self, place: Place, switch: I64, number: I64, here: Spelled) -> End:
        radix = np.array(self.known.radix)[switch]
        high = np.flatnonzero((radix > 0) & (number > radix))
        if len(high):
            name, has = here.at(high[0]), radix[high[0]]
            raise ValueError(f"{name!r} does not exist: {name.rpartition('/')[0]} has {has} ports{more(len(high))}")
        return self._take(place, End(False, switch, number), here)

    def _take(self, place: Place, end: End, here: Spelled) -> End:
        """Marks ports as used; each by one link alone."""
        keys, line = end.keys, self.known.line(place)
        if len(set(keys)) == len(keys) and self.used.keys().isdisjoint(keys):
            self.used.update(dict.fromkeys(keys, line))
            return end
        twice: list[tuple[int, int]] = []  # step, line of the first use
        for step, key in enumerate(keys):
            if key in self.used:
                twice.append((step, self.used[key]))
            self.used.setdefault(key, line)
        step, first = twice[0]
        raise ValueError(f"port {here.at(step)!r} is used twice, first on line {first}{more(len(twice))}")


class Spelled(NamedTuple):
    """A pattern and what it stands for at each step."""

    pattern: Pattern
    picks: list[Steps]

    def at(self, step: int) -> str:
        return at(self.pattern, self.picks, int(step))


def cages(owner: npt.NDArray[np.integer], size: int) -> I64:
    """For each link the number of its cable, where each `size` links of one switch, in order, share one."""
    order = np.argsort(owner, kind="stable")
    start = np.flatnonzero(np.r_[True, np.diff(owner[order]) != 0])
    place = np.empty(len(owner), np.int64)
    place[order] = np.arange(len(owner)) - np.repeat(start, np.diff(np.r_[start, len(owner)]))
    key = owner.astype(np.int64) * (len(owner) + 1) + place // size
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))  # numbered as they come
    return rank[inverse]


def switch_port(switch: Row, number: Row) -> Row:
    """A number for a port of a switch that is none of another port; NIC ports have their row."""
    return -1 - switch * 1_000_000_000 - number


def more(count: int, what: str = "") -> str:
    """`(and 63 more)`, of `count` of which the first is told."""
    return f" (and {count - 1} more{' ' + what if what else ''})" if count > 1 else ""


def _numbers(part: Pattern, picks: list[Steps], count: int, prefix: str) -> I64 | None:
    """The numbers of `p[0-63]`; None where a text of it is not the prefix and a number."""

    def number(text: str) -> int:
        digits = text.removeprefix(prefix)
        return int(digits) if text != digits and _NUMBER.fullmatch(digits) else NONE

    values = np.array(column(part, picks, count, number), np.int64)
    return None if (values == NONE).any() else values
