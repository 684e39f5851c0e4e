"""trace anonymize: nothing private is left, and the same is found under other names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import named_fabric as named
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from mcap.reader import make_reader

from replay.analyze import analyze_trace
from replay.anonymize import Hidden, anonymize
from replay.convert import convert
from replay.naming import Naming
from replay.notes import path_for
from replay.records import Note
from replay.trace import open_trace
from twin.incident import incident_id, to_json_lines
from twin.topology.explicit import to_wiring


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("named") / "acme.mcap"
    named.record(path)
    open_trace(path).add_note(Note(named.T0 + 30 * named.NS, f"Jane Doe: {named.JOB} slow, kestrel-b-tor1?", ""))
    return path


def raw(path: Path) -> bytes:
    """Every byte of a trace and of what lies beside it, also as it is when unpacked."""
    data = path.read_bytes()
    if path.suffix == ".zst":
        data += zstandard.ZstdDecompressor().stream_reader(data).read()
    if path.suffix == ".mcap":
        with path.open("rb") as stream:
            reader = make_reader(stream)
            data += b"\n".join(m.data + c.topic.encode() for _, c, m in reader.iter_messages())
            data += b"\n".join(a.data for a in reader.iter_attachments())
            data += b"\n".join(json.dumps(m.metadata).encode() for m in reader.iter_metadata())
    notes = path_for(path)
    return data + (notes.read_bytes() if notes.exists() else b"")


@pytest.mark.parametrize("form", [".mcap", ".jsonl", ".jsonl.zst"])
def test_no_name_and_no_secret_is_left_in_any_byte(tmp_path: Path, recorded: Path, form: str) -> None:
    before = raw(recorded)
    anonymize(recorded, tmp_path / f"out{form}")
    after = raw(tmp_path / f"out{form}").lower()
    for word in (*named.NAMES, *named.SECRETS):
        assert word.encode() in before, f"the test asks for {word!r}, which never was there"
        assert word.lower().encode() not in after, word
    for part in ("acme", "atlanta", "jane", "hunter", "fulton", "kestrel", "osprey", "hall7", "llama"):
        assert part.encode() not in after, part


def mapped(lines: list[dict[str, Any]], text: Any) -> list[bytes]:
    """Incidents under other names, by other means: their JSON, with every name replaced, and the ids made anew."""
    ids = {}
    out = []
    for line in lines:
        new = json.loads(text(json.dumps(line)))
        ids[line["id"]] = incident_id(new["kind"], new["cause"], round(new["detected"] * 10**9))
        out.append(new)
    for new in out:
        new["id"] = ids[new["id"]]
        new["superseded_by"] = ids.get(new["superseded_by"])
        for word in ("acknowledged", "maintenance", "silenced"):
            if new[word]:
                new[word].pop("why", None)
                new[word].pop("by", None)
    return sorted(msgspec.json.encode(new) for new in out)


def test_the_same_incidents_are_found_byte_for_byte_with_the_names_mapped(tmp_path: Path, recorded: Path) -> None:
    anonymize(recorded, tmp_path / "out.mcap")
    trace = open_trace(recorded)
    wiring = to_wiring(trace.topology)
    naming = Naming(wiring, {"strange-box"}, trace.tally.sources)
    text = naming.replacer()
    before = [i.to_json() for i in analyze_trace(trace).incidents]
    assert {i["kind"] for i in before} >= {"switch_down", "link_down", "psu_down", "telemetry_stale"}
    assert any(i["maintenance"] for i in before)
    after = [i.to_json() for i in analyze_trace(open_trace(tmp_path / "out.mcap")).incidents]
    assert len(after) == len(before)
    assert mapped(after, str) == mapped(before, text)
    assert not any(name in json.dumps(after) for name in named.NAMES)
    convert(tmp_path / "out.mcap", tmp_path / "out.jsonl.zst")
    topology = open_trace(tmp_path / "out.mcap").topology
    assert topology.planes == ("A", "plane-01")


def test_live_recorded_as_text_and_back_and_anonymised_the_same_is_found(tmp_path: Path) -> None:
    live = named.record(tmp_path / "a.mcap", speak=False)
    expected = to_json_lines(live.incidents)
    assert expected.count(b"\n") >= 4
    assert to_json_lines(analyze_trace(open_trace(tmp_path / "a.mcap")).incidents) == expected
    convert(tmp_path / "a.mcap", tmp_path / "b.jsonl.zst")
    convert(tmp_path / "b.jsonl.zst", tmp_path / "c.mcap", topology=named.fabric(), site=named.SITE)
    assert to_json_lines(analyze_trace(open_trace(tmp_path / "c.mcap")).incidents) == expected
    anonymize(tmp_path / "a.mcap", tmp_path / "d.mcap")
    anonymize(tmp_path / "c.mcap", tmp_path / "e.mcap", notes=False)
    trace = open_trace(tmp_path / "a.mcap")
    text = Naming(to_wiring(trace.topology), {"strange-box"}, trace.tally.sources).replacer()
    ours = mapped([i.to_json() for i in live.incidents], text)
    for name in ("d.mcap", "e.mcap"):
        assert mapped([i.to_json() for i in analyze_trace(open_trace(tmp_path / name)).incidents], str) == ours


def test_what_was_said_then_is_said_of_the_new_names(tmp_path: Path, recorded: Path) -> None:
    anonymize(recorded, tmp_path / "out.mcap")
    trace = open_trace(tmp_path / "out.mcap")
    found = {i.id: i for i in analyze_trace(trace).incidents}
    assert {said.incident["id"] for said in trace.tally.said} == set(found)
    leaf = next(i for i in found.values() if i.kind == "switch_down")
    assert {s.incident["acknowledged"]["by"] for s in trace.tally.said if s.incident["acknowledged"]} == {
        "operator-1"
    }
    assert leaf.cause == "switch-02"
    first, second = (note.text for note in trace.notes)
    assert first.startswith("host-02 and switch-01 rebooted by [mail], password [removed]")
    assert second == "operator-1: job-01 slow, switch-02?"


def test_notes_can_be_left_out(tmp_path: Path, recorded: Path) -> None:
    anonymize(recorded, tmp_path / "out.mcap", notes=False)
    assert open_trace(tmp_path / "out.mcap").notes == []


words = st.text(st.characters(categories=["L", "N", "P", "S"], exclude_characters="/"), min_size=1, max_size=9)


@settings(max_examples=200, deadline=None)
@given(names=st.lists(words, min_size=2, max_size=8, unique=True), data=st.data())
def test_names_are_mapped_one_to_one_and_found_in_any_text(names: list[str], data: st.DataObject) -> None:
    split = data.draw(st.integers(1, len(names) - 1))
    wiring: dict[str, Any] = {
        "name": "the name of the fabric", "planes": ["A"], "racks": [], "domains": [], "links": [],
        "nodes": [{"name": n} for n in names[:split]], "switches": [{"name": n} for n in names[split:]],
    }  # fmt: skip
    naming = Naming(wiring)
    assert len(set(naming.names.values())) == len(names)
    replace = naming.replacer()
    for old, new in naming.names.items():
        assert naming.address(f"{old}/gpu3") == f"{new}/gpu3"
        if all(old.lower() != other.lower() for other in names if other != old):
            assert replace(f"see {old} now") == f"see {new} now"


def test_new_names_hold_no_old_ones() -> None:
    wiring = {
        "name": "x", "planes": [], "racks": [], "domains": [], "links": [],
        "nodes": [{"name": f"host-{i:02d}"} for i in range(1, 12)], "switches": [{"name": "switch-0"}],
    }  # fmt: skip
    new = Naming(wiring).names
    assert not any(old in fresh for fresh in new.values() for old in new)


def test_hidden_is_used_for_every_record(recorded: Path) -> None:
    trace = open_trace(recorded)
    hidden = Hidden(Naming(to_wiring(trace.topology), {"strange-box"}, [*trace.tally.sources, "x"]), trace)
    assert hidden.remark("nothing to hide at 12:34:56, 3.5 % of 400G") == "nothing to hide at 12:34:56, 3.5 % of 400G"
