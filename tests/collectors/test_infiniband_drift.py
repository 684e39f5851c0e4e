"""A simulated InfiniBand fabric, discovered by the real ibnetdiscover, beside the design that it was built from."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rigs.ibsim import IbFabric
from tests.twin.small_fabric import read, swap
from twin.topology.drift import Mistake
from twin.topology.explicit import to_wiring
from twin.topology.found import drift
from twin.topology.found import read as read_found
from twin.topology.ibexport import to_ibnetdiscover
from twin.topology.presets import preset

pytestmark = pytest.mark.service("ibsim-utils", "opensm", "infiniband-diags")

NODES = 8
SWAPPED = ("n002/nic3/p0", "n002/nic4/p0")


async def differences(tmp_path: Path, *swapped: str) -> tuple[Mistake, ...]:
    """What a fabric as designed, but for two cables, differs in. At HDR, the fastest that the simulator knows."""
    wiring = to_wiring(preset("hgx-h100", nodes=NODES))  # counts its ports from 0
    for link in wiring["links"]:
        link["speed"] = "200G"
    design = read(wiring)
    if swapped:
        swap(wiring, *swapped)
    net, dump = tmp_path / "net", tmp_path / "found.out"
    net.write_text(to_ibnetdiscover(read(wiring)))
    async with IbFabric(net, sim_host="n007 mlx5_0") as fabric:
        output = await fabric.run("ibnetdiscover")
    assert output.code == 0, output.stderr
    dump.write_text(output.stdout)
    result = drift(design, read_found(str(dump)))
    assert result.cables == len(design.links.a)
    return result.mistakes


async def test_what_the_real_tool_finds_of_a_fabric_as_designed_has_no_drift(tmp_path: Path) -> None:
    assert await differences(tmp_path) == ()


async def test_two_swapped_cables_are_one_difference_that_names_both(tmp_path: Path) -> None:
    (mistake,) = await differences(tmp_path, *SWAPPED)
    assert (mistake.kind, mistake.crossing) == ("swapped", True)
    assert mistake.planned == (("n002/nic3/p0", "A-leaf-03/p2"), ("n002/nic4/p0", "A-leaf-04/p2"))
    assert mistake.found == (("n002/nic3/p0", "A-leaf-04/p2"), ("n002/nic4/p0", "A-leaf-03/p2"))
