"""Every preset, exported plane by plane into the real fabric simulator and read back by the real ibnetdiscover."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.rigs.ibsim import IbFabric
from tests.twin.small_fabric import read, swap
from twin.topology.drift import cables_of
from twin.topology.explicit import to_wiring
from twin.topology.found import drift
from twin.topology.found import read as read_found
from twin.topology.ibexport import to_ibnetdiscover
from twin.topology.model import Topology
from twin.topology.presets import PRESETS, preset

pytestmark = pytest.mark.service("ibsim-utils", "opensm", "infiniband-diags")

KNOWN_TO_IBSIM = (200e9, 100e9, 50e9, 25e9)  # 4xHDR, 4xEDR, 2xEDR, 1xEDR: it falls back to SDR for faster links
TRIES = 4  # the stock tool crashes now and then
# A port number is a byte, so switches of more ports than 254 are loaded with fewer in use.
SIZES: dict[str, dict[str, int]] = {"vera-rubin-spectrum6": {"racks": 1}, "mrc-8plane": {"racks": 1}}
# Its smallest, one pod, has more ports than ibsim's 13,312; it goes through the text form alone (test_found.py).
TOO_LARGE = {"meta-24k-roce"}
SWITCHED = [name for name in PRESETS if name not in {*TOO_LARGE, "dgx-station-pair"}]


def at_speeds_of_the_simulator(topo: Topology) -> Topology:
    """The same wiring with each speed replaced by one that ibsim knows, differing where they differ."""
    speeds = sorted(set(topo.links.speed.tolist()), reverse=True)
    known = dict(zip(speeds, KNOWN_TO_IBSIM, strict=False))
    assert len(known) == len(speeds)
    return replace(topo, links=replace(topo.links, speed=np.array([known[s] for s in topo.links.speed.tolist()])))


async def found(topo: Topology, plane: str | None, directory: Path) -> Topology:
    """What ibnetdiscover sees of the exported plane."""
    net, dump = directory / "net", directory / "found.out"
    net.write_text(to_ibnetdiscover(topo, plane))
    host, nic, _ = topo.port_names[int(topo.links.a[0])].split("/")
    async with IbFabric(net, sim_host=f"{host} mlx5_{nic.removeprefix('nic')}", start_limit_s=20) as fabric:
        for _ in range(TRIES):
            output = await fabric.run("ibnetdiscover", limit_s=60)
            if output.code >= 0:
                break
    assert output.code == 0, output.stderr
    dump.write_text(output.stdout)
    return read_found(str(dump))


@pytest.mark.parametrize("name", SWITCHED)
async def test_a_preset_comes_back_from_the_simulator_without_drift(name: str, tmp_path: Path) -> None:
    design = at_speeds_of_the_simulator(preset(name, **SIZES.get(name, {})))
    plane = design.planes[0]
    result = drift(design, await found(design, plane, tmp_path))
    assert result.mistakes == ()
    assert result.cables == sum(1 for p in design.links.plane if design.planes[p] == plane)


@pytest.mark.parametrize("name", SWITCHED)
async def test_two_swapped_cables_of_a_preset_are_one_difference_naming_both(name: str, tmp_path: Path) -> None:
    design = at_speeds_of_the_simulator(preset(name, **SIZES.get(name, {})))
    plane, wiring = design.planes[0], to_wiring(design)
    mine = [c for c in cables_of(design) if c[1].startswith(f"{plane}-leaf")]
    one, other = mine[0], mine[-1]
    swap(wiring, one[0], other[0])
    (mistake,) = drift(design, await found(read(wiring), plane, tmp_path)).mistakes
    assert (mistake.kind, set(mistake.planned)) == ("swapped", {one, other})
    assert all(f"{a}--{b}" in mistake.text for a, b in (one, other))


async def test_of_a_pair_without_a_switch_the_tool_sees_the_cable_that_it_is_asked_through(tmp_path: Path) -> None:
    """The simulator opens no second port of a host, so the other cable stays unseen."""
    design = at_speeds_of_the_simulator(preset("dgx-station-pair"))
    (mistake,) = drift(design, await found(design, None, tmp_path)).mistakes
    assert mistake.kind == "missing" and len(mistake.planned) == 1 and len(design.links.a) == 2


@pytest.mark.parametrize("name", TOO_LARGE)
def test_what_is_not_loaded_is_beyond_the_simulator(name: str) -> None:
    smallest = preset(name)
    assert (smallest.switches.radix + 1).sum() + (smallest.ports.nic >= 0).sum() > 13_312
