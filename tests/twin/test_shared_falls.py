"""A link flaps by its own downs, or together with what it is a part of, and not by a sum of both."""

from __future__ import annotations

import numpy as np

from tests.twin.two_leaves import two_leaves
from twin.frames import NS
from twin.sharedfalls import SharedFalls
from twin.simulator.scenario import Fault, Phase, Scenario
from twin.simulator.simulation import Simulation
from twin.twin import Twin


def told(*faults: Fault, duration: float = 150.0) -> list[tuple[str, str]]:
    scenario = Scenario("falls", "", {}, (Phase("allreduce"),), duration=duration, seed=5, faults=faults)
    simulation = Simulation(scenario, two_leaves())
    twin = Twin(simulation.topology)
    twin.ingest_all(simulation.frames())
    return [(i.kind, i.cause) for i in twin.incidents if i.superseded_by is None]


def test_a_link_that_fails_after_its_plane_failed_twice_is_down_and_does_not_flap() -> None:
    twice = Fault("fail", "plane:B", 15, 25), Fault("fail", "plane:B", 50, 60)
    found = told(*twice, Fault("fail", "n5/nic1/p1", 90, 110))
    assert ("link_down", "n5/nic1/p1") in found
    assert not any(kind == "link_flapping" for kind, _ in found)


def test_a_link_that_goes_down_three_times_by_itself_flaps() -> None:
    found = told(Fault("flap", "n5/nic1/p1", 20, 60, period=8.0, down=2.0), duration=100)
    assert found == [("link_flapping", "n5/nic1/p1")]


def test_what_goes_down_together_three_times_flaps() -> None:
    found = told(*(Fault("fail", "B-leaf-1", at, at + 4) for at in (15, 25, 35)), duration=60)
    assert ("link_flapping", "B-leaf-1") in found


def test_downs_are_counted_apart() -> None:
    topo = two_leaves()
    falls = np.zeros((len(topo.links.a), 8), np.int64)
    plane = topo.links.plane == 0
    falls[plane, -2] = 100 * NS
    falls[0, -1] = 130 * NS
    own, shared = SharedFalls(topo).own(np.array([0, 1]), falls, 10 * NS, 5 * NS)
    assert plane[0]
    assert (own[0], shared[0]) == (1, 1)
    assert shared[1] == int(plane[1])
