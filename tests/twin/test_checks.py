"""Checks: one mistake in a wiring is one finding that names its place, and `accept` says it is meant so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.twin.small_fabric import EACH, NODES, link, read, small_fabric, swap, unplug
from twin.errors import InputError
from twin.site import load_site
from twin.topology.checks import RULES, Finding, check
from twin.topology.discovery import discover_files
from twin.topology.explicit import to_wiring
from twin.topology.presets import PRESETS, preset

SAMPLE = Path(__file__).parents[3] / "shared/samples/infiniband-diags/ibnetdiscover/superpod-ndr.out"
Wiring = dict[str, Any]
BROKEN: list[tuple[str, str, Callable[[Wiring], object], str]] = []


def breaks(rule: str, place: str, says: str) -> Callable[[Callable[[Wiring], object]], Callable[[Wiring], object]]:
    def add(function: Callable[[Wiring], object]) -> Callable[[Wiring], object]:
        BROKEN.append((rule, place, function, says))
        return function

    return add


@breaks("planes-touch", "A-leaf-0", "1 link into plane B: A-leaf-0/p8--B-spine-0/p9")
def an_uplink_into_the_other_plane(w: Wiring) -> None:
    link(w, "A-leaf-0/p8")["b"] = "B-spine-0/p9"


@breaks("planes-touch", "bridge", "joins planes A, B")
def a_switch_without_a_plane_between_two(w: Wiring) -> None:
    w["switches"].append({"name": "bridge", "tier": "core", "ports": 16})
    w["links"] += [
        {"a": f"{p}-spine-{s}/p15", "b": f"bridge/p{2 * s + i}", "speed": "800G"}
        for i, p in enumerate("AB")
        for s in range(2)
    ]


@breaks("plane-apart", "plane:A", "2 parts that no link joins")
def rails_that_never_meet(w: Wiring) -> None:
    for entry in w["links"]:
        if entry["a"].startswith("A-leaf-0/"):
            entry["b"] = f"A-spine-0/{entry['b'].partition('/')[2]}-"
        elif entry["a"].startswith("A-leaf-1/"):
            entry["b"] = f"A-spine-1/{entry['b'].partition('/')[2]}-"
    mine = [e for e in w["links"] if e["a"].startswith("A-leaf-")]
    for i, entry in enumerate(mine):
        entry["b"] = f"{entry['b'].partition('/')[0]}/p{i}"


@breaks("port-plane", "n3/nic1/p1", "a cable into plane A, to A-leaf-1/p7")
def a_nic_port_in_the_other_plane(w: Wiring) -> None:
    link(w, "n3/nic1/p1")["b"] = "A-leaf-1/p7"


@breaks("port-plane", "n3", "and 1 more")
def a_nic_with_its_ports_swapped(w: Wiring) -> None:
    swap(w, "n3/nic1/p0", "n3/nic1/p1")


@breaks("plane-missing", "n2", "no cable into plane B")
def a_node_without_a_plane(w: Wiring) -> None:
    unplug(w, "n2/nic0/p1", "n2/nic1/p1")


@breaks("ports-missing", "n2", "3 cabled NIC ports, none at nic1/p1")
def a_node_with_a_cable_less(w: Wiring) -> None:
    unplug(w, "n2/nic1/p1")


@breaks("ports-missing", "n2", "0 cabled NIC ports, none at nic0/p0, nic0/p1, nic1/p0 and 1 more")
def a_node_without_cables(w: Wiring) -> None:
    unplug(w, *(f"n2/nic{k}/p{p}" for k in range(2) for p in range(2)))


@breaks("rails-cross", "n4", "rail 0, on A-leaf-1, whose other NICs are of rail 1; and 1 more")
def two_rails_swapped(w: Wiring) -> None:
    swap(w, "n4/nic0/p0", "n4/nic1/p0")


@breaks("uplinks-unequal", "B-leaf-1", "3 uplinks of 2.4Tb/s in all")
def a_leaf_with_an_uplink_less(w: Wiring) -> None:
    unplug(w, "B-leaf-1/p8")


@breaks("uplinks-unequal", "B-leaf-1", "4 uplinks of 2.8Tb/s in all")
def a_leaf_with_a_slower_uplink(w: Wiring) -> None:
    link(w, "B-leaf-1/p8")["speed"] = "400G"


@breaks("links-unequal", "A-leaf-0", "3 to A-spine-0, 1 to A-spine-1, 2 to others")
def a_leaf_with_uplinks_spread_unequally(w: Wiring) -> None:
    link(w, f"A-leaf-0/p{8 + EACH}")["b"] = "A-spine-0/p9"


@breaks("cables-over-ports", "A-leaf-0", "10 cables")
def a_switch_with_more_cables_than_ports(w: Wiring) -> None:
    leaf = next(s for s in w["switches"] if s["name"] == "A-leaf-0")
    leaf["ports"] = 9  # numbers 0 to 9 are ten ports
    up = [e for e in w["links"] if e["a"].startswith("A-leaf-0/")]
    for i, entry in enumerate(up):
        entry["a"] = f"A-leaf-0/p{NODES + i}"


@breaks("cables-over-ports", "A-leaf-0", "10 cables of 54.4Tb/s in all")
def a_switch_with_more_bandwidth_than_it_has(w: Wiring) -> None:
    for s in w["switches"]:
        s["model"] = "sn5600"
    for node in range(NODES):
        link(w, f"n{node}/nic0/p0")["speed"] = "8.5T"
    for entry in w["links"]:
        if entry["a"].startswith("A-leaf-"):
            entry["speed"] = "850G"


@breaks("switch-isolated", "A-leaf-9", "no cable at all")
def a_switch_without_cables(w: Wiring) -> None:
    w["switches"].append({"name": "A-leaf-9", "tier": "leaf", "plane": "A"})


@breaks("feeds-single", "r0", "1 feed, redundancy N+N")
def a_rack_with_one_feed(w: Wiring) -> None:
    del w["racks"][0]["feeds"][1]


@breaks("feeds-single", "r0", "2 feeds, redundancy none")
def a_rack_that_needs_all_its_feeds(w: Wiring) -> None:
    del w["racks"][0]["redundancy"]


@breaks("feeds-short", "r0", "9.9 kW left without 1 feed (N+N)")
def a_rack_whose_feeds_are_too_weak(w: Wiring) -> None:
    for feed in w["racks"][0]["feeds"]:
        feed["watts"] = 9900  # 12 GPUs of 1,100 W


@pytest.mark.parametrize(("rule", "place", "change", "says"), BROKEN, ids=[b[2].__name__ for b in BROKEN])  # type: ignore[attr-defined]
def test_one_mistake_is_one_finding_that_can_be_accepted(
    rule: str, place: str, change: Callable[[Wiring], object], says: str
) -> None:
    wiring = small_fabric()
    change(wiring)
    topo = read(wiring)
    (finding,) = check(topo).findings
    assert (finding.rule, finding.place) == (rule, place) and says in finding.found, finding
    for entry in (rule, finding.accept, f"{rule}:{place.partition('/')[0]}", f"{rule}:*"):
        report = check(topo, [entry])
        assert report.findings == () and report.accepted >= len(finding.places) and report.idle == ()


def test_every_rule_has_a_wiring_that_breaks_it() -> None:
    assert {rule for rule, *_ in BROKEN} == set(RULES)


def test_a_fabric_as_it_should_be_has_no_finding() -> None:
    report = check(read(small_fabric()))
    assert (report.findings, report.accepted, report.oversubscription) == ((), 0, {})


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_is_without_a_finding_at_its_usual_and_smallest_size(name: str) -> None:
    sizes = [{}, {p.name: min(p.allowed) for p in PRESETS[name].parameters if p.name != "spare_shelves"}]
    for size in sizes:
        assert check(preset(name, **size)).findings == ()


def test_racks_that_no_shelf_may_fail_in_are_told() -> None:
    findings = check(preset("gb300-nvl72-ethernet", spare_shelves=0)).findings
    assert [(f.rule, f.place) for f in findings] == [("feeds-single", "r00"), ("feeds-single", "r01")]


def test_an_entry_that_silences_nothing_is_told() -> None:
    report = check(read(small_fabric()), ["rails-cross:n4"])
    assert report.idle == ("rails-cross:n4",) and "silences nothing" in report.text()


def test_an_accepted_address_covers_what_is_below_it_and_no_other() -> None:
    wiring = small_fabric()
    unplug(wiring, "n2/nic1/p1", "n3/nic1/p1")
    topo = read(wiring)
    (left,) = check(topo, ["ports-missing:n2"]).findings
    assert left.place == "n3" and len(check(topo, ["ports-missing:n"]).findings) == 2


def test_a_fabric_that_keeps_no_rails_has_none_to_cross() -> None:
    wiring = small_fabric()
    for node in range(0, NODES, 2):
        for q in range(2):
            swap(wiring, f"n{node}/nic0/p{q}", f"n{node}/nic1/p{q}")
    assert check(read(wiring)).findings == ()


def test_two_nodes_that_differ_are_told_though_neither_is_most() -> None:
    wiring = small_fabric()
    wiring["nodes"] = wiring["nodes"][:2]
    wiring["links"] = [e for e in wiring["links"] if e["a"][:2] not in {"n2", "n3", "n4", "n5"}]
    assert check(read(wiring)).findings == ()
    unplug(wiring, "n0/nic1/p0")
    (finding,) = check(read(wiring)).findings
    assert (finding.rule, finding.place) == ("ports-missing", "n0") and "sibling node has" in finding.expected


def test_the_same_mistake_at_many_devices_is_one_finding_for_the_plane() -> None:
    wiring = to_wiring(preset("dgx-b200-ndr"))
    unplug(wiring, *(f"A-leaf-{leaf:02}/p{33 + leaf}" for leaf in range(7)))
    broken = read(wiring)
    (finding,) = check(broken, ["uplinks-unequal:A-leaf-00"]).findings
    assert (finding.rule, finding.place, len(finding.places)) == ("uplinks-unequal", "plane:A", 6)
    assert "and 5 more" in finding.found and check(broken, [finding.accept]).findings == ()


def test_what_is_accepted_may_stand_in_the_site_file_and_in_its_wiring(tmp_path: Path) -> None:
    wiring = small_fabric()
    unplug(wiring, "n2/nic1/p1")
    del wiring["racks"][0]["redundancy"]
    (tmp_path / "w.yaml").write_text(yaml.safe_dump({**wiring, "accept": ["feeds-single"]}))
    (tmp_path / "s.yaml").write_text("topology: {file: w.yaml}\naccept: ['ports-missing:n2']\n")
    site = load_site(tmp_path / "s.yaml")
    assert check(site.topology, site.accept).findings == ()
    bare = load_site(tmp_path / "w.yaml")
    assert [f.rule for f in check(bare.topology, bare.accept).findings] == ["ports-missing"]


def test_a_rule_that_does_not_exist_is_refused_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("topology: {preset: hgx-h100}\naccept:\n  - rails-crossed\n")
    with pytest.raises(InputError, match=r"s\.yaml:3: accept\[0\]: 'rails-crossed' .* did you mean rails-cross\?"):
        load_site(tmp_path / "s.yaml")


@pytest.mark.skipif(not SAMPLE.exists(), reason="real outputs are not kept beside the repository")
def test_a_real_superpod_has_a_few_findings_not_one_a_cable() -> None:
    found: dict[str, Finding] = {f.rule: f for f in check(discover_files({"A": SAMPLE})).findings}
    assert set(found) == {"ports-missing", "rails-cross", "uplinks-unequal"}
    assert found["rails-cross"].place == "b08-p1-dgx-08-c01"  # two NICs of one host, on each other's leaves
    assert (found["uplinks-unequal"].place, len(found["uplinks-unequal"].places)) == ("plane:A", 12)
