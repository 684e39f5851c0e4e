"""trace, analyze, record and import on the command line: what they print, and how they end."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from test_command_line import MINI, text_trace

from replay.convert import convert
from replay.trace import open_trace
from tui import main
from twin.site import load_site

Ran = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Ran:
    """The command in that folder: its exit code, and what it printed."""
    monkeypatch.chdir(here)

    def command(*arguments: str) -> tuple[int, str, str]:
        code = main.run(list(arguments))
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return command


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a wiring, a text trace of it, and the recording of that."""
    tmp_path = tmp_path_factory.mktemp("here")
    (tmp_path / "mini.yaml").write_text(MINI)
    text_trace(tmp_path / "t.jsonl", seconds=30)
    convert(tmp_path / "t.jsonl", tmp_path / "t.mcap", topology=load_site(tmp_path / "mini.yaml").topology)
    return tmp_path


@pytest.mark.parametrize(
    "command",
    ["trace", "trace cut", "trace merge", "trace verify", "trace anonymize", "trace info", "trace convert", "analyze",
     "import", "import prometheus", "record", "watch"],
)  # fmt: skip
def test_help_shows_examples(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run([*command.split(), "--help"]) == 0
    out = capsys.readouterr().out
    assert "Examples:" in out
    assert max(map(len, out.splitlines())) <= 120


def test_a_trace_is_cut_merged_verified_and_made_anonymous(here: Path, run: Ran) -> None:
    code, out, err = run("trace", "cut", "t.mcap", "a.mcap", "--to", "+10s")
    assert (code, out, err) == (0, "a.mcap: 10 frames\n", "")
    assert run("trace", "cut", "t.mcap", "b.mcap", "--from", "+10s")[1] == "b.mcap: 20 frames\n"
    assert run("trace", "merge", "b.mcap", "a.mcap", "-o", "c.mcap")[1] == "c.mcap: 30 frames\n"
    assert list(open_trace(here / "c.mcap").frames()) == list(open_trace(here / "t.mcap").frames())
    code, out, _ = run("trace", "verify", "c.mcap", "--json")
    found = json.loads(out)
    assert (code, found["status"], found["frames"], len(found["sha256"])) == (0, "ok", 30, 64)
    assert [c["check"] for c in found["checks"]] == ["whole", "checksum", "order", "names", "gaps"]
    assert run("trace", "anonymize", "t.mcap", "d.mcap", "--key", "k.json")[0] == 0
    assert json.loads((here / "k.json").read_text())["n0"] == "host-01"
    before, after = (run("analyze", name, "--json") for name in ("t.mcap", "d.mcap"))
    assert before[0] == after[0] == 1
    assert [i["cause"] for i in json.loads(after[1])["incidents"]] == ["host-01/nic0/p1"]


def test_verify_ends_as_it_judges(here: Path, run: Ran) -> None:
    data = (here / "t.mcap").read_bytes()
    (here / "cut.mcap").write_bytes(data[:-400])
    (here / "bad.mcap").write_bytes(data[: len(data) // 2] + b"\xff\xff" + data[len(data) // 2 + 2 :])
    (here / "none.mcap").write_bytes(b"")
    codes = {name: run("trace", "verify", name)[0] for name in ("t.mcap", "cut.mcap", "bad.mcap", "none.mcap")}
    assert codes == {"t.mcap": 0, "cut.mcap": 1, "bad.mcap": 2, "none.mcap": 3}
    code, out, _ = run("trace", "verify", "t.jsonl")
    assert (code, "unknown  names" in out) == (0, True)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("trace cut t.mcap t.mcap", "would be written over itself"),
        ("trace cut t.mcap x.txt", "expected a name ending in .mcap, .jsonl, .jsonl.zst"),
        ("trace cut t.mcap x.mcap --from noon", "--from: 'noon' is no time"),
        ("trace cut nowhere.mcap x.mcap", "nowhere.mcap: no such file"),
        ("trace merge t.mcap t.jsonl -o x.mcap", "give the fabric's wiring with --site SITE"),
        ("trace merge -o x.mcap", "Missing argument"),
        ("trace anonymize t.jsonl x.mcap", "give the fabric's wiring with --site SITE"),
        ("analyze t.mcap nowhere.mcap", "nowhere.mcap: no such file"),
        ("analyze t.mcap --report r.pdf", "expected a name ending in .html or .md"),
        ("analyze t.mcap --rules nowhere.toml", "nowhere.toml: cannot be read"),
        ("analyze t.mcap --compare shipped nowhere.yaml", "nowhere.yaml"),
        ("record mini.yaml -o r.mcap --keep-for 1h", "--keep-size and --keep-for need pieces"),
        ("import prometheus http://127.0.0.1:9 --site mini.yaml --start -1h -o x.jsonl", "give --profile"),
    ],
)
def test_what_cannot_be_done_is_one_clear_line(run: Ran, arguments: str, said: str) -> None:
    code, _, err = run(*arguments.split())
    assert (code, said in err, len(err.splitlines())) == (3, True, 1), err
