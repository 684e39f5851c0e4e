"""What the doctor says of sources and hosts, without services: fakes at the collector protocol, trees as /sys."""

from __future__ import annotations

import asyncio
import time
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sysfs_tree import device, ib_port, interface, write

from collectors.base import Collector, CollectorError, Sample
from collectors.build import MODULES
from collectors.doctor import clock, host, libraries, sources
from collectors.doctor.check import Check, SourceReport
from collectors.doctor.coverage import Seen, gaps
from collectors.doctor.here import here
from collectors.doctor.infiniband import infiniband_checks, last_words, manager
from collectors.own_ports import own_ports
from twin.errors import InputError, MissingLibrary, MissingTool
from twin.frames import NS, Frame
from twin.site import Site, load_site

LONG = 30.0
SITE = """
name: small
topology:
  name: small
  planes: [A, B]
  nodes:
    - {name: n0, gpus: 2, nics: 2, ports_per_nic: 2}
    - {name: n1, gpus: 2, nics: 2, ports_per_nic: 2}
  switches:
    - {name: A-leaf, tier: leaf, plane: A}
    - {name: B-leaf, tier: leaf, plane: B}
  links:
    - {a: n0/nic0/p0, b: A-leaf/p0, speed: 400G}
    - {a: n0/nic0/p1, b: B-leaf/p0, speed: 400G}
    - {a: n0/nic1/p0, b: A-leaf/p1, speed: 400G}
    - {a: n0/nic1/p1, b: B-leaf/p1, speed: 400G}
    - {a: n1/nic0/p0, b: A-leaf/p2, speed: 400G}
    - {a: n1/nic0/p1, b: B-leaf/p2, speed: 400G}
    - {a: n1/nic1/p0, b: A-leaf/p3, speed: 400G}
    - {a: n1/nic1/p1, b: B-leaf/p3, speed: 400G}
collectors:
"""
N0, N1 = (tuple(f"{n}/nic{k}/p{p}" for k in range(2) for p in range(2)) for n in ("n0", "n1"))
A_LEAF = tuple(f"A-leaf/p{i}" for i in range(4))


class Fake:
    """A source that answers with what `answer` gives for the number of the call."""

    def __init__(
        self, name: str, answer: Callable[[int], Sample], *, takes: float = 0.0, interval: float = 0.05,
        deadline: float = 5.0,
    ) -> None:  # fmt: skip
        self.name, self.interval, self.deadline = name, interval, deadline
        self._answer, self._takes = answer, takes
        self.calls, self.closed = 0, False

    async def collect(self) -> Sample:
        self.calls += 1
        await asyncio.sleep(self._takes)
        return self._answer(self.calls)

    async def close(self) -> None:
        self.closed = True


def ports(
    *names: str, age: float = 0.0, warnings: Sequence[str] = (), **columns: list[float]
) -> Callable[[int], Sample]:
    def answer(_: int) -> Sample:
        given = {"up": np.ones(len(names)), **{m: np.array(v) for m, v in columns.items()}}
        return Sample([Frame(time.time_ns() - round(age * NS), "s", "port", names, given)], warnings)

    return answer


def site(tmp_path: Path, *entries: str) -> Site:
    path = tmp_path / "site.yaml"
    path.write_text(SITE + "".join(f"  - {e}\n" for e in entries))
    return load_site(path)


Built = Callable[..., list[Collector]]


async def examine(
    monkeypatch: pytest.MonkeyPatch, a_site: Site, *built: list[Fake] | Exception
) -> tuple[list[SourceReport], list[Seen]]:
    """The reports of a site whose entries give these collectors, or raise that."""
    by_spec = dict(zip(map(id, a_site.collectors), built, strict=True))

    def build(_: Site, specs: list[object]) -> list[Fake]:
        found = by_spec[id(specs[0])]
        if isinstance(found, Exception):
            raise found
        return found

    monkeypatch.setattr(sources, "build", build)
    async with asyncio.timeout(LONG):
        return await sources.examine(a_site)


HOST0, HOST1, SNMP = (
    "host: {name: n0}",
    "host: {name: n1}",
    "snmp: {targets: {A-leaf: a:1, B-leaf: b:1}, community: {env: C}}",
)


async def test_a_source_that_reads_all_it_should_is_ok(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake = Fake("n0", ports(*N0))
    (report,), _ = await examine(monkeypatch, site(tmp_path, HOST0), [fake])
    assert (report.state, report.error, report.advice) == ("ok", None, ())
    assert [(c.kind, c.read, c.expected, c.example) for c in report.coverage] == [("port", 4, 4, None)]
    assert fake.calls == 2 and fake.closed
    assert report.clock_offset_seconds == 0.0 and report.age_seconds is not None and report.age_seconds < 1


async def test_metrics_are_read_partly_read_or_never_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    nan = float("nan")
    columns = {"tx_bytes": [1.0, nan, 3.0, nan], "rx_errors": [nan] * 4}
    (report,), _ = await examine(monkeypatch, site(tmp_path, HOST0), [Fake("n0", ports(*N0, **columns))])
    assert report.read == {"port": ("up", "tx_bytes")}
    assert report.never is not None and {"rx_errors", "speed_bits_per_second"} <= set(report.never["port"])
    (partly,) = report.partly
    assert (partly.metric, partly.unknown, partly.of, partly.example) == ("tx_bytes", 2, 4, "n0/nic0/p1")


async def test_a_source_that_misses_some_of_its_entities_is_partly_read_and_an_example_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    answer = ports(*N0[:3], "eth9", warnings=["n0/nic1/p1: no interface x"])
    (report,), _ = await examine(monkeypatch, site(tmp_path, HOST0), [Fake("n0", answer)])
    assert report.state == "part" and report.strangers == 1
    assert [(c.read, c.expected, c.example) for c in report.coverage] == [(3, 4, "n0/nic1/p1")]
    assert report.warnings == ("n0/nic1/p1: no interface x",)
    assert "1 of 4 ports are not read, such as n0/nic1/p1." in report.advice


@pytest.mark.parametrize(
    ("problem", "said"),
    [
        (MissingTool("ibnetdiscover", "infiniband-diags", "to read"), "install the package infiniband-diags"),
        (MissingLibrary("grpc", "gnmi", "to ask"), "pip install 'fabrictwin[gnmi]'"),
        (InputError(["one", "two"]), "one; two"),
        (ModuleNotFoundError("No module named 'x'"), "No module named 'x'"),
    ],
)
async def test_a_source_that_cannot_be_built_is_one_line_and_the_others_are_tried(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, problem: Exception, said: str
) -> None:
    reports, _ = await examine(monkeypatch, site(tmp_path, HOST0, HOST1), problem, [Fake("n1", ports(*N1))])
    assert [r.state for r in reports] == ["failed", "ok"]
    assert said in str(reports[0].error)


async def test_a_second_source_of_the_same_name_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    twins = [Fake("n0", ports(*N0))], [Fake("n0", ports(*N0))]
    reports, _ = await examine(monkeypatch, site(tmp_path, HOST0, HOST0), *twins)
    assert [r.state for r in reports] == ["ok", "failed"] and "another source is called 'n0'" in str(reports[1].error)


async def test_a_source_that_hangs_fails_at_its_deadline_and_is_asked_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    hung, good = Fake("n0", ports(*N0), takes=3600, deadline=0.1), Fake("n1", ports(*N1))
    reports, _ = await examine(monkeypatch, site(tmp_path, HOST0, HOST1), [hung], [good])
    assert [r.state for r in reports] == ["failed", "ok"] and hung.calls == 1 and hung.closed
    assert reports[0].error == "no answer within its deadline of 0.1 s"
    assert len(reports[0].advice) == 1 and "deadline" in reports[0].advice[0]


async def test_a_source_that_fails_once_and_then_answers_is_partly_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def answer(call: int) -> Sample:
        if call == 1:
            raise CollectorError("n0: not yet")
        return ports(*N0)(call)

    (report,), _ = await examine(monkeypatch, site(tmp_path, HOST0), [Fake("n0", answer)])
    assert (report.state, report.error) == ("part", None)
    assert "1 of 2 collections failed" in report.advice[0]


async def test_a_source_that_has_nothing_at_first_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def answer(call: int) -> Sample:
        return ports(*N0)(call) if call > 3 else Sample()

    slow, never = Fake("n0", answer), Fake("n1", lambda _: Sample())
    reports, _ = await examine(monkeypatch, site(tmp_path, HOST0, HOST1), [slow], [never])
    assert [r.state for r in reports] == ["ok", "failed"]
    assert "gave nothing in 6 collections" in str(reports[1].error)


async def test_a_source_whose_names_are_all_unknown_here_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (report,), _ = await examine(monkeypatch, site(tmp_path, HOST0), [Fake("n0", ports("x/p0", "x/p1"))])
    assert report.state == "failed" and "none of its 2 names is in the wiring: x/p0, x/p1" in str(report.error)


@pytest.mark.parametrize(("age", "offset"), [(20.0, -19.95), (-5.0, 5.0)])
async def test_a_clock_that_is_off_is_told_with_its_direction(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, age: float, offset: float
) -> None:
    (report,), _ = await examine(monkeypatch, site(tmp_path, HOST0), [Fake("n0", ports(*N0, age=age))])
    assert report.state == "part"
    assert report.clock_offset_seconds == pytest.approx(offset, abs=0.5)
    assert ("ahead of" if offset > 0 else "behind") in report.advice[0] and "NTP" in report.advice[0]


async def test_a_sample_that_takes_longer_than_its_interval_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (report,), _ = await examine(monkeypatch, site(tmp_path, HOST0), [Fake("n0", ports(*N0), takes=0.3)])
    assert report.state == "part" and report.duration_seconds is not None and report.duration_seconds >= 0.3
    assert "longer than its interval of 0.05 s" in report.advice[0]


async def test_each_of_several_targets_answers_for_its_own_ports(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    leaves = [Fake("snmp:A-leaf", ports(*A_LEAF)), Fake("snmp:B-leaf", ports("B-leaf/p0"))]
    reports, _ = await examine(monkeypatch, site(tmp_path, SNMP), leaves)
    assert [[(c.read, c.expected) for c in r.coverage] for r in reports] == [[(4, 4)], [(1, 4)]]
    assert [r.state for r in reports] == ["ok", "part"]


async def test_two_sources_of_one_host_share_its_ports(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    both = [Fake("n0", ports(*N0[:1])), Fake("n0:infiniband", ports(*N0[1:]))]
    reports, _ = await examine(monkeypatch, site(tmp_path, HOST0), both)
    assert [[(c.read, c.expected) for c in r.coverage] for r in reports] == [[(1, 1)], [(3, 3)]]


async def test_a_store_of_everything_is_measured_against_the_wiring_without_blame(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    entry = "prometheus: {url: 'http://127.0.0.1:1', profile: x}"
    (report,), _ = await examine(monkeypatch, site(tmp_path, entry), [Fake("prom", ports(*N0))])
    assert report.state == "ok" and [(c.read, c.expected, c.meant) for c in report.coverage] == [(4, 16, False)]


async def test_what_no_source_reads_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    a_site = site(tmp_path, HOST0, SNMP)
    leaves = [Fake("snmp:A-leaf", ports(*A_LEAF)), Fake("snmp:B-leaf", ports("B-leaf/p0"))]
    _, seen = await examine(monkeypatch, a_site, [Fake("n0", ports(*N0))], leaves)
    found = {g.what: g for g in gaps(seen, a_site.topology)}
    assert (found["links"].unread, found["links"].of, found["links"].blind) == (2, 8, True)
    assert found["links"].example == "n1/nic0/p1--B-leaf/p2"
    assert (found["switch ports"].unread, found["switch ports"].example) == (1, "B-leaf/p1")
    assert found["switch ports"].text.endswith("their links are judged from the NIC end alone")
    assert (found["NIC ports"].unread, found["NIC ports"].example) == (2, "n1/nic0/p0")
    assert (found["GPUs"].unread, found["GPUs"].of) == (4, 4)


# --- this host -------------------------------------------------------------------------------------


def by_name(checks: list[Check]) -> dict[str, Check]:
    return {c.name: c for c in checks}


@pytest.fixture
def no_nvml(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine whose library is not there, wherever the test runs."""
    monkeypatch.setattr("collectors.nvml.library._LIBRARY", "libnvidia-ml-that-is-not-there.so.1")


async def test_a_host_with_hardware_and_without_drivers_is_told_what_to_load(tmp_path: Path, no_nvml: None) -> None:
    cards = {
        "0000:17:00.0": {"vendor": "0x10de", "class": "0x030200"},
        "0000:18:00.0": {"vendor": "0x15b3", "class": "0x020700"},
    }
    write(tmp_path, {"bus/pci/devices": {}, "class": {"net": {"eno1": interface(device={"vendor": "0x8086"})}}})
    write(tmp_path / "bus/pci/devices", cards)
    checks = by_name(await host.host_checks(tmp_path, tmp_path / "dev", {"PATH": "/nowhere"}))
    assert (checks["GPUs"].state, checks["RDMA devices"].state) == ("missing", "missing")
    assert checks["GPUs"].found.startswith("1 at PCI, but NVML: ")
    assert "libnvidia-ml" in str(checks["GPUs"].advice) and "mlx5_ib" in str(checks["RDMA devices"].advice)
    assert (checks["network interfaces"].state, checks["network interfaces"].found) == ("ok", "eno1")


async def test_a_bare_host_lacks_nothing_that_could_be_there(tmp_path: Path, no_nvml: None) -> None:
    write(tmp_path / "class/net", {"eno1": interface(device={"vendor": "0x8086"}, operstate="down", carrier="0")})
    checks = by_name(await host.host_checks(tmp_path, tmp_path / "dev", {"PATH": "/nowhere"}))
    for name in ("GPUs", "RDMA devices", "infiniband-diags", "umad", "subnet manager", "tool rdma"):
        assert checks[name].state == "none", name
    assert "speed unknown" in checks["network interfaces"].details[0]


async def test_an_infiniband_host_without_tools_or_devices_is_told_which(tmp_path: Path, no_nvml: None) -> None:
    write(tmp_path / "class/infiniband", {"mlx5_0": device(ib_port())})
    write(tmp_path / "class/net", {})
    checks = by_name(await host.host_checks(tmp_path, tmp_path / "dev", {"PATH": "/nowhere"}))
    assert (checks["RDMA devices"].state, checks["RDMA devices"].found) == ("ok", "mlx5_0/1")
    assert [checks[n].state for n in ("infiniband-diags", "umad", "subnet manager")] == ["missing"] * 3
    assert "infiniband-diags" in str(checks["infiniband-diags"].advice) and "ib_umad" in str(checks["umad"].advice)


@pytest.mark.parametrize(
    ("script", "state", "said"),
    [
        (
            "echo 'sminfo: sm lid 7 sm guid 0x2c9030051a2b3, activity count 9 priority 0 state 3 SMINFO_MASTER'",
            "ok",
            "LID 7",
        ),
        (
            "echo 'ibwarn: [1] mad_rpc_open_port: can not open UMAD port' >&2; exit 1",
            "missing",
            "can not open UMAD port",
        ),
        ("exit 3", "missing", "sminfo ended with 3"),
    ],
)
async def test_the_subnet_manager_is_asked_for(tmp_path: Path, script: str, state: str, said: str) -> None:
    tool = tmp_path / "sminfo"
    tool.write_text(f"#!/bin/sh\n{script}\n")
    tool.chmod(0o755)
    (tmp_path / "infiniband").mkdir()
    (tmp_path / "infiniband" / "umad0").touch()
    found = by_name(await infiniband_checks(True, dev=tmp_path, env={"PATH": f"{tmp_path}:/bin"}))
    assert found["subnet manager"].state == state and said in found["subnet manager"].found
    assert (found["umad"].state, found["umad"].found) == ("ok", "umad0")


@given(st.binary(max_size=200))
def test_whatever_sminfo_prints_nothing_is_made_up(raw: bytes) -> None:
    assert last_words(raw).isprintable() and len(last_words(raw)) <= 160
    found = manager(raw)
    assert found is None or b"sm lid" in raw


@given(st.integers(0, 49151), st.integers(1, 2**64 - 1), st.binary(max_size=40))
def test_a_subnet_manager_is_found_among_other_lines(lid: int, guid: int, noise: bytes) -> None:
    line = b"sminfo: sm lid %d sm guid 0x%x, activity count 5 priority 0 state 3 SMINFO_MASTER\n" % (lid, guid)
    assert manager(b"ibwarn: x\n" + line + noise) == f"LID {lid}, GUID {guid:#x}"


def test_every_extra_of_the_package_is_looked_for() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert set(libraries.EXTRAS) >= set(project["optional-dependencies"]) - {"all", "dev"}
    assert set(libraries.EXTRAS) <= set(MODULES), "each belongs to a kind of collector"


def test_a_library_that_is_missing_or_broken_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "brokenlib_x.py").write_text("raise RuntimeError('wrong ABI')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(libraries, "EXTRAS", {"a": ("no_such_library_x",), "b": ("brokenlib_x",), "c": ("json",)})
    a, b, c = libraries.library_checks()
    assert (a.state, b.state, c.state) == ("missing", "missing", "ok")
    assert a.found == "no_such_library_x is not installed" and "fabrictwin[a]" in str(a.advice)
    assert b.found == "brokenlib_x cannot be imported: RuntimeError: wrong ABI"


@pytest.mark.parametrize(
    ("answer", "state"), [((0, 0.012), "ok"), ((0x40, 16.0), "part"), ((0, 3.0), "part"), (None, "none")]
)
def test_the_kernel_is_asked_whether_the_clock_is_kept(
    monkeypatch: pytest.MonkeyPatch, answer: tuple[int, float] | None, state: str
) -> None:
    monkeypatch.setattr(clock, "_adjtimex", lambda: answer)
    assert clock.clock_check().state == state


def test_the_real_kernel_gives_an_answer_that_makes_sense() -> None:
    answer = clock._adjtimex()
    assert answer is None or (answer[0] >= 0 and answer[1] >= 0)


# --- in two lines ----------------------------------------------------------------------------------


def test_a_bare_host_is_told_in_two_lines(tmp_path: Path, no_nvml: None) -> None:
    net = {f"eno{i}": interface(device={"vendor": "0x8086"}) for i in range(8)}
    write(tmp_path / "class/net", net)
    found, hint = here(own_ports("me", root=tmp_path).topology)
    assert found.startswith("No GPU") and "no InfiniBand here; watching 8 network interfaces: eno0, eno1" in found
    assert found.endswith("and 2 more") and "site.yaml" in hint and "fabrictwin doctor" in hint


def test_a_host_with_a_fabric_port_is_told_what_was_guessed(tmp_path: Path, no_nvml: None) -> None:
    write(tmp_path / "class/infiniband", {"mlx5_0": device(ib_port())})
    write(tmp_path / "class/net", {"eno1": interface(device={"vendor": "0x8086"})})
    found, hint = here(own_ports("me", root=tmp_path, gpus=2).topology)
    assert found == "Watching 2 GPUs, 1 RDMA port (mlx5_0/1) and 1 network interface (eno1)"
    assert "guess" in hint
