"""The agent: what it reads on this host, and the way of that to the broker."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from collectors.base import Collector
from collectors.build import build, this_host
from collectors.mqtt.connection import Broker
from collectors.mqtt.publish import Publisher
from collectors.supervisor import Supervisor
from twin.errors import FabrictwinError, InputError
from twin.frames import NS, Frame
from twin.topology.model import Topology

if TYPE_CHECKING:
    from twin.site import Site
    from twin.sitespecs import MqttSpec, Spec

REPEAT_NS = 10 * NS  # how its sources do is published when that changes, and else this often
_EXAMPLE = "agent: {mqtt: {host: broker.example}}"


def agent_node(site: Site, name: str | None) -> str:
    """Which device of the wiring this host is. Raises InputError where there is none of that name."""
    node, topo = name or this_host(), site.topology
    if node in topo.rows("node") or node in topo.rows("switch"):
        return node
    some = ", ".join(topo.nodes.name[:3])
    raise InputError(
        f"{node!r} is no node of the wiring of {topo.name}; it has {len(topo.nodes.name)} ({some}…): "
        "say which one this host is, --node NAME"
    )


def agent_broker(site: Site) -> MqttSpec:
    """Where to publish: the agent's own broker, else that of a collector. Raises InputError where there is none."""
    from twin.sitespecs import MqttSpec

    if site.agent.mqtt is not None:
        return site.agent.mqtt
    brokers = [s for s in site.collectors if isinstance(s, MqttSpec)]
    ours = [s for s in brokers if s.payload == "fabrictwin"]
    if not brokers:
        raise InputError(f"{site.name}: the site names no broker to publish to; give one, such as `{_EXAMPLE}`")
    return (ours or brokers)[0]


def agent_specs(site: Site, node: str) -> list[Spec]:
    """What to read: as the site says for agents, else its entries for this host, else what this host has."""
    from twin.sitespecs import HostSpec, NvmlSpec

    if site.agent.collectors:
        return [_here(c.spec, node) for c in site.agent.collectors]
    own = [s for s in site.collectors if isinstance(s, HostSpec | NvmlSpec) and s.name in (None, node)]
    if own:
        return [_here(s, node) for s in own]
    found: list[Spec] = [HostSpec(name=node)]
    if _has_gpus(site.topology, node):
        from collectors.nvml import available

        found += [NvmlSpec(name=node)] if available() else []
    return found


def _here(spec: Spec, node: str) -> Spec:
    """An entry that names no host is about this one."""
    from twin.sitespecs import HostSpec, NvmlSpec

    if isinstance(spec, HostSpec | NvmlSpec) and spec.name is None:
        return spec.model_copy(update={"name": node})
    return spec


def _has_gpus(topo: Topology, node: str) -> bool:
    row = topo.rows("node").get(node)
    return row is not None and int(topo.nodes.n_gpus[row]) > 0


class Agent:
    """Reads this host and publishes until it is stopped. Raises InputError or MissingTool where it cannot run."""

    def __init__(self, site: Site, node: str | None = None, tell: Callable[[str], None] = lambda line: None) -> None:
        """node: which device of the wiring this host is. tell: called with a line for whoever runs it."""
        spec = agent_broker(site)
        self.node = agent_node(site, node)
        self._broker = Broker.of(spec, site.directory, "agent: mqtt" if site.agent.mqtt else "collectors: mqtt")
        self._client_id = f"{site.agent.mqtt.client_id}-{self.node}" if site.agent.mqtt and spec.client_id else None
        self._site, self._tell = site, tell
        self._collectors: Sequence[Collector] = build(site, agent_specs(site, self.node))
        self._said: tuple[int, bytes] = (0, b"")
        self._failing: set[str] = set()

    async def run(self, stop: asyncio.Event, *, once: bool = False) -> None:
        """Until `stop` is set, or with `once` until every source answered and that is published.

        Raises FabrictwinError where the broker was never reached.
        """
        supervisor = Supervisor(self._collectors)
        publisher = Publisher(
            self._broker, site=self._site.name, pod=self._site.agent.pod, node=self.node, client_id=self._client_id,
            sources={c.name: c.interval for c in self._collectors}, tell=self._tell,
        )  # fmt: skip
        ending = asyncio.create_task(_close_after(stop, supervisor))
        reached = False
        try:
            async with supervisor, publisher:
                async for frame in supervisor.frames():
                    self._pass_on(frame, supervisor, publisher)
                    reached = reached or publisher.connected
                    if once and publisher.published and publisher.idle and _all_answered(supervisor):
                        break
        finally:
            ending.cancel()
        if not reached and not publisher.published:
            raise FabrictwinError(publisher.trouble or f"broker {self._broker.name} did not answer in time")

    def _pass_on(self, frame: Frame, supervisor: Supervisor, publisher: Publisher) -> None:
        if frame.kind != "source":
            publisher.put(frame)
            return
        self._tell_failures(supervisor)
        says = b"".join(np.asarray(frame.columns[m], np.float64).tobytes() for m in ("up", "failures"))
        when, said = self._said
        if says != said or frame.time - when >= REPEAT_NS:
            self._said = (frame.time, says)
            publisher.put(frame)

    def _tell_failures(self, supervisor: Supervisor) -> None:
        for health in supervisor.health():
            if health.ok is False and health.name not in self._failing:
                self._failing.add(health.name)
                self._tell(f"{health.name} fails: {health.last_error}")
            elif health.ok and health.name in self._failing:
                self._failing.discard(health.name)
                self._tell(f"{health.name} works again")


async def _close_after(stop: asyncio.Event, supervisor: Supervisor) -> None:
    await stop.wait()
    await supervisor.close()


def _all_answered(supervisor: Supervisor) -> bool:
    return all(h.last_success or h.failures for h in supervisor.health())
