"""Traces: whatever is left of a file is read, and what is missing is said."""

from __future__ import annotations

import json
import os
import random
from io import BytesIO
from pathlib import Path

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mcap.reader import make_reader
from mcap.writer import CompressionType, Writer
from trace_samples import NS, T0, any_frames, fabric, known, record, sample_frames, write_text

from replay import layout
from replay.records import Note
from replay.trace import Trace, open_trace
from twin.errors import InputError
from twin.frames import Frame, encode, to_line
from twin.topology.explicit import to_wiring

HARMLESS = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, list[Frame]]:
    frames = list(sample_frames(12))
    path = record(tmp_path_factory.mktemp("recording") / "t.mcap", frames)
    return path.read_bytes(), frames


def is_prefix(found: list[Frame], frames: list[Frame]) -> bool:
    return len(found) <= len(frames) and all(a == b for a, b in zip(found, frames, strict=False))


def test_a_recording_cut_anywhere_gives_what_lies_before_the_cut(
    tmp_path: Path, recording: tuple[bytes, list[Frame]]
) -> None:
    data, frames = recording
    dice = random.Random(1)
    cuts = sorted(
        {*range(1, 40), *range(len(data) - 60, len(data)), *(dice.randrange(1, len(data)) for _ in range(300))}
    )
    path, last = tmp_path / "cut.mcap", 0
    for cut in cuts:
        path.write_bytes(data[:cut])
        trace = open_trace(path, topology=fabric())
        found = list(trace.frames())
        assert is_prefix(found, frames), cut
        assert trace.truncated, cut
        assert trace.problems[0].startswith("cut at byte"), cut
        assert len(found) >= last, cut  # a longer rest never gives less
        last = len(found)
        assert (trace.start, trace.end) == ((found[0].time, found[-1].time) if found else (None, None)), cut
    assert last == len(frames)


def test_a_closed_recording_tells_its_times_without_being_read(
    tmp_path: Path, recording: tuple[bytes, list[Frame]]
) -> None:
    data, frames = recording
    path = tmp_path / "t.mcap"
    path.write_bytes(data)
    trace = open_trace(path)
    assert (trace.start, trace.end) == (frames[0].time, frames[-1].time)
    assert not trace.scanned
    assert list(trace.frames()) == frames
    assert trace.scanned


def test_a_record_that_turned_into_another_is_missed(tmp_path: Path, recording: tuple[bytes, list[Frame]]) -> None:
    data, frames = recording
    summary = make_reader(BytesIO(data)).get_summary()
    assert summary is not None
    chunk = summary.chunk_indexes[len(summary.chunk_indexes) // 2].chunk_start_offset
    assert data[chunk] == 6  # its opcode
    path = tmp_path / "t.mcap"
    path.write_bytes(data[:chunk] + b"\x80" + data[chunk + 1 :])
    trace = open_trace(path)
    found = list(trace.frames())
    assert len(found) < len(frames)
    assert trace.truncated
    assert all(problem.startswith(("damaged", "more damage")) for problem in trace.problems)
    kept = {(f.time, f.source, f.kind): f for f in frames}
    assert all(f == kept[f.time, f.source, f.kind] for f in found)


def test_a_recording_of_the_first_version_is_read_as_before(tmp_path: Path) -> None:
    path, frames = tmp_path / "old.mcap", list(sample_frames(5))
    with path.open("wb") as stream:
        writer = Writer(stream)
        writer.start(layout.PROFILE, "fabrictwin 0")
        writer.add_metadata(layout.METADATA, {"format_version": "1", "program": "fabrictwin 0", "topology": "mini"})
        writer.add_attachment(0, 0, layout.TOPOLOGY, "application/json", json.dumps(to_wiring(fabric())).encode())
        for frame in frames:
            topic = f"{layout.FRAMES_TOPIC}/{frame.source}/{frame.kind}"
            channel = writer.register_channel(topic, layout.FRAME_ENCODING, 0)
            writer.add_message(channel, frame.time, encode(frame), frame.time)
        writer.finish()
    trace = open_trace(path)
    assert list(trace.frames()) == frames
    assert not trace.truncated


def test_frames_of_a_chunk_that_is_itself_cut_are_recovered(tmp_path: Path) -> None:
    frames = list(sample_frames(400))
    path = record(tmp_path / "t.mcap", frames, chunk_seconds=1e6)  # one chunk, of many blocks
    data = path.read_bytes()
    path.write_bytes(data[: len(data) * 9 // 10])
    found = list(open_trace(path).frames())
    assert len(frames) // 2 < len(found) < len(frames)
    assert is_prefix(found, frames)


def test_a_recording_cut_before_its_wiring_asks_for_a_site(
    tmp_path: Path, recording: tuple[bytes, list[Frame]]
) -> None:
    path = tmp_path / "cut.mcap"
    path.write_bytes(recording[0][:100])
    with pytest.raises(InputError, match="cut before its wiring; give the fabric's wiring with --site SITE"):
        _ = open_trace(path).topology


def test_a_wiring_that_is_not_what_was_written_is_not_used(
    tmp_path: Path, recording: tuple[bytes, list[Frame]]
) -> None:
    path = tmp_path / "bad.mcap"
    path.write_bytes(recording[0].replace(b'"n3/nic0/p0"', b'"n2/nic0/p0"', 1))
    trace = open_trace(path)
    assert list(trace.frames()) == recording[1]
    with pytest.raises(InputError, match=r"its wiring is damaged; give .* --site SITE"):
        _ = trace.topology


def test_a_damaged_chunk_is_skipped_and_the_rest_is_read(
    tmp_path: Path, recording: tuple[bytes, list[Frame]]
) -> None:
    data, frames = recording
    dice, path, skipped = random.Random(2), tmp_path / "bad.mcap", 0
    for _ in range(60):
        at = dice.randrange(len(data) // 4, len(data))
        path.write_bytes(data[:at] + bytes([data[at] ^ 1 << dice.randrange(8)]) + data[at + 1 :])
        trace = open_trace(path, topology=fabric())
        found = list(trace.frames())
        assert trace.truncated == bool(trace.problems)
        left = iter(frames)
        assert all(any(frame == other for other in left) for frame in found)  # in order, none made up
        if len(found) < len(frames):
            assert trace.truncated
            skipped += any("is skipped" in problem for problem in trace.problems)
    assert skipped > 10


def test_a_tail_of_zeros_as_a_power_loss_leaves_it_is_told(
    tmp_path: Path, recording: tuple[bytes, list[Frame]]
) -> None:
    data, frames = recording
    path = tmp_path / "zeros.mcap"
    path.write_bytes(data[: len(data) // 2] + bytes(5000))
    trace = open_trace(path, topology=fabric())
    assert is_prefix(list(trace.frames()), frames)
    assert trace.truncated


def test_frames_come_in_the_order_of_arrival_not_of_time(tmp_path: Path) -> None:
    frames = list(sample_frames(10))
    random.Random(3).shuffle(frames)
    trace = open_trace(record(tmp_path / "t.mcap", frames))
    assert list(trace.frames()) == frames
    assert (trace.start, trace.end) == (min(f.time for f in frames), max(f.time for f in frames))


@pytest.mark.parametrize("compression", [CompressionType.NONE, CompressionType.LZ4, CompressionType.ZSTD])
@pytest.mark.parametrize("chunked", [True, False])
def test_a_recording_rewritten_by_other_tools_is_read(
    tmp_path: Path, compression: CompressionType, chunked: bool
) -> None:
    frames = list(sample_frames(3))
    with (tmp_path / "t.mcap").open("wb") as stream:
        writer = Writer(stream, compression=compression, use_chunking=chunked)
        writer.start(layout.PROFILE)
        channel = writer.register_channel("frames", layout.FRAME_ENCODING, 0)
        other = writer.register_channel("something else", "json", 0)
        for frame in frames:
            writer.add_message(channel, frame.time, encode(frame), frame.time)
            writer.add_message(other, frame.time, b"{}", frame.time)
        writer.finish()
    trace = open_trace(tmp_path / "t.mcap", topology=fabric())
    assert list(trace.frames()) == frames
    assert not trace.truncated


# --- text ---


@HARMLESS
@given(frames=st.lists(any_frames(text=True), max_size=8))
def test_text_keeps_every_known_value_and_the_time_to_the_microsecond(tmp_path: Path, frames: list[Frame]) -> None:
    for suffix in (".jsonl", ".jsonl.zst"):
        path = tmp_path / f"t{suffix}"
        data = "".join(to_line(frame) + "\n" for frame in frames).encode() + b"\n"
        path.write_bytes(data if suffix == ".jsonl" else zstandard.compress(data))
        found = list(open_trace(path).frames())
        assert [(f.time, f.source, f.kind, f.names) for f in found] == [
            (f.time, f.source, f.kind, f.names) for f in frames
        ]
        assert [known(f) for f in found] == [known(f) for f in frames]


def test_a_text_trace_cut_anywhere_gives_the_lines_before_the_cut(tmp_path: Path) -> None:
    frames = [Frame(f.time, f"é{f.source}", f.kind, f.names, f.columns) for f in sample_frames(4)]
    data = write_text(tmp_path / "t.jsonl", frames).read_bytes()
    dice, path = random.Random(4), tmp_path / "cut.jsonl"
    for cut in sorted({*range(1, 700), *(dice.randrange(1, len(data)) for _ in range(200))}):
        path.write_bytes(data[:cut])
        trace = open_trace(path)
        whole = data[:cut].count(b"\n") + (data[cut : cut + 1] == b"\n")
        assert len(list(trace.frames())) == whole, cut
        assert trace.truncated == (data[cut - 1 : cut] != b"\n" and data[cut : cut + 1] != b"\n"), cut


def test_a_compressed_text_trace_cut_anywhere_is_read_up_to_the_cut(tmp_path: Path) -> None:
    frames = list(sample_frames(20))
    data = write_text(tmp_path / "t.jsonl", frames).read_bytes()
    half = data.index(b"\n", len(data) // 2) + 1
    pieces = b"".join(zstandard.compress(part) for part in (data[:half], data[half:]))  # two zstd frames
    path = tmp_path / "t.jsonl.zst"
    path.write_bytes(pieces)
    whole = open_trace(path)
    assert len(list(whole.frames())) == len(frames)
    assert not whole.truncated
    first = len(zstandard.compress(data[:half]))
    for cut in range(1, len(pieces), 7):
        path.write_bytes(pieces[:cut])
        trace = open_trace(path)
        found = list(trace.frames())
        assert [f.time for f in found] == [f.time for f in frames[: len(found)]]
        assert trace.truncated == (cut != first), cut
        if cut >= first:
            assert len(found) >= data[:half].count(b"\n")


def test_a_line_may_hold_several_kinds_and_blank_lines_are_nothing(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    line = (
        '{"time": 1764547200.5, "source": "n0", "samples": {"n0/gpu0": {"power_watts": 1}, "n0/nic0/p0": {"up": 1}}}'
    )
    path.write_bytes(b"\xef\xbb\xbf" + f"{line}\r\n\r\n\n{line}".encode())
    frames = list(open_trace(path).frames())
    assert [f.kind for f in frames] == ["gpu", "port", "gpu", "port"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "not a text frame"),
        ("nonsense", "not a text frame"),
        ('{"time": 1, "source": "a", "samples": {"n0/gpu0": {"no_such": 1}}}', "gpu has no metric 'no_such'"),
        ('{"time": "x", "source": "a", "samples": {}}', "Expected `float`"),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_a_broken_line_is_named_with_file_and_line(tmp_path: Path, line: str, message: str, packed: bool) -> None:
    good = to_line(next(sample_frames(1)))
    path = tmp_path / "t.jsonl"
    data = f"{good}\n\n{line}\n{good}\n".encode()
    path.write_bytes(zstandard.compress(data) if packed else data)
    with pytest.raises(InputError) as raised:
        list(open_trace(path).frames())
    assert str(raised.value).startswith(f"{path}:3: ")
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("line", ["nonsense", '{"time": 1}', '{"time": 1, oops', "[1, 2"])
def test_a_last_line_that_is_wrong_and_not_cut_is_an_error(tmp_path: Path, line: str) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(to_line(next(sample_frames(1))) + "\n" + line)
    with pytest.raises(InputError, match=r"t\.jsonl:2: not a text frame"):
        list(open_trace(path).frames())


def test_a_text_trace_without_a_site_says_what_to_give(tmp_path: Path) -> None:
    path = write_text(tmp_path / "t.jsonl", sample_frames(1))
    with pytest.raises(InputError, match=r"t\.jsonl: a text trace does not say .* --site SITE"):
        _ = open_trace(path).topology
    assert open_trace(path, topology=fabric()).topology is fabric()


# --- what is not a trace ---


def _refused(path: Path) -> str:
    with pytest.raises(InputError) as raised:
        list(open_trace(path).frames())
    message = str(raised.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    return message


def test_what_is_not_a_trace_is_refused_in_one_line(tmp_path: Path) -> None:
    assert "no such file" in _refused(tmp_path / "missing")
    assert "a directory" in _refused(tmp_path)
    path = tmp_path / "x.mcap"
    path.write_bytes(b"")
    assert "empty" in _refused(path)
    path.write_bytes(b"\x7fELF\0\0\0" + bytes(range(256)))
    assert "not a trace" in _refused(path)
    path.write_bytes(zstandard.compress(bytes(range(256))))
    assert "not a trace" in _refused(path)
    path.write_bytes(b"\x1f\x8b\x08\x00")
    assert "not a trace" in _refused(path)


def test_a_pipe_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert "write it to a file first" in _refused(tmp_path / "pipe")


def test_a_file_without_permission_is_refused(tmp_path: Path) -> None:
    path = write_text(tmp_path / "t.jsonl", sample_frames(1))
    path.chmod(0)
    user = os.geteuid()
    if user == 0:  # root may read everything: try as nobody
        os.seteuid(65534)
    try:
        assert "cannot be read: Permission denied" in _refused(path)
    finally:
        os.seteuid(user)


def test_an_mcap_of_something_else_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "ros.mcap").open("wb") as stream:
        writer = Writer(stream)
        writer.start("ros2")
        writer.finish()
    assert "did not record" in _refused(tmp_path / "ros.mcap")


def test_a_recording_of_a_later_program_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("replay.recorder.FORMAT_VERSION", 3)
    assert "trace format 3" in _refused(record(tmp_path / "t.mcap", sample_frames(1)))


def test_a_compressed_recording_says_to_decompress_it(tmp_path: Path) -> None:
    data = record(tmp_path / "t.mcap", sample_frames(1)).read_bytes()
    (tmp_path / "t.mcap.zst").write_bytes(zstandard.compress(data))
    assert "decompress it first" in _refused(tmp_path / "t.mcap.zst")


# --- marks and notes ---


@pytest.mark.parametrize("suffix", [".mcap", ".jsonl", ".jsonl.zst"])
def test_reading_goes_on_at_any_mark(tmp_path: Path, suffix: str) -> None:
    frames = list(sample_frames(8))
    if suffix == ".mcap":
        path = record(tmp_path / "t.mcap", frames)
    else:
        path = write_text(tmp_path / f"t{suffix}", frames)
        several = path.read_bytes() + (
            b'{"time": 1764547300, "source": "n0", "samples": {"n0/gpu0": {}, "n0/nic0/p0": {}, "n0": {}}}\n'
        )
        path.write_bytes(zstandard.compress(several) if suffix == ".jsonl.zst" else several)
    trace = open_trace(path, topology=fabric())
    places = list(trace.read())
    for i, (mark, _) in enumerate(places):
        assert list(trace.read(mark)) == places[i:]


def test_a_line_that_breaks_after_a_mark_is_named_by_its_number_in_the_file(tmp_path: Path) -> None:
    path = write_text(tmp_path / "t.jsonl", sample_frames(2))
    trace = open_trace(path)
    marks = [mark for mark, _ in trace.read()]
    path.write_bytes(path.read_bytes() + b"oops\n")
    with pytest.raises(InputError, match=f"t.jsonl:{len(marks) + 1}: "):
        list(trace.read(marks[-1]))


def test_notes_are_kept_beside_the_trace_which_stays_as_it_was(tmp_path: Path) -> None:
    path = record(tmp_path / "t.mcap", sample_frames(3))
    before = path.read_bytes()
    open_trace(path).add_note(Note(T0 + 2 * NS, "second", "ops"))
    open_trace(path).add_note(Note(T0, "first"))
    trace: Trace = open_trace(path)
    assert [note.text for note in trace.notes] == ["first", "second"]
    assert path.read_bytes() == before
    beside = tmp_path / "t.mcap.notes.jsonl"
    beside.write_text(beside.read_text() + "oops\n")
    trace = open_trace(path)
    assert len(trace.notes) == 2
    assert trace.problems == [f"{beside}:3: not a note: JSON is malformed: invalid character (byte 0)"]
