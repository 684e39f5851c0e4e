"""Interface names of devices placed on the ports of a wiring."""

from __future__ import annotations

import pytest

from collectors.portnames import PortNames
from twin.errors import InputError
from twin.topology.builder import Builder
from twin.topology.model import Topology
from twin.topology.presets import preset
from twin.topology.wiring import read_wiring
from twin.yamlfile import Document


def leaf(first: int, ports: int = 8, step: int = 1) -> Topology:
    """A leaf whose ports are numbered from `first`, one host on each."""
    lines = ["name: t", "planes: [A]", "nodes:"]
    lines += [f"  - {{name: n{i}, gpus: 1, nics: 1}}" for i in range(ports)]
    lines += ["switches:", "  - {name: A-leaf-0, tier: leaf, plane: A}", "links:"]
    lines += [f"  - {{a: n{i}/nic0/p0, b: A-leaf-0/p{first + i * step}, speed: 400G}}" for i in range(ports)]
    return read_wiring(Document("t.yaml", "\n".join(lines)))


def test_cumulus_ports_count_from_one_and_shift_to_a_wiring_that_counts_from_zero() -> None:
    names = [f"swp{i}" for i in range(1, 9)]
    assert PortNames(leaf(0)).place("A-leaf-0", ["lo", "eth0", *names])["swp1"] == "A-leaf-0/p0"
    assert PortNames(leaf(1)).place("A-leaf-0", names)["swp8"] == "A-leaf-0/p8"


def test_sonic_lanes_are_counted_through_unless_the_wiring_has_them_as_they_are() -> None:
    lanes = [f"Ethernet{i}" for i in range(0, 32, 4)]
    assert PortNames(leaf(0)).place("A-leaf-0", lanes)["Ethernet28"] == "A-leaf-0/p7"
    assert PortNames(leaf(0, step=4)).place("A-leaf-0", lanes)["Ethernet28"] == "A-leaf-0/p28"
    assert PortNames(leaf(1)).place("A-leaf-0", lanes)["Ethernet0"] == "A-leaf-0/p1"


def test_arista_ports_of_one_part_keep_their_number() -> None:
    names = [f"Ethernet{i}/1" for i in range(1, 9)]
    assert PortNames(leaf(1)).place("A-leaf-0", [*names, "Management1"])["Ethernet8/1"] == "A-leaf-0/p8"


def test_what_the_site_says_comes_first_and_what_fits_no_port_gives_nothing() -> None:
    placer = PortNames(leaf(0), {"*": {"uplink": "p3", "swp2": "p99"}, "A-leaf-0": {"swp1": "p5"}})
    placed = placer.place("A-leaf-0", ["uplink", "swp1", "swp2", "swp3"])
    assert placed == {"uplink": "A-leaf-0/p3", "swp1": "A-leaf-0/p5", "swp3": "A-leaf-0/p2"}


def test_every_mistake_of_the_site_is_told() -> None:
    with pytest.raises(InputError) as problem:
        PortNames(leaf(0), {"A-leaf-O": {"swp1": "p1"}, "A-leaf-0": {"swp2": "p99"}})
    assert problem.value.problems == [
        "ports: t has no switch or node 'A-leaf-O'; did you mean A-leaf-0?",
        "ports: A-leaf-0 has no such port in t: swp2: p99",
    ]


def test_no_two_interfaces_take_the_same_port() -> None:
    placed = PortNames(leaf(0), {"*": {"swp2": "p0"}}).place("A-leaf-0", [f"swp{i}" for i in range(1, 9)])
    assert placed["swp2"] == "A-leaf-0/p0" and "swp1" not in placed


def test_hosts_are_placed_by_rail_names_and_by_rdma_device_numbers() -> None:
    split = PortNames(preset("b300-superpod-ethernet"))
    assert split.place("n000", ["rail3p1"]) == {"rail3p1": "n000/nic3/p1"}
    single = PortNames(preset("hgx-h100"))
    node = single._topology.nodes.name[0]
    assert single.place(node, ["mlx5_3", "mlx5_bond_0", "docker0"]) == {"mlx5_3": f"{node}/nic3/p0"}


def test_a_device_that_the_wiring_lacks_has_no_ports() -> None:
    placer = PortNames(Builder("empty", planes=()).build())
    assert not placer.has("x") and placer.place("x", ["swp1"]) == {}
