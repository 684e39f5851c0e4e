from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from nvml_rig import eight, library, nvml, rows

from collectors.base import CollectorError
from collectors.build import build, build_own, this_host
from collectors.nvml import nvml_topology, own_gpus
from collectors.nvml.discovery import model_of
from tests.rigs.nvml.rig import GEN5, LOST, Standin, gpu
from twin.errors import InputError
from twin.site import load_site
from twin.twin import Twin

__all__ = ["library", "nvml"]  # fixtures


def test_an_hgx_board_is_one_domain_of_eight(nvml: Standin) -> None:
    """There a completed fabric without a cluster UUID is normal."""
    nvml.write(eight())
    found = nvml_topology("n0")
    assert (found.model, found.driver, len(found.gpus)) == ("h100", "580.173.02", 8)
    assert found.groups() == [("nvl-n0", list(range(8)), 18, 25e9)]
    link = found.gpus[2].links[5]
    assert (link.active, link.speed, link.generation, link.far) == (True, 26562e6, 4, "switch")
    assert link.far_pci == "00000008:00:05.0"
    topo = found.topology()
    assert len(topo.nvlink_names) == 144
    assert nvml.open == 0


def test_a_tray_of_a_rack_says_its_domain_and_place(nvml: Standin) -> None:
    nvml.write([gpu(i, gen=GEN5) for i in range(4)])
    found = nvml_topology("n0")
    cluster = "01234567-89ab-cdef-0000-000000000001"
    assert {g.domain for g in found.gpus} == {(cluster, 2)}
    assert [(n, m, k) for n, m, k, _ in found.groups()] == [(f"nvl-{cluster}-2", [0, 1, 2, 3], 18)]
    places = [g.place for g in found.gpus if g.place is not None]
    assert [(p.chassis, p.slot, p.tray, p.host) for p in places] == [("1820000000001", 14, 4, 1)] * 4
    assert [p.module for p in places] == [2, 1, 4, 3], "the index of a GPU is not its module"
    assert list(found.modules().values()) == [["n0/gpu0", "n0/gpu1"], ["n0/gpu2", "n0/gpu3"]]
    topology = found.topology()
    assert topology.racks.name == ("1820000000001",)
    assert topology.labels["n0/gpu3"].endswith(" 00000000:13:00.0 slot 14 tray 4")
    assert (found.facts().rack, found.facts().model) == ("1820000000001", "gb200")


def test_a_slot_or_tray_of_zero_is_a_number(nvml: Standin) -> None:
    """Declared as characters, as the binding does, a zero byte reads as an empty text."""
    nvml.write([gpu(0, gen=GEN5).say("put platform 0 0 0 1 1", "text chassis AB\udcff")])
    place = nvml_topology("n0").gpus[0].place
    assert place is not None
    assert (place.chassis, place.slot, place.tray, place.host) == ("AB\ufffd", 0, 0, 0)


def test_bridged_gpus_know_each_other_and_a_lone_one_is_in_no_domain(nvml: Standin) -> None:
    two = [gpu(i, links=2, name="NVIDIA A100 80GB PCIe") for i in range(3)]
    two[0].say("remote 0 0 00000000:11:00.0", "remote 1 0 00000000:11:00.0", "field 146 0 uint 1")
    two[1].say("remote 0 0 00000000:10:00.0", "remote 1 0 00000000:10:00.0")
    two[2].say("field 165 * uint 0", "field 164 * uint 0")
    nvml.write(two)
    found = nvml_topology("n0")
    assert (found.gpus[0].links[0].far_gpu, found.gpus[0].links[0].far_link) == ("n0/gpu1", 1)
    assert found.groups() == [("nvl-n0", [0, 1], 2, 26562e6)]
    assert found.model == "unknown"


def test_a_lost_gpu_is_counted_and_told(nvml: Standin) -> None:
    machine = eight()
    machine[3].say(f"error * {LOST}")
    nvml.write(machine)
    found = nvml_topology("n0")
    assert found.gpus[3].problem == "the GPU is lost: it fell off the bus"
    assert found.notes() == ["nvml: n0/gpu3: the GPU is lost: it fell off the bus"]
    assert len(found.topology().gpu_names) == 8


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("NVIDIA H100 80GB HBM3", "h100"), ("NVIDIA GB200", "gb200"), ("NVIDIA B200", "b200"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "rtx-pro-6000"), ("Tesla T4", "unknown"),
    ],
)  # fmt: skip
def test_product_names_lead_to_the_catalogue(name: str, key: str) -> None:
    assert model_of(name) == key


def test_without_a_driver_discovery_says_so_and_watching_goes_on_without_gpus(nvml: Standin) -> None:
    nvml.write([], "error nvmlInit 9")
    with pytest.raises(CollectorError, match="driver is not loaded"):
        nvml_topology("n0")
    assert own_gpus("n0") is None


def test_a_driver_that_hangs_does_not_hold_up_the_start(nvml: Standin) -> None:
    nvml.write([gpu(0)], "delay nvmlInit 60000")
    assert own_gpus("n0", seconds=0.1) is None


async def test_watching_without_a_site_has_this_host_s_gpus(nvml: Standin, tmp_path: Path) -> None:
    nvml.write(eight())
    topology, collectors = await asyncio.to_thread(build_own, tmp_path)
    assert [c.name for c in collectors] == [f"{this_host()}:nvml"]
    assert len(topology.gpu_names) == 8
    assert len(topology.nvlink_names) == 144
    sample = await collectors[0].collect()
    assert {name for frame in sample.frames for name in frame.names} == {*topology.gpu_names, *topology.nvlink_names}
    twin = Twin(topology)
    twin.ingest_all(sample.frames)
    twin.finish()
    await collectors[0].close()


SITE = """
topology:
  name: mini
  planes: []
  nodes: [{name: n0, gpu_model: h100, gpus: 2, nics: 0, ports_per_nic: 1}]
  domains: [{name: d0, gpus: [n0/gpu0, n0/gpu1], switches: [], links_per_gpu: 18, speed: 25GB/s}]
collectors:
  - nvml: {name: NAME, every: 2s, gpus: {GPUS}}
"""


def site(folder: Path, name: str = "n0", gpus: str = "") -> Path:
    path = folder / "site.yaml"
    path.write_text(SITE.replace("NAME", name).replace("{GPUS}", "{" + gpus + "}"))
    return path


async def test_a_site_gives_the_design_to_the_collector(nvml: Standin, tmp_path: Path) -> None:
    nvml.write([gpu(0).say("field 165 17 uint 0"), gpu(1)])
    (watched,) = build(load_site(site(tmp_path)))
    assert (watched.name, watched.interval) == ("n0:nvml", 2)
    values = rows(await watched.collect())
    assert values["n0/gpu0/nvlink17"]["up"] == 0, "designed, so its absence is a fault"
    await watched.close()


def test_a_site_that_polls_the_driver_too_fast_is_refused(tmp_path: Path) -> None:
    path = site(tmp_path)
    path.write_text(path.read_text().replace("2s", "200ms"))
    with pytest.raises(InputError, match="expected 1 s or more"):
        build(load_site(path))


@pytest.mark.parametrize(
    ("name", "gpus", "text"),
    [("n9", "", "'n9' has no GPUs in the wiring"), ("n0", '"0000:10:00.0": n0/gpu7', "'n0/gpu7' is no GPU of n0")],
)
def test_a_site_that_does_not_fit_is_refused(tmp_path: Path, name: str, gpus: str, text: str) -> None:
    with pytest.raises(InputError, match=text):
        build(load_site(site(tmp_path, name, gpus)))
