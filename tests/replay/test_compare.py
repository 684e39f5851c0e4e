"""analyze by other rules, and what one rule set finds that another does not."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import pytest
from trace_samples import NS, T0, fabric, record, sample_frames

from replay.analyze import analyze, analyze_trace
from replay.compare import compare
from replay.recorder import Recorder
from replay.rulesfile import rule_set
from replay.trace import open_trace
from tests.tui.test_command_line import run
from tui import main
from twin.detectors.rules import Rules
from twin.errors import InputError
from twin.incident import to_json_lines
from twin.twin import Twin


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    with Recorder(
        tmp_path / "t.mcap", fabric(), {"name": "mini", "rules": {"link_debounce": 5.0}}, live=False
    ) as out:
        for frame in sample_frames():
            out.write(frame)
    return tmp_path / "t.mcap"


def test_rules_are_read_in_every_form(trace: Path, tmp_path: Path) -> None:
    shipped = files("twin.detectors").joinpath("rules.toml").read_text("utf-8")
    forms = {
        "flat.yaml": "link_debounce: 2\n",
        "site.yaml": "name: x\ntopology: {preset: no-matter}\nrules: {link_debounce: 2.0}\n",
        "rules.toml": shipped.replace("[link_debounce]\nvalue = 1.0", "[link_debounce]\nvalue = 2.0"),
        "flat.toml": "link_debounce = 2\n",
    }
    for name, text in forms.items():
        (tmp_path / name).write_text(text)
        found = rule_set(str(tmp_path / name), open_trace(trace))
        assert found.rules == Rules.load({"link_debounce": 2.0}), name
        assert found.notes == ()
    assert rule_set("shipped", open_trace(trace)).rules == Rules.load()
    assert rule_set("recorded", open_trace(trace)).rules.link_debounce == 5.0


def test_rules_of_another_version_are_used_as_far_as_they_exist_and_the_rest_is_told(
    trace: Path, tmp_path: Path
) -> None:
    (tmp_path / "old.toml").write_text("[link_debounce]\nvalue = 3.0\n[of_yesterday]\nvalue = 1\n")
    found = rule_set(str(tmp_path / "old.toml"), open_trace(trace))
    assert found.rules.link_debounce == 3.0
    assert "this version has no rule of_yesterday" in found.notes[0]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("r.yaml", "link_debunce: 2\n", "there is no rule 'link_debunce'"),
        ("r.yaml", "[1, 2]\n", "expected a site file, or rules and their numbers"),
        ("r.yaml", "link_debounce: soon\n", "link_debounce is 'soon', expected a number"),
        ("r.toml", "link_debounce = \n", "not TOML"),
        ("r.toml", "[build-system]\nvalue = 1\n", "none of its entries is a rule"),
        ("nowhere.yaml", None, "nowhere.yaml"),
        ("nowhere.toml", None, "cannot be read: No such file"),
    ],
)
def test_a_file_that_holds_no_rules_is_refused(
    trace: Path, tmp_path: Path, name: str, text: str | None, said: str
) -> None:
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=said.replace("[", r"\[")) as raised:
        rule_set(str(tmp_path / name), open_trace(trace))
    assert name in str(raised.value)


def test_what_only_one_rule_set_finds_is_shown_and_the_rest_is_paired(trace: Path, tmp_path: Path) -> None:
    (tmp_path / "patient.yaml").write_text("link_debounce: 12\n")
    opened = open_trace(trace)
    found = compare(opened, rule_set("shipped", opened), rule_set(str(tmp_path / "patient.yaml"), opened))
    for rules, mine in ((Rules.load(), found.found_a), (Rules.load({"link_debounce": 12}), found.found_b)):
        twin = Twin(fabric(), rules)
        assert to_json_lines(mine.incidents) == to_json_lines(analyze(sample_frames(), fabric(), twin=twin).incidents)
    both = len(found.pairs)
    assert len(found.found_a.incidents) == both + len(found.only_a)
    assert len(found.found_b.incidents) == both + len(found.only_b)
    assert found.differ and all("detected" in fields for _, _, fields in found.differ)
    assert opened.rules is None


def test_a_rule_set_beside_itself_shows_no_difference(trace: Path) -> None:
    opened = open_trace(trace)
    found = compare(opened, rule_set("shipped", opened), rule_set("shipped", opened))
    assert (found.exit_code, found.only_a, found.only_b, found.differ) == (0, (), (), ())
    assert found.to_json()["same"] == len(analyze_trace(opened).incidents) or found.pairs


def test_the_commands_take_rules_and_several_traces(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "blind.yaml").write_text("link_debounce: 300\nplane_down_fraction: 0\n")
    code, out, _ = run("analyze", "t.mcap", "--compare", "shipped", "blind.yaml", "--json", cwd=tmp_path)
    found = json.loads(out)
    assert (code, found["rules"]["link_debounce"]) == (1, {"a": 1.0, "b": 300.0})
    assert found["only_a"] and not found["only_b"]
    main.run(["analyze", str(trace), "--compare", "shipped", str(tmp_path / "blind.yaml")])
    text = capsys.readouterr().out
    assert "link_debounce: 1 in A, 300 in B" in text and "only A shipped: " in text
    assert main.run(["analyze", str(trace), "--rules", str(tmp_path / "blind.yaml")]) == 0
    halves = [f"{i}.mcap" for i in range(2)]
    frames = list(sample_frames())
    for i, name in enumerate(halves):
        record(tmp_path / name, [f for f in frames if (f.source in ("n0", "n1", "A-leaf-0")) == bool(i)])
    code, out, _ = run("analyze", *halves, "--json", cwd=tmp_path)
    expected = [i.to_json() for i in analyze(frames, fabric()).incidents]
    assert (code, json.loads(out)["incidents"]) == (2, json.loads(json.dumps(expected)))
    assert json.loads(out)["trace"]["start"] == T0 / NS
