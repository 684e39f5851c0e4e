"""Records to frames: whose reading it is, of what, and which of two sources of one number is believed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from collectors.mqtt.inbox import Message
from collectors.mqtt.profile import Profile
from collectors.mqtt.record import Record
from collectors.portnames import PortNames
from twin.address import clean
from twin.frames import NS, Frame, column
from twin.metrics import REGISTRY
from twin.topology.model import Topology

FORGET_NS = 600 * NS  # an interface not heard of for so long is gone: containers make new ones all day
_TOLD = 3  # names in a warning
_STRANGERS = 1000  # devices that are not ours, remembered to be told

Parse = Callable[[bytes], tuple[list[Record], list[str]]]
Row = dict[str, float | int | None]
Key = tuple[Profile, str, int]  # profile, device, time


@dataclass(slots=True)
class _Interfaces:
    """A device's interfaces by one profile. seen: the latest time of each. placed: None until all are known."""

    seen: dict[str, int] = field(default_factory=dict)
    placed: dict[str, str] | None = None


class RecordReader:
    """Frames of Telegraf's records: one source a device and profile, such as `n001:net`.

    Which port an interface means is known once all interfaces of its device are, and they come one by one: a device
    is read from the second report of any of its interfaces on.
    """

    def __init__(
        self,
        parse: Parse,
        profiles: Iterable[Profile],
        ports: PortNames,
        topology: Topology,
        names: Mapping[str, str] | None = None,
    ) -> None:
        """names: devices and other entities as the sender calls them, to what the wiring does."""
        self._parse, self._ports, self._topology, self._names = parse, ports, topology, names or {}
        self._profiles: dict[str, list[Profile]] = defaultdict(list)
        for profile in profiles:
            self._profiles[profile.measurement].append(profile)
        self._interfaces: dict[tuple[str, str], _Interfaces] = {}
        self._rows: dict[Key, dict[str, Row]] = {}
        self._ranks: dict[tuple[str, str], int] = {}  # address, metric -> the best rank that gives it
        self._devices: dict[str, str] = {}  # as their tags say -> as the wiring does
        self._strangers: dict[str, None] = {}
        self._unplaced: dict[str, str] = {}

    def take(self, message: Message, now: int) -> list[str]:
        if message.retained:
            return []
        records, problems = self._parse(message.payload)
        for record in records:
            for profile in self._profiles.get(record.measurement, ()):
                if all(record.tags.get(tag) == value for tag, value in profile.where.items()):
                    self._take(record, profile, now if record.time is None else record.time)
        return problems

    def frames(self) -> list[Frame]:
        made = [
            f for (profile, device, time), rows in self._rows.items() for f in self._made(profile, device, time, rows)
        ]
        self._rows = {}
        return made

    def warnings(self) -> list[str]:
        out = []
        if self._strangers:
            out.append(
                f"{len(self._strangers)} devices are not in the wiring ({_some(self._strangers)}); "
                "say under names what the wiring calls them"
            )
        if self._unplaced:
            first = next(iter(self._unplaced.values()))
            out.append(
                f"no interface of {_some(self._unplaced)} is a port of the wiring ({first}); say under ports which is"
            )
        return out

    # --- in ---

    def _take(self, record: Record, profile: Profile, time: int) -> None:
        device = self._device(profile, record.tags)
        if device is None:
            return
        address = self._address(profile, device, record, time)
        if address is None:
            return
        row = self._rows.setdefault((profile, device, time), {}).setdefault(address, {})
        for rule in profile.rules:
            if rule.fields[0] in record.fields:
                metric = rule.metric.name
                row[metric] = rule.value(record.fields)
                key = (address, metric)
                if profile.rank < self._ranks.get(key, profile.rank + 1):
                    self._ranks[key] = profile.rank

    def _device(self, profile: Profile, tags: Mapping[str, str]) -> str | None:
        """The node or switch that the tags name: as the site says, as they are, or without their domain."""
        said = next((tags[tag] for tag in profile.device if tag in tags), None)
        if said is None or said in self._strangers:
            return None
        known = self._devices.get(said)
        if known is None and (known := self._find(said)) is not None:
            self._devices[said] = known
        return known

    def _find(self, said: str) -> str | None:
        for name in (self._names.get(said), clean(said), clean(said.partition(".")[0])):
            if name is not None and self._ports.has(name):
                return name
        if len(self._strangers) < _STRANGERS:
            self._strangers[said] = None
        return None

    def _address(self, profile: Profile, device: str, record: Record, time: int) -> str | None:
        known = self._topology.rows(profile.kind)
        for tag in profile.also:
            if (said := self._names.get(record.tags.get(tag, ""))) is not None:
                return said if said in known else None
        if profile.kind != "port":
            try:
                address = profile.address.format_map({**record.tags, "device": device})
            except (KeyError, ValueError, IndexError, AttributeError):  # a tag is missing, or no plain name
                return None
            return address if address in known else None
        interface = next((record.tags[tag] for tag in profile.interface if tag in record.tags), None)
        return None if interface is None else self._port(profile, device, interface, time)

    def _port(self, profile: Profile, device: str, interface: str, time: int) -> str | None:
        found = self._interfaces.setdefault((profile.name, device), _Interfaces())
        before = found.seen.get(interface)
        found.seen[interface] = max(time, before or 0)
        again = before is not None and time > before
        if (found.placed is None and again) or (found.placed is not None and before is None):
            found.seen = {name: last for name, last in found.seen.items() if time - last < FORGET_NS}
            found.placed = self._ports.place(device, found.seen)
            if found.placed:
                self._unplaced.pop(device, None)
            else:
                self._unplaced.setdefault(device, _some(found.seen))
        return found.placed.get(interface) if found.placed is not None else None

    # --- out ---

    def _made(self, profile: Profile, device: str, time: int, rows: dict[str, Row]) -> Iterable[Frame]:
        """Frames of rows that have the same metrics: what a sender does not give, it does not call unknown either."""
        alike: dict[tuple[str, ...], dict[str, Row]] = defaultdict(dict)
        for address, row in rows.items():
            if row.get("up") == 0 and "speed_bits_per_second" in row:
                row["speed_bits_per_second"] = None
            mine = tuple(m for m in row if self._ranks[address, m] >= profile.rank)
            if mine:
                alike[mine][address] = row
        for metrics, group in alike.items():
            columns = {
                m: column([row[m] for row in group.values()], counter=REGISTRY[profile.kind, m].counter)
                for m in metrics
            }
            yield Frame(time, f"{device}:{profile.name}", profile.kind, tuple(group), columns)


def _some(names: Iterable[str]) -> str:
    listed: Sequence[str] = list(names)
    return ", ".join(listed[:_TOLD]) + ("…" if len(listed) > _TOLD else "")
