"""Jobs in a drill file: who works where, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from replay.drills.file import library, load_drill
from twin.errors import InputError
from twin.simulator.scenario import Job
from twin.simulator.simulation import Simulation

DRILL = """\
name: two jobs
topology: {preset: gb300-nvl72-ethernet}
jobs:
  - {name: train-7, nodes: "n[000-003]", kind: allreduce, utilization: 0.7}
  - {name: serve, nodes: [n010, "n[020-021]"], kind: alltoall}
faults:
  - {at: 5s, abandon: [train-7, "plane:B"]}
duration: 8s
"""


def test_jobs_are_read_with_patterns_of_their_nodes(tmp_path: Path) -> None:
    path = tmp_path / "d.yaml"
    path.write_text(DRILL)
    scenario = load_drill(path).scenario
    assert scenario.jobs == (
        Job("train-7", ("n000", "n001", "n002", "n003"), "allreduce", 0.7),
        Job("serve", ("n010", "n020", "n021"), "alltoall", 0.8),
    )
    assert [(name, kind) for name, _, kind in Simulation(scenario).topology.jobs] == [
        ("train-7", "allreduce"),
        ("serve", "alltoall"),
    ]


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("n[000-003]", "n[003-000]", r"d\.yaml:4: jobs\[0\]\.nodes: .*goes down"),
        ('"n[000-003]"', "[]", r"d\.yaml:4: jobs\[0\]\.nodes"),
        ("kind: alltoall", "kind: alltwo", r"d\.yaml:5: jobs\[1\]\.kind"),
        ("utilization: 0.7", "utilization: 7", r"d\.yaml:4: jobs\[0\]\.utilization"),
        ("name: serve", "name: ser/ve", r"d\.yaml:5: jobs\[1\]\.name"),
        ('abandon: [train-7, "plane:B"]', "abandon: [train-7]", r"d\.yaml:7: faults\[0\]\.abandon"),
    ],
)
def test_a_wrong_job_is_refused_with_its_line(tmp_path: Path, old: str, new: str, reason: str) -> None:
    path = tmp_path / "d.yaml"
    path.write_text(DRILL.replace(old, new))
    with pytest.raises(InputError, match=reason):
        load_drill(path)


def test_drills_of_unused_planes_are_shipped() -> None:
    shipped = {"silent-plane", "silent-leaf", "silent-spine", "job-left-behind", "job-on-one-plane", "quiet-planes"}
    assert shipped <= set(library())
