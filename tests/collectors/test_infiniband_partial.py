"""A sweep that some paths do not answer: what answered is kept, what did not is named, and nothing is called broken.

Stand-ins for the tools print a fabric of our own as the real ones do; what reads, collects and judges is real.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from collectors.base import Sample
from collectors.infiniband_fabric import InfinibandFabricCollector

FIXTURES = Path(__file__).parents[1] / "fixtures" / "ib"
TIMEOUT = "src/query_smp.c:195; umad (DR path slid 0; dlid 0; {} Attr 0x11:0) bad status 110; Connection timed out\n"
FAILED = "ibwarn: [1203] query_and_dump: PortXmitDiscardDetails query failed on node-03 mlx5_0, Lid 7 port 1\n"
GONE = ("node-03", "node-06")  # powered, so that their leaves see a link, but nothing there answers


def tools(where: Path, *, silent: bool, seconds: float = 0.0) -> dict[str, str]:
    """Programs that print the fabric, without GONE where these are silent; the environment to find them in."""
    (where / "bin").mkdir(exist_ok=True)
    complaints = TIMEOUT.format("0,1,13,9,15") + TIMEOUT.format("0,1,13,5,14") if silent else ""
    for tool, fixture, said in (
        ("ibnetdiscover", "mini.netdiscover.txt", ""),
        ("iblinkinfo", "mini.linkinfo.txt", complaints),
        ("ibqueryerrors", "mini.errors.txt", FAILED if silent else ""),
    ):
        lines = (FIXTURES / fixture).read_text().splitlines(keepends=True)
        if tool == "iblinkinfo" and silent:
            lines = [line for line in lines if not any(f'"                {name}' in line for name in GONE)]
        (where / f"{tool}.out").write_text("".join(lines))
        (where / f"{tool}.err").write_text(said)
        text = (FIXTURES / "mini.counters.txt").read_text()
        (where / "counters.out").write_text(text)
        choose = f'case "$*" in *--counters*) out={where}/counters.out;; *) out={where}/{tool}.out;; esac\n'
        program = where / "bin" / tool
        program.write_text(f"#!/bin/sh\n{choose}sleep {seconds}\ncat $out\ncat {where}/{tool}.err >&2\n")
        program.chmod(0o755)
    return {"PATH": f"{where / 'bin'}:/usr/bin:/bin"}


def readings(sample: Sample) -> dict[str, dict[str, float]]:
    (frame,) = [f for f in sample.frames if f.kind == "port"]
    return {name: {m: float(v[i]) for m, v in frame.columns.items()} for i, name in enumerate(frame.names)}


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """The fabric as its discovery shows it, read once a second."""
    env = tools(tmp_path, silent=False)
    (tmp_path / "found.out").write_text((FIXTURES / "mini.netdiscover.txt").read_text())
    collector = {"infiniband": {"every": "1s", "discover_every": "60s", "timeout": "5s", "env": env}}
    path = tmp_path / "site.yaml"
    topology = {"discover": {"ibnetdiscover": "found.out"}}
    path.write_text(yaml.safe_dump({"name": "mini", "topology": topology, "collectors": [collector]}))
    return path


async def check(site: Path, seconds: str) -> tuple[int, dict[str, Any]]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tui.main", "check", str(site), "--for", seconds, "--json",
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    async with asyncio.timeout(60):
        out, err = await process.communicate()
    assert err == b"", err
    return process.returncode or 0, json.loads(out)


async def test_paths_that_do_not_answer_are_named_and_all_other_ports_are_kept(tmp_path: Path) -> None:
    """Hosts under maintenance made an exporter drop its whole scrape (infiniband-exporter issues 12 and 25)."""
    whole = InfinibandFabricCollector(env=tools(tmp_path, silent=False), interval=5.0)
    before = readings(await whole.collect())
    tools(tmp_path, silent=True)
    sample = await whole.collect()
    await whole.close()
    after = readings(sample)
    assert after.keys() == before.keys()
    lost = {name for name, values in after.items() if values["up"] != values["up"]}
    assert lost == {f"{name}/nic0/p1" for name in GONE}
    assert all(after[name]["up"] == before[name]["up"] for name in after.keys() - lost)
    kept = {name for name in after.keys() - lost if before[name]["tx_bytes"] == before[name]["tx_bytes"]}
    assert len(kept) > 20 and all(after[name]["tx_bytes"] == before[name]["tx_bytes"] for name in kept)
    assert sample.warnings[0] == "2 paths did not answer (0,1,13,9,15, 0,1,13,5,14): their ports are unknown"
    assert "counters of 1 ports could not be read; they are unknown" in sample.warnings


async def test_hosts_that_do_not_answer_raise_no_alarm_on_the_fabric(site: Path) -> None:
    tools(site.parent, silent=True)
    code, verdict = await check(site, "4s")
    (source,) = verdict["sources"]
    assert (code, source["state"]) == (0, "ok")
    full = ("telemetry_stale", "leaf-01/p1", "info")  # counters of this fabric that stand at their limit
    assert [(i["kind"], i["cause"], i["severity"]) for i in verdict["incidents"]] == [full]
    assert any("2 paths did not answer" in text for text in source["warnings"])
    assert (verdict["planes"][0]["capacity_fraction"], verdict["planes"][0]["links_down"]) == (1, 0)


async def test_a_sweep_that_takes_longer_than_its_interval_is_said(tmp_path: Path) -> None:
    """25 to 29 s with dead paths, at an interval of 10 s; here the same in a tenth."""
    slow = InfinibandFabricCollector(env=tools(tmp_path, silent=True, seconds=0.3), interval=0.1)
    warnings = (await slow.collect()).warnings
    await slow.close()
    assert any(w.startswith("a sweep takes ") and w.endswith("longer than its interval of 0.1 s") for w in warnings)
