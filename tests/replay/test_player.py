"""Player: a jump shows what playing shows, at any time, in any order of jumps."""

from __future__ import annotations

import dataclasses
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from trace_samples import NS, SECONDS, T0, fabric, record, sample_frames, write_text

from replay.analyze import analyze
from replay.keyframes import Keyframes
from replay.player import Player
from replay.trace import Trace, open_trace
from twin.errors import InputError
from twin.incident import to_json_lines
from twin.snapshot import Snapshot


def look(snapshot: Snapshot) -> bytes:
    """Everything a snapshot shows, as bytes that can be compared."""
    parts = [to_json_lines(snapshot.incidents)]

    def walk(value: object) -> None:
        if isinstance(value, np.ndarray):
            parts.append(str(value.dtype).encode() + value.tobytes())
        elif dataclasses.is_dataclass(value):
            for field in dataclasses.fields(value):
                if field.name != "topology":
                    walk(getattr(value, field.name))
        elif isinstance(value, dict):
            for key, item in value.items():
                parts.append(str(key).encode())
                walk(item)
        elif isinstance(value, (tuple, list)):
            for item in value:
                walk(item)
        else:
            parts.append(repr(value).encode())

    walk(snapshot)
    return b"|".join(parts)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record(tmp_path_factory.mktemp("player") / "t.mcap", sample_frames())


@pytest.fixture
def trace(path: Path) -> Trace:
    return open_trace(path)


def played(path: Path, time: int) -> bytes:
    """What playing from the beginning to `time` shows, second by second, without keyframes of any use."""
    player = Player(open_trace(path, topology=fabric()))
    shown = player.step_to(player.start)
    for second in range(player.start, time, NS):
        shown = player.step_to(second)
    shown = player.step_to(time)
    return look(shown)


times = st.integers(-3 * NS, (SECONDS + 3) * NS).map(lambda t: T0 + t)


@settings(max_examples=25, deadline=None)
@given(jumps=st.lists(times, min_size=1, max_size=8), limit=st.integers(2, 8), scanned=st.booleans())
def test_a_jump_shows_what_playing_there_shows(path: Path, jumps: list[int], limit: int, scanned: bool) -> None:
    player = Player(open_trace(path), keyframes=limit)
    if scanned:
        player.scan()
    for time in jumps:
        shown = look(player.step_to(time))
    assert shown == played(path, jumps[-1])


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(jumps=st.lists(times, min_size=2, max_size=6), packed=st.booleans())
def test_a_jump_is_exact_when_frames_come_out_of_order(tmp_path: Path, jumps: list[int], packed: bool) -> None:
    frames = list(sample_frames(30))
    for i in range(0, len(frames) - 20, 7):
        frames[i], frames[i + 15] = frames[i + 15], frames[i]
    path = write_text(tmp_path / "t.jsonl", frames)
    if packed:
        import zstandard

        path.write_bytes(zstandard.compress(path.read_bytes()))
    player = Player(open_trace(path, topology=fabric()), keyframes=3)
    for time in jumps:
        shown = look(player.step_to(time))
    assert shown == played(path, jumps[-1])


def test_stepping_back_one_second_at_a_time_is_exact(trace: Trace, path: Path) -> None:
    player = Player(trace)
    forward = {t: look(player.step_to(t)) for t in range(T0, T0 + SECONDS * NS, NS)}
    for t in sorted(forward, reverse=True):
        assert look(player.step_to(t)) == forward[t]


def test_the_end_shows_what_analysis_finds(trace: Trace) -> None:
    player = Player(trace)
    expected = {i.id for i in analyze(sample_frames(), fabric()).incidents}
    assert {i.id for i in player.step_to(player.end).incidents} == expected
    assert {i.id for i in player.scan()} == expected


def test_times_outside_the_trace_are_its_ends(trace: Trace) -> None:
    player = Player(trace)
    player.step_to(0)
    assert player.time == player.start == T0
    player.step_to(2**62)
    assert player.time == player.end


def test_the_pass_runs_beside_the_screen(trace: Trace, path: Path) -> None:
    player = Player(trace)
    assert player.incidents == ()
    player.start_scan()
    for t in range(T0, T0 + SECONDS * NS, 5 * NS):
        player.step_to(t)
    assert player.wait(60)
    assert player.scanned == 1.0
    assert player.failure is None
    assert to_json_lines(player.incidents) == to_json_lines(analyze(sample_frames(), fabric()).incidents)
    assert look(player.step_to(T0 + 20 * NS)) == played(path, T0 + 20 * NS)


def test_closing_ends_the_pass(trace: Trace) -> None:
    before = threading.active_count()
    player = Player(trace)
    player.close()
    player.start_scan()
    assert player.wait(60)
    assert player.scanned < 1.0
    assert threading.active_count() <= before + 1, "the pass is over, or on its last step"


def test_incidents_are_found_along_the_timeline(trace: Trace) -> None:
    player = Player(trace)
    found = sorted(player.scan(), key=lambda i: i.detected)
    assert player.incident_after(player.start) == found[0]
    assert player.incident_before(player.end) in [i for i in found if i.detected == found[-1].detected]
    assert player.incident_after(player.end) is None
    assert player.incident_before(found[0].detected) is None


def test_a_note_is_kept_for_the_time_shown(tmp_path: Path) -> None:
    record(tmp_path / "t.mcap", sample_frames(5))
    player = Player(open_trace(tmp_path / "t.mcap"))
    player.step_to(T0 + 3 * NS)
    player.add_note("here", "ops")
    assert [(n.time, n.text, n.author) for n in player.notes] == [(T0 + 3 * NS, "here", "ops")]
    assert [n.text for n in Player(open_trace(tmp_path / "t.mcap")).notes] == ["here"]


def test_a_trace_without_frames_cannot_be_played(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no frames"):
        Player(open_trace(record(tmp_path / "t.mcap", [])))


def test_keyframes_stay_within_their_number_however_long_the_trace(trace: Trace) -> None:
    player = Player(trace)
    player.step_to(T0 + 5 * NS)
    keyframe = player._cursor.keyframe()
    assert keyframe is not None
    keyframes = Keyframes(8)
    for second in range(0, 100_000, 3):
        moved = keyframe._replace(clock=T0 + second * NS)
        spread = keyframes.wants(moved.clock)
        if spread or keyframes.wants_near(moved.clock, moved.clock):
            keyframes.keep(moved, near=not spread)
    assert len(keyframes) <= 8 + 12
    gaps = [keyframes.best(T0 + s * NS) for s in range(0, 100_000, 500)]
    assert all(found is not None for found in gaps)
    assert len({found.clock for found in gaps if found is not None}) >= 4
