"""Bonded ports: never taken for fabric ports unasked, read right where a site maps them."""

from __future__ import annotations

from pathlib import Path

import pytest
from sysfs_tree import Tree, device, ib_port, interface, roce_port, rows, write

from collectors.bond import bond_speed
from collectors.host import port_collectors
from collectors.infiniband_sysfs import InfinibandCollector
from collectors.netdev import NetdevCollector
from collectors.own_ports import own_ports

PORT = "n0/nic8/p0"


def member(speed: str = "200000\n", mii: str = "up\n", state: str = "active\n", rdma: bool = False) -> Tree:
    below: Tree = {"infiniband": {"mlx5_bond_0": {}}} if rdma else {"vendor": "0x15b3"}
    return interface(speed=speed, bonding_slave={"mii_status": mii, "state": state}, device=below)


def host(root: Path, *members: Tree, **bond: str) -> Path:
    """A host with a fabric port `mlx5_0`, and a bond of some interfaces with its RDMA device."""
    names = [f"ens{n}" for n in range(1, len(members) + 1)]
    net = {**dict(zip(names, members, strict=True)), "bond0": interface(bonding={"slaves": " ".join(names)}, **bond)}
    bonded = {**roce_port(rate="200 Gb/sec (4X HDR)"), "gid_attrs": {"ndevs": {"0": "bond0\n"}}}
    write(root / "class/net", net)
    for name in names:
        (root / "class/net" / name / "master").symlink_to("../bond0")
    write(root / "class/infiniband", {"mlx5_0": device(ib_port()), "mlx5_bond_0": device(bonded)})
    return root


async def speed_of(root: Path, collector: NetdevCollector | InfinibandCollector) -> float | None:
    return rows(await collector.collect())[PORT].get("speed_bits_per_second")


@pytest.mark.parametrize(
    ("members", "gigabits"),
    [
        ((member(), member()), 400),
        ((member(), member(mii="down\n")), 200),
        ((member(), member(state="backup\n")), 200),
        ((member(), member(speed="100000\n")), 300),
    ],
)
async def test_a_bond_has_the_speed_of_its_active_members_by_both_its_names(
    tmp_path: Path, members: tuple[Tree, ...], gigabits: int
) -> None:
    host(tmp_path, *members, speed="-1\n")
    assert await speed_of(tmp_path, NetdevCollector("n0", {"bond0": PORT}, root=tmp_path)) == gigabits * 1e9
    by_rdma = InfinibandCollector({("mlx5_bond_0", 1): PORT}, root=tmp_path)
    assert await speed_of(tmp_path, by_rdma) == gigabits * 1e9


def test_a_bond_with_an_unknown_or_no_active_member_has_no_speed_of_its_own(tmp_path: Path) -> None:
    for n, members in enumerate([(member(), member(speed="-1\n")), (member(mii="down"),), ()]):
        assert bond_speed(host(tmp_path / str(n), *members) / "class/net/bond0") is None
    assert bond_speed(tmp_path / "none") is None


async def test_a_bond_without_members_to_ask_keeps_the_kernels_word(tmp_path: Path) -> None:
    host(tmp_path, member(speed="-1\n"), speed="200000\n")
    assert await speed_of(tmp_path, NetdevCollector("n0", {"bond0": PORT}, root=tmp_path)) == 200e9
    by_rdma = InfinibandCollector({("mlx5_bond_0", 1): PORT}, root=tmp_path)
    assert await speed_of(tmp_path, by_rdma) == 200e9, "the rate of the device"


async def test_a_bond_mapped_by_both_names_gives_each_metric_once(tmp_path: Path) -> None:
    host(tmp_path, member(rdma=True), member())
    both = port_collectors("n0", {"bond0": PORT}, {("mlx5_bond_0", 1): PORT}, root=tmp_path)
    given = [metric for c in both for frame in (await c.collect()).frames for metric in frame.columns]
    assert len(given) == len(set(given))
    values = {k: v for c in both for k, v in rows(await c.collect())[PORT].items()}
    assert values["speed_bits_per_second"] == 400e9
    assert values["cnp_sent_packets"] == 22 and values["tx_bytes"] == 4000, "what the RDMA device counts"


async def test_the_traffic_of_a_bond_that_rdma_shares_is_not_the_kernels(tmp_path: Path) -> None:
    host(tmp_path, member(rdma=True), member())
    assert "tx_bytes" not in rows(await NetdevCollector("n0", {"bond0": PORT}, root=tmp_path).collect())[PORT]
    host(tmp_path / "plain", member(), member())
    plain = NetdevCollector("n0", {"bond0": PORT}, root=tmp_path / "plain")
    assert rows(await plain.collect())[PORT]["tx_bytes"] == 1000


def test_a_hosts_own_ports_leave_the_bond_out_while_there_is_another_device(tmp_path: Path) -> None:
    own = own_ports("n0", root=host(tmp_path, member(rdma=True), member()))
    assert own.infiniband == {("mlx5_0", 1): "n0/nic0/p0"}
    assert set(own.netdevs) == {"ens1", "ens2"}


def test_where_bonds_are_all_there_is_each_is_one_port_and_its_members_are_none(tmp_path: Path) -> None:
    host(tmp_path, member(rdma=True), member())
    (tmp_path / "class/infiniband/mlx5_0").rename(tmp_path / "mlx5_0")
    own = own_ports("n0", root=tmp_path)
    assert own.infiniband == {("mlx5_bond_0", 1): "n0/nic0/p0"}
    assert own.netdevs == {"bond0": "n0/nic0/p0"}


def test_of_a_device_with_more_ports_than_wires_those_count_that_have_an_interface(tmp_path: Path) -> None:
    """A ConnectX-8 of four planes shows 12 RoCE ports, of which each third is wired."""
    ports = [
        {**roce_port(), "gid_attrs": {"ndevs": {"0": f"eth_p{n // 3 - 1}\n"}}} if n % 3 == 0 else roce_port()
        for n in range(1, 13)
    ]
    write(tmp_path / "class/infiniband", {"mlx5_0": device(*ports)})
    write(tmp_path / "class/net", {f"eth_p{n}": interface(device={"vendor": "0x15b3"}) for n in range(4)})
    own = own_ports("n0", root=tmp_path)
    assert own.infiniband == {("mlx5_0", 3 * n + 3): f"n0/nic{n}/p0" for n in range(4)}
    assert own.netdevs == {f"eth_p{n}": f"n0/nic{n}/p0" for n in range(4)}
