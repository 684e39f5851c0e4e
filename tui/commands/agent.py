"""`fabrictwin agent`: this host's telemetry to MQTT."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING

import click

from tui.commands.options import Seconds

if TYPE_CHECKING:
    from collectors.agent import Agent


@click.command(
    epilog="""\b
Examples:
  fabrictwin agent site.yaml                        this host, for ever; a service on every node
  fabrictwin agent site.yaml --node n012            where the wiring calls this host otherwise
  fabrictwin agent site.yaml --once                 try it: one reading of each source, then end

\b
The site file says where to publish, and may say what to read:
  agent:
    pod: pod3
    mqtt: {host: broker.example, tls: {ca: ca.pem}, username: agent, password: {env: MQTT_PASSWORD}}
    collectors:
      - host: {}
      - nvml: {}

Frames go to fabrictwin/v1/SITE/POD/NODE/KIND; who is online to …/STATUS."""
)
@click.argument("site")
@click.option("--node", help="Which node of the wiring this host is; its host name by default.")
@click.option("--for", "duration", type=Seconds(), help="Stop after this time.")
@click.option("--once", is_flag=True, help="Publish one reading of each source and end.")
def command(site: str, node: str | None, duration: float | None, once: bool) -> None:
    """Reads this host and publishes it to the broker of SITE; `watch` there reads it with a `mqtt` collector.

    Without the broker it goes on collecting, and tries again for ever. At Ctrl+C or SIGTERM it says that it stops.
    """
    from collectors.agent import Agent
    from twin.site import load_site

    agent = Agent(load_site(site), node, lambda line: click.echo(f"fabrictwin agent: {line}", err=True))
    asyncio.run(_run(agent, duration, once))


async def _run(agent: Agent, duration: float | None, once: bool) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    if duration is not None:
        loop.call_later(duration, stop.set)
    await agent.run(stop, once=once)
