"""The command line: exit codes, JSON, lines, and one clear line for everything that cannot run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from twin.simulator.scenario import DEMO
from twin.simulator.simulation import Simulation
from twin.topology.presets import PRESETS

MINI = """\
name: mini
planes: [A, B]
nodes:
  - {name: n0, rack: r0, gpus: 1, nics: 1, ports_per_nic: 2}
switches:
  - {name: A-leaf-0, tier: leaf, plane: A, model: sn5600}
  - {name: B-leaf-0, tier: leaf, plane: B, model: sn5600}
links:
  - {a: n0/nic0/p0, b: A-leaf-0/p0, speed: 400G}
  - {a: n0/nic0/p1, b: B-leaf-0/p0, speed: 400G}
"""


def run(*arguments: str, cwd: Path | None = None) -> tuple[int, str, str]:
    """The command in a process of its own, without a terminal."""
    done = subprocess.run(
        [sys.executable, "-m", "tui.main", *arguments],
        capture_output=True, text=True, timeout=120, cwd=cwd, stdin=subprocess.DEVNULL,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(Path(__file__).parents[2])},
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


def text_trace(path: Path, seconds: int = 8, down_from: int = 3) -> Path:
    lines = []
    for t in range(seconds):
        port = {"up": 1 if t < down_from else 0, "tx_bytes": 1_000_000 * t}
        sample = {
            "time": 1764547200 + t + 0.1,
            "source": "n0",
            "samples": {"n0/nic0/p0": {"up": 1}, "n0/nic0/p1": port},
        }
        lines.append(json.dumps(sample))
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def mini(tmp_path: Path) -> Path:
    path = tmp_path / "mini.yaml"
    path.write_text(MINI)
    return path


def test_help_names_every_command_and_the_exit_codes() -> None:
    code, out, _ = run("--help")
    assert code == 0
    for word in ["demo", "watch", "check", "record", "replay", "analyze", "drill", "topology", "trace", "3"]:
        assert word in " ".join(out.split())


@pytest.mark.parametrize(
    "command",
    ["demo", "watch", "check", "record", "replay", "analyze", "drill", "drill run", "topology", "topology show",
     "topology export", "topology discover", "trace", "trace convert"],
)  # fmt: skip
def test_every_command_has_help(command: str) -> None:
    code, out, err = run(*command.split(), "--help")
    assert (code, err) == (0, "") and "Usage:" in out


def test_a_demo_that_is_piped_tells_the_story_and_ends_with_0() -> None:
    code, out, err = run("demo")
    assert (code, err) == (0, "")
    for told in (
        "CRITICAL opened     plane_down plane:B: plane B is down: 512 GPUs at 50% of network bandwidth",
        "CRITICAL resolved   plane_down plane:B",
        "CRITICAL opened     switch_down A-leaf-03",
        "WARNING  opened     link_slow n012/nic5/p0",
        "end of the scenario",
    ):
        assert told in out
    assert out.index("plane_down plane:B") < out.index("switch_down A-leaf-03")


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_has_a_demo_with_a_story(name: str) -> None:
    code, out, err = run("demo", "--preset", name)
    assert (code, err) == (0, "")
    assert out.count(" opened ") >= 3 and out.count(" resolved ") >= 3


def test_topology_show_json_has_the_fields_of_the_design() -> None:
    code, out, _ = run("topology", "show", "b300-superpod-ethernet", "--scalable-units", "2", "--json")
    found = json.loads(out)
    assert code == 0
    assert {k: found[k] for k in ("gpus", "nodes", "planes", "leaves", "spines", "nvlink_domains", "nvswitches")} == {
        "gpus": 1024, "nodes": 128, "planes": 2, "leaves": 32, "spines": 16, "nvlink_domains": 128, "nvswitches": 256,
    }  # fmt: skip
    assert found["links"] == {"host_leaf": 2048, "leaf_spine": 2048, "nvlink": 18432}
    assert found["cables"] == {"host_leaf": 1024, "leaf_spine": 1024}


def test_an_exported_wiring_is_valid_and_shows_the_same(tmp_path: Path) -> None:
    path = tmp_path / "w.yaml"
    assert run("topology", "export", "gb300-nvl72-superpod", "-o", str(path))[0] == 0
    assert run("topology", "validate", str(path))[0] == 0
    shown = [json.loads(run("topology", "show", name, "--json")[1]) for name in ("gb300-nvl72-superpod", str(path))]
    assert shown[0] == shown[1]


def test_an_exported_dump_is_discovered_as_the_fabric_it_came_from(tmp_path: Path) -> None:
    dump, wiring = tmp_path / "fabric.out", tmp_path / "w.yaml"
    assert run("topology", "export", "b300-superpod-xdr", "--format", "ibnetdiscover", "-o", str(dump))[0] == 0
    code, out, _ = run("topology", "discover", "--ibnetdiscover", str(dump), "-o", str(wiring), "--json")
    found = json.loads(out)
    assert (code, found["gpus"], found["leaves"], found["spines"]) == (0, 576, 8, 4)
    assert run("topology", "validate", str(wiring))[0] == 0


def test_analyze_judges_a_text_trace_and_its_exit_code_tells_the_worst(tmp_path: Path, mini: Path) -> None:
    trace = text_trace(tmp_path / "t.jsonl")
    code, out, err = run("analyze", str(trace), "--site", str(mini), "--json")
    found = json.loads(out)
    assert (code, err) == (1, "")
    assert [(i["kind"], i["cause"]) for i in found["incidents"]] == [("link_down", "n0/nic0/p1")]
    assert set(found) == {"trace", "incidents", "summary"}
    assert {"start", "end", "frames", "sources", "truncated"} <= set(found["trace"])
    assert found["summary"] == {"critical": 0, "warning": 1, "info": 0}
    assert run("analyze", str(text_trace(trace, down_from=99)), "--site", str(mini))[0] == 0


def test_a_trace_says_the_same_in_every_form(tmp_path: Path, mini: Path) -> None:
    text_trace(tmp_path / "t.jsonl")
    for name in ("t.mcap", "t.jsonl.zst"):
        assert run("trace", "convert", "t.jsonl", name, "--site", str(mini), cwd=tmp_path)[0] == 0
    forms = (["t.jsonl", "--site", "mini.yaml"], ["t.mcap"], ["t.jsonl.zst", "--site", "mini.yaml"])
    answers = [json.loads(run("analyze", *form, "--json", cwd=tmp_path)[1])["incidents"] for form in forms]
    assert answers[0] and answers[0] == answers[1] == answers[2]
    assert (
        "CRITICAL" in run("replay", "t.mcap", cwd=tmp_path)[1]
        or "WARNING" in run("replay", "t.mcap", cwd=tmp_path)[1]
    )


def test_the_thresholds_of_a_site_are_used_and_recorded(tmp_path: Path, mini: Path) -> None:
    text_trace(tmp_path / "t.jsonl")
    site = tmp_path / "site.yaml"
    site.write_text("name: patient\ntopology: {file: mini.yaml}\nrules: {link_debounce: 60}\n")
    assert run("analyze", "t.jsonl", "--site", "site.yaml", cwd=tmp_path)[0] == 0
    assert run("trace", "convert", "t.jsonl", "t.mcap", "--site", "site.yaml", cwd=tmp_path)[0] == 0
    assert run("analyze", "t.mcap", cwd=tmp_path)[0] == 0
    assert run("analyze", "t.mcap", "--site", "mini.yaml", cwd=tmp_path)[0] == 1


def test_a_cut_recording_is_analysed_up_to_the_cut_and_says_so(tmp_path: Path, mini: Path) -> None:
    text_trace(tmp_path / "t.jsonl", seconds=60)
    run("trace", "convert", "t.jsonl", "t.mcap", "--site", str(mini), cwd=tmp_path)
    whole = (tmp_path / "t.mcap").read_bytes()
    (tmp_path / "cut.mcap").write_bytes(whole[: len(whole) * 2 // 3])
    code, out, err = run("analyze", "cut.mcap", "--json", cwd=tmp_path)
    found = json.loads(out)
    assert code == 1 and found["trace"]["truncated"] is True and found["trace"]["frames"] > 0
    assert [i["kind"] for i in found["incidents"]] == ["link_down"]
    assert err.count("\n") >= 1 and "Traceback" not in err


def test_drill_run_json_has_the_fields_of_the_design(tmp_path: Path) -> None:
    report = tmp_path / "junit.xml"
    code, out, _ = run("drill", "run", "plane-down", "--json", "--junit", str(report))
    (found,) = json.loads(out)
    assert (code, found["passed"], found["unexpected"]) == (0, True, [])
    assert [e["incident"] for e in found["expectations"]] == ["plane_down", "link_slow"]
    assert all(e["met"] and e["detected_after_seconds"] <= 3 for e in found["expectations"])
    assert '<testsuite name="fabrictwin drills" tests="1" failures="0">' in report.read_text()


def test_a_drill_that_fails_exits_with_2_and_says_what_was_seen(tmp_path: Path) -> None:
    path = tmp_path / "d.yaml"
    path.write_text(
        "name: wrong\ntopology: {preset: rtx-pro-6000}\nduration: 20s\n"
        "faults: [{at: 5s, fail: A-leaf-00}]\n"
        "expect: [{incident: switch_down, cause: A-leaf-01}, {nothing_else: true}]\n"
    )
    code, out, _ = run("drill", "run", str(path))
    assert code == 2
    assert "FAIL  wrong" in out and "unexpected switch_down A-leaf-00" in out


def test_this_host_can_be_checked_recorded_and_analysed(tmp_path: Path) -> None:
    code, out, _ = run("check", "--for", "2s", "--json")
    assert code in (0, 1) and json.loads(out)["status"] in ("healthy", "warnings")
    assert run("record", "-o", "here.mcap", "--for", "3s", cwd=tmp_path)[0] == 0
    assert run("analyze", "here.mcap", cwd=tmp_path)[0] in (0, 1)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("topology show b300-superpod-ethrnet", "did you mean b300-superpod-ethernet"),
        ("topology show b300-superpod-ethernet --scalable-units 99", "scalable_units is 99, expected 1 to 16"),
        ("topology show b300-superpod-ethernet --scalable-units many", "many"),
        ("topology show b300-superpod-xdr --planes 2", "no parameter 'planes'"),
        ("topology show mini.yaml --planes 2", "only a preset takes sizes"),
        ("topology export b300-superpod-ethernet --format ibnetdiscover", "name it with --plane"),
        ("topology export b300-superpod-ethernet --format ibnetdiscover --plane Q", "no plane 'Q'"),
        ("topology export b300-superpod-xdr --link-speed fast", "'fast' is not a speed"),
        ("topology export b300-superpod-xdr -o nowhere/x.yaml", "cannot be written"),
        ("topology discover --ibnetdiscover header.out", "header.out:3: "),
        ("topology discover --ibnetdiscover nowhere.out", "nowhere.out: cannot be read: No such file"),
        ("topology discover --ibnetdiscover binary.out", "binary.out:1: "),
        ("topology validate slip.yaml", "slip.yaml:2: not YAML"),
        ("topology validate twice.yaml", "twice.yaml:10: links[1].b: port 'A-leaf-0/p0' is used twice"),
        ("topology validate noport.yaml", "noport.yaml:9: links[0].a: 'n0/nic0/p7' does not exist"),
        ("analyze broken.jsonl --site mini.yaml", "broken.jsonl:2: "),
        ("analyze t.jsonl", "--site"),
        ("analyze t.jsonl --site nowhere.yaml", "nowhere.yaml: no such file"),
        ("analyze nowhere.mcap", "nowhere.mcap: no such file"),
        ("analyze empty.mcap", "empty.mcap: empty"),
        ("analyze binary.out", "binary.out: not a trace"),
        ("replay header.out", "header.out"),
        ("check mini.yaml", "nothing to collect from"),
        ("check b300-superpod-xdr", "nothing to collect from"),
        ("check notool.yaml", "ibnetdiscover not found: it is needed to read an InfiniBand fabric"),
        ("watch notool.yaml", "ibnetdiscover not found"),
        ("record -o x.jsonl", "recordings are .mcap"),
        ("topology discover --ibnetdiscover A=mini.out --ibnetdiscover B=mini.out", "hold the same switch"),
        ("record notool.yaml -o x.mcap", "ibnetdiscover not found"),
        ("check mini.yaml --for soon", "'soon' is not a duration"),
        ("drill run nowhere", "nowhere: no such file, nor a shipped drill"),
        ("drill run mini.yaml", "mini.yaml"),
        ("demo --scenario nowhere", "nowhere: no such file, nor a shipped drill"),
        ("demo --preset nowhere", "'nowhere' is not a preset"),
        ("trace convert t.jsonl t.xyz", "t.xyz"),
        ("frobnicate", "No such command 'frobnicate'"),
        ("check --frobnicate", "--frobnicate"),
    ],
)  # fmt: skip
def test_what_cannot_run_says_why_in_one_line_and_exits_with_3(
    tmp_path: Path, mini: Path, arguments: str, said: str
) -> None:
    files = {
        "header.out": "#\n# Topology file: generated on Wed Aug  6 16:11:23 2025\n#\n",
        "slip.yaml": "name: x\n  topology: [\n",
        "twice.yaml": MINI.replace("b: B-leaf-0/p0", "b: A-leaf-0/p0"),
        "noport.yaml": MINI.replace("n0/nic0/p0", "n0/nic0/p7"),
        "notool.yaml": "topology: {preset: b300-superpod-xdr}\ncollectors: [{infiniband: {env: {PATH: /nowhere}}}]\n",
        "empty.mcap": "",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    mini_dump = Path(__file__).parents[1] / "fixtures/ib/mini.netdiscover.txt"
    (tmp_path / "mini.out").write_text(mini_dump.read_text())
    (tmp_path / "binary.out").write_bytes(bytes(range(256)))
    lines = text_trace(tmp_path / "t.jsonl").read_text().splitlines()
    (tmp_path / "broken.jsonl").write_text("\n".join([lines[0], '{"time": oops', *lines[1:]]) + "\n")
    code, out, err = run(*arguments.split(), cwd=tmp_path)
    assert (code, out) == (3, ""), (out, err)
    assert said in err
    assert err.startswith("fabrictwin: ") and "Traceback" not in err
    assert err.count("\n") == 1 or arguments == "drill run mini.yaml", err  # every mistake of a file is told


def test_a_reader_that_goes_away_is_no_error() -> None:
    script = f"{sys.executable} -m tui.main demo | head -1"
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "") and done.stdout.count("\n") == 1


def test_a_full_disk_is_one_line_and_3() -> None:
    done = subprocess.run(["sh", "-c", f"{sys.executable} -m tui.main topology presets > /dev/full"],
                          capture_output=True, text=True, timeout=60)  # fmt: skip
    assert (done.returncode, done.stderr.count("\n")) == (3, 1) and "No space left" in done.stderr


def test_no_command_at_all_is_the_help() -> None:
    code, out, err = run()
    assert (code, err) == (0, "") and out.startswith("Usage:")


def test_the_demo_scenario_names_only_what_is_there() -> None:
    assert len(list(Simulation(DEMO).frames())) > 1000
