"""What names and wiring give away, and what they do not."""

from __future__ import annotations

import pytest
from importer_inputs import links, wired

from twin.topology.importers import hints
from twin.topology.importers.assemble import assemble
from twin.topology.importers.hostlist import Hostlists
from twin.topology.importers.sketch import Cable, End, Sketch


def sketch(*cables: str) -> Sketch:
    """A sketch of `host:port switch:port` lines."""
    out = Sketch("drawn")
    for cable in cables:
        a, b = (End(*end.split(":")) for end in cable.split())
        out.cables.append(Cable(a, b))
        out.device(a.device)
        out.device(b.device)
    return out


def plane_of(topo_sketch: Sketch) -> dict[str, str | None]:
    return {s["name"]: s.get("plane") for s in wired(assemble(topo_sketch))["switches"]}


def test_planes_by_the_single_letter() -> None:
    cables = [f"gpu{h}:rail0p{p} {'AB'[p]}-leaf-0:swp{h + 1}" for h in range(2) for p in range(2)]
    assert plane_of(sketch(*cables)) == {"A-leaf-0": "A", "B-leaf-0": "B"}


def test_pods_that_look_like_planes_are_none() -> None:
    """leaf-p1 and leaf-p2 with hosts of their own are two pods of one plane."""
    drawn = sketch(
        "gpu1:rail0 leaf-p1-1:swp1", "gpu2:rail0 leaf-p2-1:swp1", "leaf-p1-1:swp9 spine-1:swp1",
        "leaf-p2-1:swp9 spine-1:swp2",
    )  # fmt: skip
    topo = assemble(drawn)
    assert topo.planes == ("A",)
    assert any("no plane" in note for note in topo.notes)


def test_planes_by_wiring() -> None:
    """Ports of one NIC lead to switches that nothing joins, whatever their names."""
    cables = [f"gpu{h}:enp26s0f{p}np{p} {'xy'[p]}sw1:swp{h + 1}" for h in range(3) for p in range(2)]
    assert plane_of(sketch(*cables)) == {"xsw1": "A", "ysw1": "B"}


def test_rails_without_spines_are_no_planes() -> None:
    """Rail leaves that nothing joins: each NIC has one port, so there is nothing to tell planes by."""
    drawn = sketch(*[f"gpu{h}:mlx5_{r} leaf-{r}:swp{h + 1}" for h in range(2) for r in range(2)])
    topo = assemble(drawn)
    assert topo.planes == ("A",)
    assert topo.switches.rail.tolist() == [0, 1]


def test_a_core_over_all_planes_has_none() -> None:
    drawn = sketch(
        "gpu1:rail0p0 A-leaf:swp1", "gpu1:rail0p1 B-leaf:swp1", "A-leaf:swp9 core-1:swp1", "B-leaf:swp9 core-1:swp2"
    )
    assert plane_of(drawn) == {"A-leaf": "A", "B-leaf": "B", "core-1": None}


def test_storage_switches_and_hosts_are_no_part_of_gpu_traffic() -> None:
    drawn = sketch(
        "gpu1:ens1 leaf-1:swp1", "gpu1:ens2 stor-leaf-1:swp1", "gpu2:ens1 leaf-1:swp2", "gpu2:ens2 stor-leaf-1:swp2",
        "nfs1:ens1 stor-leaf-1:swp3",
    )  # fmt: skip
    topo = assemble(drawn)
    assert {s["name"]: s.get("plane") for s in wired(topo)["switches"]} == {"leaf-1": "A", "stor-leaf-1": None}
    assert [n["gpus"] for n in wired(topo)["nodes"]] == [1, 1, 0]


def test_hosts_alike_have_numbers_alike_though_a_cable_is_missing() -> None:
    """The second host lacks its first cable; its second NIC is still the second."""
    drawn = sketch("gpu1:enp1s0 leaf-1:swp1", "gpu1:enp9s0 leaf-2:swp1", "gpu2:enp9s0 leaf-2:swp2",
                   "gpu3:enp1s0 leaf-1:swp3", "gpu3:enp9s0 leaf-2:swp3")  # fmt: skip
    assert ("gpu2/nic1/p0", "leaf-2/p2") in links(assemble(drawn))


def test_a_port_used_twice_keeps_its_first_cable() -> None:
    topo = assemble(sketch("gpu1:rail0 leaf-1:swp1", "gpu2:rail0 leaf-1:swp1"))
    assert links(topo) == {("gpu1/nic0/p0", "leaf-1/p1")}
    assert any("left out: 1 cables" in note for note in topo.notes)


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("rail3p1", (3, 1)), ("eth_p1_r4", (4, 1)), ("mlx5_7", (7, None)), ("nic2p0", (2, 0)), ("nic2/p0", (2, 0)),
        ("enp26s0f1np1", None), ("eth3", None), ("rail1p99", None), ("bond0", None),
    ],
)  # fmt: skip
def test_interface_names_that_number_nics(name: str, place: tuple[int, int | None] | None) -> None:
    assert hints.host_port(name) == place


@pytest.mark.parametrize(
    ("ports", "numbers"),
    [
        ("swp1s0 swp1s1 swp2s0", "1 2 3"), ("swp1s0 swp1s3 swp2s0", "1 4 5"), ("swp1 swp2 swp33", "1 2 33"),
        ("swp1s0 swp1s1 swp5", "1 2 9"), ("Ethernet0 Ethernet8", "0 8"), ("e1-1 e1-49", "1 49"),
        ("Ethernet5/1 Ethernet6/1", "5 6"), ("Ethernet5/1 Ethernet5/2 Ethernet6/1", "9 10 11"), ("a b", "1 2"),
    ],
)  # fmt: skip
def test_switch_port_numbers(ports: str, numbers: str) -> None:
    """The name's own number where it tells ports apart; parts of split ports are counted through."""
    drawn = sketch(*[f"gpu{i}:rail0 leaf-1:{port}" for i, port in enumerate(ports.split())])
    assert {b for _, b in links(assemble(drawn))} == {f"leaf-1/p{n}" for n in numbers.split()}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a", "a"), ("a,b", "a b"), ("n[1-3]", "n1 n2 n3"), ("n[08-10,12]x", "n08x n09x n10x n12x"),
        ("r[1-2]n[1-2]", "r1n1 r1n2 r2n1 r2n2"), ("a[1],b[2-3]", "a1 b2 b3"),
    ],
)  # fmt: skip
def test_hostlists(text: str, names: str) -> None:
    assert Hostlists().expand(text) == names.split()


@pytest.mark.parametrize(
    "text", ["n[1-", "n]1[", "n[3-1]", "n[x]", "n[1-999999999]", "a,,b", "", "n[[1]]", "n[1-2]" * 20]
)
def test_hostlists_that_are_none(text: str) -> None:
    with pytest.raises(ValueError, match=r"bracket|range|name"):
        Hostlists().expand(text)
