"""Conversion: between the three forms nothing that they can hold is lost."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from trace_samples import NS, T0, any_frames, fabric, known, record, sample_frames, write_text

from replay.convert import convert
from replay.info import info_text
from replay.recorder import Recorder
from replay.records import Note
from replay.trace import open_trace
from twin.errors import FabrictwinError, InputError
from twin.frames import Frame
from twin.topology.explicit import to_wiring

FORMS = [".mcap", ".jsonl", ".jsonl.zst"]


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    frames=st.lists(any_frames(text=True), min_size=1, max_size=6), way=st.lists(st.sampled_from(FORMS), min_size=1)
)
def test_any_way_through_the_forms_keeps_the_frames(tmp_path: Path, frames: list[Frame], way: list[str]) -> None:
    path = record(tmp_path / "0.mcap", frames, overwrite=True)
    for step, suffix in enumerate(way, 1):
        target = tmp_path / f"{step}{suffix}"
        done = convert(path, target, topology=fabric())
        assert (done.frames, done.truncated, done.problems) == (len(frames), False, [])
        path = target
    found = list(open_trace(path).frames())
    assert [(f.time, f.source, f.kind, f.names) for f in found] == [
        (f.time, f.source, f.kind, f.names) for f in frames
    ]
    assert [known(f) for f in found] == [known(f) for f in frames]


def test_a_recording_converted_to_a_recording_is_the_same_frame_by_frame(tmp_path: Path) -> None:
    frames = list(sample_frames())
    convert(record(tmp_path / "a.mcap", frames), tmp_path / "b.mcap")
    trace = open_trace(tmp_path / "b.mcap")
    assert list(trace.frames()) == frames
    assert trace.site == {"name": "mini"}
    assert to_wiring(trace.topology) == to_wiring(fabric())


def test_a_cut_recording_is_mended(tmp_path: Path) -> None:
    path = record(tmp_path / "a.mcap", sample_frames())
    path.write_bytes(path.read_bytes()[:-4000])
    done = convert(path, tmp_path / "b.mcap")
    assert done.truncated
    assert done.problems
    mended = open_trace(tmp_path / "b.mcap")
    assert list(mended.frames()) == list(open_trace(path).frames())
    assert not mended.truncated


def test_notes_go_along_and_are_not_doubled(tmp_path: Path) -> None:
    with Recorder(tmp_path / "a.mcap", fabric(), live=False) as out:
        for frame in sample_frames(3):
            out.write(frame)
        out.note(Note(T0, "inside"))
    open_trace(tmp_path / "a.mcap").add_note(Note(T0 + NS, "beside"))
    for _ in range(2):
        done = convert(tmp_path / "a.mcap", tmp_path / "b.jsonl")
        assert done.notes == 2
        assert [n.text for n in open_trace(tmp_path / "b.jsonl").notes] == ["inside", "beside"]
    assert convert(tmp_path / "b.jsonl", tmp_path / "c.mcap", topology=fabric()).notes == 2
    assert [n.text for n in open_trace(tmp_path / "c.mcap").notes] == ["inside", "beside"]


def test_text_becomes_a_recording_only_with_its_wiring(tmp_path: Path) -> None:
    path = write_text(tmp_path / "a.jsonl", sample_frames(2))
    with pytest.raises(InputError, match="--site SITE"):
        convert(path, tmp_path / "b.mcap")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.jsonl"]
    convert(path, tmp_path / "b.mcap", topology=fabric(), site={"name": "given"})
    assert open_trace(tmp_path / "b.mcap").site == {"name": "given"}


def test_a_failed_conversion_leaves_what_was_there(tmp_path: Path) -> None:
    path = write_text(tmp_path / "a.jsonl", sample_frames(2))
    path.write_bytes(path.read_bytes() + b"oops\n")
    (tmp_path / "b.jsonl.zst").write_bytes(b"before")
    with pytest.raises(InputError, match=r"a\.jsonl:21: "):
        convert(path, tmp_path / "b.jsonl.zst")
    assert (tmp_path / "b.jsonl.zst").read_bytes() == b"before"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.jsonl", "b.jsonl.zst"]


def test_what_cannot_be_written_is_one_clear_error(tmp_path: Path) -> None:
    path = write_text(tmp_path / "a.jsonl", sample_frames(2))
    for target, message in (
        ("b.txt", "expected a name ending in .mcap, .jsonl, .jsonl.zst"),
        ("a.jsonl", "over itself"),
        ("no/b.jsonl", "cannot be written: No such file or directory"),
        ("no/b.mcap", "cannot be written: No such file or directory"),
    ):
        with pytest.raises(FabrictwinError, match=message) as raised:
            convert(path, tmp_path / target, topology=fabric())
        assert str(raised.value).startswith(f"{tmp_path / target}: ")
        assert "\n" not in str(raised.value)


def test_metrics_that_text_cannot_hold_are_named(tmp_path: Path) -> None:
    frame = Frame(T0, "n0", "gpu", ("n0/gpu0",), {"power_watts": np.array([1.0]), "of_tomorrow": np.array([2.0])})
    done = convert(record(tmp_path / "a.mcap", [frame]), tmp_path / "b.jsonl")
    assert done.problems == ["metrics that this program does not know are left out: gpu of_tomorrow"]
    assert [list(f.columns) for f in open_trace(tmp_path / "b.jsonl").frames()] == [["power_watts"]]


def test_info_says_what_a_trace_holds(tmp_path: Path) -> None:
    found = open_trace(record(tmp_path / "a.mcap", sample_frames(5))).info()
    assert found["format"] == "mcap"
    assert found["frames"] == sum(found["sources"].values()) == sum(found["kinds"].values()) == 50
    assert found["duration_seconds"] == pytest.approx(4, abs=0.1)
    assert found["topology"]["gpus"] == 8
    assert found["truncated"] is False
    assert "frames   50 from 6 sources" in info_text(found)
    text = open_trace(write_text(tmp_path / "b.jsonl", sample_frames(5))).info()
    assert (text["format"], text["topology"], text["frames"]) == ("jsonl", None, 50)
    assert "--site" in info_text(text)
