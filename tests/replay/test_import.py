"""History out of a real Prometheus, which holds what exporters of a simulated fabric would have served."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import yaml
from exported import PROFILES, blocks

from collectors.base import CollectorError
from collectors.prometheus.history import History, Stretch
from replay.analyze import analyze, analyze_trace
from replay.importing import Import
from replay.trace import open_trace
from replay.verify import verify
from tests.rigs.prometheus import Prometheus
from tests.tui.test_command_line import run
from tui import main
from twin.errors import InputError
from twin.frames import NS, Frame
from twin.simulator.scenario import Fault, Scenario
from twin.simulator.simulation import Simulation
from twin.site import load_site
from twin.sitespecs import PrometheusSpec

pytestmark = pytest.mark.service("prometheus")

SECONDS = 700
BLIND = "n000", 410, 510  # whose exporters are silent, from when to when
ALL_BLIND = 560, 640  # nothing at all was scraped then
DRILL = Scenario(
    name="history",
    preset="rtx-pro-6000",
    parameters={"servers": 2},
    interval=5.0,
    duration=SECONDS,
    faults=(
        Fault("fail", "n000/nic3/p0", at=100, until=200),
        Fault("degrade", "n001/nic1/p0", at=250, until=400, speed_fraction=0.5),
    ),
)


@dataclass
class Store:
    """A store with the history of a drill. start: of the drill, ns."""

    running: Prometheus
    start: int
    frames: list[Frame]
    site: Path

    @property
    def end(self) -> int:
        return self.start + SECONDS * NS


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    directory = tmp_path_factory.mktemp("store")
    running = Prometheus(directory, {})
    start = (int(time.time()) - 2 * SECONDS) * NS  # it forgets what is older than two weeks
    who, first, last = BLIND
    simulation = Simulation(DRILL, start=start)
    frames = [
        f
        for f in simulation.frames()
        if f.kind in ("port", "gpu")
        and not (f.source == who and first <= (f.time - start) / NS < last)
        and not ALL_BLIND[0] <= (f.time - start) / NS < ALL_BLIND[1]
    ]
    blocks(frames, directory)
    site = directory / "site.yaml"
    collector = {"prometheus": {"url": running.url, "profile": PROFILES}}
    site.write_text(yaml.safe_dump({"topology": {"preset": DRILL.preset, "servers": 2}, "collectors": [collector]}))
    with running:
        running.wait_for(f"node_infiniband_state_id @ {(start // NS) + 60}", 16)
        yield Store(running, start, frames, site)


@pytest.fixture(scope="module")
def whole(store: Store, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All of it, imported by the command."""
    directory = tmp_path_factory.mktemp("whole")
    code, _, err = run(*options(store, "t.mcap"), cwd=directory)
    assert code == 0, err
    assert [p.name for p in directory.iterdir()] == ["t.mcap"]
    return directory / "t.mcap"


def options(store: Store, target: str) -> list[str]:
    times = ["--start", str(store.start // NS), "--end", str(store.end // NS)]
    return ["import", "prometheus", store.running.url, "--site", str(store.site), *times, "-o", target]


def past(store: Store, step: int = 0) -> History:
    return History(PrometheusSpec(url=store.running.url, profile=PROFILES), load_site(store.site), step)


def imported(store: Store, target: Path, history: History | None = None) -> Import:
    site = load_site(store.site)
    job = Import(history or past(store), target, site.topology, site.source, store.start, store.end, {"of": "a test"})

    async def work() -> None:
        try:
            await job.run()
        finally:
            await job._past.close()  # type: ignore[attr-defined]

    asyncio.run(work())
    return job


def test_the_incidents_of_the_drill_are_found_in_the_history(store: Store, whole: Path) -> None:
    trace = open_trace(whole)
    found = analyze_trace(trace)
    seen = {
        (i.kind, i.cause): ((i.started - store.start) / NS, (i.resolved or 0) - store.start) for i in found.incidents
    }
    assert ("link_down", "n000/nic3/p0") in seen and ("link_slow", "n001/nic1/p0") in seen
    assert seen["link_down", "n000/nic3/p0"][0] == pytest.approx(100, abs=6)
    assert seen["link_slow", "n001/nic1/p0"][0] == pytest.approx(250, abs=6)
    real = {(i.kind, i.cause) for i in analyze(store.frames, trace.topology).incidents}
    faults = {(kind, cause) for kind, cause in real if kind not in ("telemetry_stale", "collector_failed")}
    assert {key for key in seen if key[0] not in ("telemetry_stale", "collector_failed")} == faults


def test_readings_are_those_that_were_scraped_at_their_times(store: Store, whole: Path) -> None:
    name = "n001/nic0/p0"

    def readings(frames: list[Frame]) -> list[tuple[int, float]]:
        return [
            (round(round(f.time / NS, 3) * 1000), float(f.columns["tx_bytes"][f.names.index(name)]))
            for f in frames
            if f.kind == "port" and name in f.names and "tx_bytes" in f.columns
        ]

    theirs = readings(list(open_trace(whole).frames()))
    assert len(theirs) > 120
    assert theirs == readings(store.frames)


def test_a_gap_stays_a_gap_and_is_told_as_blindness(store: Store, whole: Path) -> None:
    trace = open_trace(whole)
    who, first, last = BLIND
    times = np.array([(f.time - store.start) / NS for f in trace.frames() if f.source.startswith(f"{who}:")])
    assert not np.any((times > first) & (times < last))
    gaps = [(g.source, (g.start - store.start) / NS, (g.end - store.start) / NS) for g in verify(trace).gaps]
    own = [gap for gap in gaps if gap[1] < last]
    assert {source for source, *_ in own} == {f"{who}:node-exporter-infiniband", f"{who}:dcgm-exporter"}
    assert all(a == pytest.approx(first, abs=6) and b == pytest.approx(last, abs=6) for _, a, b in own)
    stale = [i for i in analyze_trace(trace).incidents if i.kind == "telemetry_stale"]
    early = [i for i in stale if i.started < store.start + last * NS]
    assert early and all(who in i.cause for i in early)


def test_a_time_of_which_nothing_is_known_is_a_gap_of_all_sources(store: Store, whole: Path) -> None:
    trace = open_trace(whole)
    first, last = ALL_BLIND
    gaps = [g for g in verify(trace).gaps if first - 6 <= (g.start - store.start) / NS < last]
    assert {g.source for g in gaps} == {
        s for s in trace.tally.sources if ":" in s and not s.startswith("prometheus")
    } | {s for s in trace.tally.sources if s.startswith("A-")}
    (all_,) = [i for i in analyze_trace(trace).incidents if i.kind == "telemetry_stale" and i.cause == "sources"]
    assert (all_.started - store.start) / NS == pytest.approx(first, abs=6)
    assert ((all_.resolved or 0) - store.start) / NS == pytest.approx(last, abs=12)
    assert trace.end == store.end


def test_a_step_thins_out_and_finds_the_same(store: Store, whole: Path, tmp_path: Path) -> None:
    imported(store, tmp_path / "b.mcap", past(store, 15 * NS))
    all_, some = (open_trace(path) for path in (whole, tmp_path / "b.mcap"))
    assert some.tally.frames < 0.5 * all_.tally.frames
    found = {(i.kind, i.cause) for i in analyze_trace(some).incidents}
    assert {("link_down", "n000/nic3/p0"), ("link_slow", "n001/nic1/p0")} <= found


def test_an_import_that_was_killed_goes_on_and_gives_the_same(store: Store, tmp_path: Path) -> None:
    """A store that fails at the second question, as one that is restarted does."""

    class Failing(History):
        asked = 0

        async def between(self, start: int, end: int) -> Stretch:
            self.asked += 1
            if self.asked == 2:
                raise CollectorError("prom: cannot be reached: Connection refused")
            return await super().between(start, end)

    spec = PrometheusSpec(url=store.running.url, profile=PROFILES)
    failing = Failing(spec, load_site(store.site))
    with pytest.raises(CollectorError, match=r"Connection refused; \d+% are there, the same command goes on"):
        imported(store, tmp_path / "t.mcap", failing)
    assert not (tmp_path / "t.mcap").exists()
    assert json.loads((tmp_path / ".t.mcap.import.json").read_bytes())["until"] > store.start
    job = imported(store, tmp_path / "t.mcap")
    assert job.resumed_at is not None
    assert [p.name for p in tmp_path.iterdir()] == ["t.mcap"]


def test_an_interrupt_costs_nothing_that_was_there(
    store: Store, whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    between, asked = History.between, 0

    async def interrupted(self: History, start: int, end: int) -> Stretch:
        nonlocal asked
        asked += 1
        if asked == 2:
            raise KeyboardInterrupt
        return await between(self, start, end)

    target = tmp_path / "t.mcap"
    with monkeypatch.context() as patched:
        patched.setattr(History, "between", interrupted)
        assert main.run(options(store, str(target))) == 130
    assert "the same command goes on where this one was" in capsys.readouterr().err
    assert not target.exists()
    assert main.run(options(store, str(target))) == 0
    resumed, all_ = (list(open_trace(path).frames()) for path in (target, whole))
    keys = [[(f.time, f.source, f.kind) for f in frames if f.kind != "source"] for frames in (resumed, all_)]
    assert sorted(keys[0]) == sorted(keys[1])
    assert {(i.kind, i.cause, i.detected) for i in analyze_trace(open_trace(target)).incidents} == {
        (i.kind, i.cause, i.detected) for i in analyze_trace(open_trace(whole)).incidents
    }


def test_what_cannot_be_imported_is_one_clear_line(
    store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ours, hour = str(store.site), ["--start", "-1h"]
    for url, arguments, said in (
        (store.running.url, ["--site", "rtx-pro-6000", *hour], "give --profile"),
        (store.running.url, ["--site", ours, "--start", "yesterday"], "--start: 'yesterday' is no time"),
        (store.running.url, ["--site", ours, *hour, "--end", "-2h"], "--end is not after --start"),
        (store.running.url, ["--site", ours, *hour, "--selector", "a="], "check the selector"),
        ("http://127.0.0.1:9", ["--site", ours, *hour], "cannot be reached"),
    ):
        code = main.run(["import", "prometheus", url, *arguments, "-o", str(tmp_path / "t.mcap")])
        err = capsys.readouterr().err
        assert (code, said in err, len(err.splitlines())) == (3, True, 1), err


def test_another_import_to_the_same_file_is_refused(store: Store, tmp_path: Path) -> None:
    (tmp_path / ".t.mcap.import").write_bytes(b"x")
    (tmp_path / ".t.mcap.import.json").write_text('{"asked": {"of": "another"}, "start": 1, "end": 2, "until": 1}')
    with pytest.raises(InputError, match="another import to it was interrupted"):
        imported(store, tmp_path / "t.mcap")
