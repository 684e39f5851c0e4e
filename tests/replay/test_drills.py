"""Drills: every shipped one passes, a wrong expectation fails, a wrong file is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from replay.drills.file import library, load_drill
from replay.drills.runner import run_drill
from twin.errors import InputError

DESIGN = """\
name: one plane lost
topology: {preset: b300-superpod-ethernet, scalable_units: 1}
workload: {kind: allreduce, utilization: 0.8}
interval: 1s
duration: 90s
seed: 7
faults:
  - {at: 30s, fail: "plane:B", until: 60s}
  - {at: 40s, degrade: "n012/nic3/p0", speed_fraction: 0.5}
expect:
  - {incident: plane_down, cause: "plane:B", within: 3s, gpus: 512, bandwidth_fraction: 0.5, resolved_within: 5s}
  - {incident: link_slow, cause: "n012/nic3/p0", within: 3s}
  - {nothing_else: true}
"""


@pytest.mark.parametrize("name", library())
def test_every_shipped_drill_passes(name: str) -> None:
    result = run_drill(load_drill(library()[name]))
    assert result.passed, result.to_text()


def test_the_drill_of_the_design_passes_for_ten_seeds(tmp_path: Path) -> None:
    path = tmp_path / "d.yaml"
    path.write_text(DESIGN)
    drill = load_drill(path)
    for seed in range(10):
        result = run_drill(replace(drill, scenario=replace(drill.scenario, seed=seed)))
        assert result.passed, result.to_text()


@pytest.mark.parametrize(
    ("old", "new", "missed"),
    [
        ("gpus: 512", "gpus: 511", "512 GPUs affected, expected 511"),
        ("bandwidth_fraction: 0.5", "bandwidth_fraction: 0.4", "bandwidth_fraction 0.5, expected 0.4"),
        ("within: 3s, gpus", "within: 500ms, gpus", "expected within 0.5 s"),
        ("incident: link_slow", "incident: link_down", "expected link_down n012/nic3/p0, nothing was raised"),
        ("resolved_within: 5s", "resolved_within: 1s", "expected within 1 s"),
    ],
)
def test_an_expectation_that_is_not_met_fails_the_drill_and_says_what_was_seen(
    tmp_path: Path, old: str, new: str, missed: str
) -> None:
    path = tmp_path / "d.yaml"
    path.write_text(DESIGN.replace(old, new))
    result = run_drill(load_drill(path))
    assert not result.passed
    assert missed in result.to_text()


def test_an_incident_that_nobody_expected_fails_a_drill_that_wants_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "d.yaml"
    path.write_text("\n".join(line for line in DESIGN.splitlines() if "link_slow" not in line))
    result = run_drill(load_drill(path))
    assert not result.passed and [i.kind for i in result.unexpected] == ["link_slow"]


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("fail:", "fial:", r"d\.yaml:8: faults\[0\]\.fial: unknown key"),
        ("until: 60s", "until: 10s", r"d\.yaml:8: .*until \(10 s\) must come after"),
        ("incident: link_slow", "incident: link_slo", r"d\.yaml:12: .*'link_slo' is not a kind of incident"),
        ("kind: allreduce", "kind: allredcue", r"d\.yaml:3: workload"),
        ("b300-superpod-ethernet", "b300", r"d\.yaml:2: topology\.preset: 'b300' is not a preset"),
        ("at: 30s", "at: soon", r"d\.yaml:8: .*'soon' is not a duration"),
        ('fail: "plane:B"', "lag: n012", r"d\.yaml:8: .*lag takes late: by how much"),
        ('fail: "plane:B"', "late: 4s, fail: n012", r"d\.yaml:8: .*lag takes late: by how much"),
    ],
)
def test_a_wrong_drill_file_is_refused_with_its_line(tmp_path: Path, old: str, new: str, reason: str) -> None:
    path = tmp_path / "d.yaml"
    path.write_text(DESIGN.replace(old, new, 1))
    with pytest.raises(InputError, match=reason):
        load_drill(path)


def test_a_fault_on_something_that_is_not_there_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "d.yaml"
    path.write_text(DESIGN.replace("plane:B", "plane:Q", 1))
    with pytest.raises(InputError, match=r"d\.yaml: there is no 'plane:Q'"):
        run_drill(load_drill(path))
