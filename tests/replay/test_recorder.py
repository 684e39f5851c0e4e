"""Recorder: what it writes can be read back, by this program and by others, whatever happens meanwhile."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mcap.reader import make_reader
from trace_samples import T0, any_frames, fabric, record, sample_frames

from replay import layout, recorder
from replay.packing import Unpacker
from replay.recorder import Recorder, RecordingError
from replay.records import Note
from replay.trace import open_trace
from twin.errors import InputError
from twin.frames import NS, Frame
from twin.snapshot import Event
from twin.topology.explicit import to_wiring
from twin.twin import Twin

# a recorder on its own, in wall time: argv is the path, how many frames, and the pause between them in seconds
LIVE = """
import sys, time
from trace_samples import fabric, sample_frames
from replay.recorder import Recorder
recorder = Recorder(sys.argv[1], fabric())
for count, frame in enumerate(sample_frames(100_000), 1):
    recorder.write(frame)
    print(count, time.monotonic_ns(), flush=True)
    if count == int(sys.argv[2]):
        time.sleep(60)
    time.sleep(float(sys.argv[3]))
"""


def live_recorder(path: Path, *, frames: int, pause: float) -> subprocess.Popen[str]:
    """Starts LIVE, which prints each frame's number and when it was handed over."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
    command = [sys.executable, "-c", LIVE, str(path), str(frames), str(pause)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def test_a_recording_gives_back_every_frame_in_its_order(tmp_path: Path) -> None:
    frames = list(sample_frames())
    trace = open_trace(record(tmp_path / "t.mcap", frames))
    assert list(trace.frames()) == frames
    assert (trace.start, trace.end) == (frames[0].time, frames[-1].time)
    assert not trace.truncated
    assert trace.problems == []


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(frames=st.lists(any_frames(), max_size=12))
def test_any_frame_survives_recording_bit_by_bit(tmp_path: Path, frames: list[Frame]) -> None:
    path = record(tmp_path / "t.mcap", frames, overwrite=True)
    trace = open_trace(path)
    assert list(trace.frames()) == frames
    assert not trace.truncated


def test_the_wiring_and_the_site_travel_with_the_recording(tmp_path: Path) -> None:
    trace = open_trace(record(tmp_path / "t.mcap", sample_frames(2)))
    assert to_wiring(trace.topology) == to_wiring(fabric())
    assert trace.site == {"name": "mini"}
    assert trace.metadata["format_version"] == str(layout.FORMAT_VERSION)


def test_the_stock_reader_opens_a_recording(tmp_path: Path) -> None:
    frames = list(sample_frames(20))
    with record(tmp_path / "t.mcap", frames).open("rb") as stream:
        reader = make_reader(stream, validate_crcs=True)
        found = list(reader.iter_messages(log_time_order=False))
        summary = reader.get_summary()
        attachments = {a.name: a.media_type for a in reader.iter_attachments()}
    unpacker = Unpacker()
    keys = [(channel.metadata["source"], channel.metadata["kind"]) for _, channel, _ in found]
    unpacked = [unpacker.unpack(key, message.data) for key, (_, _, message) in zip(keys, found, strict=True)]
    assert unpacked == frames
    assert [message.log_time for _, _, message in found] == [frame.time for frame in frames]
    assert {channel.message_encoding for _, channel, _ in found} == {layout.PACKED_ENCODING}
    assert summary is not None
    assert summary.statistics is not None
    assert summary.statistics.message_count == len(frames)
    assert attachments == {"topology": "application/json", "site": "application/json"}


def test_the_stock_reader_finds_frames_by_time_and_topic(tmp_path: Path) -> None:
    with record(tmp_path / "t.mcap", sample_frames(20)).open("rb") as stream:
        reader = make_reader(stream)
        found = reader.iter_messages(topics=["frames/n1/gpu"], starting_at=T0 + 5 * NS, ending_before=T0 + 8 * NS)
        seconds = [(message.log_time - T0) // NS for _, _, message in found]
    assert seconds == [5, 6, 7]


def test_chunks_span_less_than_two_seconds_of_event_time(tmp_path: Path) -> None:
    with record(tmp_path / "t.mcap", sample_frames(30)).open("rb") as stream:
        summary = make_reader(stream).get_summary()
    assert summary is not None
    spans = [chunk.message_end_time - chunk.message_start_time for chunk in summary.chunk_indexes]
    assert len(spans) >= 15
    assert max(spans) <= 2 * NS


def test_one_source_with_a_wrong_clock_does_not_break_up_the_chunks(tmp_path: Path) -> None:
    late = [
        Frame(f.time - 3600 * NS if f.source == "n1" else f.time, f.source, f.kind, f.names, f.columns)
        for f in sample_frames(30)
    ]
    trace = open_trace(record(tmp_path / "t.mcap", late))
    assert list(trace.frames()) == late
    with (tmp_path / "t.mcap").open("rb") as stream:
        summary = make_reader(stream).get_summary()
    assert summary is not None
    assert len(summary.chunk_indexes) <= 30


def test_notes_and_what_was_said_of_incidents_are_kept(tmp_path: Path) -> None:
    twin, said = Twin(fabric()), 0
    with Recorder(tmp_path / "t.mcap", fabric(), live=False) as out:
        for frame in sample_frames(25):
            twin.ingest(frame)
            out.write(frame)
            for event in twin.events[said:]:
                assert isinstance(event, Event)
                out.event(event)
            said = len(twin.events)
        out.note(Note(T0 + 20 * NS, "spine swapped — mind the gap", "ops"))
    trace = open_trace(tmp_path / "t.mcap")
    assert trace.notes == [Note(T0 + 20 * NS, "spine swapped — mind the gap", "ops")]
    assert said > 0
    assert [s.what for s in trace.tally.said] == [e.what for e in twin.events]
    assert trace.tally.said[0].incident == twin.events[0].incident.to_json()
    assert trace.end == list(sample_frames(25))[-1].time


def test_an_existing_recording_is_not_written_over(tmp_path: Path) -> None:
    path = record(tmp_path / "t.mcap", sample_frames(2))
    before = path.read_bytes()
    with pytest.raises(InputError, match="exists and is not empty"):
        Recorder(path, fabric())
    assert path.read_bytes() == before


def test_a_place_that_cannot_be_written_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no/t\.mcap: cannot be written: No such file or directory"):
        Recorder(tmp_path / "no" / "t.mcap", fabric())


def test_more_sources_than_channel_numbers_are_all_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder, "_MAX_CHANNELS", 3)
    frames = list(sample_frames(3))
    trace = open_trace(record(tmp_path / "t.mcap", frames))
    assert list(trace.frames()) == frames


def test_a_frame_reaches_the_disk_although_none_follows(tmp_path: Path) -> None:
    path = tmp_path / "t.mcap"
    frame = next(sample_frames(1))
    with Recorder(path, fabric()) as out:
        out.write(frame)
        deadline = time.monotonic() + 2
        while time.monotonic() < deadline and not list(open_trace(path).frames()):
            time.sleep(0.05)
        assert list(open_trace(path).frames()) == [frame]


@pytest.mark.parametrize(("frames", "pause"), [(100_000, 0.0), (100_000, 0.01), (7, 0.0)])
def test_kill_9_loses_at_most_two_seconds(tmp_path: Path, frames: int, pause: float) -> None:
    path = tmp_path / "t.mcap"
    process = live_recorder(path, frames=frames, pause=pause)
    assert process.stdout is not None
    try:
        process.stdout.readline()
        time.sleep(Random(f"{frames}{pause}").uniform(2.2, 3.5))
    finally:
        killed = time.monotonic_ns()
        process.send_signal(signal.SIGKILL)
    handed = [tuple(map(int, line.split())) for line in process.stdout if line.endswith("\n")]
    process.wait()
    trace = open_trace(path)
    found = list(trace.frames())
    old_enough = 1 + sum(at < killed - 2 * NS for _, at in handed)  # the first line was read above
    assert trace.truncated
    assert len(found) >= old_enough
    assert all(a == b for a, b in zip(found, sample_frames(len(found)), strict=False))
    assert to_wiring(trace.topology) == to_wiring(fabric())


FULL = """
import resource, sys
from trace_samples import fabric, sample_frames
from replay.recorder import Recorder, RecordingError
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))
recorder = Recorder(sys.argv[1], fabric(), live=sys.argv[3] == "live", chunk_seconds=float(sys.argv[4]))
for frame in sample_frames(200):
    try:
        recorder.write(frame)
    except RecordingError as problem:
        print(problem)
try:
    recorder.close()
except RecordingError as problem:
    print(problem)
print(recorder.frames, recorder.error is not None)
"""


@pytest.mark.parametrize(
    ("limit", "live", "seconds"),
    [(9_000, "live", 1.5), (12_345, "offline", 1.5), (20_001, "live", 1e6), (20_001, "offline", 1e6)],
)
def test_a_full_disk_ends_the_recording_with_one_error_and_keeps_what_is_there(
    tmp_path: Path, limit: int, live: str, seconds: float
) -> None:
    path = tmp_path / "t.mcap"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
    command = [sys.executable, "-c", FULL, str(path), str(limit), live, str(seconds)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert done.stderr == ""
    error, last = done.stdout.splitlines()
    assert error.startswith(f"{path}: the recording has stopped: File too large; the ")
    frames, failed = last.split()
    assert failed == "True"
    assert f"the {frames} frames before stay readable" in error
    trace = open_trace(path)
    found = list(trace.frames())
    assert len(found) == int(frames)
    assert all(a == b for a, b in zip(found, sample_frames(200), strict=False))
    assert trace.truncated
    assert path.stat().st_size <= limit


def test_a_disk_that_is_full_at_once_is_one_error() -> None:
    with pytest.raises(RecordingError, match="/dev/full: the recording has stopped: No space left on device"):
        Recorder("/dev/full", fabric())


def test_an_error_of_the_caller_still_closes_the_recording(tmp_path: Path) -> None:
    frames = list(sample_frames(4))

    def fail() -> None:
        with Recorder(tmp_path / "t.mcap", fabric()) as out:
            for frame in frames:
                out.write(frame)
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        fail()
    trace = open_trace(tmp_path / "t.mcap")
    assert list(trace.frames()) == frames
    assert not trace.truncated


def test_a_closed_recorder_lets_frames_go(tmp_path: Path) -> None:
    out = Recorder(tmp_path / "t.mcap", fabric())
    out.close()
    out.write(next(sample_frames(1)))
    out.close()
    trace = open_trace(tmp_path / "t.mcap")
    assert list(trace.frames()) == []
    assert trace.start is None
    assert not trace.truncated
