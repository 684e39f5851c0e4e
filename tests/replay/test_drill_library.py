"""The library as a whole: which incidents, fabrics and courses of trouble its drills cover, read from the files."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest

from replay.drills.file import KINDS, Drill, library, load_drill
from twin.simulator.scenario import ACTIONS, Fault
from twin.topology.presets import PRESETS

DRILLS = {name: load_drill(path) for name, path in library().items()}


def at_once(drill: Drill) -> int:
    """The most faults that are under way at the same time."""
    faults = drill.scenario.faults
    ends = [drill.scenario.duration if f.until is None else f.until for f in faults]
    return max(
        (sum(f.at <= fault.at < end for f, end in zip(faults, ends, strict=True)) for fault in faults), default=0
    )


def healthy() -> list[Drill]:
    """Those that expect that nothing is said."""
    return [d for d in DRILLS.values() if not d.expect and d.nothing_else]


def having(drills: list[Drill], action: str) -> list[Fault]:
    return [f for d in drills for f in d.scenario.faults if f.action == action]


def test_every_kind_of_incident_is_expected_by_a_drill() -> None:
    expected = {e.incident for d in DRILLS.values() for e in d.expect}
    assert set(KINDS) - expected == set()


def test_every_preset_has_a_drill() -> None:
    assert set(PRESETS) - {d.scenario.preset for d in DRILLS.values()} == set()


def test_every_action_of_a_fault_is_shown_by_a_drill() -> None:
    assert set(ACTIONS) - {f.action for d in DRILLS.values() for f in d.scenario.faults} == set()


def test_the_library_has_single_double_and_cascading_faults_on_several_fabrics() -> None:
    assert len(DRILLS) >= 44
    for enough in (lambda n: n == 1, lambda n: n == 2, lambda n: n >= 3):
        assert len({d.scenario.preset for d in DRILLS.values() if enough(at_once(d))}) >= 3


def test_every_drill_that_expects_incidents_wants_nothing_else_and_names_their_causes() -> None:
    for name, drill in DRILLS.items():
        assert drill.nothing_else, name
        assert all(e.cause for e in drill.expect), name


@pytest.mark.parametrize(
    ("spell", "found"),
    [
        ("idle periods", lambda ds: any(p.kind == "idle" for d in ds for p in d.scenario.workload)),
        ("bursts to nine tenths", lambda ds: any(p.utilization >= 0.9 for d in ds for p in d.scenario.workload)),
        ("several jobs at once", lambda ds: any(len(d.scenario.jobs) > 1 for d in ds)),
        ("counters that restart", lambda ds: having(ds, "restart")),
        ("late telemetry", lambda ds: having(ds, "lag")),
        ("lost telemetry", lambda ds: having(ds, "silence")),
        ("ten minutes", lambda ds: any(d.scenario.duration >= 600 for d in ds)),
    ],
)
def test_healthy_drills_contain(spell: str, found: Callable[[list[Drill]], object]) -> None:
    assert found(healthy()), spell


def test_reboots_one_after_another_are_drilled_of_nodes_and_of_switches() -> None:
    for name, action in (("rolling-reboots", "fail"), ("rolling-upgrade", "restart")):
        faults = [f for f in DRILLS[name].scenario.faults if f.action == action]
        assert len(faults) >= 3
        assert all(f.until is not None and f.until <= g.at for f, g in pairwise(faults)), name
