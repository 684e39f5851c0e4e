"""A sweep of one InfiniBand plane of 576 adapters and 40 switches in the simulator, beside the tools it runs."""

from __future__ import annotations

import asyncio
import resource
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import yaml

from collectors.infiniband_fabric import InfinibandFabricCollector
from tests.rigs.ibsim import IbFabric, missing_requirements
from twin.topology.ibexport import to_ibnetdiscover
from twin.topology.model import Topology
from twin.topology.wiring import read_wiring
from twin.yamlfile import Document

NODES, RAILS, LEAVES, SPINES = 72, 8, 32, 8
RUNS = 7
TOOLS = (("iblinkinfo", "-l"), ("ibqueryerrors", "--skip-sl", "--counters"), ("ibqueryerrors", "--skip-sl"))


def run() -> Iterator[str]:
    """a sweep of one InfiniBand plane of 576 adapters and 40 switches"""
    if missing := missing_requirements():
        yield f"not measured: install {', '.join(missing)}"
        return
    yield from asyncio.run(_measure())


def wiring() -> Topology:
    """72 hosts of 8 adapters on 32 leaves (18 each), every leaf with two cables to each of 8 spines."""
    per_leaf = NODES * RAILS // LEAVES
    links = [
        {"a": f"n{n:02}/nic{k}/p1", "b": f"leaf-{at // per_leaf:02}/p{at % per_leaf + 1}", "speed": "200G"}
        for n in range(NODES)
        for k in range(RAILS)
        for at in [k * NODES + n]
    ]
    links += [
        {"a": f"leaf-{a:02}/p{per_leaf + 2 * b + i + 1}", "b": f"spine-{b}/p{2 * a + i + 1}", "speed": "200G"}
        for a in range(LEAVES)
        for b in range(SPINES)
        for i in range(2)
    ]
    nodes = [{"name": f"n{n:02}", "gpus": 8, "nics": 8, "ports_per_nic": 1, "first_port": 1} for n in range(NODES)]
    switches = [{"name": f"leaf-{a:02}", "tier": "leaf", "plane": "A", "ports": 64} for a in range(LEAVES)]
    switches += [{"name": f"spine-{b}", "tier": "spine", "plane": "A", "ports": 64} for b in range(SPINES)]
    text = yaml.safe_dump({"name": "sweep", "planes": ["A"], "nodes": nodes, "switches": switches, "links": links})
    return read_wiring(Document("sweep", text))


async def _measure() -> list[str]:
    topo = wiring()
    topo = replace(topo, links=replace(topo.links, speed=np.full(len(topo.links.a), 200e9)))
    with tempfile.TemporaryDirectory() as directory:
        net = Path(directory) / "net"
        net.write_text(to_ibnetdiscover(topo))
        async with IbFabric(net, sim_host="n00 mlx5_0") as fabric:
            collector = InfinibandFabricCollector(expected=topo.port_names, env=fabric.env, discover_every=1e6)
            first = time.perf_counter()
            sample = await collector.collect()
            first = time.perf_counter() - first
            known = int(np.count_nonzero(~np.isnan(sample.frames[0].columns["up"])))

            async def sweep() -> None:
                await collector.collect()

            ours, own = await _median(sweep)
            tools = [(await _median(lambda tool=tool: fabric.run(*tool)))[0] for tool in TOOLS]
            await collector.close()
    return [
        f"{known} ports known of {len(topo.port_names)}; the first sweep, with a discovery: {first:.2f} s",
        f"a sweep: {ours:.3f} s ({own * 1e3:.0f} ms CPU of our own)   its three tools alone, one after the other: "
        f"{sum(tools):.3f} s   ratio {ours / sum(tools):.2f}",
    ]


async def _median(work: Callable[[], Awaitable[object]]) -> tuple[float, float]:
    """Median wall time and CPU time of this process, s."""
    times = []
    for _ in range(RUNS):
        wall, cpu = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF).ru_utime
        await work()
        times.append((time.perf_counter() - wall, resource.getrusage(resource.RUSAGE_SELF).ru_utime - cpu))
    wall_times, cpu_times = zip(*times, strict=True)
    return float(np.median(wall_times)), float(np.median(cpu_times))
