"""What the pages of a Redfish service say of power: functions from JSON to numbers. What a page does not say is None.

Schemas: DMTF DSP8010 (Chassis, Power, PowerSupply, PowerSupplyMetrics, Sensor, EnvironmentMetrics,
PowerDistribution). Makers' habits are named where they are met.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

Page = Mapping[str, Any]

MOST_WATTS = 1e7  # more than any rack: such a number is no reading
MOST_BAYS = 256

_DECIMAL = re.compile(r"[0-9]{1,8}(?:\.[0-9]{1,6})?", re.ASCII)
_OFF = frozenset(("Absent", "Disabled", "StandbyOffline", "UnavailableOffline"))
_READY = frozenset(("Enabled", "StandbySpare"))
_BAY = re.compile(r"(?:psu|ps|power ?supply(?: ?unit| ?bay)?|bay|slot)[^0-9a-z]{0,2}([0-9]{1,3})(?![0-9])", re.I)
_LAST = re.compile(r"(?:^|[^0-9])([0-9]{1,3})$")
# `p0_pin` (LITE-ON shelves), `ps1_input_power` (Delta shelves, OpenBMC), `PS1InputPower` (OCP power shelf profile)
_SENSOR = re.compile(
    r"(?:^|[^a-z])p(?:su?)?_?([0-9]{1,3})_?(?:(pin|input_?power|power_?in(?:put)?)|pout|output_?power|power_?out(?:put)?)$",
    re.I,
)


@dataclass(frozen=True, slots=True)
class Supply:
    """One supply. up: 1 it can deliver, 0 it cannot. absent: its bay is empty. Powers in W."""

    up: int | None = None
    absent: bool = False
    input: float | None = None
    output: float | None = None
    capacity: float | None = None


# --- pieces of a page ---


def part(page: object, *keys: str) -> Any:
    """What lies under `keys`, one inside the other; None where a step is missing or of another kind."""
    for key in keys:
        page = page.get(key) if isinstance(page, Mapping) else None
    return page


def parts(page: object, *keys: str) -> list[Page]:
    """The objects of a list under `keys`; a list that is null, as some BMCs send it, is an empty one."""
    found = part(page, *keys)
    return [entry for entry in found if isinstance(entry, Mapping)] if isinstance(found, list) else []


def link(page: object, *keys: str) -> str | None:
    """The path that a link under `keys` leads to."""
    return path_of(part(page, *keys, "@odata.id"))


def links(page: object, *keys: str) -> list[str]:
    """The paths of a list of links under `keys`, each once."""
    found = (link(entry) for entry in parts(page, *keys))
    return list(dict.fromkeys(path for path in found if path is not None))


def path_of(value: object) -> str | None:
    """`value` where it is a path of this service: links to elsewhere are not followed."""
    return value if isinstance(value, str) and value.startswith("/") and not value.startswith("//") else None


def last(path: str) -> str:
    """The last part of a path."""
    return path.rstrip("/").rpartition("/")[2]


def watts(value: object) -> float | None:
    """A power in W: a number, the same as text (LITE-ON: `"5500"`), or a sensor's excerpt with its Reading."""
    if isinstance(value, Mapping):
        value = value.get("Reading")
    if isinstance(value, str) and _DECIMAL.fullmatch(value):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) <= MOST_WATTS and isfinite(value) and value >= 0 else None


# --- supplies ---


def supply(page: Page, metrics: Page | None = None, sensors: Mapping[str, Page] | None = None) -> Supply:
    """A supply from its page, its metrics, and its sensors by `input` and `output`."""
    if state(page) == "Absent":
        return Supply(up=0, absent=True)
    taken = _reading(part(metrics, "InputPowerWatts"), part(sensors, "input"), page.get("PowerInputWatts"))
    given = _reading(
        part(metrics, "OutputPowerWatts"), part(sensors, "output"), page.get("PowerOutputWatts"),
        page.get("LastPowerOutputWatts"),
    )  # fmt: skip
    return Supply(_delivers(page, taken, given), False, taken, given, _capacity(page))


def state(page: Page) -> str | None:
    """Status.State, where it is text."""
    value = part(page, "Status", "State")
    return value if isinstance(value, str) else None


def sensed(sensor: Page) -> float | None:
    """The reading of a Sensor page; one that is not in operation has none, whatever number it still shows."""
    return watts(sensor) if state(sensor) in (None, "Enabled") else None


def unread(excerpt: object) -> str | None:
    """The sensor to ask where an excerpt names one instead of giving a reading, as AMI's BMC of a DGX H100 does."""
    named = isinstance(excerpt, Mapping) and "Reading" not in excerpt
    return path_of(part(excerpt, "DataSourceUri")) if named else None


def _reading(excerpt: object, sensor: object, *fields: object) -> float | None:
    """The first of them that is a power."""
    found = [watts(excerpt), sensed(sensor) if isinstance(sensor, Mapping) else None, *map(watts, fields)]
    return next((value for value in found if value is not None), None)


def _delivers(page: Page, taken: float | None, given: float | None) -> int | None:
    """Whether a supply can deliver power.

    A spare on standby counts as one that can. Of a supply that is in operation and in a critical state the power it
    gives decides: a dead fan is critical too. Zero power alone says nothing, as it is also what an unread sensor
    shows. Without a state (Gigabyte, ASUS, DGX H100), power that is given is proof, and its lack is none.
    """
    said, switched = state(page), _switched_on(page)
    if said in _OFF or switched is False or page.get("LineInputStatus") == "LossOfInput":
        return 0
    if said in _READY and part(page, "Status", "Health") != "Critical":
        return 1
    if given and taken != 0:
        return 1
    if said in _READY:
        return 0
    return 1 if switched else None


def _switched_on(page: Page) -> bool | None:
    """Whether it is switched on, as makers of power shelves say it: LITE-ON in PowerState, Delta in its Oem part."""
    said = page.get("PowerState")
    if said is None:
        said = part(page, "Oem", "deltaenergysystems", "Power")
    return said if isinstance(said, bool) else {"On": True, "Off": False}.get(str(said))


def _capacity(page: Page) -> float | None:
    """What it is rated for; of several input ranges none is taken, since which one it runs on is not said."""
    for key in ("PowerCapacityWatts", "CapacityWatts"):
        if rated := watts(page.get(key)):
            return rated
    ranges = {watts(r.get("CapacityWatts", r.get("OutputWattage"))) for r in parts(page, "InputRanges")}
    return ranges.pop() or None if len(ranges) == 1 else None


# --- numbers of bays ---


def numbers(supplies: Sequence[Page]) -> list[int]:
    """The number of each supply as its maker counts, from 0 or from 1; its place in the list where nothing tells.

    A MemberId comes last: it counts what is listed, so it shifts where an empty bay is left out of the list.
    """
    for said in zip(*map(_numbered, supplies), strict=True):
        found = [n for n in said if n is not None and n < MOST_BAYS]
        if len(found) == len(supplies) == len(set(found)):
            return found
    return list(range(len(supplies)))


def _numbered(page: Page) -> tuple[int | None, ...]:
    own = (part(maker, "BayNumber") for maker in _makers(page))  # HPE
    bay = next((n for n in own if isinstance(n, int) and not isinstance(n, bool) and n >= 0), None)
    return _number(page.get("Id")), _number(page.get("Name")), bay, _number(page.get("MemberId"))


def _makers(page: Page) -> Iterator[object]:
    oem = page.get("Oem")
    yield from oem.values() if isinstance(oem, Mapping) else ()


def _number(name: object) -> int | None:
    match = _BAY.search(name) or _LAST.search(name) if isinstance(name, str) else None
    return int(match[1]) if match else None


def supply_sensor(path: str) -> tuple[int, str] | None:
    """The number of a supply, and `input` or `output`, where a sensor's name says that it is that power."""
    match = _SENSOR.search(last(path))
    return (int(match[1]), "input" if match[2] else "output") if match else None


# --- the whole ---


def consumed(power: Page) -> float | None:
    """What a chassis draws by its Power page: the first control is the whole, others are parts (CPU, memory)."""
    control = next(iter(parts(power, "PowerControl")), None)
    return watts(part(control, "PowerConsumedWatts")) or None


def total(metrics: Page) -> float | None:
    """What a chassis or a power shelf draws, of EnvironmentMetrics or PowerDistributionMetrics.

    Zero is no reading: a BMC that answers draws power itself.
    """
    return watts(metrics.get("PowerWatts")) or None
