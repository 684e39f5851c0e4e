"""Fabric formats: each says the wiring that its file shows, in a form that can be read back."""

from __future__ import annotations

from pathlib import Path

import pytest
from importer_inputs import CASES, FIXTURES, SAMPLES, found, links, wired

from twin.topology.importers.sketch import Sizes
from twin.topology.summary import summary


@pytest.mark.parametrize(("option", "name"), CASES)
def test_every_fixture_gives_wiring_that_reads_back_the_same(option: str, name: str) -> None:
    """What is written is valid, and reading it gives the same fabric."""
    topo = found(option, FIXTURES / name)
    again = wired(topo)
    assert [n["name"] for n in again["nodes"]] == list(topo.nodes.name)
    assert len(again["links"]) == len(topo.links.a)
    assert topo.notes, "what was inferred is said"


def test_air_counts_rails_and_planes_from_one() -> None:
    """rail2p1 is port 1 of NIC 2 in plane p1; what hangs on the management switch is left out."""
    topo = found("air", FIXTURES / "air.json")
    assert topo.planes == ("p1", "p2")
    assert ("gpu-su01-rack01-h02/nic2/p1", "leaf-p1-su001-r2/p2") in links(topo)
    assert not [s for s in topo.switches.name if "oob" in s]
    assert summary(topo)["hosts_by_role"] == {"compute": 2, "storage": 1}
    assert topo.racks.name == ("su01-rack01",)
    assert set(topo.links.speed.tolist()) == {400e9}


def test_air_leaf_has_the_rail_of_the_nics_on_it() -> None:
    """Rails are counted from 0, as everywhere here."""
    nodes = {s["name"]: s for s in wired(found("air", FIXTURES / "air.json"))["switches"]}
    assert nodes["leaf-p2-su001-r2"]["rail"] == 1
    assert nodes["spine-p2-01"]["plane"] == "p2"


def test_a_storage_host_on_a_leaf_leaves_the_leaf_its_rail() -> None:
    """The storage host's NIC is no rail's."""
    nodes = {s["name"]: s for s in wired(found("air", FIXTURES / "air.json"))["switches"]}
    assert nodes["leaf-p1-su001-r1"]["rail"] == 0


def test_spectrum_x_planes_are_those_of_its_attributes() -> None:
    """Plane 0 is p0; the spine, of which the file says nothing, has the plane of its leaf."""
    topo = found("spectrum-x", FIXTURES / "spectrum_x.json")
    assert topo.planes == ("p0", "p1")
    assert ("compute-b/nic0/p1", "leaf-p1-r0/p2") in links(topo)
    assert {s["name"]: s["plane"] for s in wired(topo)["switches"]}["spine-p0-0"] == "p0"


def test_netq_tiers_start_at_the_lowest_of_its_switches() -> None:
    topo = found("netq", FIXTURES / "netq.json")
    assert {s["name"]: s["tier"] for s in wired(topo)["switches"]} == {
        "rack1-tor": "leaf", "agg-1": "spine", "top-1": "core",
    }  # fmt: skip
    assert topo.nodes.name == ("gpu-01", "gpu-02")


def test_slurm_tree_has_the_tiers_of_its_depth() -> None:
    """Host lists are expanded, a login node is no GPU host, and GPUs are as the user says."""
    topo = found("slurm", FIXTURES / "topology.conf", sizes=Sizes(gpus_per_node=8, gpu_model="b300"))
    assert {s["name"]: s["tier"] for s in wired(topo)["switches"]} == {
        "rack1": "leaf",
        "rack2": "leaf",
        "top": "spine",
    }
    assert summary(topo)["gpus"] == 6 * 8
    assert topo.nodes.name[0] == "gpu01"
    assert topo.nodes.gpu_model[0] == "b300"


@pytest.mark.parametrize(("option", "name"), [("slurm", "topology.yaml"), ("topograph", "topograph.yaml")])
def test_blocks_of_18_trays_are_nvl72_racks(option: str, name: str) -> None:
    """Each is one NVLink domain of 72 GPUs."""
    topo = found(option, FIXTURES / name)
    assert [len(rows) for rows in topo.domains.gpu_rows] == [72, 72]
    assert summary(topo)["links"]["nvlink"] == 144 * 18


def test_blocks_without_a_domain_are_none() -> None:
    """H100 blocks of a topograph model say which switch they hang on, and nothing of NVLink."""
    topo = found("topograph", FIXTURES / "topograph-h100.yaml")
    assert not topo.domains.name
    assert ("c/nic0/p0", "sw2/p1") in links(topo)


def test_containerlab_labels_say_what_names_do_not() -> None:
    """Labels give plane, tier and role; a long form of a link is as good as a short one."""
    topo = found("containerlab", FIXTURES / "lab.clab.yml")
    assert topo.name == "two-planes"
    assert topo.planes == ("east", "west")
    assert ("gpu2/nic1/p0", "x2/p2") in links(topo)
    assert summary(topo)["hosts_by_role"] == {"compute": 2, "storage": 1}


@pytest.mark.skipif(not SAMPLES.exists(), reason="the shared samples are not here")
@pytest.mark.parametrize(
    ("option", "sample", "gpus", "leaves", "planes"),
    [
        ("air", "topology/air-simple-quadplane.json", 2, 4, 4),
        ("spectrum-x", "topology/spcx-gen-minimal.json", 1, 1, 1),
        ("topograph", "topology/nvl72.yaml", 288, 4, 1),
        ("nccl", "topology/ndv5-topo.xml", 8, 0, 0),
        ("nvidia-smi", "nvidia-smi/h100_dgx8_mlx5_columns.topo.txt", 8, 0, 0),
        ("nvidia-smi", "nvidia-smi/gb200_tray_allsys.topo.txt", 4, 0, 0),
    ],
)
def test_samples(option: str, sample: str, gpus: int, leaves: int, planes: int) -> None:
    """What others' real files hold."""
    topo = found(option, SAMPLES / sample)
    wired(topo)
    told = summary(topo)
    assert (told["gpus"], told["leaves"], told["planes"]) == (gpus, leaves, planes)


def test_names_that_are_unfit_for_addresses_keep_their_original_as_a_label(tmp_path: Path) -> None:
    """A slash or a space would break an address; two names that then are one stay two."""
    path = tmp_path / "x.json"
    path.write_text(
        '{"nodes": [{"name": "gpu 1", "role": "host"}, {"name": "gpu_1", "role": "host"}, {"name": "rack/leaf", '
        '"role": "leaf"}], "links": [[{"node": "gpu 1", "interface": "eth1"}, {"node": "rack/leaf", "interface": '
        '"swp1"}], [{"node": "gpu_1", "interface": "eth1"}, {"node": "rack/leaf", "interface": "swp2"}]]}'
    )
    topo = found("spectrum-x", path)
    assert links(topo) == {("gpu_1/nic0/p0", "rack_leaf/p1"), ("gpu_1-2/nic0/p0", "rack_leaf/p2")}
    assert topo.labels == {"gpu_1": "gpu 1", "gpu_1-2": "gpu_1", "rack_leaf": "rack/leaf"}
