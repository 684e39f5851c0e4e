"""One host's GPUs, NICs and NVLinks, from nvidia-smi and from NCCL, alone and within a fabric."""

from __future__ import annotations

import pytest
from importer_inputs import FIXTURES, SAMPLES, found, wired

from twin.errors import InputError
from twin.topology.importers.nvidia_smi import nvlink_groups
from twin.topology.importers.sketch import Sizes


def mesh(gpus: int, links: int) -> list[list[int]]:
    return [[0 if a == b else links for b in range(gpus)] for a in range(gpus)]


@pytest.mark.parametrize(
    ("gpus", "links", "each"),
    [(8, 18, 18), (4, 18, 18), (2, 12, 12), (4, 4, 12), (4, 2, 6), (16, 6, 6), (8, 8, 8), (72, 18, 18)],
)
def test_nvlinks_of_a_gpu(gpus: int, links: int, each: int) -> None:
    """Through switches a GPU has as many as it shows to every peer; in a direct mesh those to all peers together."""
    assert nvlink_groups(mesh(gpus, links)) == [(list(range(gpus)), each)]


def test_bridged_pairs_are_domains_of_their_own() -> None:
    pairs = [[0, 4, 0, 0], [4, 0, 0, 0], [0, 0, 0, 4], [0, 0, 4, 0]]
    assert nvlink_groups(pairs) == [([0, 1], 4), ([2, 3], 4)]


def test_gpus_share_the_nearest_nic() -> None:
    """Two GPUs a NIC; the bonded one is nearest to GPU0 and yet not for GPU traffic."""
    topo = found("nvidia-smi", f"n0={FIXTURES / 'topo-m.txt'}")
    assert [topo.nic_names[n] for n in topo.gpus.nic.tolist()] == ["n0/nic0", "n0/nic0", "n0/nic1", "n0/nic1"]
    assert topo.domains.links_per_gpu.tolist() == [12]


def test_nccl_order_is_that_of_devices() -> None:
    """GPU 0 is the one with dev 0, wherever it stands in the file; Blackwell NVLinks have 50GB/s."""
    topo = found("nccl", f"n1={FIXTURES / 'nccl.xml'}")
    assert [topo.nic_names[n] for n in topo.gpus.nic.tolist()] == ["n1/nic1", "n1/nic3"]
    assert topo.domains.speed.tolist() == [50e9]


def test_a_pattern_tells_of_all_hosts_it_fits() -> None:
    """Four GPUs on two rail NICs, on both hosts of the fabric, with one domain a host."""
    topo = found("air", FIXTURES / "air.json", nvidia_smi=[f"gpu-*={FIXTURES / 'topo-m.txt'}"])
    wired(topo)
    first = topo.nodes.name[0]
    assert [topo.nic_names[n] for n in topo.gpus.nic.tolist()[:4]] == [f"{first}/nic{i}" for i in (1, 1, 2, 2)]
    assert len(topo.gpus.node) == 8
    assert len(topo.domains.name) == 2
    assert not [note for note in topo.notes if note.startswith("one GPU a NIC is assumed")]


def test_gpu_model_gives_the_speed_of_nvlinks() -> None:
    topo = found("nvidia-smi", f"n0={FIXTURES / 'topo-m.txt'}", sizes=Sizes(gpu_model="b300"))
    assert topo.domains.speed.tolist() == [50e9]


def test_a_host_that_the_fabric_lacks_is_refused() -> None:
    with pytest.raises(InputError, match="there is no GPU host 'nowhere'"):
        found("air", FIXTURES / "air.json", nvidia_smi=[f"nowhere={FIXTURES / 'topo-m.txt'}"])


@pytest.mark.skipif(not SAMPLES.exists(), reason="the shared samples are not here")
def test_sample_h100_has_a_nic_a_gpu() -> None:
    topo = found("nvidia-smi", f"n0={SAMPLES / 'nvidia-smi/h100_dgx8_mlx5_columns.topo.txt'}")
    assert [topo.nic_names[n] for n in topo.gpus.nic.tolist()] == [f"n0/nic{i}" for i in range(8)]


@pytest.mark.skipif(not SAMPLES.exists(), reason="the shared samples are not here")
def test_sample_tray_does_not_tell_which_nic_is_whose() -> None:
    topo = found("nvidia-smi", f"n0={SAMPLES / 'nvidia-smi/gb200_tray_allsys.topo.txt'}")
    assert any("does not tell which NIC" in note for note in topo.notes)


@pytest.mark.skipif(not SAMPLES.exists(), reason="the shared samples are not here")
def test_infiniband_discovery_takes_host_facts_too() -> None:
    """Eight GPUs a host on the four NICs that each has in the fabric."""
    dump = SAMPLES / "infiniband-diags/ibnetdiscover/superpod-ndr.out"
    smi = SAMPLES / "nvidia-smi/h100_dgx8_mlx5_columns.topo.txt"
    before, topo = found("ibnetdiscover", dump), found("ibnetdiscover", dump, nvidia_smi=[str(smi)])
    assert len(topo.gpus.node) == 2 * len(before.gpus.node)
    assert [topo.link_name(i) for i in range(50)] == [before.link_name(i) for i in range(50)]
