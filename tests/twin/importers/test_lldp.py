"""LLDP: what many devices hear of each other is one fabric."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from importer_inputs import FIXTURES, found, links

from twin.errors import InputError


def neighbour(local: str, name: str, port: str, **more: Any) -> dict[str, Any]:
    """One neighbour in the form json0."""
    chassis = {"id": [{"type": "mac", "value": more.get("chassis", "00:00:00:00:00:01")}], "name": [{"value": name}]}
    return {
        "name": local,
        "chassis": [chassis],
        "port": [
            {"id": [{"type": more.get("kind", "ifname"), "value": port}], "descr": [{"value": more.get("descr", "")}]}
        ],
    }


def output(*neighbours: dict[str, Any]) -> str:
    return json.dumps({"lldp": [{"interface": list(neighbours)}]})


def test_both_sides_of_a_cable_are_one_link() -> None:
    """Named from either side, by MAC address from one, with or without a domain: twelve cables."""
    topo = found("lldp", FIXTURES / "lldp.json")
    assert topo.planes == ("A", "B")
    assert len(links(topo)) == 12
    assert ("gpu2/nic1/p1", "faby-tor2/p16") in links(topo), "known by its MAC address from the host's side"
    assert topo.nodes.name == ("gpu1", "gpu2")


def test_hosts_that_bridge_are_hosts_still() -> None:
    """Containers make hosts announce bridging and routing; their names and those of switches tell."""
    topo = found("lldp", FIXTURES / "lldp.json")
    assert len(topo.switches.name) == 6


def test_one_sided_reports_suffice(tmp_path: Path) -> None:
    """Switches alone, or hosts alone, know all host links."""
    for host in ("gpu1", "gpu2"):
        (tmp_path / f"{host}.json").write_text(output(neighbour("ib0", "leaf-1", f"swp{host[-1]}")))
    topo = found("lldp", tmp_path)
    assert links(topo) == {("gpu1/nic0/p0", "leaf-1/p1"), ("gpu2/nic0/p0", "leaf-1/p2")}
    assert any("known from their neighbours only" in note for note in topo.notes)


def test_the_form_json_says_the_same_as_json0(tmp_path: Path) -> None:
    path = tmp_path / "gpu1.json"
    inner = {"id": {"type": "ifname", "value": "swp3"}, "descr": "swp3"}
    body = {"mlx5_0": {"via": "LLDP", "chassis": {"leaf-1": {"id": {"type": "mac", "value": "a"}}}, "port": inner}}
    for lldp in ({"interface": body}, {"interface": [body]}):
        path.write_text(json.dumps({"lldp": lldp}))
        assert links(found("lldp", f"gpu1={path}")) == {("gpu1/nic0/p0", "leaf-1/p3")}


def test_a_file_without_a_speaker_is_refused(tmp_path: Path) -> None:
    """Whose neighbours they are cannot be guessed."""
    path = tmp_path / "out.json"
    path.write_text(output(neighbour("eth1", "leaf-1", "swp1")))
    with pytest.raises(InputError, match="whose neighbours are these"):
        found("lldp", path)


def test_an_object_of_devices_will_do(tmp_path: Path) -> None:
    path = tmp_path / "all.json"
    one = json.loads(output(neighbour("eth1", "leaf-1", "swp1")))
    path.write_text(json.dumps({"gpu1": one}))
    assert links(found("lldp", path)) == {("gpu1/nic0/p0", "leaf-1/p1")}


def test_devices_with_default_names_stay_apart(tmp_path: Path) -> None:
    """Two switches that both call themselves sonic are two switches."""
    path = tmp_path / "gpu1.json"
    path.write_text(
        output(
            neighbour("rail1p1", "sonic", "Ethernet8", chassis="0a:01"),
            neighbour("rail1p2", "sonic", "Ethernet8", chassis="0a:02"),
        )
    )
    topo = found("lldp", f"gpu1={path}")
    assert len(topo.switches.name) + len(topo.nodes.name) == 3
