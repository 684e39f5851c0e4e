"""Analysis: the form it has, and that nothing but the frames and their order decides what it says."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from trace_samples import NS, SECONDS, T0, fabric, record, sample_frames

from replay.analyze import analyze, analyze_trace
from replay.convert import convert
from replay.player import Player
from replay.recorder import Recorder
from replay.trace import open_trace
from twin.frames import to_line
from twin.incident import to_json_lines
from twin.simulator.scenario import DEMO
from twin.simulator.simulation import Simulation
from twin.twin import Twin


def test_the_json_has_the_form_of_the_design(tmp_path: Path) -> None:
    found = json.loads(json.dumps(analyze_trace(open_trace(record(tmp_path / "t.mcap", sample_frames()))).to_json()))
    assert list(found) == ["trace", "incidents", "summary"]
    assert found["trace"] == {
        "start": T0 / NS,
        "end": pytest.approx(T0 / NS + SECONDS - 1, abs=0.1),
        "frames": 600,
        "sources": ["A-leaf-0", "B-leaf-0", "n0", "n1", "n2", "n3"],
        "truncated": False,
    }
    assert list(found["summary"]) == ["critical", "warning", "info"]
    assert sum(found["summary"].values()) == len(found["incidents"]) > 0


def test_the_lost_plane_is_found(tmp_path: Path) -> None:
    found = analyze(sample_frames(), fabric())
    worst = next(i for i in found.incidents if i.severity == "critical")
    assert worst.affected.gpus == 8
    assert worst.started == pytest.approx(T0 + 15 * NS, abs=NS)
    assert worst.resolved is not None
    assert found.exit_code == 2


def test_a_healthy_trace_gives_nothing() -> None:
    found = analyze(sample_frames(10, seed=1), fabric())
    assert found.incidents == ()
    assert found.exit_code == 0
    assert "0 critical, 0 warning, 0 info" in found.text()


def test_a_trace_without_frames_is_analysed() -> None:
    found = analyze([], fabric())
    assert found.to_json()["trace"] == {"start": None, "end": None, "frames": 0, "sources": [], "truncated": False}
    assert found.text().startswith("no frames")


def test_the_text_says_what_a_person_needs_and_fits_the_screen() -> None:
    text = analyze(sample_frames(), fabric()).text(width=80)
    assert "2025-12-01 00:00:00 to 00:00:59 UTC (0m59s), 600 frames from 6 sources" in text
    assert "CRITICAL" in text
    assert "B" in text
    assert max(map(len, text.splitlines())) <= 80


def test_a_cut_trace_is_analysed_and_says_so(tmp_path: Path) -> None:
    path = record(tmp_path / "t.mcap", sample_frames())
    path.write_bytes(path.read_bytes()[:-5000])
    found = analyze_trace(open_trace(path))
    assert found.truncated
    assert found.to_json()["trace"]["truncated"] is True
    assert "TRUNCATED" in found.text()
    assert "cut at byte" in found.text()


def test_names_that_the_wiring_does_not_have_are_told(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"time": 1764547200, "source": "x", "samples": {"x/gpu0": {"power_watts": 1}}}\n')
    found = analyze_trace(open_trace(path, topology=fabric()))
    assert "names that the wiring does not have: 1, such as x/gpu0" in found.problems


def test_progress_is_told() -> None:
    seen: list[tuple[int, int]] = []
    analyze(sample_frames(200), fabric(), lambda frames, time: seen.append((frames, time)))
    assert [frames for frames, _ in seen] == [1000, 2000]
    assert T0 < seen[0][1] < seen[1][1]


@pytest.mark.parametrize("seed", range(3))
def test_the_form_of_the_trace_does_not_change_the_incidents(tmp_path: Path, seed: int) -> None:
    path = record(tmp_path / "t.mcap", sample_frames(seed=seed))
    expected = to_json_lines(analyze(sample_frames(seed=seed), fabric()).incidents)
    assert expected
    assert to_json_lines(analyze_trace(open_trace(path)).incidents) == expected
    for name in ("t.jsonl", "t.jsonl.zst"):
        convert(path, tmp_path / name)
        assert to_json_lines(analyze_trace(open_trace(tmp_path / name, topology=fabric())).incidents) == expected
    lines = []  # one line a source and second, of both its kinds
    for _, group in groupby(sample_frames(seed=seed), key=lambda f: (f.source, f.time)):
        parts = [msgspec.json.decode(to_line(frame)) for frame in group]
        parts[0]["samples"] = {name: values for part in parts for name, values in part["samples"].items()}
        lines.append(msgspec.json.encode(parts[0]).decode() + "\n")
    (tmp_path / "merged.jsonl").write_text("".join(lines))
    assert (
        to_json_lines(analyze_trace(open_trace(tmp_path / "merged.jsonl", topology=fabric())).incidents) == expected
    )


def test_a_simulated_fabric_is_judged_alike_live_recorded_and_as_text(tmp_path: Path) -> None:
    simulation = Simulation(replace(DEMO, duration=25.0))
    live = Twin(simulation.topology)
    with Recorder(tmp_path / "t.mcap", simulation.topology, live=False) as out:
        for frame in simulation.frames():
            out.write(frame)
            live.ingest(frame)
    live.finish()
    convert(tmp_path / "t.mcap", tmp_path / "t.jsonl.zst")
    text = open_trace(tmp_path / "t.jsonl.zst", topology=simulation.topology)
    expected = to_json_lines(live.incidents)
    assert expected
    assert to_json_lines(analyze_trace(open_trace(tmp_path / "t.mcap")).incidents) == expected
    assert to_json_lines(analyze_trace(text).incidents) == expected


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 2**32), speed=st.floats(0.05, 90), look=st.booleans(), chunk=st.sampled_from([0.5, 3, 1e6])
)
def test_the_speed_of_a_replay_does_not_change_the_incidents(
    tmp_path: Path, seed: int, speed: float, look: bool, chunk: float
) -> None:
    frames = list(sample_frames(45, seed))
    expected = to_json_lines(analyze(frames, fabric()).incidents)
    path = record(tmp_path / "t.mcap", frames, overwrite=True, chunk_seconds=chunk)
    player = Player(open_trace(path))
    time = player.start
    while time < player.end:
        time = min(time + round(speed * NS), player.end)
        shown = player.step_to(time)
    assert to_json_lines(tuple(sorted(shown.incidents, key=lambda i: i.id))) == to_json_lines(
        tuple(sorted(analyze(frames, fabric()).incidents, key=lambda i: i.id))
    )
    assert to_json_lines(player.scan()) == expected
    twin = Twin(fabric())  # fed in one go, looked at or not
    for frame in frames:
        twin.ingest(frame)
        if look:
            twin.snapshot()
    twin.finish()
    assert to_json_lines(twin.incidents) == expected
