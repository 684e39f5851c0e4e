"""What single pages of a BMC mean, by themselves and mutated."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collectors.redfish import pages
from collectors.redfish.pages import MOST_WATTS, Supply
from tests.collectors import redfish_pages as made

ENABLED: dict[str, Any] = {"Status": {"State": "Enabled", "Health": "OK"}}
CRITICAL: dict[str, Any] = {"Status": {"State": "Enabled", "Health": "Critical"}}


def in_state(state: str, **more: Any) -> dict[str, Any]:
    return {"Status": {"State": state, "Health": "OK"}, **more}


@pytest.mark.parametrize(
    ("page", "up"),
    [
        (ENABLED, 1),
        (in_state("StandbySpare"), 1),
        (in_state("Absent"), 0),
        (in_state("Disabled"), 0),
        (in_state("StandbyOffline"), 0),
        (in_state("UnavailableOffline"), 0),  # OpenBMC: its cord is pulled
        (in_state("UnavailableOffline", PowerOutputWatts=400), 0),  # the last value is kept
        (in_state("Starting"), None),
        (in_state("Updating", PowerOutputWatts=400), 1),
        (ENABLED | {"LineInputStatus": "LossOfInput"}, 0),
        (ENABLED | {"LineInputStatus": "OutOfRange"}, 1),
        (CRITICAL, 0),
        (CRITICAL | {"PowerInputWatts": 0, "PowerOutputWatts": 0}, 0),
        (CRITICAL | {"PowerInputWatts": 300, "PowerOutputWatts": 270}, 1),  # its fan is dead
        (CRITICAL | {"PowerInputWatts": 0, "LastPowerOutputWatts": 270}, 0),
        (ENABLED | {"PowerInputWatts": 0, "PowerOutputWatts": 0}, 1),  # an unread sensor shows 0 too
        ({}, None),  # Gigabyte
        ({"PowerOutputWatts": 201}, 1),  # ASUS
        ({"PowerOutputWatts": 0}, None),
        (in_state("Sleep", PowerState=False), 0),  # LITE-ON
        (in_state("Sleep", PowerState="Off"), 0),
        (in_state("Sleep"), None),
        (ENABLED | {"PowerState": True}, 1),
        (ENABLED | {"Oem": {"deltaenergysystems": {"Power": False}}}, 0),  # Delta
        (ENABLED | {"Oem": {"deltaenergysystems": None}}, 1),
        ({"Status": "OK"}, None),
        ({"Status": {"State": 1, "Health": None}}, None),
    ],
)
def test_a_supply_is_up_where_it_can_deliver(page: dict[str, Any], up: int | None) -> None:
    assert pages.supply(page).up == up


@pytest.mark.parametrize(
    ("value", "watts"),
    [
        (5500, 5500.0),
        (0, 0.0),
        ("5500", 5500.0),
        ("5500.5", 5500.5),
        ({"Reading": 303.25, "DataSourceUri": "/redfish/v1/x"}, 303.25),
        ({"Reading": None}, None),
        ({"Reading": True}, None),
        (None, None),
        (True, None),
        ("", None),
        ("N/A", None),
        ("5500 W", None),
        ("-5", None),
        (-5, None),
        (1e9, None),
        (10**400, None),
        (float("nan"), None),
        (float("inf"), None),
        ([5], None),
        ({}, None),
    ],
)
def test_a_power_is_a_number_a_text_or_an_excerpt_and_else_unknown(value: object, watts: float | None) -> None:
    assert pages.watts(value) == watts


def test_the_newer_pages_go_before_the_older_fields() -> None:
    page = ENABLED | {"PowerInputWatts": 1, "PowerOutputWatts": 2, "LastPowerOutputWatts": 3, "PowerCapacityWatts": 4}
    metrics = {"InputPowerWatts": {"Reading": 10}, "OutputPowerWatts": {"Reading": 20}}
    assert pages.supply(page, metrics) == Supply(1, False, 10.0, 20.0, 4.0)
    assert pages.supply(page) == Supply(1, False, 1.0, 2.0, 4.0)
    sensors = {"input": {"Reading": 7}, "output": {"Reading": 8, "Status": {"State": "UnavailableOffline"}}}
    assert pages.supply(ENABLED, {}, sensors) == Supply(1, False, 7.0, None, None)


@pytest.mark.parametrize(
    ("page", "watts"),
    [
        ({"PowerCapacityWatts": None, "InputRanges": [{"OutputWattage": 3000}]}, 3000.0),  # Supermicro
        ({"InputRanges": [{"CapacityWatts": 2000}, {"CapacityWatts": 1200}]}, None),
        ({"InputRanges": [{"OutputWattage": None}]}, None),
        ({"PowerCapacityWatts": 0}, None),
        ({"CapacityWatts": "5500"}, 5500.0),
        ({}, None),
    ],
)
def test_a_rating_that_is_not_plain_is_unknown(page: dict[str, Any], watts: float | None) -> None:
    assert pages.supply(page).capacity == watts


@pytest.mark.parametrize(
    ("supplies", "numbers"),
    [
        ([{"Id": "PSU0"}, {"Id": "PSU1"}], [0, 1]),
        ([{"Id": "PSU.Slot.1", "Name": "PS1 Status"}, {"Id": "PSU.Slot.3", "Name": "PS3 Status"}], [1, 3]),
        ([{"Id": "PowerSupplyUnit 3"}, {"Id": "PowerSupplyUnit 6"}], [3, 6]),
        ([{"MemberId": "0", "Name": "Power Supply Bay 2"}, {"MemberId": "1", "Name": "Power Supply Bay 4"}], [2, 4]),
        ([{"MemberId": "0", "Name": "PS1 Status"}, {"MemberId": "1", "Name": "PS2 Status"}], [1, 2]),
        ([{"MemberId": "0", "Name": "DPS-3200AB-1"}, {"MemberId": "1", "Name": "DPS-3200AB-1"}], [0, 1]),
        (
            [{"Name": "Hpe", "Oem": {"Hpe": {"BayNumber": 2}}}, {"Name": "Hpe", "Oem": {"Hpe": {"BayNumber": 1}}}],
            [2, 1],
        ),
        ([{"Id": "left"}, {"Id": "right"}], [0, 1]),
        ([{"Id": "0"}, {"Id": "1"}, {"Id": 2}], [0, 1, 2]),
        ([], []),
    ],
)
def test_bays_are_numbered_by_the_first_word_that_tells_all_apart(
    supplies: list[dict[str, Any]], numbers: list[int]
) -> None:
    assert pages.numbers(supplies) == numbers


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("p0_pin", (0, "input")),
        ("p5_pout", (5, "output")),
        ("ps1_input_power", (1, "input")),
        ("ps6_output_power", (6, "output")),
        ("power_ps0_input_power", (0, "input")),
        ("PS1InputPower", (1, "input")),
        ("p0_vin", None),
        ("chassis_input_power", None),
        ("temp0_pin", None),
        ("p0_pin_max", None),
    ],
)
def test_only_a_supplys_own_power_is_taken_from_a_sensors_name(name: str, found: tuple[int, str] | None) -> None:
    assert pages.supply_sensor(f"/redfish/v1/Chassis/powershelf/Sensors/{name}") == found


@pytest.mark.parametrize(
    ("page", "watts"),
    [
        ({"PowerControl": [{"PowerConsumedWatts": 614}, {"PowerConsumedWatts": 90}]}, 614.0),
        ({"PowerControl": [{"PowerConsumedWatts": 0}]}, None),
        ({"PowerControl": [{"PowerConsumedWatts": None}, {"PowerConsumedWatts": 90}]}, None),
        ({"PowerControl": None}, None),
        ({}, None),
    ],
)
def test_the_whole_is_the_first_control_and_zero_is_no_reading(page: dict[str, Any], watts: float | None) -> None:
    assert pages.consumed(page) == watts


def test_a_total_of_zero_is_no_reading() -> None:
    assert pages.total({"PowerWatts": {"Reading": 0}}) is None
    assert pages.total({"PowerWatts": {"Reading": 825.38}}) == 825.38


@pytest.mark.parametrize("value", ["http://elsewhere/x", "//elsewhere/x", "redfish", "", None, 5, {"a": 1}])
def test_a_link_that_is_no_path_of_this_service_leads_nowhere(value: object) -> None:
    assert pages.link({"Chassis": {"@odata.id": value}}, "Chassis") is None


# --- anything ---

_LEAF = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12)
_JSON = st.recursive(_LEAF, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4))
_PAGES = list({**made.hgx(2), **made.supermicro(2), **made.liteon_shelf(), **made.ocp_shelves(1)}.values())


@st.composite
def mutated(draw: st.DrawFn) -> Any:
    """A page with one place in it replaced by anything."""

    def replace(value: Any) -> Any:
        if isinstance(value, dict) and value and draw(st.integers(0, 3)):
            key = draw(st.sampled_from(sorted(value)))
            return {**value, key: replace(value[key])}
        if isinstance(value, list) and value and draw(st.integers(0, 3)):
            at = draw(st.integers(0, len(value) - 1))
            return [*value[:at], replace(value[at]), *value[at + 1 :]]
        return draw(_JSON)

    page = draw(st.sampled_from(_PAGES))
    return {key: replace(value) if draw(st.booleans()) else value for key, value in page.items()}


@settings(max_examples=400, deadline=None)
@given(mutated(), mutated(), mutated())
def test_no_page_breaks_the_reading_and_no_number_is_made_up(page: Any, metrics: Any, sensor: Any) -> None:
    found = pages.supply(page, metrics, {"input": sensor, "output": sensor})
    said = set(numbers_in([page, metrics, sensor]))
    for value in (found.input, found.output, found.capacity, pages.consumed(page), pages.total(metrics)):
        assert value is None or (0 <= value <= MOST_WATTS and value in said)
    assert found.up in (None, 0, 1)
    listed = pages.parts(page, "PowerSupplies")
    assert len(set(pages.numbers(listed))) == len(listed)
    assert all(path.startswith("/") for path in pages.links(page, "Members"))


def numbers_in(value: Any) -> list[float]:
    if isinstance(value, dict):
        return [n for inner in value.values() for n in numbers_in(inner)]
    if isinstance(value, list):
        return [n for inner in value for n in numbers_in(inner)]
    try:
        number = math.nan if isinstance(value, bool) or value is None else float(value)
    except (ValueError, OverflowError):
        return []
    return [number]
