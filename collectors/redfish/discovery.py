"""Which pages of a BMC tell of supplies and of the whole: found by following links, rarely, since BMCs are slow."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from collectors.redfish import pages
from collectors.redfish.client import BadPage, Bmc
from collectors.redfish.pages import Page

ROOT = "/redfish/v1/"
CHASSIS = "/redfish/v1/Chassis"
MOST_MEMBERS = 512  # of a collection

# Chassis of these types are parts of a host: what they draw is not what the host draws
_PARTS = frozenset(
    ("Backplane", "Card", "Cartridge", "Component", "Drawer", "Expansion", "Module", "StorageEnclosure", "Zone")
)
_BASEBOARD = "HGX_"  # names that NVIDIA's GPU baseboard gives its own chassis; no supply is among them


class OutOfTime(Exception):
    """The time for this collection is used up."""


class Reader:
    """Pages of one BMC, each read once, until a time of the event loop's clock."""

    def __init__(self, bmc: Bmc) -> None:
        self._bmc = bmc
        self._pages: dict[str, Page | BadPage] = {}
        self.until = 0.0
        self.failed = False  # whether a page could not be had

    async def get(self, path: str) -> Page:
        """A page. Raises BadPage, OutOfTime, or CollectorError where the BMC cannot be used at all."""
        found = self._pages.get(path)
        if found is None:
            if asyncio.get_running_loop().time() >= self.until:
                raise OutOfTime
            try:
                found = await self._bmc.get(path)
            except BadPage as problem:
                found, self.failed = problem, True
            self._pages[path] = found
        if isinstance(found, BadPage):
            raise found
        return found

    async def find(self, path: str | None) -> Page:
        """A page that may be missing; empty where it is."""
        try:
            return {} if path is None else await self.get(path)
        except BadPage:
            return {}

    async def members(self, path: str | None, *, needed: bool = False) -> list[str]:
        """What a collection lists, all of its pages. needed: raises BadPage where it cannot be had."""
        found: list[str] = []
        while path is not None and len(found) < MOST_MEMBERS:
            page = await (self.get if needed else self.find)(path)
            more = [m for m in pages.links(page, "Members") if m not in found]
            found += more
            path = pages.path_of(page.get("Members@odata.nextLink")) if more else None
        return found[:MOST_MEMBERS]


@dataclass(frozen=True, slots=True)
class Bay:
    """Where one supply is read. number: as the maker counts. path: its page, or the Power page that lists it."""

    number: int
    path: str
    metrics: str | None = None
    sensors: dict[str, str] = field(default_factory=dict)  # `input`, `output` -> path
    listed: bool = False  # on a Power page, older than PowerSubsystem


@dataclass(frozen=True, slots=True)
class Group:
    """A chassis or power shelf. total: the page that says what it draws as a whole."""

    name: str
    bays: tuple[Bay, ...] = ()
    total: str | None = None
    encloses: bool = True  # a whole enclosure, not a part of one


async def discover(reader: Reader) -> list[Group]:
    """Every chassis or shelf with supplies or with a total, in the order of their names.

    Power equipment is asked first; where it has no shelf with supplies, the chassis are.
    """
    root = await reader.get(ROOT)
    equipment = await reader.find(pages.link(root, "PowerEquipment"))
    shelves = await reader.members(pages.link(equipment, "PowerShelves"))
    groups = [group for path in shelves if (group := await _shelf(reader, path)).bays]
    if not groups:
        listed = await reader.members(pages.link(root, "Chassis") or CHASSIS, needed=True)
        paths = [path for path in listed if not pages.last(path).startswith(_BASEBOARD)]
        groups = [await _chassis(reader, path) for path in paths]
    return [g for g in groups if g.bays or g.total]


async def _shelf(reader: Reader, path: str) -> Group:
    """A power shelf: its supplies are its own, or those of its chassis (OCP power shelf profile)."""
    page = await reader.find(path)
    total = await _total(reader, pages.link(page, "Metrics"))
    bays = await _newer(reader, page, None)
    for chassis in pages.links(page, "Links", "Chassis"):
        if bays and total:
            break
        group = await _chassis(reader, chassis)
        bays, total = bays or group.bays, total or group.total
    return Group(pages.last(path), bays, total)


async def _chassis(reader: Reader, path: str) -> Group:
    """A chassis. One Power page that tells all is taken before many newer ones: a BMC takes a second for each."""
    page = await reader.find(path)
    encloses = str(page.get("ChassisType")) not in _PARTS and pages.link(page, "Links", "ContainedBy") is None
    older = pages.link(page, "Power")
    power = await reader.find(older)
    bays: tuple[Bay, ...] = ()
    if older is not None and any(_tells(s) for s in pages.parts(power, "PowerSupplies")):
        bays = _older(older, power)
    if not bays:
        subsystem = await reader.find(pages.link(page, "PowerSubsystem"))
        bays = await _newer(reader, subsystem, pages.link(page, "Sensors"))
    if not bays and older is not None:
        bays = _older(older, power)
    total = older if pages.consumed(power) is not None else None
    if total is None and encloses:
        total = await _total(reader, pages.link(page, "EnvironmentMetrics"))
    return Group(pages.last(path), bays, total, encloses)


async def _total(reader: Reader, path: str | None) -> str | None:
    """The path, where that page has the power of the whole."""
    return path if "PowerWatts" in await reader.find(path) else None


def _tells(supply: Page) -> bool:
    found = pages.supply(supply)
    return found.input is not None or found.output is not None


def _older(path: str, power: Page) -> tuple[Bay, ...]:
    return tuple(Bay(n, path, listed=True) for n in pages.numbers(pages.parts(power, "PowerSupplies")))


async def _newer(reader: Reader, subsystem: Page, sensors: str | None) -> tuple[Bay, ...]:
    """The supplies of a collection; the power of those without metrics is looked for among the chassis' sensors."""
    paths = await reader.members(pages.link(subsystem, "PowerSupplies"))
    found = [await reader.find(path) for path in paths]
    metrics = [pages.link(page, "Metrics") for page in found]
    bare = any(m is None and not _tells(page) for m, page in zip(metrics, found, strict=True))
    by_number: dict[int, dict[str, str]] = {}
    for path in await reader.members(sensors if bare else None):
        if (what := pages.supply_sensor(path)) is not None:
            by_number.setdefault(what[0], {}).setdefault(what[1], path)
    named = [{"Id": pages.last(path), **page} for path, page in zip(paths, found, strict=True)]
    return tuple(
        Bay(number, path, metric, {} if metric else by_number.get(number, {}))
        for number, path, metric in zip(pages.numbers(named), paths, metrics, strict=True)
    )


def whole(groups: list[Group]) -> tuple[Group | None, str | None]:
    """The chassis that is the node as a whole; a warning where several might be."""
    fit = [g for g in groups if g.total and g.encloses]
    with_supplies = [g for g in fit if g.bays]
    chosen = with_supplies if len(fit) > 1 and with_supplies else fit
    if len(chosen) > 1:
        return None, f"power of the whole is unknown: it may be that of {', '.join(g.name for g in chosen[:4])}"
    return (chosen[0] if chosen else None), None
