"""Sweeps: every single failure and pairs of them are what the same questions answer, ranked by what they cost."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

import twin.whatif.sweep as sweeping
from tests.twin.power_fabric import read as power_fabric
from tests.twin.small_fabric import read, small_fabric
from twin.errors import InputError
from twin.topology.presets import preset
from twin.whatif import CLASSES, Change, Outcome, WhatIf, pairs, singles

SPLIT = WhatIf(preset("b300-superpod-ethernet"))
SMALL = WhatIf(read(small_fabric()))
NVL72 = WhatIf(preset("gb300-nvl72-ethernet"))


def asked(whatif: WhatIf, outcome: Outcome) -> Outcome:
    """The same failures as a question of their own."""
    answer = whatif.ask(Change(fail=outcome.failed))
    shares = []
    for share in (answer.after.gpu, answer.after.nvlink):
        known = share[~np.isnan(share)]
        shares.append((known.min(), known.mean()) if len(known) else (np.nan, np.nan))
    return Outcome(outcome.failed, int(answer.losers.sum()), *shares, outcome.headroom, outcome.headroom_after_loss)


def figures(outcome: Outcome) -> list[float]:
    return [outcome.gpus_affected, *outcome.gpu, *outcome.nvlink]


@pytest.mark.parametrize("what", ["switches", "links", "planes", "nics", "nodes", "gpus", "racks"])
def test_each_outcome_is_what_the_same_question_answers(what: str) -> None:
    found = singles(SMALL, what)
    assert sorted(o.failed[0] for o in found.outcomes) == sorted(CLASSES[what](SMALL.topo))
    for outcome in found.outcomes:
        assert figures(outcome) == pytest.approx(figures(asked(SMALL, outcome)), nan_ok=True)


def test_nvlink_chips_are_swept_as_they_are_asked() -> None:
    found = singles(NVL72, "nvswitches")
    assert len(found.outcomes) == 36 and {o.nvlink[0] for o in found.outcomes} == {17 / 18}
    assert {o.gpus_affected for o in found.outcomes} == {72}


def test_leaves_come_before_spines_since_a_job_goes_at_the_pace_of_its_slowest_gpu() -> None:
    groups = singles(SPLIT, "switches").groups
    assert [(len(g), g[0].failed[0][:7], g[0].gpu[0]) for g in groups] == [
        (16, "A-leaf-", 0.5),
        (8, "A-spine", 0.875),
    ]
    assert [g[0].jobs[0].fraction for g in groups] == pytest.approx([0.5, 1])


def test_what_trips_a_breaker_comes_first() -> None:
    short = power_fabric()
    whatif = WhatIf(short, None)
    alone, both = singles(whatif, "feeds"), pairs(whatif, "feeds")
    assert {o.headroom for o in alone.outcomes} == {400.0}, "of its nodes, each with two supplies left"
    assert both.outcomes[0].failed in (("r0/feedA", "r0/feedB"), ("r1/feedA", "r1/feedB"))
    assert both.outcomes[0].gpu[0] == 0


def test_pairs_are_every_two_parts_once_and_what_the_same_question_answers() -> None:
    found = pairs(SMALL, "switches")
    every = {frozenset(pair) for pair in combinations(SMALL.topo.switches.name, 2)}
    assert {frozenset(o.failed) for o in found.outcomes} == every and found.bound == ""
    for outcome in found.outcomes:
        assert figures(outcome) == pytest.approx(figures(asked(SMALL, outcome)), nan_ok=True)


def test_the_worst_pair_is_both_leaves_of_one_rail() -> None:
    worst = pairs(SPLIT, "switches").groups[0]
    assert len(worst) == 8 and worst[0].failed == ("A-leaf-00", "B-leaf-00") and worst[0].gpu[0] == 0


def test_where_pairs_are_too_many_the_worst_are_among_those_worked_out(monkeypatch: pytest.MonkeyPatch) -> None:
    every = pairs(SPLIT, "switches")
    monkeypatch.setattr(sweeping, "PAIRS", 40)
    some = pairs(SPLIT, "switches")
    assert (len(some.outcomes), some.possible) == (40, 276) and some.bound.startswith("40 of 276 pairs")
    assert {o.failed for o in some.outcomes[:8]} == {o.failed for o in every.outcomes[:8]}


def test_what_is_down_already_is_left_out() -> None:
    from twin.whatif.change import apply

    down = apply(SMALL.meter.power_model, SMALL.state, Change(fail=("A-leaf-0",)))
    found = singles(WhatIf(SMALL.topo, down), "switches")
    assert found.skipped == 1 and "A-leaf-0" not in {o.failed[0] for o in found.outcomes}
    assert found.outcomes[0].failed == ("B-leaf-0",) and found.outcomes[0].gpu[0] == 0


def test_a_class_that_is_none_or_that_the_fabric_lacks_is_refused() -> None:
    with pytest.raises(InputError, match="expected one of switches, links"):
        singles(SMALL, "cats")
    with pytest.raises(InputError, match="has no feeds"):
        singles(SPLIT, "feeds")
