"""Supplies in the power shelves of a rack, beside those that nodes have themselves."""

from __future__ import annotations

import math

import numpy as np
import pytest
import yaml

from twin.errors import InputError
from twin.topology.builder import Builder
from twin.topology.explicit import to_wiring
from twin.topology.importers.hostfacts import refine
from twin.topology.importers.sketch import Sizes
from twin.topology.model import Topology
from twin.topology.presets import preset
from twin.topology.short.write import to_short
from twin.topology.wiring import read_wiring
from twin.yamlfile import Document

WIRING = """\
name: two racks
nodes:
  - {name: n0, rack: r0, psus: 2, psu_watts: 3200}
  - {name: n1, rack: r1, psus: 1}
racks:
  - {name: r0, psus: 3, psu_watts: 5500}
  - {name: r1, psus: 2}
"""


def read(text: str) -> Topology:
    return read_wiring(Document("w.yaml", text))


def as_text(wiring: dict[str, object]) -> str:
    return yaml.safe_dump(wiring, sort_keys=False)


def test_supplies_of_nodes_come_first_and_then_those_of_racks() -> None:
    topo = read(WIRING)
    assert topo.psu_names == (
        "n0/psu0", "n0/psu1", "n1/psu0", "r0/psu0", "r0/psu1", "r0/psu2", "r1/psu0", "r1/psu1",
    )  # fmt: skip
    assert topo.psus.node.tolist() == [0, 0, 1, -1, -1, -1, -1, -1]
    assert topo.psus.rack.tolist() == [-1, -1, -1, 0, 0, 0, 1, 1]
    assert topo.racks.psu0.tolist() == [3, 6] and topo.racks.n_psus.tolist() == [3, 2]
    watts = topo.psus.watts.tolist()
    assert watts[:2] == [3200.0] * 2 and watts[3:6] == [5500.0] * 3
    assert all(math.isnan(w) for w in (watts[2], *watts[6:]))


@pytest.mark.parametrize("form", [to_wiring, to_short])
def test_they_come_back_from_what_is_exported(form: object) -> None:
    topo = read(WIRING)
    again = read(as_text(form(topo)))  # type: ignore[operator]
    assert again.psu_names == topo.psu_names
    assert np.array_equal(again.psus.watts, topo.psus.watts, equal_nan=True)
    assert to_wiring(again) == to_wiring(topo)


def test_a_wiring_written_before_racks_had_supplies_reads_as_ever() -> None:
    topo = read(
        "name: old\nnodes: [{name: n0, rack: r0, psus: 2}]\nracks: [{name: r0, feeds: [], redundancy: N+1}]\n"
    )
    assert topo.psu_names == ("n0/psu0", "n0/psu1") and topo.racks.n_psus.tolist() == [0]


def test_they_stay_when_hosts_are_refined() -> None:
    topo = refine(read(WIRING), {}, Sizes())
    assert topo.psu_names == read(WIRING).psu_names
    assert topo.psus.watts[3] == 5500.0


@pytest.mark.parametrize(
    ("name", "sizes", "racks", "supplies", "watts"),
    [("gb300-nvl72-superpod", {}, 8, 48, 5500.0), ("vera-rubin-spectrum6", {"racks": 2}, 2, 18, 18_300.0)],
)
def test_a_rack_of_a_preset_has_the_supplies_of_its_shelves(
    name: str, sizes: dict[str, int], racks: int, supplies: int, watts: float
) -> None:
    topo = preset(name, **sizes)
    assert topo.racks.n_psus.tolist() == [supplies] * racks
    assert topo.psu_names[supplies - 1].endswith(f"/psu{supplies - 1}")
    assert set(topo.psus.watts.tolist()) == {watts}


def test_without_racks_or_supplies_there_are_none() -> None:
    topo = Builder("bare", ()).build()
    assert topo.psu_names == () and len(topo.racks.psu0) == 0


def test_more_supplies_than_fit_the_memory_are_refused() -> None:
    with pytest.raises(InputError, match="more than 10,000,000"):
        read("name: x\nnodes: []\nracks: [{name: 'r[0-99999]', psus: 1000}]\n")
