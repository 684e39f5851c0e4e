from __future__ import annotations

from pathlib import Path

from sysfs_tree import device, ib_port, interface, roce_port, write

from collectors.infiniband_sysfs import InfinibandCollector
from collectors.netdev import NetdevCollector
from collectors.own_ports import own_ports, physical_interfaces

HARDWARE = {"device": {"vendor": "0x15b3"}}


def test_hardware_is_taken_and_what_software_made_is_not(tmp_path: Path) -> None:
    write(
        tmp_path / "class/net",
        {
            "lo": interface(type="772"),
            "ens10": interface(**HARDWARE),
            "ens2": interface(**HARDWARE, master={"bonding": {}}),  # a member of a bond stays
            "bond0": interface(bonding={}),
            "br0": interface(bridge={}),
            "docker0": interface(),
            "veth12ab": interface(),
            "ens2.100": interface(iflink="7"),
            "ens2v0": interface(device={"physfn": {}}),
            "ens2r0": interface(**HARDWARE, phys_port_name="pf0vf1"),
            "ib0": interface(**HARDWARE, type="32"),
        },
    )
    assert physical_interfaces(tmp_path) == ["ens2", "ens10"]
    own = own_ports("n0", root=tmp_path)
    assert own.netdevs == {"ens2": "n0/nic0/p0", "ens10": "n0/nic1/p0"}
    assert own.topology.port_names == ("n0/nic0/p0", "n0/nic1/p0")
    assert own.topology.labels["n0/nic1/p0"] == "ens10"


def test_without_hardware_interfaces_with_a_speed_do_and_veth_pairs_come_last(tmp_path: Path) -> None:
    net = tmp_path / "class/net"
    write(net, {"lo": interface(type="772", speed=None), "ifb0": interface(), "up0": interface(iflink="9")})
    assert physical_interfaces(tmp_path) == ["up0"]
    write(net, {"x0": interface(), "x1": interface(speed="-1")})
    assert physical_interfaces(tmp_path) == ["x0"]


async def test_a_roce_device_and_its_interface_are_one_port(tmp_path: Path) -> None:
    twin = interface(device={"infiniband": {"mlx5_0": {}}})
    bonded = interface(device={"infiniband": {"mlx5_bond_0": {}}})
    write(tmp_path / "class/net", {"ens9": twin, "eno1": interface(**HARDWARE), "ens1": bonded})
    rdma = {"mlx5_0": device(roce_port()), "mlx5_3": device(ib_port()), "mlx5_bond_0": device(roce_port())}
    write(tmp_path / "class/infiniband", rdma)
    own = own_ports("n0", root=tmp_path, gpus=2)
    assert own.infiniband == {("mlx5_0", 1): "n0/nic0/p0", ("mlx5_3", 1): "n0/nic1/p0"}
    assert own.netdevs == {"eno1": "n0/nic2/p0", "ens1": "n0/nic3/p0", "ens9": "n0/nic0/p0"}
    assert own.topology.labels["n0/nic0/p0"] == "mlx5_0/1 ens9"
    assert own.topology.gpus.nic.tolist() == [0, 1]
    seen = await InfinibandCollector(own.infiniband, root=tmp_path).collect()
    also = await NetdevCollector("n0", own.netdevs, root=tmp_path).collect()
    names = {name for sample in (seen, also) for frame in sample.frames for name in frame.names}
    assert names == set(own.topology.port_names)
    both = [f for s in (seen, also) for f in s.frames if "n0/nic0/p0" in f.names and "tx_bytes" in f.columns]
    assert len(both) == 1, "one source gives the traffic of a port"


def test_two_interfaces_on_one_rdma_port_give_the_first(tmp_path: Path) -> None:
    twin = interface(device={"infiniband": {"mlx5_0": {}}})
    write(tmp_path / "class/net", {"ens1": twin, "ens2": twin})
    write(tmp_path / "class/infiniband", {"mlx5_0": device(roce_port())})
    assert own_ports("n0", root=tmp_path).netdevs == {"ens1": "n0/nic0/p0"}


def test_interfaces_named_after_rails_stand_for_the_fabric(tmp_path: Path) -> None:
    rails = {
        f"rail{r}p{p}": interface(device={"infiniband": {f"mlx5_{2 * r + p}": {}}})
        for r in range(2)
        for p in range(2)
    }
    write(tmp_path / "class/net", {**rails, "eno1": interface(**HARDWARE)})
    write(tmp_path / "class/infiniband", {f"mlx5_{i}": device(roce_port()) for i in range(5)})
    own = own_ports("n0", root=tmp_path)
    ports = [f"n0/nic{r}/p{p}" for r in range(2) for p in range(2)]
    assert own.netdevs == dict(zip(rails, ports, strict=True))
    assert own.infiniband == {(f"mlx5_{i}", 1): port for i, port in enumerate(ports)}
    assert own.topology.port_names == tuple(ports)


def test_a_host_without_any_port_is_still_a_node(tmp_path: Path) -> None:
    own = own_ports("my host", root=tmp_path)
    assert (own.netdevs, own.infiniband, own.topology.nodes.name) == ({}, {}, ("my_host",))


def test_this_machine_has_a_topology() -> None:
    own = own_ports("me")
    assert set(own.netdevs.values()) | set(own.infiniband.values()) == set(own.topology.port_names)
