"""`topology validate`, `drift` and `export` as a user runs them: exit codes, lines, JSON."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path

import pytest
import yaml

from tests.twin.small_fabric import small_fabric, swap, unplug
from tui import main


@pytest.fixture
def wiring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "w.yaml"
    path.write_text(yaml.safe_dump(small_fabric()))
    broken = small_fabric()
    swap(broken, "n4/nic0/p0", "n4/nic1/p0")
    (tmp_path / "broken.yaml").write_text(yaml.safe_dump(broken))
    return path


def run(*arguments: str) -> tuple[int, str]:
    """Exit code and standard output."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        code = main.run(["topology", *arguments])
    return code, out.getvalue()


def test_validate_ends_with_0_without_findings_and_with_1_with_some(wiring: Path) -> None:
    assert run("validate", "w.yaml") == (0, "w.yaml: valid; 12 GPUs, 4 leaves, 4 spines\n")
    code, out = run("validate", "broken.yaml")
    assert code == 1
    assert out.startswith("rails-cross n4: n4/nic0/p0: rail 0, on A-leaf-1")
    assert "meant so  accept: [rails-cross:n4]" in out and "broken.yaml: 1 finding;" in out


def test_validate_tells_the_same_as_json(wiring: Path) -> None:
    code, out = run("validate", "broken.yaml", "--json")
    found = json.loads(out)
    assert (code, found["valid"], found["accepted"], found["gpus"]) == (1, True, 0, 12)
    (finding,) = found["findings"]
    assert finding.pop("found") and finding.pop("expected")
    assert finding == {
        "rule": "rails-cross", "place": "n4", "places": ["n4/nic0/p0", "n4/nic1/p0"], "accept": "rails-cross:n4",
    }  # fmt: skip


def test_what_is_accepted_stays_accepted_in_an_export(wiring: Path) -> None:
    text = Path("broken.yaml").read_text()
    Path("meant.yaml").write_text(f"{text}accept: [rails-cross]\n")
    assert run("validate", "meant.yaml")[0] == 0
    assert run("export", "meant.yaml", "-o", "again.yaml")[0] == 0
    code, out = run("validate", "again.yaml")
    assert code == 0 and "2 findings accepted as meant so" in out


def test_drift_tells_one_line_a_mistake(wiring: Path) -> None:
    assert run("drift", "w.yaml", "w.yaml") == (0, "as designed: all 40 cables\n")
    code, out = run("drift", "w.yaml", "broken.yaml")
    mistake, verdict = out.splitlines()
    assert code == 1 and verdict == "1 difference; 40 cables are planned"
    assert mistake.startswith("swapped    n4/nic0/p0--A-leaf-0/p4 and n4/nic1/p0--A-leaf-1/p4 are swapped")


def test_drift_reads_a_dump_of_one_plane_in_the_numbers_of_the_design(wiring: Path) -> None:
    assert run("export", "broken.yaml", "--format", "ibnetdiscover", "--plane", "A", "-o", "a.out")[0] == 0
    code, out = run("drift", "w.yaml", "a.out", "--json")
    found = json.loads(out)
    assert (code, found["planes"], found["cables"], len(found["notes"])) == (1, ["A"], 20, 2)
    assert [m["planned"] for m in found["mistakes"]] == [["n4/nic0/p0--A-leaf-0/p4", "n4/nic1/p0--A-leaf-1/p4"]]


def test_drift_of_a_fabric_with_a_node_less_names_the_node(wiring: Path) -> None:
    less = small_fabric()
    unplug(less, *(f"n2/nic{k}/p{p}" for k in range(2) for p in range(2)))
    Path("less.yaml").write_text(yaml.safe_dump(less))
    code, out = run("drift", "w.yaml", "less.yaml")
    assert code == 1 and out.splitlines()[0] == "missing    n2 was not found, 4 cables"


@pytest.mark.parametrize(
    ("form", "begins"), [("dot", 'graph "small" {'), ("mermaid", "flowchart TB"), ("slurm", "# small: ")]
)
def test_a_fabric_can_be_drawn_and_given_to_slurm(wiring: Path, form: str, begins: str) -> None:
    code, out = run("export", "w.yaml", "--format", form)
    assert code == 0 and out.startswith(begins)
