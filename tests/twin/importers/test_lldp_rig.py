"""Real lldpd on every host and switch of the two-plane fabric: discovery finds the wiring that was built."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from importer_inputs import found, links, wired

from tests.rigs.lldp import Neighbours
from tests.rigs.netns import TwoPlanes, missing_requirements

pytestmark = pytest.mark.service("lldpd", "iproute2")


@pytest.fixture
def heard(tmp_path: Path, unavailable: Callable[[str], None]) -> Iterator[tuple[TwoPlanes, Path]]:
    """A fabric and a directory of what each of its devices hears."""
    if missing := missing_requirements():
        unavailable(f"missing: {', '.join(missing)}")
    directory = tmp_path / "lldp"
    directory.mkdir()
    with TwoPlanes() as rig, Neighbours(rig) as neighbours:
        neighbours.wait_for_all()
        for node in rig.nodes:
            (directory / f"{node}.json").write_text(neighbours.of(node))
        both = [neighbours.of(node, what="chassis") + neighbours.of(node, "json") for node in rig.nodes]
        (directory.parent / "all.json").write_text("".join(both))
        yield rig, directory


def built(rig: TwoPlanes) -> set[tuple[str, str]]:
    return {(cable.a, cable.b) for cable in rig.cables}


def test_the_wiring_is_what_was_built(heard: tuple[TwoPlanes, Path]) -> None:
    """Every cable once, with its ends' own numbers; planes by name, roles and tiers right."""
    rig, directory = heard
    topo = found("lldp", directory)
    assert links(topo) == built(rig)
    assert topo.planes == ("A", "B")
    assert list(topo.nodes.name) == rig.hosts
    tiers = {s["name"]: (s["tier"], s["plane"]) for s in wired(topo)["switches"]}
    assert tiers == {s: ("leaf" if "leaf" in s else "spine", s[0]) for s in (*rig.leaves, *rig.spines)}


def test_one_file_of_all_devices_says_the_same(heard: tuple[TwoPlanes, Path]) -> None:
    """Each says who it is before its neighbours, here in the form json."""
    rig, directory = heard
    assert links(found("lldp", directory.parent / "all.json")) == built(rig)


def test_hosts_alone_know_their_own_links(heard: tuple[TwoPlanes, Path]) -> None:
    """Where switches cannot be asked, host links are found all the same."""
    rig, directory = heard
    some = [f"{host}={directory / host}.json" for host in rig.hosts]
    assert links(found("lldp", *some)) == {(c.a, c.b) for c in rig.cables if c.kind == "host"}
