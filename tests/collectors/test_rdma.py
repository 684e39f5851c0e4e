"""Which devices are planes of others: as `rdma -j dev` tells it, and as sysfs alone shows it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sysfs_tree import Tree, device, ib_port, interface, roce_port, write

from collectors.base import CollectorError
from collectors.infiniband_sysfs import IbPort, list_ports
from collectors.rdma import RdmaDevice, ask_kernel, find_planes, interface_of, parse_devices
from collectors.sysfs import SYS, entries

# iproute2 6.11 on a host with one ConnectX-8 in XDR InfiniBand mode and one management port
TOLD = """[{"ifindex":0,"ifname":"mlx5_0","node_type":"ca","fw":"40.45.1020","node_guid":"b8e9:2403:00aa:0010",
"sys_image_guid":"b8e9:2403:00aa:0010"},{"ifindex":1,"ifname":"mlx5_1","node_type":"ca","fw":"28.43.2026",
"node_guid":"946d:ae03:0011:0020","sys_image_guid":"946d:ae03:0011:0020"},{"ifindex":2,"ifname":"smi1",
"node_type":"ca","fw":"40.45.1020","node_guid":"b8e9:2403:00aa:0010","sys_image_guid":"b8e9:2403:00aa:0010",
"type":"smi","parent":"mlx5_0"}]"""
LOGICAL = "0xa751ec48\n"  # IsSMDisabled is set
PLANE = "0xa751e848\n"
GUID, OTHER = "fe80:0000:0000:0000:b8e9:2403:00aa:0010\n", "fe80:0000:0000:0000:946d:ae03:0011:0020\n"


def with_guid(port: Tree, guid: str, mask: str) -> Tree:
    return {**port, "gids": {"0": guid}, "cap_mask": mask}


def planes(ports: int = 4, guid: str = GUID) -> Tree:
    return device(*[with_guid(ib_port(rate="200 Gb/sec (1X XDR)"), guid, PLANE) for _ in range(ports)])


def logical(guid: str = GUID) -> Tree:
    return device(with_guid(ib_port(rate="800 Gb/sec (4X XDR)"), guid, LOGICAL))


FOUR = tuple(("smi1", port) for port in range(1, 5))


def test_the_tool_tells_type_and_parent() -> None:
    assert parse_devices(TOLD) == [
        RdmaDevice("mlx5_0"), RdmaDevice("mlx5_1"), RdmaDevice("smi1", "smi", "mlx5_0"),
    ]  # fmt: skip
    assert parse_devices("[]") == []


@pytest.mark.parametrize("text", ["", "{}", "null", "[", "Failed to open NETLINK_RDMA socket", "[" * 100_000])
def test_what_is_no_list_of_devices_is_one_clear_error(text: str) -> None:
    with pytest.raises(CollectorError, match="rdma -j dev"):
        parse_devices(text)


@pytest.mark.service("iproute2")
def test_the_real_tool_lists_the_devices_of_this_machine_or_none() -> None:
    present = entries(SYS / "class/infiniband") or []
    assert {d.name for d in ask_kernel()} == set(present)


def test_planes_belong_to_the_parent_that_is_told(tmp_path: Path) -> None:
    tree = {"mlx5_0": device(ib_port()), "mlx5_1": device(ib_port()), "smi1": device(*[ib_port()] * 4)}
    write(tmp_path / "class/infiniband", tree)
    assert find_planes(tmp_path, parse_devices(TOLD)) == {("mlx5_0", 1): FOUR}
    assert find_planes(tmp_path) == {}, "nothing in this tree tells"


def test_without_the_tool_the_port_guid_tells(tmp_path: Path) -> None:
    tree = {"mlx5_0": logical(), "mlx5_1": logical(OTHER), "smi1": planes(), "mlx5_2": device(roce_port())}
    write(tmp_path / "class/infiniband", tree)
    assert find_planes(tmp_path) == {("mlx5_0", 1): FOUR}
    assert find_planes(tmp_path, [RdmaDevice("mlx5_0"), RdmaDevice("smi1")]) == {("mlx5_0", 1): FOUR}, "an old tool"


def test_a_device_a_plane_is_read_as_well(tmp_path: Path) -> None:
    """Nothing says that another driver must put all planes into one device."""
    tree = {"ibp1s0": logical(), **{f"smi{n}": planes(1) for n in (1, 2, 3, 10)}}
    write(tmp_path / "class/infiniband", tree)
    assert find_planes(tmp_path) == {("ibp1s0", 1): (("smi1", 1), ("smi2", 1), ("smi3", 1), ("smi10", 1))}


@pytest.mark.parametrize(
    ("guid", "mask"),
    [
        (GUID, PLANE),  # two that share a GUID, neither of them logical
        (GUID, LOGICAL),  # both logical
        ("fe80:0000:0000:0000:0000:0000:0000:0000\n", LOGICAL),  # not initialised
        ("", ""), ("N/A", "N/A"),
    ],
)  # fmt: skip
def test_a_relation_that_is_not_clear_is_none(tmp_path: Path, guid: str, mask: str) -> None:
    both = {name: device(with_guid(ib_port(), guid, mask)) for name in ("mlx5_0", "mlx5_1")}
    write(tmp_path / "class/infiniband", both)
    assert find_planes(tmp_path) == {}
    assert len(list_ports(tmp_path)) == 2


def test_devices_of_planes_have_no_ports_of_their_own(tmp_path: Path) -> None:
    write(tmp_path / "class/infiniband", {"mlx5_0": logical(), "smi1": planes()})
    assert list_ports(tmp_path) == [IbPort("mlx5_0", 1, "InfiniBand")]


def test_a_roce_port_names_its_interface_and_a_bonded_one_the_bond(tmp_path: Path) -> None:
    def named(interface: str) -> Tree:
        return device({**roce_port(), "gid_attrs": {"ndevs": {"0": f"{interface}\n"}}})

    rdma = {
        "mlx5_0": named("ens1"),
        "mlx5_bond_0": named("ens2"),
        "mlx5_bond_1": named("bond1"),
        "mlx5_3": device(roce_port()),
    }
    write(tmp_path / "class/infiniband", rdma)
    bond = interface(bonding={"slaves": "ens2 ens3\n"})
    write(tmp_path / "class/net", {"ens1": interface(), "ens2": interface(), "bond0": bond, "bond1": bond})
    (tmp_path / "class/net/ens2/master").symlink_to("../bond0")
    found = [interface_of(tmp_path, name, 1) for name in rdma]
    assert found == ["ens1", "bond0", "bond1", None]


@given(st.one_of(st.binary(max_size=200), st.text(max_size=200)))
def test_any_text_gives_devices_or_the_one_error(text: bytes | str) -> None:
    try:
        found = parse_devices(text)
    except CollectorError:
        return
    assert all(d.name for d in found)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["ifname", "type", "parent"]), inner),
    max_leaves=12,
)


@given(st.lists(JSON, max_size=5))
def test_any_json_gives_only_names_that_are_in_it(entries: list[object]) -> None:
    import json

    found = parse_devices(json.dumps(entries))
    names = [e["ifname"] for e in entries if isinstance(e, dict) and isinstance(e.get("ifname"), str) and e["ifname"]]
    assert [d.name for d in found] == names
