"""Drift: one mistake in the cabling is one difference, named by its cables."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from twin.topology.drift import Cable, cables_of, mistaken_cables
from twin.topology.presets import preset

DESIGN = preset("b300-superpod-ethernet")
CABLES = list(cables_of(DESIGN))


def rewired(*changes: tuple[str, str, str]) -> list[Cable]:
    """The cables with ends moved: (near port, far port as planned, far port as found)."""
    moved = {(a, b): c for a, b, c in changes}
    return [(a, moved.get((a, b), b)) for a, b in CABLES]


def swapped(one: Cable, other: Cable) -> list[Cable]:
    return rewired((*one, other[1]), (*other, one[1]))


def test_a_fabric_as_designed_has_no_difference_whichever_end_is_named_first() -> None:
    assert mistaken_cables(DESIGN, CABLES) == []
    assert mistaken_cables(DESIGN, [(b, a) for a, b in CABLES]) == []


def test_two_swapped_cables_are_one_mistake_that_names_both() -> None:
    one, other = ("n002/nic0/p0", "A-leaf-00/p2"), ("n002/nic1/p0", "A-leaf-01/p2")
    (mistake,) = mistaken_cables(DESIGN, swapped(one, other))
    assert (mistake.kind, mistake.planned, mistake.crossing) == ("swapped", (one, other), True)
    assert "n002/nic0/p0--A-leaf-01/p2" in mistake.text


def test_two_cables_swapped_on_the_same_leaf_cross_nothing() -> None:
    (mistake,) = mistaken_cables(DESIGN, swapped(("n002/nic0/p0", "A-leaf-00/p2"), ("n003/nic0/p0", "A-leaf-00/p3")))
    assert (mistake.kind, mistake.crossing) == ("swapped", False)


def test_a_nic_port_on_the_other_planes_leaf_is_one_mistake() -> None:
    found = [c for c in rewired(("n002/nic0/p0", "A-leaf-00/p2", "B-leaf-00/p2")) if c[0] != "n002/nic0/p1"]
    (mistake,) = mistaken_cables(DESIGN, found)
    assert (mistake.kind, mistake.crossing, len(mistake.planned)) == ("moved", True, 2)


def test_a_leaf_that_misses_an_uplink_is_one_missing_cable() -> None:
    uplink = next(c for c in CABLES if c[0] == "A-leaf-04/p70")
    (mistake,) = mistaken_cables(DESIGN, [c for c in CABLES if c != uplink])
    assert (mistake.kind, mistake.planned, mistake.found) == ("missing", (uplink,), ())


def test_a_switch_that_was_not_found_is_one_mistake() -> None:
    (mistake,) = mistaken_cables(DESIGN, [c for c in CABLES if "A-leaf-05/" not in c[0] + c[1]])
    assert (mistake.kind, mistake.cause, len(mistake.planned)) == ("missing", "A-leaf-05", 128)


def test_a_cable_that_nobody_planned_is_told() -> None:
    extra = ("stor1/nic0/p0", "A-leaf-00/p127x")
    (mistake,) = mistaken_cables(DESIGN, [*CABLES, extra])
    assert (mistake.kind, mistake.found) == ("unplanned", (extra,))


@given(st.lists(st.integers(0, len(CABLES) - 1), min_size=2, max_size=2, unique=True))
def test_any_swapped_pair_is_exactly_one_mistake(pair: list[int]) -> None:
    one, other = CABLES[pair[0]], CABLES[pair[1]]
    found = mistaken_cables(DESIGN, swapped(one, other))
    assert len(found) == 1 and {*found[0].planned} == {one, other}
