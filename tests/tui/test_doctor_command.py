"""`fabrictwin doctor`: exit codes, JSON, 80 columns; and what watch and check say without a site."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from test_command_line import MINI, run

PART = """\
name: part
topology: {file: mini.yaml}
collectors:
  - host: {name: n0, sys: sys, devices: {eno1: n0/nic0/p0}}
  - infiniband: {plane: A, env: {PATH: /nowhere}}
  - nvml: {name: n0}
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A host of two ports whose first is read, a fabric without tools and GPUs without a driver."""
    net = tmp_path / "sys/class/net/eno1"
    (net / "statistics").mkdir(parents=True)
    for name, text in {"operstate": "up", "carrier": "1", "speed": "400000", "statistics/tx_bytes": "7"}.items():
        (net / name).write_text(text)
    (tmp_path / "mini.yaml").write_text(MINI)
    path = tmp_path / "site.yaml"
    path.write_text(PART)
    return path


def test_every_source_is_told_and_what_is_missing_exits_with_1(site: Path) -> None:
    code, out, err = run("doctor", site.name, "--json", cwd=site.parent)
    found = json.loads(out)
    assert (code, err, found["site"], found["status"]) == (1, "", "part", "missing")
    assert set(found) == {"site", "status", "checks", "sources", "unread"}
    host, infiniband, nvml = found["sources"]
    assert host["entry"] == "host" and host["coverage"][0]["read"] == host["coverage"][0]["expected"] == 1
    assert host["read"]["port"][:3] == ["up", "speed_bits_per_second", "tx_bytes"]
    assert infiniband["state"] == "failed" and "infiniband-diags" in infiniband["error"]
    assert nvml["name"] == "n0:nvml" and nvml["state"] in ("failed", "part")
    unread = {u["what"]: u for u in found["unread"]}
    assert (unread["links"]["unread"], unread["links"]["blind"]) == (1, True)
    assert (unread["switch ports"]["unread"], unread["switch ports"]["example"]) == (1, "A-leaf-0/p0")


def test_json_has_the_documented_fields(site: Path) -> None:
    found = json.loads(run("doctor", site.name, "--json", cwd=site.parent)[1])
    page = (Path(__file__).parents[2] / "docs" / "doctor.md").read_text()
    for part in ("checks", "sources", "unread"):
        for field in found[part][0]:
            assert f"`{field}`" in page, (part, field)


def test_the_text_fits_80_columns_and_breaks_no_word(site: Path) -> None:
    for arguments in (["doctor", site.name], ["doctor"]):
        code, out, err = run(*arguments, cwd=site.parent)
        assert code in (0, 1) and err == "" and "\x1b" not in out
        assert max(map(len, out.splitlines())) <= 80
    words = run("doctor", site.name, cwd=site.parent)[1].split()
    assert {"speed_bits_per_second", "infiniband-diags", "n0/nic0/p1--B-leaf-0/p0"} <= set(words)


def test_this_host_is_looked_at_without_a_site() -> None:
    code, out, err = run("doctor", "--json")
    found = json.loads(out)
    assert code in (0, 1) and err == "" and found["site"] is None and found["sources"] == found["unread"] == []
    names = {c["name"] for c in found["checks"]}
    assert {"GPUs", "RDMA devices", "network interfaces", "infiniband-diags", "umad", "clock"} <= names
    assert (code == 0) == all(c["state"] in ("ok", "none") for c in found["checks"])


def test_a_site_without_sources_says_so_and_what_nobody_reads(site: Path) -> None:
    code, out, _ = run("doctor", "mini.yaml", cwd=site.parent)
    assert code == 1
    assert "SOURCES of mini: none" in out and "links: 2 of 2 are read at neither end" in " ".join(out.split())


@pytest.mark.parametrize(
    ("text", "said"), [("topology: {preset: nowhere}\n", "nowhere"), ("collectors: [{teleport: {}}]\n", "teleport")]
)
def test_a_wrong_site_cannot_run(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "bad.yaml").write_text(text)
    code, out, err = run("doctor", "bad.yaml", cwd=tmp_path)
    assert (code, out) == (3, "") and said in err


def test_check_tells_clock_and_lateness_of_every_source() -> None:
    code, out, _ = run("check", "--for", "1s", "--json")
    assert code in (0, 1)
    fields = {
        "name", "ok", "failures", "error", "warnings", "duration_seconds", "late", "clock_offset_seconds",
        "state", "age_seconds", "clock_is_off",
    }  # fmt: skip
    for source in json.loads(out)["sources"]:
        assert set(source) == fields


def test_watch_and_check_without_a_site_say_what_was_found_in_two_lines() -> None:
    _, out, err = run("watch", "--plain", "--for", "2s")
    first, second, *rest = out.splitlines()
    assert err == "" and "atching" in first and first[0].isupper()
    assert "site file" in second and rest and " ports " in rest[0]
    _, out, _ = run("check", "--for", "1s")
    assert out.splitlines()[1:3] == [f"  {first}", f"  {second}"]
