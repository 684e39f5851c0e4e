"""Symptoms of something else are not told for themselves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from twin.detectors.explain import Explainer
from twin.detectors.finding import NO_LINKS, Finding, Story
from twin.detectors.rules import Rules
from twin.frames import NS
from twin.incident import Affected
from twin.incidents import Ledger

RULES = Rules.load()


def finding(kind: str, cause: str, *scope: str, ready: bool = True) -> Finding:
    def tell() -> Story:
        return Story("warning", Affected(), {}, (), kind, "")

    return Finding(kind, cause, 1, ready, NO_LINKS, None, tell, scope=frozenset(scope))


def kinds(findings: list[Finding]) -> list[str]:
    return [f.kind for f in findings]


def test_a_part_within_the_scope_of_a_cause_is_its_symptom() -> None:
    lost = finding("gpu_lost", "n0/gpu3", "n0/gpu3")
    mine, other = finding("nvlink_down", "n0/gpu3/nvlink2"), finding("nvlink_down", "n0/gpu4/nvlink2")
    assert Explainer(RULES).reduce(NS, [lost, mine, other], ()) == [lost, other]


def test_only_the_kinds_that_a_cause_explains_are_its_symptoms() -> None:
    down, mistake = finding("link_down", "n0", "n0"), finding("miscabled", "n0/nic0/p0")
    assert kinds(Explainer(RULES).reduce(NS, [down, mistake], ())) == ["link_down", "miscabled"]


def test_either_end_of_a_link_lies_in_a_scope() -> None:
    switch = finding("switch_down", "A-leaf-0", "A-leaf-0")
    errors = finding("link_errors", "n0/nic0/p0--A-leaf-0/p3")
    assert kinds(Explainer(RULES).reduce(NS, [switch, errors], ())) == ["switch_down"]


def test_a_symptom_waits_while_its_explanation_is_not_ready_and_after_it_has_gone() -> None:
    explainer = Explainer(RULES)
    feed, psu = finding("feed_down", "r0/feedA", "n0/psu0", ready=False), finding("psu_down", "n0/psu0")
    assert [f.ready for f in explainer.reduce(NS, [feed, psu], ())] == [False, False]
    assert [f.ready for f in explainer.reduce(2 * NS, [psu], ())] == [False]
    assert [f.ready for f in explainer.reduce((2 + round(RULES.settle)) * NS, [psu], ())] == [True]


def test_an_explanation_that_comes_later_takes_its_symptoms_over_with_their_history() -> None:
    explainer, ledger, none = Explainer(RULES), Ledger(RULES, 0), np.zeros(0, bool)
    psu = finding("psu_down", "n0/psu0")
    ledger.reconcile(NS, explainer.reduce(NS, [psu], ledger.open_keys), none, NS)
    assert [i.kind for i in ledger.incidents] == ["psu_down"]
    feed = finding("feed_down", "r0/feedA", "n0/psu0")
    ledger.reconcile(2 * NS, explainer.reduce(2 * NS, [feed, psu], ledger.open_keys), none, NS)
    told = {i.kind: i for i in ledger.incidents}
    assert told["feed_down"].is_open
    assert (told["psu_down"].state, told["psu_down"].superseded_by) == ("resolved", told["feed_down"].id)


def test_a_cause_never_explains_itself() -> None:
    down = finding("link_down", "n0/nic0/p0", "n0/nic0/p0")
    assert Explainer(RULES).reduce(NS, [down], [down.key]) == [down]


def test_a_finding_whose_links_all_belong_to_a_dead_rack_is_its_symptom() -> None:
    feed = replace(finding("feed_down", "r0", "r0"), links=np.array([3, 4, 5]))
    part = replace(finding("plane_degraded", "plane:A"), links=np.array([3, 5]))
    more = replace(finding("plane_degraded", "plane:B"), links=np.array([5, 6]))
    assert Explainer(RULES).reduce(NS, [feed, part, more], ()) == [feed, more]
