"""The doctor at a real fabric: simulated by ibsim, managed by opensm, read by infiniband-diags."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
import yaml

from collectors.doctor.coverage import gaps
from collectors.doctor.infiniband import infiniband_checks
from collectors.doctor.sources import examine
from tests.rigs.ibsim import IbFabric
from twin.site import Site, load_site

pytestmark = pytest.mark.service("ibsim-utils", "opensm", "infiniband-diags")
NET = """\
vendid=0x2c9
devid=0xd2f2
Switch 8 "S-000000000000000a" # "A-leaf"
[1] "H-0000000000000100"[1] # 4xHDR
[2] "H-0000000000000200"[1] # 4xHDR

vendid=0x2c9
devid=0x101f
Ca 1 "H-0000000000000100" # "n0 mlx5_0"
[1] "S-000000000000000a"[1] # 4xHDR

vendid=0x2c9
devid=0x101f
Ca 1 "H-0000000000000200" # "n1 mlx5_0"
[1] "S-000000000000000a"[2] # 4xHDR
"""
WIRING = {
    "name": "pair",
    "planes": ["A"],
    "nodes": [{"name": f"n{i}", "gpus": 1, "nics": 1, "first_port": 1} for i in range(3)],
    "switches": [{"name": "A-leaf", "tier": "leaf", "plane": "A"}],
    "links": [{"a": f"n{i}/nic0/p1", "b": f"A-leaf/p{i + 1}", "speed": "200G"} for i in range(3)],
}


def site(tmp_path: Path, env: dict[str, str]) -> Site:
    entry = {"infiniband": {"every": "1s", "timeout": "2s", "env": env}}
    path = tmp_path / "site.yaml"
    path.write_text(yaml.safe_dump({"topology": WIRING, "collectors": [entry]}))
    return load_site(path)


async def test_a_fabric_is_read_and_the_cable_that_is_not_there_is_named(tmp_path: Path) -> None:
    (tmp_path / "pair.net").write_text(NET)
    async with IbFabric(tmp_path / "pair.net", sim_host="n0 mlx5_0") as fabric:
        checks = {c.name: c for c in await infiniband_checks(True, env=fabric.env)}
        assert checks["subnet manager"].state == checks["infiniband-diags"].state == checks["umad"].state == "ok"
        a_site = site(tmp_path, fabric.env)
        async with asyncio.timeout(60):
            (report,), seen = await examine(a_site)
    assert report.error is None and report.duration_seconds is not None
    (coverage,) = report.coverage
    assert (coverage.read, coverage.expected, coverage.example) == (5, 6, "n2/nic0/p1")
    assert report.read is not None and {"up", "speed_bits_per_second", "tx_bytes"} <= set(report.read["port"])
    assert report.state == "part" and "1 of 6 ports are not read, such as n2/nic0/p1." in report.advice
    assert not [g for g in gaps(seen, a_site.topology) if g.what == "links"], "the other end of that cable is read"


async def test_a_fabric_that_is_gone_is_a_failed_source_with_the_reason_of_the_tool(tmp_path: Path) -> None:
    (tmp_path / "pair.net").write_text(NET)
    async with IbFabric(tmp_path / "pair.net", sim_host="n0 mlx5_0") as fabric:
        env = fabric.env
    async with asyncio.timeout(60):
        (report,), _ = await examine(site(tmp_path, env))
    assert report.state == "failed" and report.error
    checks = {c.name: c for c in await infiniband_checks(True, env=env, seconds=2.0)}
    assert checks["subnet manager"].state == "missing" and checks["subnet manager"].advice
