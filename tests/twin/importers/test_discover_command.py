"""`fabrictwin topology discover`: from files to a wiring file that a person edits and other commands read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from importer_inputs import CASES, FIXTURES

from tui.main import run


def discover(*arguments: str | Path) -> int:
    return run(["topology", "discover", *map(str, arguments)])


@pytest.mark.parametrize(("option", "name"), CASES)
def test_what_is_written_is_valid(option: str, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every format to a file that `validate` and `show` take."""
    out = tmp_path / "wiring.yaml"
    assert discover(f"--{option}", FIXTURES / name, "-o", out) == 0
    assert run(["topology", "validate", str(out)]) == 0
    assert run(["topology", "show", str(out), "--json"]) == 0
    assert capsys.readouterr().err == f"wrote {out}\n"


def test_the_file_is_one_to_edit(tmp_path: Path) -> None:
    """Notes first, a heading a section, one entity a line, nothing too wide for a screen."""
    out = tmp_path / "wiring.yaml"
    discover("--air", FIXTURES / "air.json", "--name", "su1", "-o", out)
    short = out.read_text().splitlines()
    assert short[0].startswith("# Discovered wiring") and "name: su1" in short
    discover("--air", FIXTURES / "air.json", "--name", "su1", "--long", "-o", out)
    lines = out.read_text().splitlines()
    assert len(short) < len(lines) + 5 and max(map(len, short)) < 140
    assert lines[0].startswith("# Discovered wiring")
    assert "name: su1" in lines
    assert "- {a: gpu-su01-rack01-h01/nic1/p1, b: leaf-p1-su001-r1/p1, speed: 400G}" in lines
    assert "# tier is leaf, spine or core; label is the name that was found, where it had to change" in lines
    assert max(map(len, lines)) < 140


def test_sizes_are_the_users(capsys: pytest.CaptureFixture[str]) -> None:
    """A speed, a count and a model that the input does not say; then no note says that they are assumed."""
    code = discover(
        "--slurm",
        FIXTURES / "topology.conf",
        "--link-speed",
        "200G",
        "--gpus-per-node",
        "8",
        "--gpu-model",
        "b300",
        "--json",
    )
    told = json.loads(capsys.readouterr().out)
    assert (code, told["gpus"], told["host_link_bits_per_second"]) == (0, 48, 200e9)
    assert not [note for note in told["notes"] if "assumed (" in note]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "nothing to discover from"),
        (["--air", "x.json", "--netq", "y.json"], "expected one source of the wiring"),
        (["--air", "no-such-file.json"], "no-such-file.json: no such file"),
        (["--air", str(FIXTURES / "spectrum_x.json")], "this looks like --spectrum-x input"),
        (["--spectrum-x", str(FIXTURES / "air.json")], "this looks like --air input"),
        (["--lldp", "=x"], "expected NAME=FILE or FILE"),
        (["--air", str(FIXTURES / "air.json"), "--link-speed", "fast"], "--link-speed: 'fast' is not a speed"),
        (["--nvidia-smi", f"gpu*={FIXTURES / 'topo-m.txt'}"], "a pattern needs the wiring of a fabric beside it"),
        (["--ibnetdiscover", "A=x", "--ibnetdiscover", "A=y"], "plane A is given twice"),
    ],
)
def test_what_cannot_be_done_is_said(arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 3 and one clear line."""
    assert discover(*arguments) == 3
    told = capsys.readouterr()
    assert says in told.err
    assert told.out == ""


def test_infiniband_planes_are_found_as_before(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A dump a plane, with the facts of a host beside it."""
    dump = FIXTURES.parent / "ib" / "mini.netdiscover.txt"
    out = tmp_path / "wiring.yaml"
    assert discover("--ibnetdiscover", f"A={dump}", "-o", out) == 0
    assert run(["topology", "validate", str(out)]) == 1  # a finding: leaf-01 has an uplink less than leaf-02
    assert "planes: [A]" in out.read_text()
