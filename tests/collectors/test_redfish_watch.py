"""A BMC that dies and comes back while a site is watched: only that it is away is told."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest
import yaml

from tests.collectors import redfish_pages as made
from tests.collectors.redfish_pages import ROOT
from tests.rigs.redfish import RedfishServer
from tests.rigs.watch import Watch

FABRIC = {
    "name": "rig",
    "planes": ["A"],
    "nodes": [{"name": n, "rack": "r0", "gpus": 1, "nics": 1, "psus": 6} for n in ("n0", "n1")],
    "switches": [{"name": "A-leaf-0", "tier": "leaf", "plane": "A"}],
    "links": [{"a": f"n{i}/nic0/p0", "b": f"A-leaf-0/p{i}", "speed": "400G"} for i in range(2)],
    "racks": [{"name": "r0", "feeds": [{"name": "r0/feedA", "watts": 33000}], "psus": 6, "psu_watts": 5500}],
}


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BMC_PASSWORD", "secret")
    (tmp_path / "fabric.yaml").write_text(yaml.safe_dump(FABRIC))
    return tmp_path / "site.yaml"


def write(site: Path, **targets: RedfishServer) -> None:
    redfish = {
        "targets": {name.replace("_", "/"): server.url for name, server in targets.items()},
        "username": "root",
        "password": {"env": "BMC_PASSWORD"},
        "every": "200ms",
        "deadline": "2s",
    }
    site.write_text(yaml.safe_dump({"topology": {"file": "fabric.yaml"}, "collectors": [{"redfish": redfish}]}))


def value(watch: Watch, kind: str, name: str, metric: str) -> float:
    series = watch.live.twin._kinds[kind].get(metric)
    return float("nan") if series is None else float(series.value[watch.live.twin.topology.rows(kind)[name]])


async def test_a_bmc_that_is_killed_and_restarted_is_a_failed_source_and_nothing_else(site: Path) -> None:
    one, other = (RedfishServer(made.hgx(), user="root", password="secret") for _ in range(2))
    shelf = RedfishServer(made.liteon_shelf(), user="root", password="secret")
    with one, other, shelf:
        write(site, n0=one, n1=other, r0_feedA=shelf)
        watch = Watch(site)
        async with watch.live:
            task = asyncio.create_task(watch.run())
            await watch.until(lambda: value(watch, "node", "n1", "power_watts") == 6100.75, "power of n1")
            await watch.until(
                lambda: value(watch, "feed", "r0/feedA", "power_watts") == 15_618.0, "power of the feed"
            )
            ups = watch.live.twin._kinds["psu"].get("up")
            assert ups is not None and np.all(ups.value == 1) and len(ups.value) == 18
            assert watch.live.twin.unknown_names == {}

            one.kill()
            await watch.until(lambda: watch.open_() == [("collector_failed", "redfish:n0")], "one collector_failed")
            one.pages[f"{ROOT}/Chassis/Host_0/EnvironmentMetrics"]["PowerWatts"]["Reading"] = 5000.5
            one.start()
            await watch.until(lambda: watch.open_() == [], "the end of collector_failed")
            await watch.until(lambda: value(watch, "node", "n0", "power_watts") == 5000.5, "the new reading")
            assert [(i.kind, i.cause) for i in watch.incidents] == [("collector_failed", "redfish:n0")]
            assert other.asked("POST", "/redfish/v1/SessionService/Sessions") == 1
            await watch.live.close()
            await task
        assert not one.tokens and not other.tokens and not shelf.tokens
