"""The site file and the explicit form: what goes out comes back, and every mistake is told with its line."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest
import yaml

from twin.errors import InputError
from twin.site import load_site
from twin.topology.explicit import to_wiring
from twin.topology.presets import PRESETS, preset

MINI = """\
name: mini
planes: [A, B]
nodes:
  - {name: n0, rack: r0, gpu_model: b300, gpus: 2, nics: 2, ports_per_nic: 2, psus: 4, psu_watts: 3200}
switches:
  - {name: A-leaf-0, tier: leaf, plane: A, model: sn5600}
  - {name: B-leaf-0, tier: leaf, plane: B, ports: 4}
links:
  - {a: n0/nic0/p0, b: A-leaf-0/p0, speed: 400G}
  - {a: n0/nic0/p1, b: B-leaf-0/p0, speed: 400G}
domains:
  - {name: d0, gpus: [n0/gpu0, n0/gpu1], switches: [d0/nvsw0], links_per_gpu: 18, speed: 50GB/s}
racks:
  - {name: r0, nodes: [n0], feeds: [{name: r0/feedA, watts: 33000}, {name: r0/feedB, watts: 33000}], redundancy: N+N}
jobs:
  - {name: train-7, nodes: [n0], collective: allreduce}
"""


def problems(tmp_path: Path, text: str) -> list[str]:
    path = tmp_path / "site.yaml"
    path.write_text(text)
    with pytest.raises(InputError) as raised:
        load_site(path)
    return [p.replace(str(tmp_path) + "/", "") for p in raised.value.problems]


def test_the_explicit_form_of_the_design_is_read(tmp_path: Path) -> None:
    path = tmp_path / "mini.yaml"
    path.write_text(MINI)
    topo = load_site(path).topology
    assert topo.gpu_names == ("n0/gpu0", "n0/gpu1")
    assert topo.link_name(1) == "n0/nic0/p1--B-leaf-0/p0"
    assert topo.ports.plane[topo.rows("port")["n0/nic0/p1"]] == 1
    assert topo.nvlink_names[-1] == "n0/gpu1/nvlink17"
    assert topo.domains.speed.tolist() == [50e9]
    assert topo.feeds.name == ("r0/feedA", "r0/feedB")
    assert topo.psu_names[3] == "n0/psu3"
    assert topo.jobs == (("train-7", (0,), "allreduce"),)


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("form", ["yaml", "json"])
def test_every_preset_comes_back_from_its_own_export(tmp_path: Path, name: str, form: str) -> None:
    before = preset(name)
    path = tmp_path / f"wiring.{form}"
    wiring = to_wiring(before)
    path.write_bytes(
        msgspec.json.encode(wiring) if form == "json" else yaml.dump(wiring, Dumper=yaml.CSafeDumper).encode()
    )
    after = load_site(path).topology
    assert to_wiring(after) == wiring
    assert after.port_names == before.port_names
    for table in ("gpus", "nics", "links", "ports", "switches"):
        for field in getattr(before, table).__slots__:
            a, b = getattr(getattr(before, table), field), getattr(getattr(after, table), field)
            assert np.array_equal(a, b), (table, field)


def test_every_mistake_is_told_in_one_run_with_file_line_value_and_expectation(tmp_path: Path) -> None:
    text = MINI.replace("plane: B, ports: 4", "plane: C, ports: 4").replace("b: B-leaf-0/p0", "b: A-leaf-0/p0")
    text = text.replace("n0/gpu1]", "n0/gpu9]").replace("nodes: [n0], collective", "nodes: [n7], collective")
    assert problems(tmp_path, text) == [
        "site.yaml:7: switches[1].plane: 'C' is not a plane; expected one of: A, B",
        "site.yaml:10: links[1].b: port 'A-leaf-0/p0' is used twice, first on line 9",
        "site.yaml:12: domains[0].gpus[1]: there is no GPU 'n0/gpu9'; expected NODE/gpuN",
        "site.yaml:16: jobs[0].nodes[0]: there is no node 'n7'",
    ]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("n0/nic0/p1,", "n0/nic0/p5,", "site.yaml:10: links[1].a: 'n0/nic0/p5' does not exist: ports of its NICs"),
        ("n0/nic0/p1,", "n0/nic9/p1,", "site.yaml:10: links[1].a: 'n0/nic9/p1': node n0 has no nic9"),
        ("n0/nic0/p1,", "n9/nic0/p1,", "site.yaml:10: links[1].a: there is no node 'n9'"),
        ("n0/nic0/p1,", "n0/nic0,", "site.yaml:10: links[1].a: 'n0/nic0' is not a port"),
        (
            "b: B-leaf-0/p0",
            "b: B-leaf-0/p7",
            "site.yaml:10: links[1].b: 'B-leaf-0/p7' does not exist: B-leaf-0 has 4",
        ),
        ("b: B-leaf-0/p0", "b: C-leaf-0/p0", "site.yaml:10: links[1].b: 'C-leaf-0/p0': there is no switch"),
        (
            "speed: 400G}\n  - {a: n0/nic0/p1",
            "speed: fast}\n  - {a: n0/nic0/p1",
            "site.yaml:9: links[0].speed: 'fast'",
        ),
        ("tier: leaf, plane: A", "tier: lief, plane: A", "site.yaml:6: switches[0].tier: 'lief': expected 'leaf'"),
        ("gpus: 2,", "gpus: many,", "site.yaml:4: nodes[0].gpus: 'many': expected a integer"),
        ("name: mini", "nam: mini", "site.yaml: 'name' is missing"),
        ("name: n0, rack", "name: 'n 0', rack", "site.yaml:4: nodes[0].name: 'n 0' is not a name"),
        ("nodes:\n", "nodes:\n  bad\n", "site.yaml:"),
    ],
)
def test_one_mistake_is_told_with_its_place(tmp_path: Path, old: str, new: str, expected: str) -> None:
    assert old in MINI
    found = problems(tmp_path, MINI.replace(old, new, 1))
    plain = [p.replace("site.yaml:1: 'name'", "site.yaml: 'name'") for p in found]
    assert any(p.startswith(expected) for p in plain), found


def test_a_malformed_entry_does_not_hide_mistakes_in_the_others(tmp_path: Path) -> None:
    text = MINI.replace("name: B-leaf-0, tier: leaf", "name: B-leaf-0, tier: lief").replace(
        "n0/nic0/p0,", "n0/nic0/p8,"
    )
    found = problems(tmp_path, text)
    assert len(found) == 2 and found[0].startswith("site.yaml:7:") and found[1].startswith("site.yaml:9:"), found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "site.yaml:1: expected a mapping"),
        ("- 1\n", "site.yaml:1: expected a mapping"),
        (
            "name: x\ntopology: {preset: b300-superpod-ethrnet}\n",
            "site.yaml:2: topology.preset: 'b300-superpod-ethrnet'",
        ),
        (
            "topology: {preset: rtx-pro-6000, servers: 0}\n",
            "site.yaml:1: topology.preset: rtx-pro-6000: servers is 0",
        ),
        ("topology: {file: nowhere.yaml}\n", "site.yaml:1: topology.file: 'nowhere.yaml': no such file"),
        ("topology: {}\n", "site.yaml:1: topology: expected one of preset, file or discover"),
        ("topology: {preset: rtx-pro-6000}\nrules: {foo: 1}\n", "site.yaml:2: rules: rules: there is no rule 'foo'"),
        ("topology: {preset: rtx-pro-6000}\ncollectors:\n  - snmpp: {}\n", "site.yaml:3: collectors[0]: 'snmpp'"),
        ("topology: {preset: rtx-pro-6000}\nplanes: {Q: {}}\n", "site.yaml:2: planes.Q: 'Q' is not a plane"),
        ("a: [1,\nb: 2\n", "site.yaml:3: not YAML"),
    ],
)
def test_a_bad_site_file_is_refused_with_its_line(tmp_path: Path, text: str, expected: str) -> None:
    found = problems(tmp_path, text)
    assert any(p.startswith(expected) for p in found), found


def test_what_is_not_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "site.yaml"
    path.write_bytes(b"name: x\n\xff\xfe\x00")
    with pytest.raises(InputError, match=r"site\.yaml:2: not UTF-8"):
        load_site(path)


def test_a_site_names_its_fabric_collectors_and_rules(tmp_path: Path) -> None:
    path = tmp_path / "site.yaml"
    path.write_text(
        "name: prod\ntopology: {preset: b300-superpod-xdr, scalable_units: 2}\n"
        "collectors:\n  - infiniband: {every: 500ms}\n  - host:\nrules: {link_debounce: 2}\n"
    )
    site = load_site(path)
    assert (site.name, len(site.topology.gpus.node), site.rules.link_debounce) == ("prod", 1152, 2)
    assert [c.every for c in site.collectors] == [0.5, 1.0]


@pytest.mark.parametrize(
    "text",
    [
        "a: &a [x, x, x, x, x, x, x, x]\n"
        + "".join(f"{b}: &{b} [{', '.join(['*' + a] * 8)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)),
        "? [a]: b\n",
        "name: !!bool x\n",
        "[" * 500,
        "a: " + "{b: " * 500,
    ],
)  # fmt: skip
def test_yaml_that_is_an_attack_or_nonsense_is_refused_at_once(tmp_path: Path, text: str) -> None:
    assert problems(tmp_path, text)


def test_a_link_without_a_speed_is_of_unknown_speed_and_comes_back_so(tmp_path: Path) -> None:
    path = tmp_path / "mini.yaml"
    path.write_text(MINI.replace("b: B-leaf-0/p0, speed: 400G", "b: B-leaf-0/p0"))
    topo = load_site(path).topology
    assert np.isnan(topo.links.speed[1])
    assert "speed" not in to_wiring(topo)["links"][1]
