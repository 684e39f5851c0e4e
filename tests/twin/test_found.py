"""A design beside a discovery of it: nothing differs but what was changed, however ports are numbered."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import yaml

from tests.twin.small_fabric import link, read, small_fabric, swap, unplug
from twin.ibtools.netdiscover import parse
from twin.topology.discovery import discover
from twin.topology.drift import cables_of
from twin.topology.explicit import to_wiring
from twin.topology.found import drift
from twin.topology.found import read as read_found
from twin.topology.ibexport import to_ibnetdiscover
from twin.topology.model import Topology
from twin.topology.presets import PRESETS, preset


def discovered(topo: Topology, plane: str | None = None) -> Topology:
    return discover({plane or "A": parse(to_ibnetdiscover(topo, plane))})


@pytest.mark.parametrize("name", PRESETS)
def test_every_plane_of_every_preset_comes_back_from_a_dump_as_designed(name: str) -> None:
    design = preset(name)
    for plane in design.planes or (None,):
        result = drift(design, discovered(design, plane))
        assert result.mistakes == ()
        assert result.planes == ((plane,) if plane else ())
        assert result.cables == sum(1 for p in design.links.plane if plane is None or design.planes[p] == plane)


@pytest.mark.parametrize("name", [n for n in PRESETS if n != "dgx-station-pair"])
def test_two_swapped_cables_come_back_from_a_dump_as_one_difference_naming_both(name: str) -> None:
    design, wiring = preset(name), to_wiring(preset(name))
    plane = design.planes[-1]
    mine = [c for c in cables_of(design) if c[1].startswith(f"{plane}-leaf")]
    one, other = mine[0], mine[-1]
    swap(wiring, one[0], other[0])
    (mistake,) = drift(design, discovered(read(wiring), plane)).mistakes
    assert (mistake.kind, set(mistake.planned)) == ("swapped", {one, other})
    for cable in (one, other):
        assert f"{cable[0]}--{cable[1]}" in mistake.text
    assert set(mistake.found) == {(one[0], other[1]), (other[0], one[1])}


def test_found_wirings_that_count_like_the_design_are_not_renumbered() -> None:
    design, found = small_fabric(), small_fabric()
    unplug(found, "n1/nic0/p0")
    result = drift(read(design), read(found))
    assert ([m.cause for m in result.mistakes], result.notes) == (["n1/nic0/p0--A-leaf-0/p1"], ())


def test_a_plane_that_is_gone_is_told_where_the_discovery_had_both() -> None:
    design, found = small_fabric(), small_fabric()
    found["links"] = [e for e in found["links"] if "B-" not in e["b"]]
    found["switches"] = [s for s in found["switches"] if s["plane"] == "A"]
    result = drift(read(design), read(found))
    assert {m.device for m in result.mistakes} == {"B-leaf-0", "B-leaf-1"}  # all cables of the plane end at these
    found["planes"] = ["A"]
    assert drift(read(design), read(found)).mistakes == ()


def test_missing_and_unplanned_devices_are_one_difference_each() -> None:
    design, found = small_fabric(), small_fabric()
    found["nodes"] = [{**n, "name": n["name"].replace("n5", "x5")} for n in found["nodes"]]
    found["links"] = [e for e in found["links"] if not e["a"].startswith("n5")]
    for k in range(2):
        found["links"].append({"a": f"x5/nic{k}/p0", "b": f"A-leaf-{k}/p15", "speed": "400G"})
    missing, unplanned = drift(read(design), read(found)).mistakes
    assert (missing.kind, missing.device, len(missing.planned), missing.found) == ("missing", "n5", 4, ())
    assert (unplanned.kind, unplanned.device, len(unplanned.found), unplanned.planned) == ("unplanned", "x5", 2, ())


def test_an_unplanned_cable_between_planned_devices_is_not_an_unplanned_device() -> None:
    found = small_fabric()
    found["links"].append({"a": "A-leaf-0/p15", "b": "A-spine-0/p15", "speed": "800G"})
    (mistake,) = drift(read(small_fabric()), read(found)).mistakes
    assert (mistake.kind, mistake.device, mistake.cause) == ("unplanned", "", "A-leaf-0/p15--A-spine-0/p15")


def test_a_switch_under_another_name_is_one_difference() -> None:
    found = yaml.safe_load(yaml.safe_dump(small_fabric()).replace("A-leaf-1", "spare-7"))
    (mistake,) = drift(read(small_fabric()), read(found)).mistakes
    assert (mistake.kind, mistake.device) == ("moved", "A-leaf-1")
    assert mistake.text == "A-leaf-1 was found as spare-7: 10 cables, at the same ports"


def test_wrong_speeds_are_told_one_by_one_while_few_and_together_when_many() -> None:
    found = small_fabric()
    link(found, "n1/nic0/p0")["speed"] = "200G"
    (mistake,) = drift(read(small_fabric()), read(found)).mistakes
    assert mistake.kind == "speed"
    assert mistake.text == "n1/nic0/p0--A-leaf-0/p1 is built for 200Gb/s, planned 400Gb/s"
    for entry in found["links"]:
        entry["speed"] = "200G"
    host, uplink = sorted(drift(read(small_fabric()), read(found)).mistakes, key=lambda m: -len(m.planned))
    assert (len(host.planned), len(uplink.planned)) == (24, 16) and "and 20 more" in host.text


def test_a_speed_that_is_not_known_is_no_difference() -> None:
    found = small_fabric()
    del link(found, "n1/nic0/p0")["speed"]
    assert drift(read(small_fabric()), read(found)).mistakes == ()


def test_another_fabric_altogether_is_told_as_such() -> None:
    result = drift(read(small_fabric()), preset("b300-superpod-xdr"))
    assert any("is this the same fabric?" in note for note in result.notes)


def test_a_dump_is_told_from_a_wiring_file_by_its_content(tmp_path: Path) -> None:
    design = read(small_fabric())
    dump, wiring = tmp_path / "one.txt", tmp_path / "other.txt"
    dump.write_text(to_ibnetdiscover(design, "A"))
    wiring.write_text(yaml.safe_dump(copy.deepcopy(small_fabric())))
    assert len(cables_of(read_found(str(dump)))) == 20
    assert cables_of(read_found(str(wiring))) == cables_of(design)
    assert read_found("hgx-h100").name == "hgx-h100"
