"""trace cut, merge and verify."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from trace_samples import NS, T0, fabric, record, sample_frames, write_text

from replay.analyze import analyze, analyze_trace
from replay.convert import convert
from replay.cut import cut
from replay.merge import MergedTrace, united
from replay.recorder import Recorder
from replay.records import Note
from replay.trace import open_trace
from replay.verify import verify
from replay.when import bound
from replay.writing import everything, rewrite
from twin.errors import InputError
from twin.frames import Frame
from twin.incident import to_json_lines
from twin.topology.explicit import to_wiring
from twin.topology.wiring import read_wiring
from twin.yamlfile import Document


def merge(paths: list[Path], target: Path) -> Path:
    merged = MergedTrace([open_trace(path) for path in paths])
    rewrite(merged.traces, target, everything(merged), lambda: merged.topology, merged.site)
    return target


# --- cut ---


def test_a_cut_holds_what_lies_at_or_after_the_first_time_and_before_the_last(tmp_path: Path) -> None:
    frames = list(sample_frames(20))
    path = record(tmp_path / "a.mcap", frames)
    cut(path, tmp_path / "b.mcap", "+5s", "00:00:08")
    assert list(open_trace(tmp_path / "b.mcap").frames()) == [
        f for f in frames if T0 + 5 * NS <= f.time < T0 + 8 * NS
    ]
    cut(path, tmp_path / "c.jsonl", "-2s", None)
    assert open_trace(tmp_path / "c.jsonl").start == frames[-1].time - 2 * NS


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(share=st.floats(1, 99), parts=st.integers(2, 4), seed=st.integers(0, 99))
def test_pieces_of_a_cut_merge_to_what_was_cut(tmp_path: Path, share: float, parts: int, seed: int) -> None:
    frames = list(sample_frames(30, seed))
    path = record(tmp_path / "a.mcap", frames, overwrite=True)
    cut(path, tmp_path / "1.mcap", None, f"{share:.6f}%")
    cut(path, tmp_path / "2.mcap", f"{share:.6f}%", None)
    merged = merge([tmp_path / "2.mcap", tmp_path / "1.mcap"], tmp_path / "m.mcap")
    assert list(open_trace(merged).frames()) == frames


def test_a_cut_that_holds_nothing_says_what_there_is(tmp_path: Path) -> None:
    path = record(tmp_path / "a.mcap", sample_frames(5))
    for start, end, message in (
        ("+1h", None, "nothing was recorded then; .* goes from 2025-12-01 00:00:00 to 00:00:04 UTC"),
        ("+3s", "+2s", r"--to: \+2s is not after --from \+3s"),
        ("yesterday", None, "--from: 'yesterday' is no time; expected for example 12:34:56"),
        ("00:00:01.5", "00:00:01.6", "no frame from"),
    ):
        with pytest.raises(InputError, match=message):
            cut(path, tmp_path / "b.mcap", start, end)
    assert not (tmp_path / "b.mcap").exists()


def test_times_may_be_given_as_people_have_them() -> None:
    start, end = T0, T0 + 600 * NS
    said = ["2025-12-01 00:01", "2025-12-01T00:01:00Z", "00:01", "1764547260", "+1m", "-9m", "10%", "00:01:00 UTC"]
    assert {bound("--from", text, start, end) for text in said} == {T0 + 60 * NS}


# --- merge ---


def by_owner(frames: list[Frame]) -> dict[str, list[Frame]]:
    out: dict[str, list[Frame]] = {}
    for frame in frames:
        out.setdefault(frame.source, []).append(frame)
    return out


@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 999))
def test_what_hosts_recorded_apart_is_judged_as_if_one_had_recorded_it(tmp_path: Path, seed: int) -> None:
    frames = list(sample_frames(50, seed))
    paths = [record(tmp_path / f"{who}.mcap", part, overwrite=True) for who, part in by_owner(frames).items()]
    Random(seed).shuffle(paths)
    merged = MergedTrace([open_trace(path) for path in paths])
    assert list(merged.frames()) == frames
    expected = to_json_lines(analyze(frames, fabric()).incidents)
    assert expected
    assert to_json_lines(analyze_trace(merged).incidents) == expected
    assert to_json_lines(analyze_trace(open_trace(merge(paths, tmp_path / "m.mcap"))).incidents) == expected


def test_what_two_monitors_recorded_alike_counts_once(tmp_path: Path) -> None:
    frames = list(sample_frames(20))
    one = record(tmp_path / "1.mcap", frames[:150])
    two = record(tmp_path / "2.mcap", frames[50:])
    for path in (one, two):
        open_trace(path).add_note(Note(T0, "both saw it"))
    merged = merge([one, two], tmp_path / "m.mcap")
    assert list(open_trace(merged).frames()) == frames
    assert [note.text for note in open_trace(merged).notes] == ["both saw it"]


def test_wirings_of_several_hosts_are_put_together_and_contradictions_refused(tmp_path: Path) -> None:
    def host(name: str, gpus: int = 1) -> Path:
        node = {"name": name, "gpus": gpus, "nics": 0}
        topology = read_wiring(
            Document(name, json.dumps({"name": name, "nodes": [node], "switches": [], "links": []}))
        )
        path = tmp_path / f"{name}-{gpus}.mcap"
        with Recorder(path, topology, live=False) as out:
            out.write(next(sample_frames(1)))
        return path

    first = host("n0")
    both = united([open_trace(first), open_trace(host("n1", 2))])
    assert (both.name, both.gpu_names) == ("n0+n1", ("n0/gpu0", "n1/gpu0", "n1/gpu1"))
    with pytest.raises(InputError, match=r"their wirings disagree \(nodes n0\); give the right one with --site SITE"):
        united([open_trace(first), open_trace(host("n0", 4))])


def test_a_wiring_put_together_of_its_parts_is_the_whole(tmp_path: Path) -> None:
    whole = to_wiring(fabric())
    paths = []
    for n in range(4):
        part = {
            **whole,
            "nodes": [whole["nodes"][n]],
            "links": [x for x in whole["links"] if x["a"].startswith(f"n{n}/")],
        }
        path = tmp_path / f"{n}.mcap"
        with Recorder(path, read_wiring(Document("part", json.dumps(part))), live=False) as out:
            out.write(next(sample_frames(1)))
        paths.append(path)
    assert to_wiring(united([open_trace(path) for path in paths])) == whole


# --- verify ---


def states(path: Path) -> dict[str, str]:
    topology = None if path.suffix == ".mcap" else fabric()
    return {c.name: c.state for c in verify(open_trace(path, topology=topology)).checks}


def test_a_sound_trace_is_sound_in_every_form(tmp_path: Path) -> None:
    path = record(tmp_path / "a.mcap", sample_frames(20))
    found = verify(open_trace(path))
    assert (found.status, found.exit_code, found.frames, found.sources) == ("ok", 0, 200, 6)
    assert [c.state for c in found.checks] == ["ok"] * 5
    for name in ("a.jsonl", "a.jsonl.zst"):
        convert(path, tmp_path / name)
    assert states(tmp_path / "a.jsonl.zst")["checksum"] == "ok"
    assert states(tmp_path / "a.jsonl") == {
        "whole": "ok", "checksum": "unknown", "order": "ok", "names": "ok", "gaps": "ok",
    }  # fmt: skip


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7), form=st.sampled_from([".mcap", ".jsonl.zst"]))
def test_one_bit_changed_anywhere_is_found_unless_it_changes_nothing(
    tmp_path: Path, place: float, bit: int, form: str
) -> None:
    path = tmp_path / f"sound{form}"
    if not path.exists():
        convert(record(tmp_path / "a.mcap", sample_frames(4), overwrite=True), path)
    data = bytearray(path.read_bytes())
    data[int(place * len(data))] ^= 1 << bit
    (tmp_path / "b").write_bytes(data)
    try:
        trace = open_trace(tmp_path / "b", topology=None if form == ".mcap" else fabric())
        found = verify(trace)
    except InputError:
        return  # not even a trace any more
    unused = form == ".jsonl.zst" and list(trace.frames()) == list(
        open_trace(path).frames()
    )  # a hint to the unpacker
    assert found.status != "ok" or unused, int(place * len(data))


def test_a_cut_is_a_warning_and_damage_a_failure(tmp_path: Path) -> None:
    path = record(tmp_path / "a.mcap", sample_frames(20))
    whole = path.read_bytes()
    path.write_bytes(whole[:-3000])
    found = verify(open_trace(path))
    assert (found.exit_code, found.truncated) == (1, True)
    assert "cut at byte" in found.checks[0].said
    middle = len(whole) // 2
    path.write_bytes(whole[:middle] + bytes(20) + whole[middle + 20 :])
    assert verify(open_trace(path)).exit_code == 2
    text = write_text(tmp_path / "t.jsonl", sample_frames(2))
    text.write_bytes(text.read_bytes()[:-20] + b"oops\n" + text.read_bytes())
    broken = verify(open_trace(text, topology=fabric()))
    assert broken.exit_code == 2
    assert "t.jsonl:20: " in broken.checks[0].said


def test_silence_is_a_gap_of_that_source_and_told_with_its_times(tmp_path: Path) -> None:
    frames = [f for f in sample_frames(40) if not (f.source == "n1" and 10 <= (f.time - T0) // NS < 20)]
    frames = [f for f in frames if not (f.source == "n2" and (f.time - T0) // NS >= 25)]
    found = verify(open_trace(record(tmp_path / "a.mcap", frames)))
    assert [(g.source, (g.start - T0) // NS, (g.end - T0) // NS, g.resumed) for g in found.gaps] == [
        ("n1", 9, 20, True),
        ("n2", 24, 39, False),
    ]
    assert found.exit_code == 1
    assert "2, the longest 15.0 s of n2" in found.text()


def test_order_and_strange_names_are_told(tmp_path: Path) -> None:
    frames = list(sample_frames(10))
    frames[30:40], frames[60:70] = frames[60:70], frames[30:40]
    strange = Frame(T0, "x", "gpu", ("x/gpu0",), {})
    found = verify(open_trace(record(tmp_path / "a.mcap", [*frames, strange])))
    said = {c.name: (c.state, c.said) for c in found.checks}
    assert said["order"][0] == "warning" and "times go backward in" in said["order"][1]
    assert said["names"] == ("warning", "1 are not in the wiring, such as x/gpu0")
