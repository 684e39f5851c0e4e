"""Recordings in pieces: nothing is lost between them, what is old goes, and a full disk ends them cleanly."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from trace_samples import NS, T0, fabric, sample_frames

from replay.analyze import analyze, analyze_trace
from replay.keeping import KeptRecorder, show_bytes
from replay.limits import Keeping
from replay.merge import MergedTrace
from replay.recorder import RecordingError
from replay.records import Note
from replay.trace import open_trace
from replay.verify import verify
from tests.tui.test_command_line import run
from twin.errors import InputError
from twin.incident import to_json_lines


class Clock:
    """Wall time that is that of the frames."""

    now = T0 / NS

    def __call__(self) -> float:
        return self.now


def keep(path: Path, seconds: int = 60, keeping: Keeping | None = None) -> KeptRecorder:
    """Records the small fabric, its frames coming in at their own times, and sets the ends of pieces accordingly."""
    clock = Clock()
    out = KeptRecorder(path, fabric(), {"name": "mini"}, keeping or Keeping(), wall=clock, live=False)
    for frame in sample_frames(seconds):
        clock.now = frame.time / NS
        out.write(frame)
        for path in out.pieces():
            if path.stat().st_mtime > clock.now:
                os.utime(path, (clock.now, clock.now))
    out.close()
    os.utime(out.pieces()[-1], (clock.now, clock.now))
    return out


def test_pieces_hold_together_what_came_in_and_are_judged_as_one(tmp_path: Path) -> None:
    out = keep(tmp_path / "t.mcap", keeping=Keeping(rotate_seconds=7))
    assert [p.name for p in out.pieces()][:2] == ["t-20251201T000000Z.mcap", "t-20251201T000007Z.mcap"]
    assert len(out.pieces()) == 9
    traces = [open_trace(path) for path in out.pieces()]
    assert all(verify(trace).exit_code == 0 for trace in traces)
    frames = list(sample_frames(60))
    assert [frame for trace in traces for frame in trace.frames()] == frames
    assert out.frames == len(frames)
    expected = to_json_lines(analyze(frames, fabric()).incidents)
    assert expected
    assert to_json_lines(analyze_trace(MergedTrace(traces)).incidents) == expected


def test_a_piece_ends_at_its_size(tmp_path: Path) -> None:
    out = keep(tmp_path / "t.mcap", 60, Keeping(rotate_bytes=8_000))
    sizes = [path.stat().st_size for path in out.pieces()]
    assert len(sizes) > 2
    assert all(8_000 <= size < 13_000 for size in sizes[:-1])


def test_old_pieces_go_by_age_and_by_size_but_not_those_with_notes_or_of_others(tmp_path: Path) -> None:
    (tmp_path / "other-20200101T000000Z.mcap").write_bytes(b"not ours")
    (tmp_path / "t-of-mine.mcap").write_bytes(b"not ours")
    out = keep(tmp_path / "t.mcap", 60, Keeping(rotate_seconds=5, keep_seconds=20))
    kept = out.pieces()
    assert open_trace(kept[0]).start == pytest.approx(T0 + 30 * NS, abs=6 * NS)
    open_trace(kept[0]).add_note(Note(T0, "look at this"))
    again = KeptRecorder(
        tmp_path / "t.mcap", fabric(), None, Keeping(rotate_seconds=5, keep_seconds=20), wall=lambda: T0 / NS + 9e5
    )
    again.close()
    assert again.pieces() == [kept[0], again.pieces()[-1]]
    assert (tmp_path / "other-20200101T000000Z.mcap").exists() and (tmp_path / "t-of-mine.mcap").exists()
    small = keep(tmp_path / "s.mcap", 60, Keeping(rotate_seconds=3, keep_bytes=40_000))
    assert 20_000 < sum(p.stat().st_size for p in small.pieces()) <= 48_000
    assert open_trace(small.pieces()[-1]).end == list(sample_frames(60))[-1].time


def test_limits_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(InputError, match="--keep-size and --keep-for need pieces"):
        Keeping(keep_bytes=1)
    with pytest.raises(InputError, match="less than one piece"):
        Keeping(rotate_bytes=2, keep_bytes=1)


def test_a_disk_below_the_floor_is_not_written_to(tmp_path: Path) -> None:
    free = shutil.disk_usage(tmp_path).free
    with pytest.raises(InputError, match=r"t\.mcap: not recorded: .* free on its disk, less than the .* to be left"):
        KeptRecorder(tmp_path / "t.mcap", fabric(), None, Keeping(min_free=2 * free))
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_fills_meanwhile_costs_old_pieces_first_and_then_the_recording(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Free space is what a disk of 60 kB would have beside our pieces, which are real."""

    def usage(path: object) -> object:
        mine = sum(p.stat().st_size for p in tmp_path.glob("t-*"))
        return shutil._ntuple_diskusage(60_000, mine, max(0, 60_000 - mine - filled))  # type: ignore[attr-defined]

    filled = 0
    monkeypatch.setattr("replay.keeping.shutil.disk_usage", usage)
    clock = Clock()
    out = KeptRecorder(
        tmp_path / "t.mcap", fabric(), None, Keeping(rotate_seconds=3, min_free=20_000), wall=clock, live=False
    )
    taken = 0
    with pytest.raises(RecordingError, match=r"the recording has stopped: .* free on its disk") as stopped:
        for frame in sample_frames(90):
            clock.now = frame.time / NS
            filled = 60_000 if frame.time > T0 + 60 * NS else 0
            out.write(frame)
            taken += 1
    assert 600 <= taken < 620
    assert f"the {out.frames or taken} frames before" in str(stopped.value) or str(taken) in str(stopped.value)
    out.write(next(sample_frames(1)))  # let go
    out.close()
    assert [verify(open_trace(path)).exit_code for path in out.pieces()] == [0]


FULL = """
import resource, sys
from pathlib import Path
from trace_samples import NS, fabric, sample_frames
from replay.keeping import KeptRecorder
from replay.limits import Keeping
from replay.recorder import RecordingError
now = 0.0
out = KeptRecorder(Path(sys.argv[1]), fabric(), None, Keeping(rotate_seconds=10), wall=lambda: now, live=False)
for frame in sample_frames(200):
    now = frame.time / NS
    if out.frames == 300:  # the next piece will not fit
        resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))
    try:
        out.write(frame)
    except RecordingError as problem:
        print(problem)
out.close()
print(out.error is not None)
"""


def test_a_full_disk_ends_the_recording_once_and_all_pieces_stay_readable(tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
    command = [sys.executable, "-c", FULL, str(tmp_path / "t.mcap")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert done.stderr == ""
    error, last = done.stdout.splitlines()
    assert "the recording has stopped: File too large; the " in error
    assert last == "True"
    found = [frame for path in sorted(tmp_path.iterdir()) for frame in open_trace(path).frames()]
    assert len(found) >= 200
    assert all(a == b for a, b in zip(found, sample_frames(200), strict=False))


def test_the_monitor_goes_on_when_its_recording_cannot(tmp_path: Path) -> None:
    """A file may grow to 2 kB here, as on a disk that is full then."""
    watch = f"ulimit -f 2; exec {sys.executable} -m tui.main watch --plain --record t.mcap --for 8s"
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(
        ["bash", "-c", watch], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert "the recording has stopped: File too large; the " in done.stderr
    assert open_trace(tmp_path / "t.mcap").tally.frames > 0


def test_a_recording_that_cannot_begin_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "full.mcap").symlink_to("/dev/full")
    code, _, err = run("record", "-o", "full.mcap", "--for", "2s", "--min-free", "0", cwd=tmp_path)
    assert code == 3
    assert "the recording has stopped: No space left on device" in err


def test_the_command_records_in_pieces(tmp_path: Path) -> None:
    options = ("--rotate-every", "1s", "--keep-size", "1GB", "--min-free", "1kB")
    code, out, err = run("watch", "--plain", "--record", "t.mcap", "--for", "4s", *options, cwd=tmp_path)
    assert code == 0, out + err
    pieces = sorted(tmp_path.glob("t-*.mcap"))
    assert len(pieces) >= 2
    assert all(open_trace(path).tally.frames for path in pieces[:-1])
    code, _, err = run("record", "-o", "x.mcap", "--rotate-size", "many", cwd=tmp_path)
    assert (code, "'many' is not a size; expected for example 500MB" in err) == (3, True)


def test_sizes_are_shown_as_people_write_them() -> None:
    assert [show_bytes(n) for n in (999, 1000, 1_500_000, 20_000_000_000)] == ["999 B", "1 kB", "1.5 MB", "20 GB"]
