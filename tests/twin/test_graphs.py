"""Drawings and Slurm trees: what is drawn is all there, once, and small enough to read."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.twin.small_fabric import read, small_fabric, unplug
from twin.errors import InputError
from twin.topology.graphs import to_dot, to_mermaid
from twin.topology.hostnames import compress
from twin.topology.importers.hostlist import Hostlists
from twin.topology.presets import PRESETS, preset
from twin.topology.quotient import MOST_BOXES, MOST_EDGES, draw
from twin.topology.slurmtree import to_slurm

LARGE = {"dgx-b200-ndr": {"scalable_units": 16}, "meta-24k-roce": {"pods": 3}}
EVERY = [(name, {}) for name in PRESETS] + list(LARGE.items())


@pytest.mark.parametrize(("name", "size"), EVERY)
def test_a_drawing_has_every_device_and_every_link_and_can_be_read(name: str, size: dict[str, int]) -> None:
    topo = preset(name, **size)
    drawing = draw(topo)
    drawn = [device for box in drawing.boxes for device in box.names]
    assert sorted(drawn) == sorted((*topo.nodes.name, *topo.switches.name))
    assert sum(edge.links for edge in drawing.edges) == len(topo.links.a)
    assert len(drawing.boxes) <= MOST_BOXES and len(drawing.edges) <= MOST_EDGES


@pytest.mark.parametrize(("name", "size"), EVERY)
def test_dot_is_balanced_and_declares_what_its_edges_join(name: str, size: dict[str, int]) -> None:
    text = to_dot(preset(name, **size))
    bare = re.sub(r'"(?:\\.|[^"\\])*"', '""', text)  # brackets in labels are text
    assert (
        bare.count("{") == bare.count("}")
        and bare.count("[") == bare.count("]")
        and '"' not in bare.replace('""', "")
    )
    assert bare.startswith('graph "" {') and bare.endswith("}\n")
    declared = re.findall(r"^\s*(d\d+) \[label=", bare, re.MULTILINE)
    edges = re.findall(r"^\s*(d\d+) -- (d\d+)", bare, re.MULTILINE)
    assert len(declared) == len(set(declared)) and edges
    assert {end for edge in edges for end in edge} <= set(declared)


@pytest.mark.parametrize(("name", "size"), EVERY)
def test_mermaid_declares_what_its_edges_join(name: str, size: dict[str, int]) -> None:
    text = to_mermaid(preset(name, **size))
    declared = re.findall(r'^\s*(d\d+)\["[^"]*"\]$', text, re.MULTILINE)
    edges = re.findall(r'^\s*(d\d+) ---(?:\|"[^"]*"\|)? ?(d\d+)$', text, re.MULTILINE)
    assert text.startswith("flowchart TB\n") and edges
    assert {end for edge in edges for end in edge} <= set(declared)
    assert text.count("subgraph") == len(re.findall(r"^\s*end$", text, re.MULTILINE))


def test_names_of_any_kind_do_not_break_a_drawing() -> None:
    wiring = small_fabric()
    wiring["name"] = 'a "b" \\'
    wiring["switches"][0]["model"] = 'x"]|y<'
    topo = read(wiring)
    assert 'graph "a \\"b\\" \\\\" {' in to_dot(topo)
    assert 'x"' not in to_mermaid(topo) and "x#34;]#124;y#60;" in to_mermaid(topo)


def test_a_few_hosts_are_drawn_one_by_one_and_parallel_links_with_their_number() -> None:
    text = to_dot(read(small_fabric()))
    assert text.count("host, 2 GPUs") == 6 and text.count('label="2 × 800G"') == 8


# --- Slurm ---


def tree(text: str) -> dict[str, tuple[list[str], list[str]]]:
    """Switch -> (nodes, switches below)."""
    out = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            match = re.fullmatch(r"SwitchName=(\S+) (Nodes|Switches)=(\S+)", line)
            assert match is not None, line
            names = Hostlists().expand(match[3])
            out[match[1]] = (names, []) if match[2] == "Nodes" else ([], names)
    return out


@pytest.mark.parametrize(("name", "size"), [case for case in EVERY if case[0] != "dgx-station-pair"])
def test_slurm_has_every_gpu_host_once_below_one_root(name: str, size: dict[str, int]) -> None:
    topo = preset(name, **size)
    switches = tree(to_slurm(topo))
    nodes = [n for hosts, _ in switches.values() for n in hosts]
    assert sorted(nodes) == sorted(topo.nodes.name)
    below = [s for _, children in switches.values() for s in children]
    assert len(below) == len(set(below)) and len(set(switches) - set(below)) == 1 and set(below) <= set(switches)
    assert set(switches) <= set(topo.switches.name)


def test_slurm_of_a_fat_tree_is_its_leaves_below_its_spines() -> None:
    lines = to_slurm(preset("rtx-pro-6000")).splitlines()
    assert lines[1] == "SwitchName=A-leaf-00 Nodes=n[000-003]"
    assert lines[-1] == "SwitchName=A-spine-00 Switches=A-leaf-[00-03]"


def test_slurm_keeps_a_node_that_misses_a_leaf_with_its_fellows() -> None:
    wiring = small_fabric()
    unplug(wiring, "n2/nic1/p1")
    assert to_slurm(read(wiring)).splitlines()[-1] == "SwitchName=A-leaf-0 Nodes=n[0-5]"
    assert "B-leaf" not in to_slurm(read(wiring), "A")


def test_slurm_refuses_a_fabric_without_switches_and_a_plane_that_is_none() -> None:
    with pytest.raises(InputError, match="no GPU host is cabled to a switch"):
        to_slurm(preset("dgx-station-pair"))
    with pytest.raises(InputError, match="no plane 'Q'"):
        to_slurm(preset("hgx-h100"), "Q")


# --- hostlists ---


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["n000", "n001", "n002", "n010"], "n[000-002,010]"),
        (["n8", "n9", "n10", "n11"], "n[8-11]"),
        (["n098", "n099", "n100", "n101"], "n[098-101]"),
        (["a05-c01", "a05-c02", "a06-c01"], "a05-c[01-02],a06-c01"),
        (["leaf"], "leaf"),
        (["r1n1"], "r1n1"),
    ],
)
def test_hostlists_are_short(names: list[str], text: str) -> None:
    assert ",".join(compress(names)) == text


@given(st.sets(st.from_regex(r"[a-c]{1,2}(0?[0-9]{1,3}(-[a-b])?){0,2}", fullmatch=True), max_size=40))
def test_hostlists_expand_to_the_names_they_came_from(names: set[str]) -> None:
    found = Hostlists().expand(",".join(compress(names))) if names else []
    assert sorted(found) == sorted(names)
