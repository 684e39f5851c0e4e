"""A real snmpd on a switch of veth ports: what it says is what the kernel counts, and it may go and come back."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import yaml

from collectors.base import CollectorError
from collectors.portnames import PortNames
from collectors.snmp import Agent, Login, SnmpCollector
from tests.rigs.netns import missing_requirements
from tests.rigs.snmpd import AUTH_KEY, COMMUNITY, PORT, PRIV_KEY, USER, Switch
from tests.rigs.watch import Watch
from twin.frames import UNKNOWN_U64, Frame
from twin.topology.wiring import read_wiring
from twin.yamlfile import Document

pytestmark = pytest.mark.service("snmpd", "iproute2")

LEAF, NAME = "A-leaf-0", "snmp:A-leaf-0"
V2C = Login(community=COMMUNITY)
V3 = Login(user=USER, auth=("sha", AUTH_KEY), priv=("aes", PRIV_KEY))
SHA256 = Login(user=f"{USER}256", auth=("sha256", AUTH_KEY), priv=("aes", PRIV_KEY))
CACHE_S = 3.5  # net-snmp reads its interfaces every 3 s


def wiring(ports: int) -> dict[str, object]:
    return {
        "name": "rig",
        "planes": ["A"],
        "nodes": [{"name": f"n{i}", "gpus": 1, "nics": 1} for i in range(1, ports + 1)],
        "switches": [{"name": LEAF, "tier": "leaf", "plane": "A"}],
        "links": [{"a": f"n{i}/nic0/p0", "b": f"{LEAF}/p{i}", "speed": "10G"} for i in range(1, ports + 1)],
    }


def collector(login: Login, ports: int = 4, **options: float) -> SnmpCollector:
    topology = read_wiring(Document("t.yaml", yaml.safe_dump(wiring(ports))))
    cabled = frozenset(f"{LEAF}/p{i}" for i in range(1, ports + 1))
    agent = Agent("127.0.0.1", PORT, login, patience=options.get("deadline", 10.0))
    return SnmpCollector(LEAF, agent, PortNames(topology), cabled, **options)  # type: ignore[arg-type]


def row(frame: Frame, n: int) -> dict[str, float]:
    """What a frame says of port n."""
    place = frame.names.index(f"{LEAF}/p{n}")
    return {metric: values[place].item() for metric, values in frame.columns.items()}


@pytest.fixture
def switch(unavailable: Callable[[str], None]) -> Iterator[Switch]:
    if missing := missing_requirements():
        unavailable(f"missing: {', '.join(missing)}")
    with Switch() as built, built.inside():
        yield built


@contextlib.asynccontextmanager
async def traffic(switch: Switch, n: int) -> AsyncIterator[None]:
    """Some 200 datagrams a second out of port n."""

    async def send() -> None:
        while True:
            switch.send(n, 10)
            await asyncio.sleep(0.05)

    task = asyncio.create_task(send())
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


@pytest.mark.parametrize("login", [V2C, V3, SHA256], ids=["v2c", "v3", "v3-sha256"])
async def test_every_counter_is_what_the_kernel_counts(switch: Switch, login: Login) -> None:
    for n in range(1, 5):
        switch.send(n, 50 * n)
    switch.cut(3)
    await asyncio.sleep(CACHE_S)
    sample = await collector(login).collect()
    (frame,) = sample.frames
    assert (frame.names, sample.warnings) == (tuple(f"{LEAF}/p{n}" for n in range(1, 5)), [])
    for n in range(1, 5):
        said = row(frame, n)
        up, speed = said.pop("up"), said.pop("speed_bits_per_second")
        assert said == switch.counted(n)
        assert said["tx_packets"] >= 50 * n and said["tx_bytes"] >= 50_000 * n
        assert (up, speed) == (1, 10e9) if n != 3 else (up == 0 and speed != speed)


async def test_rates_are_right_though_the_agent_repeats_itself_for_seconds(switch: Switch) -> None:
    """Asked every half a second it says the same six times and then jumps: no rate is 0 or six times too high."""
    source = collector(V2C)
    seen: list[tuple[int, int, int]] = []  # time, bytes as told, bytes as the kernel counted them just then
    samples = 0
    async with traffic(switch, 2):
        end = time.monotonic() + 2.2 * CACHE_S
        while time.monotonic() < end:
            truth = switch.counted(2)["tx_bytes"]
            for frame in (await source.collect()).frames:
                assert row(frame, 2)["up"] == 1
                samples += 1
                if "tx_bytes" in frame.columns:
                    seen.append((frame.time, int(row(frame, 2)["tx_bytes"]), truth))
            await asyncio.sleep(0.5)
    assert 3 <= len(seen) < samples / 2
    for (t0, told0, true0), (t1, told1, true1) in pairwise(seen):
        assert (told1 - told0) / (t1 - t0) == pytest.approx((true1 - true0) / (t1 - t0), rel=0.35)


async def test_a_port_that_is_made_anew_keeps_its_address_and_gives_no_rate_over_the_change(switch: Switch) -> None:
    source = collector(V2C)
    switch.send(2, 100)
    await asyncio.sleep(CACHE_S)
    before = (await source.collect()).frames[-1]
    switch.unplug(2)
    switch.plug(2)
    switch.send(2, 300)
    switch.send(4, 10)
    await asyncio.sleep(CACHE_S)
    anew, frame = (await source.collect()).frames
    assert row(before, 2)["tx_packets"] == 100
    assert row(frame, 2)["tx_packets"] == 300 and row(frame, 4)["tx_packets"] == 10
    assert anew.names == (f"{LEAF}/p2",) and anew.time < frame.time
    assert set(row(anew, 2).values()) == {int(UNKNOWN_U64)}


async def test_a_port_that_is_pulled_is_unknown_and_said_to_be_missing(switch: Switch) -> None:
    source = collector(V2C)
    await source.collect()
    switch.unplug(2)
    await asyncio.sleep(CACHE_S)
    sample = await source.collect()
    said = row(sample.frames[-1], 2)
    assert np.isnan([said.pop("up"), said.pop("speed_bits_per_second")]).all()
    assert set(said.values()) == {int(UNKNOWN_U64)}
    assert row(sample.frames[-1], 3)["up"] == 1
    assert sample.warnings == [
        f"127.0.0.1:{PORT}: 1 cabled ports of {LEAF} are not among its interfaces and so unknown: {LEAF}/p2"
    ]


@pytest.mark.parametrize(
    ("login", "words"),
    [
        (Login(community="wrong"), "does not answer: it cannot be reached, it does not admit this host, or the comm"),
        (Login(user="nobody", auth=V3.auth, priv=V3.priv), "refuses user 'nobody': it is not known there"),
        (Login(user=USER, auth=("md5", AUTH_KEY), priv=V3.priv), "refuses user 'rig'"),
        (Login(user=USER, auth=("sha", "another-key"), priv=V3.priv), "refuses user 'rig'"),
        (Login(user=USER, auth=V3.auth), "refuses user 'rig'"),
        (
            Login(user=USER, auth=V3.auth, priv=("aes", "another-key")),
            "user 'rig': it cannot be reached, or its priv",
        ),
        (Login(user=USER, auth=V3.auth, priv=("des", PRIV_KEY)), "user 'rig': it cannot be reached, or its priv"),
    ],
)
async def test_who_is_not_admitted_is_told_what_it_may_be(switch: Switch, login: Login, words: str) -> None:
    with pytest.raises(CollectorError) as told:
        await collector(login, deadline=1.0).collect()
    assert words in str(told.value) and "\n" not in str(told.value)
    assert "key" not in repr(login) or "another-key" not in repr(login)


async def test_a_port_where_nothing_listens_is_said_at_once(switch: Switch) -> None:
    switch.daemon.stop()
    for login in (V2C, V3):
        with pytest.raises(CollectorError, match=f"127.0.0.1:{PORT}: nothing listens there"):
            await collector(login).collect()


@pytest.mark.parametrize("login", [V2C, V3, SHA256], ids=["v2c", "v3", "v3-sha256"])
async def test_an_agent_that_starts_anew_is_read_on_and_its_counters_are_not_compared(
    switch: Switch, login: Login
) -> None:
    source = collector(login)
    switch.send(1, 100)
    await source.collect()
    await asyncio.sleep(1.2)
    switch.daemon.stop()
    switch.send(1, 100)
    switch.daemon.start()
    anew, frame = (await source.collect()).frames
    assert anew.names == frame.names and len(frame.names) == 4
    assert all((column == UNKNOWN_U64).all() for column in anew.columns.values())
    assert row(frame, 1)["up"] == 1
    assert row(frame, 1)["tx_packets"] == switch.counted(1)["tx_packets"] == 200


def site_file(tmp_path: Path, login: Login, every: str = "1s") -> Path:
    options: dict[str, object] = {"targets": {LEAF: f"127.0.0.1:{PORT}"}, "every": every, "deadline": "2s"}
    if login.user is None:
        (tmp_path / "community").write_text(COMMUNITY + "\n")
        options["community"] = {"file": "community"}
    else:
        (tmp_path / "auth").write_text(AUTH_KEY)
        (tmp_path / "priv").write_text(PRIV_KEY)
        options |= {
            "version": 3,
            "user": USER,
            "auth": {"protocol": "sha", "key": {"file": "auth"}},
            "priv": {"protocol": "aes", "key": {"file": "priv"}},
        }
    path = tmp_path / "site.yaml"
    path.write_text(yaml.safe_dump({"topology": wiring(4), "collectors": [{"snmp": options}]}))
    return path


def rate(watch: Watch, n: int) -> float:
    twin = watch.live.twin
    values = twin.snapshot().port.get("tx_bytes")
    return float("nan") if values is None else float(values[twin.topology.rows("port")[f"{LEAF}/p{n}"]])


async def test_a_cut_cable_is_one_link_down_and_resolves(switch: Switch, tmp_path: Path) -> None:
    watch = Watch(site_file(tmp_path, V3))
    async with watch.live:
        task = asyncio.create_task(watch.run())
        await watch.until(lambda: watch.live.twin.snapshot().version > 0, "a first reading")
        switch.cut(3)
        await watch.until(lambda: watch.open_() == [("link_down", "n3/nic0/p0")], "one link_down")
        switch.heal(3)
        await watch.until(lambda: watch.open_() == [], "the end of it")
        assert [i.kind for i in watch.incidents] == ["link_down"]
        await watch.live.close()
        await task


async def test_a_daemon_that_dies_and_returns_is_trouble_of_the_source_alone(switch: Switch, tmp_path: Path) -> None:
    watch = Watch(site_file(tmp_path, V2C))
    async with watch.live, traffic(switch, 2):
        task = asyncio.create_task(watch.run())
        await watch.until(lambda: rate(watch, 2) > 100_000, "a rate")
        switch.daemon.stop()
        await watch.until(lambda: ("collector_failed", NAME) in watch.open_(), "collector_failed")
        switch.daemon.start()
        await watch.until(lambda: watch.open_() == [], "the end of it")
        assert {i.kind for i in watch.incidents} <= {"collector_failed", "telemetry_stale"}

        start, counted = time.monotonic(), switch.counted(2)["tx_bytes"]
        shown = []
        while time.monotonic() < start + 1.3 * CACHE_S:
            shown.append(rate(watch, 2))
            await asyncio.sleep(0.5)
        true = (switch.counted(2)["tx_bytes"] - counted) / (time.monotonic() - start)
        known = np.array(shown)[~np.isnan(shown)]
        assert len(known) > 3 and known == pytest.approx(true, rel=0.5)
        assert watch.open_() == []
        await watch.live.close()
        await task
