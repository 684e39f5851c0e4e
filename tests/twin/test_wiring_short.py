"""Short entries of the wiring file: what they stand for, what a fabric becomes in them, how mistakes are told."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from twin.errors import InputError
from twin.topology.builder import Builder
from twin.topology.explicit import to_wiring
from twin.topology.importers.combine import Request, discover
from twin.topology.importers.sketch import Sizes
from twin.topology.model import Topology
from twin.topology.presets import PRESETS, preset
from twin.topology.short.pattern import Walk, parse, texts
from twin.topology.short.text import short_yaml
from twin.topology.short.write import to_short
from twin.topology.wiring import read_wiring
from twin.yamlfile import Document

FIXTURES = Path(__file__).parents[1] / "fixtures" / "topology"
SAMPLES = Path(__file__).parents[3] / "shared" / "samples"
FOUND = {
    "air": ("air.json",), "spectrum-x": ("spectrum_x.json",), "netq": ("netq.json",), "lldp": ("lldp.json",),
    "slurm": ("topology.conf", "topology.yaml"), "topograph": ("topograph.yaml", "topograph-h100.yaml"),
    "containerlab": ("lab.clab.yml",), "nvidia-smi": ("topo-m.txt",), "nccl": ("nccl.xml",),
}  # fmt: skip

MINI = """\
name: mini
planes: [A, B]
nodes:
  - {name: "n[i=000-007x4]", rack: "r[i=0-1]", gpu_model: b300, gpus: 4, nics: 4, ports_per_nic: 2}
switches:
  - {name: "A-leaf-[0-3]", tier: leaf, plane: A, ports: 16}
  - {name: "B-leaf-[0-3]", tier: leaf, plane: B, ports: 16}
  - {name: "A-spine-[0-1]", tier: spine, plane: A, ports: 64}
links:
  - {a: "n[i=000-007]/nic[0-3]/p0", b: "A-leaf-[0-3]/p[i=0-7]", speed: 400G, cable: nic}
  - {a: "n[i=000-007]/nic[0-3]/p1", b: "B-leaf-[0-3]/p[i=0-7]", speed: 400G, cable: nic}
  - {a: "A-leaf-[i=0-3]/p[8-15]", b: "A-spine-[0-1]/p[i=0-15x4]", speed: 400G, cable: 2}
domains:
  - {name: "n[000-007]", gpus: 4, switches: "{name}/nvsw[0-1]", links_per_gpu: 18, speed: 50GB/s}
racks:
  - {name: "r[0-1]", feeds: [{name: "{name}/feed[0-1]", watts: 33000}], redundancy: N+N}
jobs:
  - {name: train, nodes: "n[000-002,005]"}
"""


def read(text: str) -> Topology:
    return read_wiring(Document("w.yaml", text))


def problems(text: str) -> list[str]:
    with pytest.raises(InputError) as raised:
        read(text)
    return raised.value.problems


def long_form(topo: Topology) -> Topology:
    return read(yaml.dump(to_wiring(topo), Dumper=yaml.CSafeDumper, sort_keys=False))


def differences(one: Any, other: Any, name: str = "") -> list[str]:
    """Fields of two topologies, or of two tables, that are not alike."""
    if isinstance(one, np.ndarray):
        return [] if np.array_equal(one, other, equal_nan=one.dtype.kind == "f") else [name]
    if is_dataclass(one):
        names = [f.name for f in fields(one) if f.name != "notes"]
        return [d for n in names for d in differences(getattr(one, n), getattr(other, n), f"{name}.{n}")]
    if isinstance(one, tuple) and one and isinstance(one[0], np.ndarray):
        alike = len(one) == len(other) and not any(differences(a, b, name) for a, b in zip(one, other, strict=True))
        return [] if alike else [name]
    return [] if one == other else [name]


def of_range(text: str) -> list[str]:
    walk = Walk(parse(text))
    return texts(walk.lead, walk.picks(walk.lead), walk.count)


# --- ranges ---


def test_a_range_is_read_as_hostlists_are() -> None:
    assert of_range("n[08-10,012]") == ["n08", "n09", "n10", "n012"]
    assert of_range("r[0-1]n[1-2]") == ["r0n1", "r0n2", "r1n1", "r1n2"]
    assert of_range("a[5]%d") == ["a5%d"]


def test_a_letter_ties_ranges_and_a_run_takes_several_values_in_a_step() -> None:
    walk = Walk(parse("n[i=0-3x2]"))
    along = parse("r[i=7-8]")
    assert texts(along, walk.picks(along), walk.count) == ["r7", "r7", "r8", "r8"]
    assert walk.lists(parse("{name}/gpu[0-1]"))[3] == ["{name}/gpu0", "{name}/gpu1"]
    assert of_range("r[i=0-1]-n[i=0-3x2]") == ["r0-n0", "r0-n1", "r1-n2", "r1-n3"]


def test_short_entries_stand_for_what_the_long_form_says() -> None:
    topo = read(MINI)
    wiring = to_wiring(topo)
    assert [n["rack"] for n in wiring["nodes"]] == ["r0"] * 4 + ["r1"] * 4
    links = {link["a"]: link for link in wiring["links"]}
    assert links["n005/nic2/p0"]["b"] == "A-leaf-2/p5"
    assert links["n005/nic2/p0"]["cable"] == links["n005/nic2/p1"]["cable"] != links["n005/nic3/p1"]["cable"]
    assert links["A-leaf-3/p13"]["b"] == "A-spine-1/p13"
    assert links["A-leaf-3/p12"]["cable"] == links["A-leaf-3/p13"]["cable"] != links["A-leaf-3/p14"]["cable"]
    assert wiring["domains"][7]["gpus"] == [f"n007/gpu{i}" for i in range(4)]
    assert wiring["domains"][7]["switches"] == ["n007/nvsw0", "n007/nvsw1"]
    assert [f["name"] for f in wiring["racks"][1]["feeds"]] == ["r1/feed0", "r1/feed1"]
    assert wiring["jobs"][0]["nodes"] == ["n000", "n001", "n002", "n005"]
    assert topo.switches.rail.tolist() == [0, 1, 2, 3, 0, 1, 2, 3, -1, -1]


def test_a_spine_may_come_first_in_an_entry() -> None:
    swapped = MINI.replace(
        '{a: "A-leaf-[i=0-3]/p[8-15]", b: "A-spine-[0-1]/p[i=0-15x4]", speed: 400G, cable: 2}',
        '{a: "A-spine-[0-1]/p[i=0-15x4]", b: "A-leaf-[i=0-3]/p[j=8-15x4]", speed: 400G}',
    ).replace("[0-1]/p[i=0-15x4]", "[j=0-1]/p[i=0-15x4]")
    links = {link["a"]: link["b"] for link in to_wiring(read(swapped))["links"]}
    assert links["A-leaf-3/p13"] == "A-spine-1/p13" and links["A-leaf-2/p8"] == "A-spine-0/p8"


# --- the way back ---


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_comes_back_from_few_lines(name: str) -> None:
    before = preset(name)
    text = short_yaml(before, ["a note"])
    assert differences(before, read(text)) == []
    assert len(text.splitlines()) < 80
    assert text.splitlines()[1] == "# - a note"


@pytest.mark.parametrize(
    ("name", "size"),
    [("hgx-b200", {"nodes": 33}), ("rtx-pro-6000", {"servers": 37}), ("dgx-b200-ndr", {"scalable_units": 16}),
     ("meta-24k-roce", {"pods": 2}), ("gb300-nvl72-ethernet", {"racks": 4}),
     ("b300-superpod-ethernet", {"scalable_units": 2, "planes": 4})],
)  # fmt: skip
def test_other_sizes_come_back_as_from_the_long_form(name: str, size: dict[str, int]) -> None:
    before = preset(name, **size)
    after = read(short_yaml(before))
    assert differences(long_form(before), after) == []


def _dumps() -> list[Path]:
    return sorted((SAMPLES / "infiniband-diags" / "ibnetdiscover").glob("*.out")) if SAMPLES.exists() else []


@pytest.mark.parametrize(("option", "file"), [(o, f) for o, files in FOUND.items() for f in files])
def test_what_was_discovered_comes_back(option: str, file: str) -> None:
    topo = discover(Request({option: [str(FIXTURES / file)]}, Sizes()))
    assert differences(long_form(topo), read(short_yaml(topo, topo.notes))) == []


@pytest.mark.parametrize("dump", _dumps(), ids=lambda path: path.name)
def test_a_real_infiniband_fabric_comes_back(dump: Path) -> None:
    topo = discover(Request({"ibnetdiscover": [str(dump)]}, Sizes()))
    assert differences(long_form(topo), read(short_yaml(topo, topo.notes))) == []


def test_a_fabric_with_names_in_brackets_is_written_in_the_long_form() -> None:
    topo = Builder("odd", ())
    a, b = (topo.node(f"n[{i}-9]", gpus=1, nics=1) for i in range(2))
    topo.direct_link(topo.nic_port(a, 0, 0), topo.nic_port(b, 0, 0), 4e11)
    made = topo.build()
    assert to_short(made) == to_wiring(made) and to_wiring(made)["ranges"] is False
    assert read(short_yaml(made)).nodes.name == ("n[0-9]", "n[1-9]")


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_irregular_fabrics_come_back(data: st.DataObject) -> None:
    """Nodes and leaves with odd names and sizes, links in any order, cables shared by any of them."""
    draw = data.draw
    b = Builder("odd", ("A", "B"))
    names = draw(st.lists(st.from_regex(r"\A[ab][0-9]{1,2}(-[0-9]{1,2})?\Z"), min_size=2, max_size=8, unique=True))
    racks = [b.rack(f"r{i}") for i in range(draw(st.integers(0, 2)))]
    free = []
    for name in names:
        row = b.node(
            name, gpus=draw(st.integers(0, 2)), nics=draw(st.sampled_from([1, 2, [0, 3]])),
            ports_per_nic=draw(st.integers(1, 2)), rack=draw(st.sampled_from([-1, *racks])),
        )  # fmt: skip
        node = b.nodes[row]
        free += [b.nic_port(row, k, p) for k in range(len(node.nics)) for p in range(node.ports_per_nic)]
        if draw(st.booleans()):
            b.labels[name] = draw(st.sampled_from(["x[1-2]", f"host-{name}", "same"]))
    leaves = [b.switch(f"leaf{i}", i % 2, i % 2) for i in range(draw(st.integers(1, 4)))]
    cables = [-1, *(b.cable() for _ in range(2))]
    if draw(st.booleans()):
        free = draw(st.permutations(free))
    per_leaf = draw(st.integers(1, 3))
    for k, port in enumerate(free):
        leaf = leaves[k // per_leaf % len(leaves)]
        b.host_link(
            port, leaf, k, draw(st.sampled_from([4e11, 4e11, 2e11, float("nan")])), draw(st.sampled_from(cables))
        )
    for k in range(draw(st.integers(0, 4))):
        if len(leaves) > 1:
            b.switch_link(leaves[0], 100 + k, leaves[1], 100 + k, 4e11, cables[k // 2 + 1] if k < 4 else -1)
    gpus = sum(n.gpus for n in b.nodes)
    cut = draw(st.integers(0, gpus))
    for k, rows in enumerate((range(cut), range(cut, gpus))):
        b.domain(draw(st.sampled_from([f"d{k}", names[k]])), rows, [f"d{k}/sw{i}" for i in range(k)], 18, 5e10)
    b.jobs.append(("j", tuple(draw(st.lists(st.integers(0, len(names) - 1), max_size=4))), "allreduce"))
    topo = b.build()
    assert differences(long_form(topo), read(short_yaml(topo))) == []


def test_links_with_a_cable_of_their_own_sort_stay_single() -> None:
    topo = preset("hgx-h100")
    mixed = replace(topo, links=replace(topo.links, cable=np.arange(len(topo.links.a), dtype=np.int32) // 7 * 7))
    assert differences(long_form(mixed), read(short_yaml(mixed))) == []


# --- mistakes ---


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("A-leaf-[0-3]/p[i=0-7]", "A-leaf-[0-3]/p[i=0-6]",
         "w.yaml:10: links[0].b: 'A-leaf-[0-3]/p[i=0-6]': i is 7 long here and 8 long in 'n[i=000-007]/nic[0-3]/p0'"),
        ("A-leaf-[0-3]/p[i=0-7]", "A-leaf-[0-2]/p[i=0-7]",
         "w.yaml:10: links[0].b: 'A-leaf-[0-2]/p[i=0-7]' stands for 3, 'n[i=000-007]/nic[0-3]/p0' for 4 "
         "a step of the letters"),
        ("A-leaf-[0-3]/p[i=0-7]", "A-leaf-[0-3]/p[k=0-7]",
         "w.yaml:10: links[0].b: 'A-leaf-[0-3]/p[k=0-7]': 'n[i=000-007]/nic[0-3]/p0' has no range with the letter k"),
        ("A-leaf-[0-3]/p[i=0-7]", "A-leaf-[0-3]/p3",
         "w.yaml:10: links[0].b: 'A-leaf-[0-3]/p3' stands for 4 ports, 'n[i=000-007]/nic[0-3]/p0' for 32"),
        ("n[i=000-007]/nic[0-3]/p0", "n[i=000-007]/nic[0-3]/p5",
         "w.yaml:10: links[0].a: 'n000/nic0/p5' does not exist: ports of its NICs go from p0 to p1 (and 31 more)"),
        ("n[i=000-007]/nic[0-3]/p0", "n[i=000-007]/nic[2-5]/p0",
         "w.yaml:10: links[0].a: 'n000/nic4/p0': node n000 has no nic4; it has 4 NICs (and 15 more)"),
        ("n[i=000-007]/nic[0-3]/p0", "n[i=004-011]/nic[0-3]/p0",
         "w.yaml:10: links[0].a: 'n[i=004-011]/nic[0-3]/p0': there is no node 'n008' (and 3 more nodes)"),
        ("n[i=000-007]/nic[0-3]/p0", "n[i=000-007]/nic[0-3]",
         "w.yaml:10: links[0].a: 'n[i=000-007]/nic[0-3]' is not a port; expected NODE/nicN/pN or SWITCH/pN"),
        ("A-spine-[0-1]/p[i=0-15x4]", "A-spine-[0-1]/p[i=60-75x4]",
         "w.yaml:12: links[2].b: 'A-spine-0/p65' does not exist: A-spine-0 has 64 ports (and 21 more)"),
        ("A-spine-[0-1]/p[i=0-15x4]", "A-spine-[7-8]/p[i=0-15x4]",
         "w.yaml:12: links[2].b: 'A-spine-[7-8]/p[i=0-15x4]': there is no switch 'A-spine-7' (and 1 more switches)"),
        ("A-leaf-[i=0-3]/p[8-15]", "A-leaf-[i=0-3]/p[7-14]",
         "w.yaml:12: links[2].a: port 'A-leaf-0/p7' is used twice, first on line 10 (and 3 more)"),
        ("speed: 400G, cable: 2", "speed: 400G, cable: 0",
         "w.yaml:12: links[2].cable: 0 is not a cable; expected a name, nic, or how many links of a switch "
         "share one"),
        ("p[i=0-7]\", speed: 400G, cable: nic", "p[i=0-7]\", speed: 400G, cable: 4",
         "w.yaml:10: links[0].cable: 4: expected nic, or a name that these links share, where a is a NIC"),
        ('"n[i=000-007x4]"', '"n[i=007-000x4]"',
         "w.yaml:4: nodes[0].name: 'n[i=007-000x4]': 007-000 goes down; a range goes from low to high"),
        ('"n[i=000-007x4]"', '"n[i=000-007x3]"',
         "w.yaml:4: nodes[0].name: 'n[i=000-007x3]': [i=000-007x3] is 8 long, which runs of 3 do not divide"),
        ('"n[i=000-007x4]"', '"n[000-007x4]"',
         "w.yaml:4: nodes[0].name: 'n[000-007x4]': runs need a letter, as in [i=000-007x4]"),
        ('"n[i=000-007x4]"', '"n[i=000-00g]"',
         "w.yaml:4: nodes[0].name: 'n[i=000-00g]': [i=000-00g] is not a range; expected for example [00-07], "
         "[0-3,8] or, tied to another range by a letter, [i=0-63x4]"),
        ('rack: "r[i=0-1]"', 'rack: "r[0-1]"',
         "w.yaml:4: nodes[0].rack: 'r[0-1]' stands for 2, 'n[i=000-007x4]' for 4 a step of the letters"),
        ('"n[000-007]", gpus: 4', '"n[000-007]", gpus: 6',
         "w.yaml:14: domains[0].gpus[0]: there is no GPU 'n000/gpu4'; expected NODE/gpuN (and 15 more)"),
        ("n[000-002,005]", "n[006-009]", "w.yaml:18: jobs[0].nodes[0]: there is no node 'n008' (and 1 more)"),
        ("A-leaf-[0-3]\", tier", "n[000-003]\", tier",
         "w.yaml:6: switches[0].name: 'n000' is used twice (and 3 more)"),
        ("A-leaf-[0-3]\", tier: leaf, plane: A", "A-leaf-[0-3]\", tier: leaf, plane: C",
         "w.yaml:6: switches[0].plane: 'C' is not a plane; expected one of: A, B (and 3 more)"),
    ],
)  # fmt: skip
def test_a_mistake_in_a_short_entry_is_told_once(old: str, new: str, expected: str) -> None:
    assert MINI.count(old) >= 1
    assert expected in problems(MINI.replace(old, new, 1))


def test_what_a_malformed_short_entry_names_is_not_missed_elsewhere() -> None:
    found = problems(MINI.replace('"A-leaf-[0-3]", tier: leaf', '"A-leaf-[0-3]", tier: lief'))
    assert len(found) == 1 and found[0].startswith("w.yaml:6: switches[0].tier: 'lief'")


@pytest.mark.parametrize(
    "name", ["n[0-99999999]", "n[0-1999]-[0-1999]", "n[0-9", "n0-9]", "n[[0-9]]", "n[]", "n[i=0-9"]
)
def test_a_range_that_is_too_long_or_nonsense_is_refused(name: str) -> None:
    text = f"name: x\nnodes:\n  - {{name: '{name}', gpus: 1}}\n"
    assert problems(text)[0].startswith("w.yaml:3: nodes[0].name: ")


def test_an_entry_that_would_fill_the_memory_is_refused() -> None:
    text = "name: x\nnodes:\n  - {name: 'n[0-99999]', gpus: 1000}\n"
    assert "is more than 10,000,000" in problems(text)[0]
