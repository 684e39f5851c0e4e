"""Single faults of a simulated InfiniBand fabric under the real tools: each is told as what it is, where it is."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.collectors.test_infiniband_planes import switch_id, wiring
from tests.rigs.ibsim import IbFabric
from tests.rigs.watch import PATIENCE_S, Watch
from tests.twin.small_fabric import link, read
from twin.topology.ibexport import to_ibnetdiscover

pytestmark = pytest.mark.service("ibsim-utils", "opensm", "infiniband-diags")

SLOW, BAD, LOOSE = "n2/nic0/p1", "n5/nic0/p1", "n6/nic0/p1"


def one_plane() -> dict[str, Any]:
    """Plane A of the two, alone."""
    spec = wiring()
    spec["planes"] = ["A"]
    spec["nodes"] = [{**node, "gpus": 1, "nics": 1} for node in spec["nodes"]]
    spec["switches"] = [s for s in spec["switches"] if s["plane"] == "A"]
    spec["links"] = [e for e in spec["links"] if e["b"].startswith("A-")]
    return spec


def site_file(tmp_path: Path, spec: dict[str, Any], fabrics: dict[str, IbFabric]) -> Path:
    collectors = [
        {"infiniband": {"plane": plane, "every": "1s", "timeout": "5s", "env": fabric.env}}
        for plane, fabric in fabrics.items()
    ]
    path = tmp_path / "site.yaml"
    path.write_text(yaml.safe_dump({"name": "faults", "topology": spec, "collectors": collectors}))
    return path


async def test_a_slow_link_a_link_with_errors_and_one_that_flaps_are_told_each_at_its_port(tmp_path: Path) -> None:
    """Two lanes of four; symbol errors that grow; a cable that is pulled and put back three times."""
    built = one_plane()
    link(built, SLOW)["speed"] = "100G"
    net = tmp_path / "A.net"
    net.write_text(to_ibnetdiscover(read(built)))
    async with IbFabric(net, sim_host="n7 mlx5_0") as ib:
        watch = Watch(site_file(tmp_path, one_plane(), {"A": ib}))
        leaf = switch_id(ib, "A-leaf-1")
        async with watch.live:
            task = asyncio.create_task(watch.run())
            await watch.until(lambda: watch.open_() == [("link_slow", SLOW)], "one link_slow")
            assert watch.standing()[0].effect["speed_fraction"] == 0.5

            errors = 0
            async with asyncio.timeout(PATIENCE_S):
                while ("link_errors", BAD) not in watch.open_():
                    errors += 40
                    await ib.set_counter(leaf, 2, "PortCounters.SymbolErrorCounter", errors)
                    await asyncio.sleep(1.0)
            assert len(watch.open_()) == 2

            port = watch.live.twin.topology.ports.link[watch.live.twin.topology.rows("port")[LOOSE]]
            for _ in range(3):
                await ib.unlink(leaf, 3)
                await watch.until(lambda: watch.live.twin.snapshot().link_state[port] == 0, "the cable down")
                await ib.relink(leaf, 3)
                await watch.until(lambda: watch.live.twin.snapshot().link_state[port] == 1, "the cable up")
            await watch.until(lambda: ("link_flapping", LOOSE) in watch.open_(), "link_flapping")
            standing = {(i.kind, i.cause) for i in watch.incidents if i.superseded_by is None}
            assert standing == {("link_slow", SLOW), ("link_errors", BAD), ("link_flapping", LOOSE)}
            await watch.live.close()
            await task


async def test_a_plane_that_cannot_be_entered_any_more_is_unknown_and_the_other_stays_whole(tmp_path: Path) -> None:
    topo = read(wiring())
    nets = {plane: tmp_path / f"{plane}.net" for plane in topo.planes}
    for plane, net in nets.items():
        net.write_text(to_ibnetdiscover(topo, plane))
    async with IbFabric(nets["A"], sim_host="n7 mlx5_0") as whole, AsyncExitStack() as lost:
        other = await lost.enter_async_context(IbFabric(nets["B"], sim_host="n7 mlx5_1"))
        watch = Watch(site_file(tmp_path, wiring(), {"A": whole, "B": other}))

        def known() -> list[float]:
            return [p.known_fraction for p in watch.live.twin.snapshot().planes]

        async with watch.live:
            task = asyncio.create_task(watch.run())
            await watch.until(lambda: known() == [1, 1], "both planes read")
            await lost.aclose()
            failed = [("collector_failed", "infiniband:B")]
            await watch.until(lambda: watch.open_() == failed and known() == [1, 0], "a plane that nobody reads")
            assert watch.live.twin.snapshot().planes[0].capacity_fraction == 1
            assert {i.kind for i in watch.incidents} == {"collector_failed"}
            await watch.live.close()
            await task
