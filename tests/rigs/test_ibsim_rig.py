"""The software fabric behaves as a real one, as seen by the real tools."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import pytest_asyncio

from .ibsim import MAX_CONSOLE_LINE, FabricError, IbFabric, missing_requirements

pytestmark = pytest.mark.service("ibsim-utils", "opensm", "infiniband-diags")

MINI = Path(__file__).parents[1] / "fixtures" / "ib" / "mini.net"
HOST = "H-abcd0000000a0010"  # node-01
LEAF = "S-abcd000000001100"  # leaf-01
SPINE = "S-abcd000000002100"  # spine-01
UPLINK = 5  # of leaf-01, to port 1 of spine-01


@pytest_asyncio.fixture
async def fabric(unavailable: Callable[[str], None]) -> AsyncIterator[IbFabric]:
    if missing := missing_requirements():
        unavailable(f"missing: {', '.join(missing)}")
    async with IbFabric(MINI, sim_host=HOST) as fabric:
        yield fabric


async def test_comes_up_with_a_master_subnet_manager(fabric: IbFabric) -> None:
    """Once entered, the subnet manager is master on the host that was asked for."""
    answer = await fabric.run("sminfo")
    assert answer.code == 0
    assert "0xabcd0000000a0011" in answer.stdout  # the port GUID of node-01
    assert "SMINFO_MASTER" in answer.stdout


async def test_ibnetdiscover_sees_every_node_and_cable(fabric: IbFabric) -> None:
    """The tool reports the 4 switches, 8 hosts and 16 cables of the file, at HDR."""
    found = (await fabric.run("ibnetdiscover")).stdout
    assert len(re.findall(r"^Switch\t", found, re.MULTILINE)) == 4
    assert len(re.findall(r"^Ca\t", found, re.MULTILINE)) == 8
    assert len(re.findall(r"^\[.* 4xHDR$", found, re.MULTILINE)) == 2 * 16


async def test_a_pulled_cable_is_gone_and_comes_back(fabric: IbFabric) -> None:
    """`unlink` takes a cable from the tools' view at once; `relink` gives it back, and it becomes active."""
    before = await uplink(fabric)
    await fabric.unlink(LEAF, UPLINK)
    pulled = await uplink(fabric)
    await fabric.relink(LEAF, UPLINK)
    for _ in range(200):  # until the next sweep is through
        if (back := await uplink(fabric)) == before:
            break
        await asyncio.sleep(0.05)
    assert "Active/  LinkUp" in before
    assert "Down/ Polling" in pulled
    assert "Active/  LinkUp" in back


async def test_a_node_is_unlinked_and_relinked_whole(fabric: IbFabric) -> None:
    """Without a port number all cables of the node go and come."""
    await fabric.unlink(SPINE)
    assert SPINE not in (await fabric.run("ibnetdiscover")).stdout
    await fabric.relink(SPINE)
    assert (await fabric.run("ibnetdiscover")).stdout.count(f'"{SPINE}"') == 1 + 4


async def test_a_change_leads_to_a_new_sweep(fabric: IbFabric) -> None:
    """The subnet manager hears of a pulled cable by itself and brings the subnet up again."""
    sweeps = fabric.sweeps()
    await fabric.unlink(LEAF, UPLINK)
    await fabric.subnet_up(after=sweeps, limit_s=10)
    assert fabric.sweeps() > sweeps


async def test_counters_are_read_back(fabric: IbFabric) -> None:
    """A data counter that was set shows in `ibqueryerrors --counters`, in 4-byte words."""
    words = 10**15
    await fabric.set_counter(LEAF, 3, "PortCountersExtended.PortXmitData", words)
    answer = await fabric.run("ibqueryerrors", "--counters")
    row = re.search(r"GUID 0xabcd000000001100 port 3: \[PortXmitData == (\d+) ", answer.stdout)
    assert row is not None
    assert words <= int(row[1]) < words + 10**6  # management packets count as well


async def test_many_counters_go_in_one_batch(fabric: IbFabric) -> None:
    """A batch sets a counter of every port, and `ibqueryerrors` exits with 1 because it finds errors."""
    await fabric.set_counters({(LEAF, port, "PortCounters.SymbolErrorCounter"): port for port in range(1, 9)})
    answer = await fabric.run("ibqueryerrors")
    assert answer.code == 1
    assert re.findall(r"port (\d): \[SymbolErrorCounter == (\d)\]", answer.stdout) == [
        (str(port), str(port)) for port in range(1, 9)
    ]


async def test_two_fabrics_at_once_know_nothing_of_each_other() -> None:
    """Two planes run side by side, and a cable pulled in one stays plugged in the other."""
    async with IbFabric(MINI, sim_host=HOST) as left, IbFabric(MINI, sim_host=HOST) as right:
        await left.unlink(LEAF, UPLINK)
        pulled, kept = await asyncio.gather(uplink(left), uplink(right))
    assert "Down/ Polling" in pulled
    assert "Active/  LinkUp" in kept


async def test_a_refused_command_is_an_error(fabric: IbFabric) -> None:
    """What ibsim does not do must not pass silently: unknown nodes, empty ports, overlong or several lines."""
    with pytest.raises(FabricError, match="not found"):
        await fabric.unlink("S-0000000000000000", 1)
    with pytest.raises(FabricError, match="not linked"):
        await fabric.unlink(LEAF, 9)
    with pytest.raises(FabricError, match="cannot be found"):
        await fabric.set_counter(LEAF, 1, "PortCounters.NoSuchCounter", 1)
    with pytest.raises(FabricError, match="unknown"):
        await fabric.batch(["Nonsense"])
    for line in ("#" * (MAX_CONSOLE_LINE + 1), "Help\nQuit"):
        with pytest.raises(ValueError, match="one line"):
            await fabric.console(line)


async def test_a_tool_that_hangs_is_ended_and_gives_its_place_back(fabric: IbFabric) -> None:
    """A tool past its limit is killed; ibsim has 10 places, and 12 killed tools must not fill them."""
    for _ in range(3):
        hung = [fabric.run("ibping", "-S", limit_s=0.2) for _ in range(4)]
        results = await asyncio.gather(*hung, return_exceptions=True)
        assert [type(result) for result in results] == [TimeoutError] * 4
    assert (await fabric.run("sminfo")).code == 0


async def test_a_file_that_is_no_network_fails_with_its_name(tmp_path: Path) -> None:
    """A bad net file is told as such, and leaves no process and no directory behind."""
    bad = tmp_path / "bad.net"
    bad.write_text('Switch\t4 "S-1"\n[9]\t"S-2"[1]\n')
    fabric = IbFabric(bad, sim_host="S-1")
    with pytest.raises(FabricError, match="does not take"):
        async with fabric:
            pass
    assert not fabric.directory.exists()


async def uplink(fabric: IbFabric) -> str:
    """What `iblinkinfo` says of the uplink, from the leaf."""
    answer = await fabric.run("iblinkinfo", "-l")
    (line,) = re.findall(rf"^0xabcd000000001100 .* {UPLINK}\[  \] ==.*$", answer.stdout, re.MULTILINE)
    return str(line)
