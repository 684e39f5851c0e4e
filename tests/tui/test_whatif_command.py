"""`whatif` as a user runs it: exit codes, lines, JSON, and nonsense refused in one line."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import Any

import pytest

from replay.recorder import Recorder
from tests.replay.trace_samples import record as record_mini
from tests.replay.trace_samples import sample_frames, write_text
from tui import main
from twin.simulator.scenario import Fault, Scenario
from twin.simulator.simulation import Simulation
from twin.topology.presets import PRESETS

B300 = "b300-superpod-ethernet"


def run(*arguments: str) -> tuple[int, str, str]:
    """Exit code, standard output, standard error."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main.run(["whatif", *arguments])
    return code, out.getvalue(), err.getvalue()


def asked(*arguments: str) -> dict[str, Any]:
    code, out, err = run(*arguments, "--json")
    assert (code, err) == (0, "")
    return dict(json.loads(out))


def test_a_plane_that_fails_is_answered_in_the_form_of_the_design() -> None:
    found = asked(B300, "--fail", "plane:B")
    assert found["failed"] == ["plane:B"] and found["gpus_affected"] == 512
    assert found["bandwidth_fraction"] == {"min": 0.5, "mean": 0.5, "by_fraction": {"0.5": 512}}
    assert [(p["plane"], p["capacity_fraction"], p["links_down"]) for p in found["planes"]] == [
        ("A", 1.0, 0),
        ("B", 0.0, 1024),
    ]
    (job,) = found["collectives"]
    assert job["fraction"] == pytest.approx(0.5) and found["power"] == []
    assert [(i["kind"], i["cause"], i["severity"]) for i in found["incidents"]] == [
        ("plane_down", "plane:B", "critical")
    ]


def test_the_text_says_it_in_80_columns() -> None:
    code, out, _ = run(B300, "--fail", "plane:B", "n003/gpu2", "--degrade", "n012/nic3/p0=0.5", "--limit", "700")
    assert code == 0 and max(map(len, out.splitlines())) <= 80
    said = "WHAT IF plane:B and n003/gpu2 fail, n012/nic3/p0 goes at 50 % of its speed, GPUs may draw 700 W"
    assert " ".join(out.splitlines()[:2]) == said
    assert "512 of 512 GPUs lose" in out and "100 % → 0 %" in out and "plane down  plane:B" in out


@pytest.mark.parametrize("name", list(PRESETS))
def test_every_preset_can_be_asked_and_fits_in_80_columns(name: str) -> None:
    node = asked(name, "--sweep", "nodes")["sweep"]["outcomes"][0]["failed"][0]
    code, out, _ = run(name, "--fail", node, "--sweep", "nodes")
    assert code == 0 and all(len(line) <= 80 for line in out.splitlines())


def test_sizes_of_a_preset_are_options() -> None:
    assert asked(B300, "--planes", "4", "--fail", "plane:C")["bandwidth_fraction"]["by_fraction"] == {"0.75": 512}


def test_a_sweep_ranks_every_failure_and_starts_after_the_changes() -> None:
    alone = asked(B300, "--sweep", "switches")["sweep"]
    assert (alone["computed"], alone["possible"]) == (24, 24)
    assert alone["outcomes"][0]["bandwidth_fraction"]["min"] == 0.5
    then = asked(B300, "--fail", "plane:B", "--sweep", "switches")["sweep"]
    assert (then["computed"], then["down_already"]) == (12, 12)
    assert then["outcomes"][0]["bandwidth_fraction"]["min"] == 0


def test_pairs_say_how_many_there_are() -> None:
    code, out, _ = run(B300, "--sweep", "nics", "--pairs")
    assert code == 0 and "2,000 of 130,816" in out and max(map(len, out.splitlines())) <= 80


# --- traces -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """24 seconds of which plane B is down from the 6th to the 15th."""
    path = tmp_path_factory.mktemp("whatif") / "t.mcap"
    scenario = Scenario("t", "hgx-b200", {"nodes": 4}, faults=(Fault("fail", "A-leaf-02", 6, until=15),), duration=24)
    simulation = Simulation(scenario)
    with Recorder(path, simulation.topology, {"name": "t"}, live=False) as recorder:
        for frame in simulation.frames():
            recorder.write(frame)
    return path


def test_a_trace_is_asked_as_it_was_at_its_end_or_at_a_time(trace: Path) -> None:
    after = asked(str(trace), "--fail", "A-leaf-03")
    assert after["bandwidth_fraction"]["by_fraction"] == {"0": 4, "1": 28}
    during = asked(str(trace), "--at", "+10s", "--fail", "A-leaf-03")
    assert during["bandwidth_fraction_before"]["by_fraction"] == {"0": 4, "1": 28}
    assert during["bandwidth_fraction"]["by_fraction"] == {"0": 8, "1": 24}
    code, _, err = run(str(trace), "--at", "+10s", "--fail", "A-leaf-02")
    assert code == 3 and "'A-leaf-02' is down already" in err


def test_a_repair_in_a_trace_says_which_incident_ends(trace: Path) -> None:
    found = asked(str(trace), "--at", "+10s", "--repair", "A-leaf-02")
    assert found["incidents_ended"] == [{"kind": "switch_down", "cause": "A-leaf-02"}]
    assert found["gpus_better"] == 4 and found["bandwidth_fraction"]["min"] == 1
    _, out, _ = run(str(trace), "--at", "+10s", "--repair", "A-leaf-02")
    assert "ends: switch down  A-leaf-02" in out


def test_a_text_trace_takes_its_wiring_from_a_site(tmp_path: Path) -> None:
    frames = list(sample_frames(20))
    recorded = record_mini(tmp_path / "m.mcap", frames)
    text = write_text(tmp_path / "m.jsonl", frames)
    code, _, err = run(str(text), "--fail", "A-leaf-0")
    assert code == 3 and "--site" in err
    assert asked(str(recorded), "--at", "+5s", "--fail", "A-leaf-0")["bandwidth_fraction"]["min"] == 0.5


# --- nonsense ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nope", "--fail", "x"], "'nope' is not a preset"),
        (["nope.mcap", "--fail", "x"], "nope.mcap: no such file"),
        ([B300, "--fail", "B-leaf-7"], "did you mean B-leaf-07?"),
        ([B300, "--fail", "n012/gpu9"], "did you mean n012/gpu"),
        ([B300, "--fail", "plane:Q"], "planes are A, B"),
        ([B300, "--fail", "plane:B", "B-leaf-00"], "'B-leaf-00' is down already"),
        ([B300, "--repair", "plane:B"], "is whole already"),
        ([B300], "nothing is asked"),
        ([B300, "n012"], "what of it?"),
        ([B300, "--fail", "n012", "--repair", "n013", "n014"], "is it to fail or to be repaired?"),
        ([B300, "--sweep", "cats"], "expected one of switches"),
        ([B300, "--sweep", "feeds"], "has no feeds"),
        ([B300, "--fail", "n012", "--pairs"], "--pairs: of what?"),
        ([B300, "--degrade", "n012/nic3"], "expected ADDRESS=SHARE"),
        ([B300, "--degrade", "n012/nic3=half"], "expected ADDRESS=SHARE"),
        ([B300, "--degrade", "n012/nic3=2"], "between 0 and 1"),
        ([B300, "--limit", "nan"], "above 0"),
        ([B300, "--limit", "warm"], "'warm' is not a valid float"),
        ([B300, "--fail", "plane:B", "--at", "12:00"], "only a trace"),
        (["rtx-pro-6000", "--planes", "3", "--fail", "plane:A"], "has no parameter 'planes'"),
    ],
)
def test_nonsense_is_refused_in_one_line_with_exit_3(arguments: list[str], words: str) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (3, "") and words in err and err.count("\n") == 1


def test_a_time_that_is_none_is_refused(trace: Path) -> None:
    code, _, err = run(str(trace), "--at", "noonish", "--fail", "A-leaf-02")
    assert code == 3 and "--at: 'noonish' is no time" in err and err.count("\n") == 1
