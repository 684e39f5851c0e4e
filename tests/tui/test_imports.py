"""What a command imports: no command without a screen pays for one, and help pays for next to nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tui.main import _COMMANDS

ROOT = Path(__file__).parents[2]
# What takes 50 ms or more to import, or brings what does, each by the name it is imported by.
HEAVY = {
    "textual", "rich.console", "pydantic", "numpy", "yaml", "mcap", "zstandard", "asyncio", "aiohttp", "httpx",
    "grpc", "google.protobuf", "gufo", "aiomqtt", "pynvml", "scipy", "jinja2", "cryptography", "prometheus_client",
    "hypothesis",
}  # fmt: skip
NOTHING: set[str] = set()
NUMBERS = {"numpy"}
FILES = {"numpy", "pydantic", "yaml"}  # pydantic and YAML read files that people write
RECORDS = {"mcap", "zstandard"}
LOOP = {"asyncio"}
LIVE = {"numpy", "asyncio"}
# Each command, and what its help may import.
HELP = {
    "demo": NOTHING, "watch": LOOP, "check": LOOP, "record": LOOP, "agent": LOOP, "replay": NOTHING,
    "analyze": NOTHING, "import": LOOP, "drill": NOTHING, "whatif": NOTHING, "topology": NOTHING, "trace": NOTHING,
    "doctor": LOOP, "config": NOTHING,
}  # fmt: skip
# A small run of it, and what that may import.
RUNS = {
    "config print": NOTHING,
    "topology presets": NOTHING,
    "topology show rtx-pro-6000": FILES,
    "drill list": FILES,
    "drill run nvlink-down": FILES,
    "demo --plain --speed 0 --preset rtx-pro-6000": NUMBERS,
    "whatif rtx-pro-6000 --fail A-leaf-00": FILES,
    "check --for 1s": LIVE,
    "watch --for 1s": LIVE,
    "record -o t.mcap --for 1s": LIVE | RECORDS,
    "trace info a.mcap": FILES | RECORDS,
    "analyze a.mcap": FILES | RECORDS,
    "replay a.mcap": FILES | RECORDS,
    "agent nowhere.yaml": FILES | LIVE | {"aiomqtt"},
}
SCRIPT = """
import contextlib, io, sys
from tui.main import run
with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
    code = run(sys.argv[2:])
print(code, *(name for name in sys.argv[1].split(",") if name in sys.modules))
"""


def imported(arguments: list[str], cwd: Path) -> tuple[int, set[str]]:
    """The exit code of a command without a terminal, and which heavy modules it imported."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, ",".join(HEAVY), *arguments], cwd=cwd, capture_output=True, text=True,
        stdin=subprocess.DEVNULL, timeout=60, env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    code, *names = done.stdout.split()
    return int(code), set(names)


def test_the_table_has_every_command() -> None:
    assert set(HELP) == set(_COMMANDS)


@pytest.mark.parametrize("command", ["", *HELP])
def test_help_imports_no_more_than_it_needs(command: str, tmp_path: Path) -> None:
    code, found = imported([*command.split(), "--help"], tmp_path)
    assert code == 0 and found <= HELP.get(command, NOTHING)


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recording")
    assert imported(["record", "-o", "a.mcap", "--for", "2s"], folder)[0] in (0, 1)
    return folder


@pytest.mark.parametrize("command", RUNS)
def test_a_run_without_a_screen_imports_no_more_than_it_needs(command: str, recording: Path) -> None:
    code, found = imported(command.split(), recording)
    assert code in ((3,) if "nowhere" in command else (0, 1, 2))
    assert found <= RUNS[command]


def test_what_counts_as_heavy_is_seen_where_it_is_imported(tmp_path: Path) -> None:
    assert {"numpy", "pydantic", "yaml"} <= imported(["topology", "show", "rtx-pro-6000"], tmp_path)[1]


BEFORE_THE_FIRST_FRAME = """
import sys
from tui.app import FabricApp
from tui.commands.demo import _scenario, _session
from tui.commands.screen import open_screen
from tui.remembered import recall
from tui.session import Late
_scenario(None, None, {})
FabricApp(Late("demo", "demo", _session))
print(*(name for name in sys.argv[1].split(",") if name in sys.modules))
"""


def test_the_first_frame_of_a_demo_waits_for_textual_and_nothing_else_that_is_heavy(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", BEFORE_THE_FIRST_FRAME, ",".join(HEAVY)], cwd=tmp_path, capture_output=True, text=True,
        timeout=60, env={"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert set(done.stdout.split()) == {"textual", "rich.console", "asyncio"}, done.stderr
