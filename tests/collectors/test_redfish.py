"""BMCs of several makers' habits on loopback, and everything that goes wrong with them."""

from __future__ import annotations

import asyncio
import gzip
import json
import math
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collectors.base import CollectorError, Sample
from collectors.redfish import RedfishCollector, build
from collectors.redfish.client import BadPage, Bmc
from collectors.redfish.places import Target
from collectors.supervisor import Supervisor
from tests.collectors import redfish_pages as made
from tests.collectors.redfish_pages import ROOT, Pages
from tests.collectors.test_redfish_pages import mutated, numbers_in
from tests.rigs.redfish import SESSIONS, Fault, RedfishServer, self_signed
from twin.errors import InputError, MissingLibrary
from twin.frames import Frame
from twin.site import Site
from twin.sitespecs import RedfishSpec
from twin.topology.builder import Builder
from twin.topology.model import Topology
from twin.topology.wiring import read_wiring
from twin.yamlfile import Document

WIRING = """\
name: rig
nodes: [{name: n0, rack: r0, psus: 6}, {name: n1, rack: r0, psus: 4}, {name: n2}]
racks:
  - {name: r0, feeds: [{name: r0/feedA, watts: 33000}, {name: r0/feedB, watts: 33000}], psus: 12, psu_watts: 5500}
"""


def wiring() -> Topology:
    return read_wiring(Document("rig.yaml", WIRING))


def reads(
    server: RedfishServer, name: str = "n0", *, user: str | None = None, password: str = "", **more: Any
) -> RedfishCollector:
    target = Target.of(wiring(), name)
    assert target is not None
    bmc = Bmc(name, server.url, username=user, password=password, timeout=more.pop("timeout", 2.0))
    return RedfishCollector(bmc, target, **more)


@asynccontextmanager
async def collected(server: RedfishServer, name: str = "n0", **more: Any) -> AsyncIterator[Sample]:
    """The second sample: the one that is read without looking for anything."""
    collector = reads(server, name, **more)
    await collector.collect()
    try:
        yield await collector.collect()
    finally:
        await collector.close()


def frame(sample: Sample, kind: str) -> Frame:
    (found,) = [f for f in sample.frames if f.kind == kind]
    return found


def row(sample: Sample, name: str) -> dict[str, float]:
    for found in sample.frames:
        if name in found.names:
            return {m: float(c[found.names.index(name)]) for m, c in found.columns.items()}
    raise AssertionError(f"no {name} in {[f.names for f in sample.frames]}")


def supplies_of(pages: Pages) -> dict[str, dict[str, Any]]:
    return {p: page for p, page in pages.items() if "/PowerSupplies/" in p and not p.endswith("/Metrics")}


# --- habits ---


async def test_an_hgx_host_has_its_own_power_and_not_that_of_its_gpu_baseboard() -> None:
    with RedfishServer(made.hgx()) as server:
        async with collected(server) as sample:
            psus = frame(sample, "psu")
            assert psus.source == "redfish:n0" and psus.names == tuple(f"n0/psu{i}" for i in range(6))
            assert psus.columns["up"].tolist() == [1.0] * 6
            assert psus.columns["input_watts"].tolist() == [1000.5 + i for i in range(6)]
            assert psus.columns["output_watts"].tolist() == [900.25 + i for i in range(6)]
            assert psus.columns["capacity_watts"].tolist() == [3300.0] * 6
            assert row(sample, "n0") == {"power_watts": 6100.75} and not sample.warnings
        assert not [path for _, path in server.seen if "/HGX_" in path]


async def test_a_power_page_tells_all_in_one_request() -> None:
    with RedfishServer(made.supermicro()) as server:
        collector = reads(server, "n1")
        await collector.collect()
        before = len(server.seen)
        sample = await collector.collect()
        await collector.close()
        assert server.seen[before:] == [("GET", f"{ROOT}/Chassis/1/Power")]
    psus = frame(sample, "psu")
    assert psus.names == tuple(f"n1/psu{i}" for i in range(4))
    assert psus.columns["input_watts"].tolist() == [550.0, 551.0, 552.0, 553.0]
    assert psus.columns["capacity_watts"].tolist() == [3000.0] * 4
    assert row(sample, "n1") == {"power_watts": 2161.0}


async def test_a_supply_keeps_its_name_when_the_list_shifts() -> None:
    """A pulled supply vanishes from the list and the members behind it are numbered anew."""
    pages = made.supermicro()
    with RedfishServer(pages) as server:
        collector = reads(server, "n1")
        await collector.collect()
        left = [s for s in pages[f"{ROOT}/Chassis/1/Power"]["PowerSupplies"] if s["Name"] != "Power Supply Bay 2"]
        for i, supply in enumerate(left):
            supply["MemberId"] = str(i)
        pages[f"{ROOT}/Chassis/1/Power"]["PowerSupplies"] = left
        sample = await collector.collect()
        await collector.close()
    assert row(sample, "n1/psu2")["input_watts"] == 552.0
    assert all(math.isnan(v) for v in row(sample, "n1/psu1").values())


async def test_a_feed_of_the_wiring_is_one_shelf_of_its_rack() -> None:
    with RedfishServer(made.liteon_shelf()) as server:
        async with collected(server, "r0/feedB") as sample:
            psus = frame(sample, "psu")
            assert psus.names == tuple(f"r0/psu{i}" for i in range(6, 12))
            assert psus.columns["input_watts"].tolist() == [2600.5 + i for i in range(6)]
            assert psus.columns["output_watts"].tolist() == [2500.25 + i for i in range(6)]
            assert row(sample, "r0/feedB") == {"power_watts": 6 * 2600.5 + 15, "capacity_watts": 33_000.0}
        assert not [path for _, path in server.seen if path.endswith("_vin")]


async def test_shelves_behind_one_manager_are_numbered_one_after_the_other() -> None:
    with RedfishServer(made.ocp_shelves(2)) as server:
        async with collected(server, "r0") as sample:
            psus = frame(sample, "psu")
            assert psus.names == tuple(f"r0/psu{i}" for i in range(12))
            assert psus.columns["input_watts"].tolist() == [1000.5 + i % 6 for i in range(12)]
            assert [f.kind for f in sample.frames] == ["psu"]  # which feed a shelf is, is not told


async def test_a_shelf_of_power_equipment_says_what_it_draws_as_a_whole() -> None:
    with RedfishServer(made.ocp_shelves(1)) as server:
        async with collected(server, "r0/feedA") as sample:
            assert row(sample, "r0/feedA") == {"power_watts": 6438.5, "capacity_watts": 33_000.0}
            assert frame(sample, "psu").names[0] == "r0/psu0"


async def test_a_node_without_a_total_draws_what_its_supplies_take() -> None:
    pages = made.hgx()
    del pages[f"{ROOT}/Chassis/Host_0"]["EnvironmentMetrics"]
    with RedfishServer(pages) as server:
        collector = reads(server)
        await collector.collect()
        assert row(await collector.collect(), "n0") == {"power_watts": 6 * 1000.5 + 15}
        pages[f"{ROOT}/Chassis/Host_0/PowerSubsystem/PowerSupplies/PSU2/Metrics"]["InputPowerWatts"] = {
            "Reading": None
        }
        sample = await collector.collect()
        await collector.close()
    assert math.isnan(row(sample, "n0")["power_watts"])  # a part of a sum is not the sum
    assert math.isnan(row(sample, "n0/psu2")["input_watts"]) and row(sample, "n0/psu2")["output_watts"] == 902.25


async def test_a_sensor_is_asked_where_the_metrics_only_name_it() -> None:
    pages = made.hgx(1)
    sensor = f"{ROOT}/Chassis/Host_0/Sensors/PWR_PSU0"
    pages[f"{ROOT}/Chassis/Host_0/PowerSubsystem/PowerSupplies/PSU0/Metrics"] = {
        "OutputPowerWatts": {"DataSourceUri": sensor}
    }
    pages[sensor] = {"Reading": 351, "Status": {"State": "Enabled"}}
    with RedfishServer(pages) as server:
        async with collected(server) as sample:
            assert row(sample, "n0/psu0")["output_watts"] == 351.0
            assert math.isnan(row(sample, "n0/psu0")["input_watts"])


async def test_which_of_two_enclosures_is_the_node_is_not_guessed() -> None:
    pages = made.service("left", "right")
    for name in ("left", "right"):
        chassis = f"{ROOT}/Chassis/{name}"
        pages[chassis] = {"ChassisType": "RackMount", "EnvironmentMetrics": made.to(f"{chassis}/EnvironmentMetrics")}
        pages[f"{chassis}/EnvironmentMetrics"] = {"PowerWatts": {"Reading": 500}}
    pages[f"{ROOT}/Chassis/left"]["PowerSubsystem"] = made.to(f"{ROOT}/Chassis/left/PowerSubsystem")
    with RedfishServer(pages) as server:
        with pytest.raises(CollectorError, match="no power supply and no power"):
            await reads(server).collect()
        pages |= made.newer("left", ["PSU0"])  # the one with supplies is the node
        async with collected(server) as sample:
            assert row(sample, "n0") == {"power_watts": 500.0}


# --- what happens to supplies ---


async def test_lost_input_and_an_empty_bay_are_down_and_a_null_reading_is_unknown() -> None:
    pages = made.hgx()
    box = f"{ROOT}/Chassis/Host_0/PowerSubsystem/PowerSupplies"
    with RedfishServer(pages) as server:
        collector = reads(server)
        await collector.collect()
        pages[f"{box}/PSU1"] |= {
            "LineInputStatus": "LossOfInput",
            "Status": {"State": "Enabled", "Health": "Critical"},
        }
        pages[f"{box}/PSU1/Metrics"] = {"InputPowerWatts": {"Reading": 0}, "OutputPowerWatts": {"Reading": 0}}
        pages[f"{box}/PSU3"] = {"Id": "PSU3", "Status": {"State": "Absent"}}
        pages[f"{box}/PSU4/Metrics"] = {"InputPowerWatts": {"Reading": None}, "OutputPowerWatts": None}
        sample = await collector.collect()
        await collector.close()
    assert frame(sample, "psu").columns["up"].tolist() == [1, 0, 1, 0, 1, 1]
    assert row(sample, "n0/psu1")["input_watts"] == 0.0
    assert np.isnan([row(sample, "n0/psu3")[m] for m in ("input_watts", "output_watts", "capacity_watts")]).all()
    assert math.isnan(row(sample, "n0/psu4")["input_watts"]) and row(sample, "n0/psu4")["capacity_watts"] == 3300.0


async def test_an_empty_bay_that_the_wiring_does_not_speak_of_is_left_out() -> None:
    pages = made.hgx(2)
    pages[f"{ROOT}/Chassis/Host_0/PowerSubsystem/PowerSupplies/PSU1"] = {"Id": "PSU1", "Status": {"State": "Absent"}}
    with RedfishServer(pages) as server:
        async with collected(server, "n2") as sample:
            assert frame(sample, "psu").names == ("n2/psu0",)


async def test_an_empty_bay_takes_nothing_and_rates_nothing() -> None:
    pages = made.liteon_shelf()
    pages[f"{ROOT}/Chassis/powershelf/PowerSubsystem/PowerSupplies/2"] = {"Id": "2", "Status": {"State": "Absent"}}
    with RedfishServer(pages) as server:
        async with collected(server, "r0/feedA") as sample:
            assert row(sample, "r0/psu2")["up"] == 0.0
            assert row(sample, "r0/feedA") == {"power_watts": 5 * 2600.5 + 13, "capacity_watts": 27_500.0}


async def test_a_first_bay_that_is_no_longer_listed_shifts_no_other() -> None:
    pages = made.hgx()
    listed = f"{ROOT}/Chassis/Host_0/PowerSubsystem/PowerSupplies"
    with RedfishServer(pages) as server:
        collector = reads(server, discover_every=0.0)
        await collector.collect()
        pages[listed] = made.collection(*(f"{listed}/PSU{i}" for i in range(1, 6)))
        await collector.collect()
        sample = await collector.collect()
        await collector.close()
    assert frame(sample, "psu").names == tuple(f"n0/psu{i}" for i in range(1, 6))
    assert row(sample, "n0/psu5")["input_watts"] == 1005.5
    assert "n0: of the wiring's supplies the BMC does not list 1" in sample.warnings


async def test_what_the_wiring_has_no_place_for_and_what_is_not_listed_is_said() -> None:
    with RedfishServer(made.hgx(6)) as server:
        async with collected(server, "n1") as sample:
            assert frame(sample, "psu").names == tuple(f"n1/psu{i}" for i in range(4))
            assert list(sample.warnings) == [
                f"n1: the wiring has no place for supply {i} of Host_0" for i in (4, 5)
            ]  # fmt: skip
    with RedfishServer(made.hgx(2)) as server:
        async with collected(server, "n1") as sample:
            assert frame(sample, "psu").names == ("n1/psu0", "n1/psu1")
            assert list(sample.warnings) == ["n1: of the wiring's supplies the BMC does not list 2"]


async def test_one_bad_page_costs_its_supply_alone() -> None:
    with RedfishServer(made.hgx()) as server:
        path = f"{ROOT}/Chassis/Host_0/PowerSubsystem/PowerSupplies/PSU2"
        collector = reads(server)
        await collector.collect()
        for fault, said in (
            (Fault(500), "HTTP 500"),
            (Fault(403), "HTTP 403"),
            (Fault(body=b'{"Status": {"State": "Ena'), "expected JSON"),
            (Fault(body=b"<html>log in</html>"), "expected JSON"),
            (Fault(body=b"[1, 2]"), "expected a JSON object"),
            (Fault(body=b"\xff\xfe"), "expected JSON"),
            (Fault(body=b"[" * 100_000), "expected JSON"),
            (Fault(body=b"x" * (9 << 20)), "more than 8 MiB"),
            (Fault(body=gzip.compress(b" " * (9 << 20)), headers={"Content-Encoding": "gzip"}), "more than 8 MiB"),
            (Fault(drop=True), "disconnected"),
            (Fault(302, {"Location": path}), "more than 3 redirects"),
            (Fault(delay=2.5), "no answer within 2 s"),
        ):
            server.faults = {path: fault}
            sample = await collector.collect()
            assert np.isnan(frame(sample, "psu").columns["up"]).tolist() == [i == 2 for i in range(6)], said
            (warning,) = sample.warnings
            assert said in warning and warning.startswith("n0: "), warning
            server.faults = {}
            sample = await collector.collect()
            assert frame(sample, "psu").columns["up"].tolist() == [1.0] * 6 and not sample.warnings
        await collector.close()


async def test_supplies_that_could_not_be_listed_are_found_later_and_those_known_are_kept() -> None:
    listed = f"{ROOT}/Chassis/Host_0/PowerSubsystem/PowerSupplies"
    with RedfishServer(made.hgx()) as server:
        collector = reads(server, discover_every=0.0)
        server.faults = {listed: Fault(500)}
        assert [f.kind for f in (await collector.collect()).frames] == ["node"]
        server.faults = {}
        await collector.collect()
        assert len(frame(await collector.collect(), "psu").names) == 6
        server.faults = {listed: Fault(500)}
        for _ in range(3):
            assert frame(await collector.collect(), "psu").columns["up"].tolist() == [1.0] * 6
        await collector.close()


# --- the whole BMC ---


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (Fault(500), "/redfish/v1/: HTTP 500"),
        (Fault(404), "/redfish/v1/: HTTP 404"),
        (Fault(body=b"<html>"), "expected JSON"),
        (Fault(302, {"Location": "https://elsewhere.example/redfish/v1"}), "sends to https://elsewhere.example"),
        (Fault(308, {"Location": "/redfish/v1/"}), "more than 3 redirects"),
        (Fault(302), "more than 3 redirects"),
        (Fault(503, {"Retry-After": "30"}), "is busy"),
        (Fault(401), "wants a user"),
        (Fault(body=b"{}"), "lists no power supply and no power"),
    ],
)
async def test_a_bmc_that_cannot_be_used_is_one_line(fault: Fault, said: str) -> None:
    with RedfishServer(made.hgx()) as server:
        server.faults = {"*": fault}
        collector = reads(server)
        with pytest.raises(CollectorError, match=said) as raised:
            await collector.collect()
        assert "\n" not in str(raised.value) and str(raised.value).startswith("n0: ")
        await collector.close()


async def test_a_busy_bmc_is_left_alone_for_as_long_as_it_asks() -> None:
    with RedfishServer(made.hgx()) as server:
        server.faults = {"*": Fault(503, {"Retry-After": "30"})}
        collector = reads(server)
        for _ in range(3):
            with pytest.raises(CollectorError, match="is busy"):
                await collector.collect()
        assert len(server.seen) == 1
        await collector.close()


async def test_nobody_there_is_one_line() -> None:
    server = RedfishServer(made.hgx())
    server.start()
    server.kill()
    collector = reads(server)
    with pytest.raises(CollectorError, match="cannot be reached"):
        await collector.collect()
    await collector.close()


async def test_a_slow_bmc_is_found_and_read_in_several_goes_one_request_at_a_time() -> None:
    with RedfishServer(made.hgx()) as server:
        server.faults = {"*": Fault(delay=0.02)}
        collector = reads(server, deadline=0.25)
        seen: dict[str, float] = {}
        goes = 0
        while len(seen) < 7:
            goes += 1
            assert goes < 60
            for found in (await collector.collect()).frames:
                metric = "power_watts" if found.kind == "node" else "output_watts"
                seen |= dict(zip(found.names, found.columns[metric].tolist(), strict=True))
        await collector.close()
        assert goes > 2 and server.at_once == 1
    assert seen == {"n0": 6100.75} | {f"n0/psu{i}": 900.25 + i for i in range(6)}


async def test_a_dead_bmc_does_not_hold_up_another() -> None:
    with RedfishServer(made.hgx()) as stuck, RedfishServer(made.supermicro()) as well:
        stuck.faults = {"*": Fault(delay=1.5)}
        both = [reads(stuck, "n0", interval=0.1, deadline=3.0), reads(well, "n1", interval=0.1)]
        heard = []
        async with Supervisor(both) as supervisor, asyncio.timeout(20):
            async for found in supervisor.frames():
                heard.append(found.source)
                if heard.count("redfish:n1") >= 6:
                    break
        assert "redfish:n0" not in heard
        stuck.faults = {}


# --- who we are ---


async def test_a_session_is_opened_once_renewed_when_it_ends_and_closed_at_the_end() -> None:
    with RedfishServer(made.hgx(), user="root", password="s e\u00e7ret") as server:
        collector = reads(server, user="root", password="s e\u00e7ret")
        await collector.collect()
        await collector.collect()
        assert server.asked("POST", SESSIONS) == 1
        server.tokens.clear()  # the BMC has forgotten it
        sample = await collector.collect()
        assert row(sample, "n0")["power_watts"] == 6100.75 and server.asked("POST", SESSIONS) == 2
        await collector.close()
        assert not server.tokens


async def test_a_bmc_without_sessions_is_asked_with_basic_authentication() -> None:
    with RedfishServer(made.hgx(), user="root", password="secret", sessions=False) as server:
        async with collected(server, user="root", password="secret") as sample:
            assert row(sample, "n0")["power_watts"] == 6100.75


@pytest.mark.parametrize("sessions", [True, False])
async def test_a_wrong_password_is_tried_once_so_that_no_account_is_locked(sessions: bool) -> None:
    with RedfishServer(made.hgx(), user="root", password="secret", sessions=sessions) as server:
        collector = reads(server, user="root", password="wrong")
        for _ in range(4):
            with pytest.raises(CollectorError, match=r"refuses user 'root'; check username and password"):
                await collector.collect()
        assert len(server.seen) == (1 if sessions else 2)
        await collector.close()


async def test_no_session_left_for_the_moment_is_no_wrong_password() -> None:
    with RedfishServer(made.hgx(), user="root", password="secret") as server:
        server.faults = {SESSIONS: Fault(503), f"{ROOT}/": Fault(401)}
        collector = reads(server, user="root", password="secret")
        with pytest.raises(CollectorError, match="opens no session for now"):
            await collector.collect()
        server.faults = {}
        assert frame(await collector.collect(), "psu").names
        await collector.close()


# --- TLS and the site ---


def site_with(spec: dict[str, Any], directory: Path = Path(), topology: Topology | None = None) -> Site:
    return Site("rig", topology or wiring(), (RedfishSpec.model_validate(spec),), directory=directory)


def built(spec: dict[str, Any], directory: Path = Path()) -> list[Any]:
    site = site_with(spec, directory)
    return build(site.collectors[0], site)  # type: ignore[arg-type]


async def test_a_certificate_is_believed_by_its_authority_and_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BMC_PASSWORD", "secret")
    certificate = self_signed(tmp_path)
    with RedfishServer(made.hgx(), user="root", password="secret", certificate=certificate) as server:
        login = {"username": "root", "password": {"env": "BMC_PASSWORD"}, "targets": {"n0": server.url}}
        for tls in ({"ca": "bmc.pem"}, {"ca": "bmc.pem", "server_name": "bmc.example"}, {"insecure": True}):
            (collector,) = built({**login, "tls": tls}, tmp_path)
            assert collector.name == "redfish:n0"
            assert row(await collector.collect(), "n0")["power_watts"] == 6100.75
            await collector.close()
        for tls in (None, {"ca": "bmc.pem", "server_name": "other.example"}):
            (collector,) = built(login if tls is None else {**login, "tls": tls}, tmp_path)
            with pytest.raises(CollectorError, match=r"certificate.*tls: \{insecure: true\}"):
                await collector.collect()
            await collector.close()


def test_every_mistake_of_a_site_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(InputError) as raised:
        built(
            {"targets": {"n0": "10.0.0.1", "n9": "https://10.0.0.2", "r0": "https://10.0.0.3/x"}, "username": "root"}
        )
    assert raised.value.problems == [
        "collectors: redfish: targets: 'n9' is no node, rack or feed of rig",
        "collectors: redfish: targets: n0: '10.0.0.1': expected the address of a BMC, such as https://10.0.0.1",
        "collectors: redfish: targets: r0: 'https://10.0.0.3/x': expected the address of a BMC, such as https://10.0.0.1",
        "collectors: redfish: username and password belong together",
    ]
    with pytest.raises(InputError, match="a user is not part of the address") as raised:
        built({"targets": {"n0": "https://root:secret@10.0.0.1"}})
    assert "secret" not in str(raised.value)
    for tls in ({"ca": "missing.pem"}, {"cert": "missing.pem", "key": "missing.key"}):
        with pytest.raises(InputError, match=r"tls: missing\.pem.*cannot be used"):
            built({"targets": {"n0": "https://10.0.0.1"}, "tls": tls}, tmp_path)


async def test_every_target_is_a_source_of_its_own() -> None:
    found = built({"targets": {"n0": "https://h0", "r0": "https://h1/", "r0/feedA": "http://h2:8000"}, "every": "5s"})
    assert [(c.name, c.interval, c.deadline) for c in found] == [
        ("redfish:n0", 5.0, 20.0), ("redfish:r0", 5.0, 20.0), ("redfish:r0/feedA", 5.0, 20.0),
    ]  # fmt: skip
    for collector in found:
        await collector.close()


def test_without_the_library_the_missing_part_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(MissingLibrary, match=r"httpx not installed.*fabrictwin\[redfish\]"):
        built({"targets": {"n0": "https://h0"}})


def test_a_target_without_supplies_in_the_wiring_takes_any_number() -> None:
    b = Builder("bare", ())
    b.rack("r0", feeds=[("r0/feedA", 33_000.0)])
    target = Target.of(b.build(), "r0/feedA")
    assert target == Target("r0/feedA", "feed", "r0", 0, 0, 1)
    assert Target.of(b.build(), "n0") is None


# --- anything ---


class Held(Bmc):
    """A BMC whose pages are at hand."""

    def __init__(self, pages: Pages) -> None:
        self.url, self._held = "https://bmc.example", json.loads(json.dumps(pages))

    async def get(self, path: str) -> Any:
        found = self._held.get(path.rstrip("/"))
        if not isinstance(found, dict):
            raise BadPage(f"n0: {path}: HTTP 404")
        return found


_MADE: list[Callable[[], Pages]] = [made.hgx, made.supermicro, made.liteon_shelf, lambda: made.ocp_shelves(2)]


@pytest.mark.parametrize("pages", _MADE, ids=["hgx", "supermicro", "liteon", "ocp"])
@settings(max_examples=60, deadline=None)
@given(replaced=mutated(), at=st.integers(0, 99))
def test_no_bmc_breaks_the_collector(pages: Callable[[], Pages], replaced: Any, at: int) -> None:
    served = pages()
    paths = sorted(served)
    served[paths[at % len(paths)]] = replaced
    known = set(numbers_in(list(served.values())))
    target = Target.of(wiring(), "n0")
    assert target is not None
    collector = RedfishCollector(Held(served), target)

    async def twice() -> Sample | None:
        try:
            await collector.collect()
            return await collector.collect()
        except CollectorError:
            return None

    sample = asyncio.run(twice())
    for found in sample.frames if sample is not None else ():
        assert all(name == "n0" or name in {f"n0/psu{i}" for i in range(6)} for name in found.names)
        for metric, values in found.columns.items():
            for value in values[~np.isnan(values)].tolist():
                assert value >= 0 and (metric in ("up", "power_watts") or value in known)
