"""A whole InfiniBand fabric, simulated by ibsim and managed by opensm, under the real tools and the real twin."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import yaml

from tests.rigs.ibsim import IbFabric
from tests.rigs.watch import PATIENCE_S, Watch

pytestmark = pytest.mark.service("ibsim-utils", "opensm", "infiniband-diags")


async def fabrictwin(*arguments: str, env: dict[str, str] | None = None) -> tuple[int, str, str]:
    """Runs the command line as a user would: exit code, stdout, stderr."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tui.main", *arguments,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, env={**os.environ, **(env or {})},
    )  # fmt: skip
    async with asyncio.timeout(120):
        out, err = await process.communicate()
    return process.returncode or 0, out.decode(), err.decode()


async def exported(tmp_path: Path) -> tuple[Path, Path]:
    """One XDR unit as a net file for ibsim and as wiring, both at HDR: ibsim knows no faster speed."""
    net, wiring = tmp_path / "xdr.net", tmp_path / "wiring.yaml"
    for form, path in (("ibnetdiscover", net), ("yaml", wiring)):
        code, _, err = await fabrictwin(
            "topology", "export", "b300-superpod-xdr", "--format", form, "--link-speed", "200G", "-o", str(path)
        )
        assert code == 0, err
    return net, wiring


def node_id(fabric: IbFabric, name: str) -> str:
    """How ibsim's console names a switch of the exported file."""
    match = re.search(rf'^Switch\t\d+ "(S-\w+)".*"{name}"', fabric.netfile.read_text(), re.MULTILINE)
    assert match is not None
    return match[1]


def site_file(tmp_path: Path, fabric: IbFabric, topology: dict[str, object], every: str = "1s") -> Path:
    path = tmp_path / "site.yaml"
    collector = {"infiniband": {"every": every, "discover_every": "3s", "timeout": "4s", "env": fabric.env}}
    path.write_text(yaml.safe_dump({"name": "rig", "topology": topology, "collectors": [collector]}))
    return path


@pytest.fixture
async def fabric(tmp_path: Path) -> AsyncIterator[tuple[IbFabric, Path]]:
    net, wiring = await exported(tmp_path)
    async with IbFabric(net, sim_host="n070 mlx5_0") as fabric:
        yield fabric, site_file(tmp_path, fabric, {"file": wiring.name})


async def test_check_finds_the_whole_fabric_and_nothing_wrong(fabric: tuple[IbFabric, Path]) -> None:
    _, site = fabric
    code, out, err = await fabrictwin("check", str(site), "--for", "5s", "--json")
    assert (code, err) == (0, "")
    verdict = json.loads(out)
    shape = verdict["fabric"]
    assert (verdict["status"], verdict["incidents"]) == ("healthy", [])
    assert (shape["gpus"], shape["leaves"], shape["spines"]) == (576, 8, 4)
    (plane,) = verdict["planes"]
    assert (plane["capacity_fraction"], plane["known_fraction"], plane["links_down"]) == (1, 1, 0)


async def test_a_cable_and_a_leaf_that_go_are_one_incident_each_and_resolve(fabric: tuple[IbFabric, Path]) -> None:
    ib, site = fabric
    watch = Watch(site)
    cable, leaf = "A-leaf-03/p80--A-spine-00/p62", "A-leaf-05"
    assert cable in watch.live.twin.topology.rows("link")
    async with watch.live:
        task = asyncio.create_task(watch.run())
        await watch.until(lambda: watch.live.twin.snapshot().version > 0, "a first reading")
        await ib.unlink(node_id(ib, "A-leaf-03"), 80)
        await watch.until(lambda: watch.open_() == [("link_down", cable)], "one link_down")
        incident = watch.incidents[-1]
        assert incident.effect["plane_capacity_fraction"] == pytest.approx(1 - 1 / 576)
        assert "99.83%" in incident.summary and "A-leaf-03/p80" in incident.summary
        await ib.relink(node_id(ib, "A-leaf-03"), 80)
        await watch.until(lambda: watch.open_() == [], "the end of link_down")

        await ib.unlink(node_id(ib, leaf))
        await watch.until(lambda: watch.open_() == [("switch_down", leaf)], "one switch_down")
        incident = watch.incidents[-1]
        assert (incident.affected.gpus, incident.effect["bandwidth_fraction"]) == (72, 0.0)
        await asyncio.sleep(8)  # past the patience with silent sources and two discoveries: still one incident
        assert watch.open_() == [("switch_down", leaf)]
        await ib.relink(node_id(ib, leaf))
        await watch.until(lambda: watch.open_() == [], "the end of switch_down")
        # the simulator unlinks port after port: a sweep in between sees links down, which the switch takes over
        lasting = [i.kind for i in watch.incidents if i.superseded_by is None]
        assert lasting == ["link_down", "switch_down"]
        await watch.live.close()
        await task


async def test_counters_become_rates_and_a_full_one_is_saturated(fabric: tuple[IbFabric, Path]) -> None:
    ib, site = fabric
    watch = Watch(site)
    port = watch.live.twin.topology.rows("port")["A-leaf-00/p1"]
    async with watch.live:
        task = asyncio.create_task(watch.run())
        await watch.until(lambda: watch.live.twin.snapshot().version > 0, "a first reading")
        words = 0

        def rate(metric: str) -> float:
            return float(watch.live.twin.snapshot().port.get(metric, [float("nan")] * (port + 1))[port])

        async with asyncio.timeout(PATIENCE_S):
            while not 1e9 < rate("tx_bytes") < 9e9:  # 4 bytes a word
                words += 1_000_000_000
                await ib.set_counter(node_id(ib, "A-leaf-00"), 1, "PortCountersExtended.PortXmitData", words)
                await asyncio.sleep(1.0)
        await ib.set_counter(node_id(ib, "A-leaf-00"), 1, "PortCounters.PortXmitWait", 2**32 - 1)
        state = watch.live.twin._kinds["port"]
        await watch.until(
            lambda: (
                (s := state.get("tx_wait_ticks")) is not None and s.saturated is not None and bool(s.saturated[port])
            ),
            "a saturated counter",
        )
        assert rate("tx_wait_ticks") != rate("tx_wait_ticks")
        await watch.live.close()
        await task


async def test_a_fabric_that_goes_away_and_comes_back_is_a_gap_and_no_fault(tmp_path: Path) -> None:
    """Simulator and subnet manager end and begin anew, with all counters at zero, under a running watch."""
    net, wiring = await exported(tmp_path)
    first = IbFabric(net, sim_host="n070 mlx5_0")
    watch = Watch(site_file(tmp_path, first, {"file": wiring.name}))
    port = watch.live.twin.topology.rows("port")["A-leaf-00/p1"]

    def rate() -> float:
        values = watch.live.twin.snapshot().port.get("tx_bytes")
        return float("nan") if values is None else float(values[port])

    async def busy(fabric: IbFabric, words: int) -> None:
        """Counts on until the watch shows a rate: 1e9 words of 4 bytes about every second."""
        async with asyncio.timeout(PATIENCE_S):
            while not 1e9 < rate() < 9e9:
                words += 1_000_000_000
                await fabric.set_counter(node_id(fabric, "A-leaf-00"), 1, "PortCountersExtended.PortXmitData", words)
                await asyncio.sleep(1.0)

    async with watch.live:
        async with first:
            task = asyncio.create_task(watch.run())
            await watch.until(lambda: watch.live.twin.snapshot().version > 0, "a first reading")
            await busy(first, 2**40)
        await watch.until(lambda: ("collector_failed", "infiniband") in watch.open_(), "collector_failed")
        assert watch.live.twin.snapshot().planes[0].known_fraction == 0, "a gap shows as unknown"
        second = IbFabric(net, sim_host="n070 mlx5_0")
        second.env["IBSIM_SOCKNAME"] = first.env["IBSIM_SOCKNAME"]
        async with second:
            await watch.until(lambda: watch.open_() == [], "the end of all that was told")
            assert watch.live.twin.snapshot().planes[0].known_fraction == 1
            assert not rate() > 9e9, "a counter that began anew gives no rate"
            await busy(second, 0)
            # ports are truly not active before the new subnet manager's first sweep: read then, the plane is down
            assert {i.kind for i in watch.incidents} <= {"collector_failed", "telemetry_stale", "plane_down"}
            assert watch.open_() == []
            await watch.live.close()
            await task


async def test_a_fabric_that_cannot_be_read_ends_check_with_one_line_and_3(tmp_path: Path) -> None:
    site = tmp_path / "site.yaml"
    site.write_text("topology: {preset: b300-superpod-xdr}\ncollectors: [{infiniband: {timeout: 5s}}]\n")
    code, out, err = await fabrictwin("check", str(site), "--for", "1s")
    assert (code, out) == (3, "")
    assert err.startswith("fabrictwin: infiniband: ") and err.count("\n") == 1, err


async def test_a_missing_tool_ends_check_with_one_line_and_3(tmp_path: Path) -> None:
    site = tmp_path / "site.yaml"
    site.write_text("topology: {preset: b300-superpod-xdr}\ncollectors: [{infiniband: {env: {PATH: /nowhere}}}]\n")
    code, out, err = await fabrictwin("check", str(site), "--for", "1s")
    assert (code, out, err.count("\n")) == (3, "", 1)
    assert "ibnetdiscover not found" in err and "infiniband-diags" in err


async def test_two_swapped_cables_are_one_miscabled(tmp_path: Path) -> None:
    _, wiring = await exported(tmp_path)
    text = wiring.read_text()
    one, other = "n010/nic3/p1, b: A-leaf-03/p11", "n010/nic4/p1, b: A-leaf-04/p11"
    assert one in text and other in text
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(
        text.replace(one, "SWAP").replace(other, "n010/nic4/p1, b: A-leaf-03/p11").replace(
            "SWAP", "n010/nic3/p1, b: A-leaf-04/p11"
        )
    )  # fmt: skip
    net = tmp_path / "wrong.net"
    code, _, err = await fabrictwin("topology", "export", str(wrong), "--format", "ibnetdiscover", "-o", str(net))
    assert code == 0, err
    async with IbFabric(net, sim_host="n070 mlx5_0") as ib:
        code, out, err = await fabrictwin(
            "check", str(site_file(tmp_path, ib, {"file": wiring.name})), "--for", "4s", "--json"
        )
    assert (code, err) == (1, "")
    (incident,) = json.loads(out)["incidents"]
    assert incident["kind"] == "miscabled" and incident["affected"]["names"] == ["n010/gpu3", "n010/gpu4"]
    for name in ("n010/nic3/p1--A-leaf-04/p11", "n010/nic4/p1--A-leaf-03/p11"):
        assert name in incident["summary"]


SAMPLE = Path(__file__).parents[3] / "shared/samples/infiniband-diags/ibnetdiscover/superpod-ndr.out"


@pytest.mark.skipif(not SAMPLE.exists(), reason="real outputs are not kept beside the repository")
async def test_a_real_superpods_dump_is_a_site_and_its_fabric_is_healthy(tmp_path: Path) -> None:
    """The simulator knows no NDR, so its fabric and what is expected of it are both HDR."""
    net = tmp_path / "net.out"
    net.write_text(SAMPLE.read_text(errors="replace").replace("4xNDR", "4xHDR"))
    async with IbFabric(net, sim_host="a08-p1-dgx-04-c01 mlx5_5") as ib:
        site = site_file(tmp_path, ib, {"discover": {"ibnetdiscover": net.name}})
        code, out, err = await fabrictwin("check", str(site), "--for", "4s", "--json")
    assert (code, err) == (0, "")
    verdict = json.loads(out)
    shape = verdict["fabric"]
    assert (shape["leaves"], shape["spines"], verdict["incidents"]) == (31, 9, [])
    assert shape["hosts_by_role"] == {"compute": 120, "management": 1, "other": 70}
    assert verdict["planes"][0]["known_fraction"] == 1
