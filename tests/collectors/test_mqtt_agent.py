"""Agent and monitor as two processes with a real mosquitto between them."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiomqtt
import numpy as np
import pytest
import yaml
from sysfs_tree import interface, write

from collectors.agent import Agent, agent_broker, agent_node, agent_specs
from collectors.build import this_host
from collectors.mqtt.connection import Broker
from collectors.mqtt.publish import Publisher
from collectors.mqtt.status import agent_topic
from tests.rigs.mosquitto import Mosquitto, free_port
from tests.rigs.watch import PATIENCE_S, Watch
from twin.errors import FabrictwinError, InputError
from twin.frames import Frame, decode
from twin.site import load_site
from twin.sitespecs import HostSpec, NvmlSpec

pytestmark = pytest.mark.service("mosquitto")

NICS = 4
BYTES_PER_SECOND = 50_000_000
WIDTH = 24  # of a file's text
BLIND = {"collector_failed", "telemetry_stale"}  # what may be said of a gap
STATUS = agent_topic("rig", "pod0", "n0", "STATUS")
WIRING = {
    "name": "rig",
    "planes": ["A", "B"],
    "nodes": [{"name": n, "rack": "r0", "gpus": NICS, "nics": NICS, "ports_per_nic": 2} for n in ("n0", "n1")],
    "switches": [{"name": f"{p}-leaf-0", "tier": "leaf", "plane": p, "model": "sn5600"} for p in "AB"],
    "links": [
        {"a": f"n{n}/nic{i}/p{p}", "b": f"{'AB'[p]}-leaf-0/p{n * NICS + i}", "speed": "400G"}
        for n in range(2)
        for i in range(NICS)
        for p in range(2)
    ],
}


class Sys:
    """A /sys of n0 whose ports send at a steady rate by the clock, and whose links a test can cut."""

    def __init__(self, root: Path) -> None:
        self.root = root
        write(root / "class/net", {f"nic{i}p{p}": interface() for i in range(NICS) for p in range(2)})

    def set(self, file: str, text: str) -> None:
        """In place and in one write, as the kernel does it: a reader keeps files open, and never sees half of it."""
        with (self.root / "class/net" / file).open("rb+", buffering=0) as opened:
            opened.write(text.ljust(WIDTH).encode())

    def cut(self, port: str) -> None:
        self.set(f"{port}/carrier", "0")
        self.set(f"{port}/operstate", "down")

    def mend(self, port: str) -> None:
        self.set(f"{port}/operstate", "up")
        self.set(f"{port}/carrier", "1")

    async def send(self) -> None:
        while True:
            self.set("nic0p0/statistics/tx_bytes", str(int(time.time() * BYTES_PER_SECOND)))
            await asyncio.sleep(0.02)


def site_file(tmp_path: Path, port: int, **agent: Any) -> Path:
    path = tmp_path / "site.yaml"
    mqtt = {"host": "127.0.0.1", "port": port, "every": "0.5s"}
    reads = [{"host": {"sys": str(tmp_path / "sys"), "every": "0.5s"}}]
    site = {"name": "rig", "topology": WIRING, "collectors": [{"mqtt": mqtt}], "agent": {"collectors": reads} | agent}
    path.write_text(yaml.safe_dump(site))
    return path


class AgentProcess:
    """`fabrictwin agent` as a user runs it."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    @classmethod
    async def start(cls, *arguments: str) -> AgentProcess:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tui.main", "agent", *arguments, stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, env=os.environ,
        )  # fmt: skip
        return cls(process)

    async def end(self, number: signal.Signals | None = None) -> tuple[int, str, str]:
        """Exit code, stdout and stderr; `number` is sent first."""
        if number is not None:
            with suppress(ProcessLookupError):
                self.process.send_signal(number)
        async with asyncio.timeout(PATIENCE_S):
            out, err = await self.process.communicate()
        return self.process.returncode or 0, out.decode(), err.decode()


@pytest.fixture
def broker() -> Iterator[Mosquitto]:
    with Mosquitto() as broker:
        yield broker


@asynccontextmanager
async def monitored(tmp_path: Path, broker: Mosquitto) -> AsyncIterator[tuple[Sys, Watch, AgentProcess]]:
    """A host that sends, its agent, and a monitor that has had its first readings and finds nothing wrong."""
    tree, site = Sys(tmp_path / "sys"), site_file(tmp_path, broker.port)
    watch = Watch(site)
    sending = asyncio.create_task(tree.send())
    agent = await AgentProcess.start(str(site), "--node", "n0")
    try:
        async with watch.live:
            running = asyncio.create_task(watch.run())
            await watch.until(lambda: right(watch), "a first rate")
            yield tree, watch, agent
            await watch.live.close()
            await running
    finally:
        sending.cancel()
        if agent.process.returncode is None:
            await agent.end(signal.SIGKILL)


def right(watch: Watch) -> bool:
    """The rate of the port that sends is what it sends."""
    snapshot, row = watch.live.twin.snapshot(), watch.live.twin.topology.rows("port")["n0/nic0/p0"]
    rates = snapshot.port.get("tx_bytes")
    return rates is not None and bool(abs(rates[row] - BYTES_PER_SECOND) < 0.2 * BYTES_PER_SECOND)


async def test_a_port_that_goes_down_on_the_host_is_found_by_the_monitor_and_resolved(
    tmp_path: Path, broker: Mosquitto
) -> None:
    async with monitored(tmp_path, broker) as (tree, watch, agent):
        assert watch.incidents == ()
        tree.cut("nic2p1")
        await watch.until(lambda: watch.open_() == [("link_down", "n0/nic2/p1")], "one link_down")
        tree.mend("nic2p1")
        await watch.until(lambda: watch.open_() == [], "its end")
        assert [i.kind for i in watch.incidents] == ["link_down"]
        code, out, err = await agent.end(signal.SIGTERM)
    assert (code, out) == (0, "")
    assert err == f"fabrictwin agent: connected to 127.0.0.1:{broker.port}: n0 to fabrictwin/v1/rig/pod0/n0\n"


async def test_an_agent_that_is_killed_is_told_by_its_last_will_and_no_link_is_blamed(
    tmp_path: Path, broker: Mosquitto
) -> None:
    async with monitored(tmp_path, broker) as (_, watch, agent):
        await agent.end(signal.SIGKILL)
        await watch.until(lambda: watch.open_() == [("collector_failed", "n0")], "collector_failed")
        agent = await AgentProcess.start(str(tmp_path / "site.yaml"), "--node", "n0")
        await watch.until(lambda: watch.open_() == [] and right(watch), "its end")
        assert {i.kind for i in watch.incidents} == {"collector_failed"}
        await agent.end(signal.SIGTERM)


async def test_a_broker_that_is_killed_leaves_a_gap_and_nothing_else_and_rates_are_right_after(
    tmp_path: Path, broker: Mosquitto
) -> None:
    async with monitored(tmp_path, broker) as (_, watch, agent):
        broker.kill()
        await watch.until(lambda: ("collector_failed", "mqtt:127.0.0.1") in watch.open_(), "the gap")
        broker.start()
        await watch.until(lambda: watch.open_() == [] and right(watch), "the end of the gap")
        assert {i.kind for i in watch.incidents} <= BLIND
        assert all(h.ok for h in watch.live.health())
        _, _, err = await agent.end(signal.SIGTERM)
    told = [line.split(": ")[1].split(" ")[0] for line in err.splitlines()]
    assert told == ["connected", "broker", "connected"], "one line a change, not one a try"


async def status(port: int, state: str) -> dict[str, Any]:
    """The retained status, once it is `state`."""
    async with asyncio.timeout(10), aiomqtt.Client("127.0.0.1", port) as client:
        await client.subscribe(STATUS)
        async for message in client.messages:
            found: dict[str, Any] = json.loads(bytes(message.payload))
            if found["state"] == state:
                return found
    raise AssertionError("the connection ended")


async def test_who_is_online_is_retained_and_who_ends_says_so(tmp_path: Path, broker: Mosquitto) -> None:
    Sys(tmp_path / "sys")
    agent = await AgentProcess.start(str(site_file(tmp_path, broker.port)), "--node", "n0")
    online = await status(broker.port, "online")
    code, _, _ = await agent.end(signal.SIGTERM)
    offline = await status(broker.port, "offline")
    assert code == 0
    assert (online["node"], online["sources"], online["why"]) == ("n0", {"n0": 0.5}, "")
    assert online["version"]
    assert (offline["sources"], offline["why"]) == ({"n0": 0.5}, "stopped")


async def test_once_publishes_one_reading_of_each_source_and_ends(tmp_path: Path, broker: Mosquitto) -> None:
    Sys(tmp_path / "sys")
    async with aiomqtt.Client("127.0.0.1", broker.port) as client:
        await client.subscribe("fabrictwin/v1/rig/pod_a/n0/port")
        agent = await AgentProcess.start(str(site_file(tmp_path, broker.port, pod="pod/a")), "--node", "n0", "--once")
        code, _, _ = await agent.end()
        message = await anext(client.messages)
    frame = decode(bytes(message.payload))
    assert (code, frame.source, frame.kind, len(frame.names)) == (0, "n0", "port", 2 * NICS)
    assert not message.retain


async def test_an_agent_that_cannot_run_ends_with_3_and_one_line(tmp_path: Path) -> None:
    Sys(tmp_path / "sys")
    site, port = str(site_file(tmp_path, free_port())), free_port()
    for arguments, told in (
        ((site,), f"'{this_host()}' is no node of the wiring of rig; it has 2 (n0, n1…): say which one"),
        ((site, "--node", "n9"), "'n9' is no node of the wiring of rig"),
        ((site, "--node", "n0", "--for", "1s"), "cannot be reached"),
        ((str(tmp_path / f"{port}.yaml"),), "no such file"),
    ):
        code, out, err = await (await AgentProcess.start(*arguments)).end()
        last = err.splitlines()[-1]
        assert (code, out) == (3, "") and last.startswith("fabrictwin: ") and told in last


async def test_while_the_broker_is_away_the_newest_of_each_is_kept_and_nothing_grows() -> None:
    broker = Mosquitto()

    def frame(i: int, source: str) -> Frame:
        return Frame(i, source, "port", ("n0/nic0/p0",), {"tx_bytes": np.array([i], np.uint64)})

    sources = {"a": 1.0, "b": 1.0}
    async with Publisher(
        Broker("127.0.0.1", broker.port), site="rig", pod="pod0", node="n0", sources=sources
    ) as publisher:
        for i in range(1000):
            publisher.put(frame(i, "ab"[i % 2]))
        with broker:
            async with aiomqtt.Client("127.0.0.1", broker.port) as client:
                await client.subscribe("fabrictwin/v1/rig/pod0/n0/port")
                async with asyncio.timeout(10):
                    got = [decode(bytes((await anext(client.messages)).payload)) for _ in range(2)]
            assert (publisher.published, publisher.idle) == (2, True)
    assert got == [frame(998, "a"), frame(999, "b")]


def test_what_an_agent_reads_is_said_for_agents_else_for_this_host_else_found(tmp_path: Path) -> None:
    path = site_file(tmp_path, 1)
    data = yaml.safe_load(path.read_text())

    def specs(collectors: list[Any], agent: dict[str, Any]) -> list[Any]:
        path.write_text(yaml.safe_dump({**data, "collectors": collectors, "agent": agent}))
        return list(agent_specs(load_site(path), "n0"))

    mqtt, said = data["collectors"][0], {"collectors": [{"host": {"every": "2s"}}]}
    assert specs([mqtt, {"host": {}}], said) == [HostSpec(name="n0", every=2.0)]
    others = [mqtt, {"host": {"name": "n1"}}, {"nvml": {"name": "n0"}}, {"host": {}}]
    assert specs(others, {}) == [NvmlSpec(name="n0"), HostSpec(name="n0")]
    assert specs([mqtt, {"host": {"name": "n1"}}], {})[0] == HostSpec(name="n0")


def test_where_an_agent_publishes_is_its_own_broker_else_that_of_the_site(tmp_path: Path) -> None:
    path = site_file(tmp_path, 1)
    data = yaml.safe_load(path.read_text())
    telegraf = {"mqtt": {"host": "t", "payload": "influx", "topic": "telegraf/#"}}

    def host(collectors: list[Any], agent: dict[str, Any]) -> str:
        path.write_text(yaml.safe_dump({**data, "collectors": collectors, "agent": agent}))
        return agent_broker(load_site(path)).host

    assert host([telegraf, {"mqtt": {"host": "ours"}}], {}) == "ours"
    assert host([telegraf], {}) == "t"
    assert host([telegraf], {"mqtt": {"host": "mine"}}) == "mine"
    with pytest.raises(InputError, match=r"names no broker .* such as `agent: \{mqtt"):
        host([{"host": {"name": "n0"}}], {})
    assert agent_node(load_site(path), "A-leaf-0") == "A-leaf-0", "a switch may run one too"


async def test_a_broker_that_is_never_reached_is_an_error_of_the_agent(tmp_path: Path) -> None:
    Sys(tmp_path / "sys")
    stop = asyncio.Event()
    asyncio.get_running_loop().call_later(0.5, stop.set)
    lines: list[str] = []
    with pytest.raises(FabrictwinError, match="cannot be reached"):
        await Agent(load_site(site_file(tmp_path, free_port())), "n0", lines.append).run(stop)
    assert len(lines) == 1 and "collecting goes on" in lines[0]
