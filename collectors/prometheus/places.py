"""From the labels of a series to the address of what it was measured at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from collectors.portnames import PortNames
from collectors.prometheus.profiles import Entity, Entry, Join, Profile, Rule
from twin.topology.model import Topology

Labels = Mapping[str, str]
Meaning = tuple[tuple[float, float], ...] | None
INSTANCE = "instance"


@dataclass(slots=True, eq=False)
class Device:
    """The interfaces that one entity's series show of one device. seen: what each is called, by template."""

    name: str
    seen: dict[tuple[str, ...], str | None] = field(default_factory=dict)  # -> address, None: no port of the wiring


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """Where a series belongs: an address, or an interface of a device whose address may yet change.

    meaning: pairs of value and what it means, None where a value stands for itself.
    """

    rule: Rule
    meaning: Meaning
    address: str = ""
    device: Device | None = None
    interface: tuple[str, ...] = ()

    def find(self) -> str | None:
        return self.address or (self.device.seen.get(self.interface) if self.device is not None else None)


class Places:
    """The series of some profiles on one wiring.

    names: what a store calls a device (or an id, such as a GPU's UUID) -> what the wiring calls it. own: the device
    whose exporter is read, where there is just one. A device is sought under each label that may name it, as it is
    and up to the first colon or dot, and taken where the wiring has it.
    """

    def __init__(
        self,
        profiles: Sequence[Profile],
        topology: Topology,
        ports: PortNames,
        names: Mapping[str, str] | None = None,
        own: str | None = None,
    ) -> None:
        self._rules: dict[str, list[Rule]] = {}
        self._joins: dict[str, Join] = {}
        for profile in profiles:
            for series, rules in profile.rules.items():
                self._rules.setdefault(series, []).extend(rules)
            self._joins.update(profile.joins)
        self._topology, self._names, self._own = topology, names or {}, own
        self._ports = ports
        self._devices: dict[tuple[int, str], Device] = {}  # by entity and name
        self._joined: dict[tuple[str, ...], dict[str, str]] = {}

    def wanted(self, series: str) -> bool:
        """True for the name of a series that any profile reads."""
        return series in self._rules or series in self._joins

    def joins(self, series: str) -> bool:
        """True for the name of a series that gives its labels to others."""
        return series in self._joins

    def bare(self) -> list[Device]:
        """Devices with interfaces none of which is a port of the wiring."""
        return [device for device in self._devices.values() if not any(device.seen.values())]

    def learn(self, found: Iterable[tuple[str, dict[str, str]]]) -> list[Place | str]:
        """Where each of these series (name, labels) belongs, or why it has no place; "" where it needs none.

        Interfaces are placed by looking at all that a device has shown so far: `Place.find` of an earlier series
        may tell another port afterwards.
        """
        series = list(found)
        for name, labels in series:
            if (join := self._joins.get(name)) is not None:
                self._joined.setdefault(_key(join, labels), {}).update({a: labels.get(a, "") for a in join.add})
        out = [self._place(name, labels) for name, labels in series]
        for device in dict.fromkeys(p.device for p in out if isinstance(p, Place)):
            if device is not None:
                self._lay(device)
        return [self._checked(p) for p in out]

    def _place(self, name: str, labels: dict[str, str]) -> Place | str:
        rules = self._rules.get(name)
        if rules is None:
            return ""
        labels = self._with_joins(labels)
        why = ""
        for rule in rules:
            found = self._by_rule(rule, labels)
            if isinstance(found, Place):
                return found
            why = found or why
        return why

    def _by_rule(self, rule: Rule, labels: dict[str, str]) -> Place | str:
        entity = rule.entity
        meaning = _meaning(rule.entry, labels)
        if any(pattern.fullmatch(labels.get(label, "")) for label, pattern in entity.skip.items()):
            return ""
        for label, pattern in entity.extract.items():
            if (match := pattern.fullmatch(labels.get(label, ""))) is not None:
                labels = {**labels, **match.groupdict("")}
        below = _filled(entity.address, labels) if entity.address is not None else None
        for label in entity.ids:
            address = self._names.get(labels.get(label, ""))
            if address is not None and "/" in address:
                rest = below.partition("/")[2] if below is not None else ""
                return Place(rule, meaning, f"{address}/{rest}" if rest else address)
        device = self._device(entity, labels)
        if device is None:
            said = next((labels[x] for x in entity.device if labels.get(x)), "")
            return f"{said!r} is no device of the wiring" if said else f"it has no label {' or '.join(entity.device)}"
        if entity.address is not None:
            return (
                Place(rule, meaning, f"{device}/{below}")
                if below is not None
                else f"{entity.address}: a label is missing"
            )
        interface = tuple(_filled(template, labels) or "" for template in entity.interface)
        if not any(interface):
            return f"{entity.interface[-1]}: a label is missing"
        shown = self._devices.setdefault((id(entity), device), Device(device))
        shown.seen.setdefault(interface, None)
        return Place(rule, meaning, device=shown, interface=interface)

    def _device(self, entity: Entity, labels: dict[str, str]) -> str | None:
        for label in entity.device:
            said = labels.get(label) or (self._own if label == INSTANCE else None)
            if not said:
                continue
            host = said.partition(":")[0]
            for name in (said, host, host.partition(".")[0]):
                device = self._names.get(name, name)
                if self._ports.has(device):
                    return device
        return self._own if self._own is not None and INSTANCE in entity.device else None

    def _with_joins(self, labels: dict[str, str]) -> dict[str, str]:
        for join in self._joins.values():
            more = self._joined.get(_key(join, labels))
            if more:
                labels = {**more, **labels}
        return labels

    def _lay(self, device: Device) -> None:
        """Places the interfaces of a device, each by the first of its names that alone means it."""
        found: dict[tuple[str, ...], str | None] = dict.fromkeys(device.seen)
        taken: set[str] = set()
        for level in range(max(map(len, found), default=0)):
            names = Counter(interface[level] for interface in found)
            placed = self._ports.place(device.name, [n for n, times in names.items() if n and times == 1])
            for interface, address in found.items():
                new = placed.get(interface[level])
                if address is None and new is not None and new not in taken:
                    found[interface] = new
                    taken.add(new)
        device.seen.update(found)

    def _checked(self, place: Place | str) -> Place | str:
        """A reason where the address is not in the wiring. Interfaces of a known device need not all be ports."""
        if isinstance(place, str) or place.device is not None:
            return place
        if place.address not in self._topology.rows(place.rule.entity.kind):
            return f"the wiring has no {place.address}"
        return place


def _meaning(entry: Entry, labels: Labels) -> Meaning:
    if entry.words is not None and (said := labels.get(entry.label or "")) is not None:
        word = entry.words.get(said.rpartition(":")[2])  # the identities of YANG may carry their module
        return () if word is None else ((1.0, word),)
    return None if entry.values is None else tuple(sorted(entry.values.items()))


def _key(join: Join, labels: Labels) -> tuple[str, ...]:
    return (join.series, *(labels.get(label, "") for label in join.by))


def _filled(template: str, labels: Labels) -> str | None:
    """The template with its labels; None where one is missing."""
    try:
        return template.format_map(labels)
    except KeyError:
        return None
