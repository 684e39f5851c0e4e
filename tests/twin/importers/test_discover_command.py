"""`fabrictwin topology discover`: from files to a wiring file that a person edits and other commands read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from importer_inputs import CASES, FIXTURES

from tests.twin.small_fabric import read, unplug
from tui.main import run
from twin.site import load_site
from twin.topology.explicit import to_wiring
from twin.topology.ibexport import to_ibnetdiscover
from twin.topology.presets import preset


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
    discover("--air", FIXTURES / "air.json", "--name", "su1", "--long", "-o", out, "--force")
    lines = out.read_text().splitlines()
    assert len(short) < len(lines) + 5 and max(map(len, short)) < 140
    assert lines[0].startswith("# Discovered wiring")
    assert "name: su1" in lines
    assert "- {a: gpu-su01-rack01-h01/nic1/p1, b: leaf-p1-su001-r1/p1, speed: 400G}" in lines
    assert "# tier is leaf, spine or core; label is the name that was found, where it had to change" in lines
    assert max(map(len, lines)) < 140


def test_a_file_that_was_edited_is_not_lost(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same discovery may be written again, another needs --force."""
    out = tmp_path / "wiring.yaml"
    air = ("--air", FIXTURES / "air.json", "-o", out)
    assert discover(*air) == discover(*air) == 0
    out.write_text(out.read_text() + "# by hand\n")
    assert discover(*air) == 3
    assert f"{out}: is there already and says something else; --force replaces it" in capsys.readouterr().err
    assert out.read_text().endswith("# by hand\n")
    assert discover(*air, "--force") == 0


def test_what_is_found_can_be_written_as_meant_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One entry a place under what was found there, so that what comes up later is still told."""
    wiring = to_wiring(preset("hgx-h100", nodes=8))
    unplug(wiring, next(link["a"] for link in wiring["links"] if link["a"].startswith("A-leaf-03/")))
    dump, out = tmp_path / "b.out", tmp_path / "b.yaml"
    dump.write_text(to_ibnetdiscover(read(wiring)))
    assert discover("--ibnetdiscover", dump, "-o", out) == 0
    assert "an engineer would question 1 thing here" in capsys.readouterr().err
    assert run(["topology", "validate", str(out)]) == 1
    assert discover("--ibnetdiscover", dump, "--accept-findings", "-o", out, "--force") == 0
    assert '- "uplinks-unequal:A-leaf-03"' in out.read_text()
    assert run(["topology", "validate", str(out)]) == 0


def nvml_of(host: str, gpus: int) -> dict[str, object]:
    """A tray of a rack as `topology nvml` prints it."""
    domain = {"name": "nvl-c0-1", "gpus": list(range(gpus)), "links_per_gpu": 18, "speed": 50e9, "shared": True}
    return {
        "host": host, "driver": "580", "gpu_model": "gb300", "rack": "182000", "gpus": [{} for _ in range(gpus)],
        "domains": [domain],
    }  # fmt: skip


def test_trays_of_one_cluster_and_clique_become_one_nvlink_domain(tmp_path: Path) -> None:
    files = [tmp_path / f"n{i}.json" for i in range(2)]
    for i, file in enumerate(files):
        file.write_text(json.dumps(nvml_of(f"n{i}", 4)))
    out = tmp_path / "wiring.yaml"
    assert discover("--nvml", f"n0={files[0]}", "--nvml", f"n1={files[1]}", "-o", out) == 0
    topo = load_site(out).topology
    assert (topo.domains.name, len(topo.domains.gpu_rows[0]), len(topo.nvlink_names)) == (("nvl-c0-1",), 8, 144)
    assert (topo.racks.name, set(topo.nodes.gpu_model)) == (("182000",), {"gb300"})


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"gpus": 3}, "gpus: expected a list, found 3"),
        ({"gpus": [{}] * 65}, "gpus: expected at most 64 GPUs of one host, found 65"),
        ({"domains": [{"name": "d", "gpus": [9], "links_per_gpu": 18}]}, "domains[0].gpus: GPU 9 is not one of 4"),
        ({"domains": [{"name": "d", "gpus": [0], "links_per_gpu": 99}]}, "expected 1 to 64, found 99"),
        ({"domains": [{"name": "d", "gpus": [0], "links_per_gpu": 1, "speed": -1}]}, "expected bytes/s or null"),
    ],
)
def test_a_wrong_description_by_nvml_is_told_with_its_place(
    change: dict[str, object], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "n0.json"
    file.write_text(json.dumps(nvml_of("n0", 4) | change))
    assert discover("--nvml", file) == 3
    assert says in capsys.readouterr().err


def test_a_site_file_discovers_from_the_same_sources(tmp_path: Path) -> None:
    (tmp_path / "lldp.json").write_bytes((FIXTURES / "lldp.json").read_bytes())
    site = tmp_path / "site.yaml"
    site.write_text("name: s\ntopology:\n  discover: {lldp: lldp.json, gpus-per-node: 8, link-speed: 400G}\n")
    topo = load_site(site).topology
    assert (len(topo.gpu_names), topo.planes) == (16, ("A", "B"))


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
