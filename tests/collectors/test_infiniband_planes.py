"""Two InfiniBand planes, each a fabric of its own with its own subnet manager, read at once by one site."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.rigs.ibsim import IbFabric
from tests.rigs.watch import Watch
from tests.twin.small_fabric import read
from twin.topology.ibexport import to_ibnetdiscover

pytestmark = pytest.mark.service("ibsim-utils", "opensm", "infiniband-diags")

NODES = 8


def wiring() -> dict[str, Any]:
    """A NIC a plane: two leaves and two spines a plane, four hosts a leaf, two cables from leaf to spine."""
    planes = ["A", "B"]
    links = [
        {"a": f"n{n}/nic{k}/p1", "b": f"{p}-leaf-{n // 4}/p{n % 4 + 1}", "speed": "200G"}
        for n in range(NODES)
        for k, p in enumerate(planes)
    ]
    links += [
        {"a": f"{p}-leaf-{a}/p{5 + 2 * b + i}", "b": f"{p}-spine-{b}/p{1 + 2 * a + i}", "speed": "200G"}
        for p in planes
        for a in range(2)
        for b in range(2)
        for i in range(2)
    ]
    return {
        "name": "two",
        "planes": planes,
        "nodes": [{"name": f"n{n}", "gpus": 2, "nics": 2, "ports_per_nic": 1, "first_port": 1} for n in range(NODES)],
        "switches": [
            {"name": f"{p}-{tier}-{i}", "tier": tier, "plane": p, "ports": 36}
            for p in planes
            for tier in ("leaf", "spine")
            for i in range(2)
        ],
        "links": links,
    }


async def test_a_switch_lost_on_one_plane_is_told_there_and_the_other_plane_stays_whole(tmp_path: Path) -> None:
    topo = read(wiring())
    nets = {plane: tmp_path / f"{plane}.net" for plane in topo.planes}
    for plane, net in nets.items():
        net.write_text(to_ibnetdiscover(topo, plane))
    async with (
        IbFabric(nets["A"], sim_host="n7 mlx5_0") as a,
        IbFabric(nets["B"], sim_host="n7 mlx5_1") as b,
    ):
        collectors = [
            {"infiniband": {"plane": plane, "every": "1s", "timeout": "5s", "env": fabric.env}}
            for plane, fabric in zip(topo.planes, (a, b), strict=True)
        ]
        site = tmp_path / "site.yaml"
        site.write_text(yaml.safe_dump({"name": "two", "topology": wiring(), "collectors": collectors}))
        watch = Watch(site)
        async with watch.live:
            task = asyncio.create_task(watch.run())

            def planes() -> list[tuple[float, float]]:
                return [(p.capacity_fraction, p.known_fraction) for p in watch.live.twin.snapshot().planes]

            await watch.until(lambda: planes() == [(1, 1), (1, 1)], "both planes read and whole")
            await a.unlink(switch_id(a, "A-leaf-0"))
            await watch.until(lambda: watch.open_() == [("switch_down", "A-leaf-0")], "one switch_down")
            assert planes()[1] == (1, 1)
            assert watch.standing()[0].affected.names == ("n0", "n1", "n2", "n3") or watch.standing()[0].affected.gpus
            await a.relink(switch_id(a, "A-leaf-0"))
            await watch.until(lambda: watch.open_() == [], "its end")
            assert [i.kind for i in watch.incidents] == ["switch_down"]
            await watch.live.close()
            await task


def switch_id(fabric: IbFabric, name: str) -> str:
    """How ibsim's console names a switch of the exported file."""
    line = next(line for line in fabric.netfile.read_text().splitlines() if f'"{name}"' in line and "Switch" in line)
    return line.split('"')[1]
