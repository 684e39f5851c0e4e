"""Drills in anyone's test suite: the fixture, drill files as tests, and what a failure says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from replay.drills.suite import DrillFailed, FluentDrill
from tui.main import run
from twin.errors import InputError

pytest_plugins = ["pytester"]

YAML = """\
name: a leaf
topology: {preset: hgx-h100, nodes: 8}
duration: 30s
faults: [{at: 10s, fail: A-leaf-03}]
expect: [{incident: KIND, cause: A-leaf-03, within: 4s}]
"""


def test_a_lost_plane_is_expected_in_one_line(drill: Callable[..., FluentDrill]) -> None:
    drill("gb300-nvl72-ethernet").fail("plane:B", at=10).expect("plane_down", within=3).nothing_else()


def test_faults_and_expectations_may_be_many(drill: Callable[..., FluentDrill]) -> None:
    (
        drill("hgx-h100", nodes=8, seed=3)
        .fail("A-leaf-03", at="10s", until="20s")
        .expect("switch_down", gpus=8, resolved_within=6)
        .degrade("n002/nic5/p0", at=30, speed_fraction=0.5)
        .expect("link_slow")
        .nothing_else()
    )


def test_what_was_not_found_fails_with_a_timeline_and_a_way_to_look_at_it(
    drill: Callable[..., FluentDrill], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(DrillFailed) as failed:
        drill("hgx-h100", nodes=8).fail("A-leaf-03", at=10).expect("plane_down", cause="plane:A")
    text = str(failed.value)
    assert "expected plane_down plane:A, nothing was raised" in text
    assert "10.0 s  put in    fail A-leaf-03" in text and "told      switch_down A-leaf-03" in text
    command, path = text.splitlines()[-1].rsplit(" ", 1)
    assert command == "open it in the screen: fabrictwin demo --scenario"
    assert run(["demo", "--scenario", path, "--plain", "--speed", "0"]) == 0
    assert "switch_down A-leaf-03" in capsys.readouterr().out


def test_what_was_not_expected_fails_where_nothing_else_may_be(drill: Callable[..., FluentDrill]) -> None:
    with pytest.raises(DrillFailed, match="unexpected switch_down A-leaf-03"):
        drill("hgx-h100", nodes=8).fail("A-leaf-03", at=10).nothing_else()


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda d: d("no-such"), "no-such"),
        (lambda d: d("hgx-h100", nodes=0), "nodes"),
        (lambda d: d("hgx-h100", workload="sleep"), "'sleep' is not a workload"),
        (lambda d: d("hgx-h100", nodes=8).fail("A-leaf-77", at=1).nothing_else(), "A-leaf-77"),
    ],
)
def test_what_cannot_be_run_is_said(
    drill: Callable[..., FluentDrill], make: Callable[[Callable[..., FluentDrill]], object], says: str
) -> None:
    with pytest.raises(InputError, match=says):
        make(drill)


def test_a_suite_of_somebody_else_has_the_fixture_and_its_drill_files_are_tests(pytester: pytest.Pytester) -> None:
    one_line = "drill('hgx-h100', nodes=8).fail('A-leaf-03', at=10).expect('switch_down')"
    pytester.makepyfile(test_mine=f"def test_it(drill):\n    {one_line}\n")
    for name, kind in (("good", "switch_down"), ("bad", "plane_down")):
        Path(f"{name}.drill.yaml").write_text(YAML.replace("KIND", kind))
    Path("wrong.drill.yaml").write_text("name: x\ntopology: {preset: nope}\n")
    result = pytester.runpytest_subprocess("-q", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=2, failed=2)
    result.stdout.fnmatch_lines(["*NOT plane_down A-leaf-03*", "*fabrictwin demo --scenario *bad.drill.yaml*"])
    result.stdout.fnmatch_lines(["*wrong.drill.yaml:2: topology.preset*"])
    result.stdout.no_fnmatch_line("*Traceback*")
