"""Real packets over two planes of network namespaces: a plane is cut, found, costed, healed, and judged again."""

from __future__ import annotations

import asyncio
import json
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import yaml

from replay.analyze import analyze_trace
from replay.trace import open_trace
from tests.rigs.netns import TwoPlanes, missing_requirements
from tests.rigs.watch import Watch
from twin.frames import NS

pytestmark = pytest.mark.service("iproute2", "iperf3")

RATE_MBIT = 50  # low, so that the streams fill every cable on a busy machine too
SAMPLE_S = 1.0
SETTLE_S = 4.0
WINDOW_S = 10.0


@pytest.fixture
def rig(unavailable: Callable[[str], None]) -> Iterator[TwoPlanes]:
    if missing := missing_requirements():
        unavailable(f"missing: {', '.join(missing)}")
    with TwoPlanes(rate_mbit=RATE_MBIT) as built:
        yield built


def site_file(tmp_path: Path, rig: TwoPlanes, speeds: dict[str, str] | None = None) -> Path:
    """The rig as a user would describe it: explicit wiring and a collector a host and switch.

    speeds: what some cables, by their lower ends, are planned at instead.
    """
    wiring = rig.site()
    for cable in wiring["links"]:  # type: ignore[attr-defined]
        cable["speed"] = (speeds or {}).get(cable["a"], cable["speed"])
    ends = [end for cable in rig.cables for end in (cable.a, cable.b)]
    collectors = []
    for node in rig.nodes:
        mine = [end for end in ends if end.startswith(node + "/")]
        devices = {end.partition("/")[2].replace("/", ""): end for end in mine}
        collectors.append(
            {"host": {"name": node, "sys": str(rig.sysfs(node)), "every": f"{SAMPLE_S}s", "devices": devices}}
        )
    path = tmp_path / "site.yaml"
    path.write_text(yaml.safe_dump({"name": "netns", "topology": wiring, "collectors": collectors}))
    return path


def kernel_sent(rig: TwoPlanes, plane: str) -> int:
    """Bytes the hosts sent into a plane, as `ip` reads them from the kernel in each namespace."""
    total = 0
    for cable in rig.plane_cables(plane, "host"):
        host, _, port = cable.a.partition("/")
        shown = subprocess.run(
            ["ip", "-n", rig.namespace(host), "-s", "-j", "link", "show", port.replace("/", "")],
            capture_output=True, check=True, timeout=10,
        )  # fmt: skip
        total += int(json.loads(shown.stdout)[0]["stats64"]["tx"]["bytes"])
    return total


def twin_rate(watch: Watch, plane: int, since: int) -> float:
    """Mean bits/s that the twin showed for a plane from an event time on."""
    snapshot = watch.live.twin.snapshot()
    history = snapshot.history
    used = history.used[history.time > since, plane]
    return float(np.nanmean(used)) * snapshot.planes[plane].capacity_bits_per_second


async def test_a_cut_plane_is_found_costed_and_healed_and_the_recording_says_the_same(
    rig: TwoPlanes, tmp_path: Path
) -> None:
    trace = tmp_path / "cut.mcap"
    watch = Watch(site_file(tmp_path, rig), trace)
    traffic = rig.start_traffic(seconds=90)
    async with watch.live:
        task = asyncio.create_task(watch.run())
        await asyncio.sleep(SETTLE_S)
        await watch.until(lambda: watch.live.twin.snapshot().version >= 3, "three readings", 20)
        before = watch.live.twin.snapshot()
        assert [round(p.capacity_fraction, 6) for p in before.planes] == [1, 1]
        assert all(p.used_fraction > 0.7 for p in before.planes), before.planes
        assert watch.open_() == []

        cut = time.time_ns()
        rig.cut(rig.plane_cables("B"))
        await watch.until(lambda: watch.open_() == [("plane_down", "plane:B")], "plane_down", 20)
        incident = watch.standing()[0]
        assert (incident.cause, incident.effect["bandwidth_fraction"]) == ("plane:B", 0.5)
        assert set(incident.affected.names) == set(rig.hosts)
        assert (incident.detected - cut) / NS <= 3 * SAMPLE_S
        assert (watch.live.twin.snapshot().gpu_bandwidth == 0.5).all()

        await asyncio.sleep(SETTLE_S)
        assert traffic.running
        start, sent, since = time.monotonic(), kernel_sent(rig, "A"), watch.live.twin.time
        await asyncio.sleep(WINDOW_S)
        counted = (kernel_sent(rig, "A") - sent) * 8 / (time.monotonic() - start)
        assert counted > 0.7 * len(rig.hosts) * RATE_MBIT * 1e6
        assert twin_rate(watch, 0, since) == pytest.approx(counted, rel=0.02)
        assert watch.live.twin.snapshot().planes[1].tx_bits_per_second == 0
        assert watch.open_() == [("plane_down", "plane:B")]

        rig.heal(rig.plane_cables("B"))
        await watch.until(lambda: watch.open_() == [], "the end of it", 20)
        assert [(i.kind, i.cause) for i in watch.live.twin.incidents] == [("plane_down", "plane:B")]
        await watch.live.close()
        await task
    watch.live.twin.finish()
    again = analyze_trace(open_trace(trace))
    assert [i.to_json() for i in again.incidents] == [i.to_json() for i in watch.live.twin.incidents]
    assert not again.truncated


async def test_one_cut_cable_is_one_link_and_a_leafs_cables_are_one_switch(rig: TwoPlanes, tmp_path: Path) -> None:
    watch = Watch(site_file(tmp_path, rig), tmp_path / "t.mcap")
    async with watch.live:
        task = asyncio.create_task(watch.run())
        await watch.until(lambda: watch.live.twin.snapshot().version >= 3, "three readings", 20)
        cable = rig.cable("h2/nic0/p0")
        rig.cut([cable])
        await watch.until(lambda: watch.open_() == [("link_down", "h2/nic0/p0")], "link_down", 20)
        assert watch.standing()[0].affected.names == ("h2",)
        rig.heal([cable])
        await watch.until(lambda: watch.open_() == [], "the end of it", 20)

        leaf = [c for c in rig.cables if c.a.startswith("A-leaf-0/") or c.b.startswith("A-leaf-0/")]
        rig.cut(leaf)
        await watch.until(lambda: watch.open_() == [("switch_down", "A-leaf-0")], "switch_down", 20)
        assert set(watch.standing()[0].affected.names) == {"h0", "h1"}
        await asyncio.sleep(3)
        assert watch.open_() == [("switch_down", "A-leaf-0")]
        rig.heal(leaf)
        await watch.until(lambda: watch.open_() == [], "the end of it", 20)
        await watch.live.close()
        await task


async def test_a_cable_that_drops_three_times_flaps_and_one_below_its_plan_is_slow(
    rig: TwoPlanes, tmp_path: Path
) -> None:
    """The kernel calls every veth 10 Gb/s: a cable planned at 25 is slow, those planned below are not."""
    slow, loose = "h3/nic0/p0", "h1/nic0/p1"
    watch = Watch(site_file(tmp_path, rig, {slow: "25G"}), tmp_path / "t.mcap")
    async with watch.live:
        task = asyncio.create_task(watch.run())
        await watch.until(lambda: watch.open_() == [("link_slow", slow)], "link_slow", 20)
        assert watch.standing()[0].effect["speed_fraction"] == pytest.approx(0.4)
        link = watch.live.twin.topology.ports.link[watch.live.twin.topology.rows("port")[loose]]

        def state() -> int:
            return int(watch.live.twin.snapshot().link_state[link])

        for _ in range(3):
            rig.cut([rig.cable(loose)])
            await watch.until(lambda: state() == 0, "the cable down", 20)
            rig.heal([rig.cable(loose)])
            await watch.until(lambda: state() == 1, "the cable up", 20)
        await watch.until(lambda: ("link_flapping", loose) in watch.open_(), "link_flapping", 20)
        told = {(i.kind, i.cause) for i in watch.incidents if i.superseded_by is None}
        assert told == {("link_slow", slow), ("link_flapping", loose)}
        await watch.live.close()
        await task
