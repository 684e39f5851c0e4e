"""A host of a site: which interface and RDMA device means which port, and who says what of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from sysfs_tree import Tree, device, ib_port, interface, roce_port, rows, write

from collectors.base import Collector
from collectors.host import build
from collectors.netdev import LINK
from twin.errors import InputError
from twin.site import Site
from twin.sitespecs import HostSpec
from twin.topology.wiring import read_wiring
from twin.yamlfile import Document


def site(nics: int = 2, ports: int = 2) -> Site:
    """One host of some NICs, each with ports p0 up at leaves of planes of their own."""
    names = "ABCD"[:ports]
    lines = [f"name: t\nplanes: [{', '.join(names)}]\nnodes:"]
    lines += [f"  - {{name: n0, gpus: 1, nics: {nics}, ports_per_nic: {ports}}}", "switches:"]
    lines += [f"  - {{name: {plane}-leaf, tier: leaf, plane: {plane}}}" for plane in names]
    lines += ["links:"]
    lines += [
        f"  - {{a: n0/nic{n}/p{p}, b: {plane}-leaf/p{n}, speed: 400G}}"
        for n in range(nics)
        for p, plane in enumerate(names)
    ]
    return Site("t", read_wiring(Document("t.yaml", "\n".join(lines))))


def built(root: Path, where: Site, **devices: str) -> list[Collector]:
    return build(HostSpec(name="n0", sys=str(root), devices=devices), where)


async def given(collectors: list[Collector]) -> dict[str, list[tuple[str, str]]]:
    """Address -> who gives which metric."""
    found: dict[str, list[tuple[str, str]]] = {}
    for c in collectors:
        for frame in (await c.collect()).frames:
            for name in frame.names:
                found.setdefault(name, []).extend((metric, c.name) for metric in frame.columns)
    return found


def shared(device: str) -> Tree:
    return interface(device={"infiniband": {device: {}}})


async def test_rdma_devices_take_the_port_of_the_interface_on_their_hardware(tmp_path: Path) -> None:
    """mlx5_1 is the second port of the first NIC here, whatever its number says."""
    rails = {f"rail{n}p{p}": shared(f"mlx5_{2 * n + p}") for n in range(2) for p in range(2)}
    write(tmp_path / "class/net", rails)
    write(tmp_path / "class/infiniband", {f"mlx5_{n}": device(roce_port()) for n in range(5)})
    whole = await given(built(tmp_path, site()))
    assert set(whole) == {f"n0/nic{n}/p{p}" for n in range(2) for p in range(2)}
    for told in whole.values():
        metrics = [metric for metric, _ in told]
        assert len(metrics) == len(set(metrics)), "each metric of a port from one source"
        assert (
            dict(told)["up"] == "n0" and dict(told)["tx_bytes"] == dict(told)["cnp_sent_packets"] == "n0:infiniband"
        )


async def test_a_bond_is_not_taken_for_the_port_of_a_member(tmp_path: Path) -> None:
    write(tmp_path / "class/net", {"rail0p0": shared("mlx5_bond_0")})
    write(tmp_path / "class/infiniband", {"mlx5_bond_0": device(roce_port())})
    assert [c.name for c in built(tmp_path, site())] == ["n0"]


async def test_infiniband_devices_are_placed_by_their_numbers_and_bonds_are_not(tmp_path: Path) -> None:
    write(tmp_path / "class/net", {"ens1": interface()})
    devices = {"mlx5_0": device(ib_port()), "mlx5_1": device(ib_port()), "mlx5_bond_0": device(roce_port())}
    write(tmp_path / "class/infiniband", devices)
    collectors = built(tmp_path, site(ports=1))
    assert [c.name for c in collectors] == ["n0:infiniband"]
    assert set(await given(collectors)) == {"n0/nic0/p0", "n0/nic1/p0"}


async def test_what_the_site_maps_is_read_under_its_name_whether_it_is_there_or_not(tmp_path: Path) -> None:
    write(tmp_path / "class/net", {"ens1": interface()})
    write(tmp_path / "class/infiniband", {"ibp3s0": device(ib_port(), ib_port())})
    names = {"ens1": "n0/nic0/p0", "ibp3s0:2": "n0/nic0/p1", "mlx5_9": "n0/nic1/p0", "gone0": "n0/nic1/p1"}
    rdma, net = built(tmp_path, site(), **names)
    first, second = await rdma.collect(), await net.collect()
    assert (rows(first)["n0/nic0/p1"]["up"], rows(second)["n0/nic0/p0"]["up"]) == (1, 1)
    assert first.warnings == ["n0/nic1/p0: no device mlx5_9 with a port 1"]
    assert second.warnings == ["n0/nic1/p1: no interface gone0"]


async def test_a_mapped_bond_is_read_by_its_devices_name(tmp_path: Path) -> None:
    write(tmp_path / "class/net", {})
    write(tmp_path / "class/infiniband", {"mlx5_bond_0": device(roce_port())})
    (collector,) = built(tmp_path, site(), mlx5_bond_0="n0/nic0/p0")
    assert rows(await collector.collect())["n0/nic0/p0"]["cnp_sent_packets"] == 22


async def test_an_infiniband_port_is_judged_by_its_device_and_not_by_ip_over_it(tmp_path: Path) -> None:
    write(tmp_path / "class/net", {"ib0": interface(type="32", operstate="down", carrier="0")})
    write(tmp_path / "class/infiniband", {"mlx5_0": device(ib_port())})
    (rdma,) = built(tmp_path, site(ports=1), mlx5_0="n0/nic0/p0")
    assert rows(await rdma.collect())["n0/nic0/p0"]["up"] == 1


async def test_interfaces_that_come_later_are_found_when_none_is_there_yet(tmp_path: Path) -> None:
    write(tmp_path / "class/net", {"lo": interface()})
    (net,) = built(tmp_path, site())
    write(tmp_path / "class/net", {"rail1p0": interface()})
    (frame,) = (await net.collect()).frames
    assert frame.names == ("n0/nic1/p0",) and set(LINK) <= set(frame.columns)


def test_a_host_or_port_that_the_wiring_lacks_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no ports in the wiring"):
        build(HostSpec(name="n7", sys=str(tmp_path)), site())
    with pytest.raises(InputError, match="n0/nic9/p0"):
        built(tmp_path, site(), ens1="n0/nic9/p0")
