"""Bandwidth that is up and unused: planes, switches and ports that carry nothing, and jobs that leave planes out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from tests.twin.by_hand import seconds, told
from twin.detectors.rules import Rules
from twin.errors import InputError
from twin.frames import NS, Frame
from twin.incident import Incident
from twin.simulator.scenario import Fault, Job, Phase, Scenario
from twin.simulator.simulation import EPOCH, Simulation
from twin.topology.model import HOST_LEAF
from twin.topology.presets import preset
from twin.topology.resolve import resolve
from twin.twin import Twin

B300 = "b300-superpod-ethernet"
SMALL = "gb300-nvl72-ethernet"
OURS = (
    "plane_silent",
    "plane_down",
    "plane_degraded",
    "switch_down",
    "link_down",
)  # what may be told of these faults


def names(first: int, last: int) -> tuple[str, ...]:
    return tuple(f"n{i:03d}" for i in range(first, last + 1))


JOBS = (Job("train-7", names(0, 15)), Job("train-8", names(16, 29), "alltoall", 0.6))


def run(
    *faults: Fault, name: str = SMALL, noise: float = 1.0, rules: dict[str, float] | None = None, **options: object
) -> list[Incident]:
    scenario = Scenario("test", name, faults=faults, **{"duration": 34.0, **options})  # type: ignore[arg-type]
    simulation = Simulation(scenario, noise=noise)
    twin = Twin(simulation.topology, Rules.load(rules))
    twin.ingest_all(simulation.frames())
    twin.finish()
    return [i for i in twin.incidents if i.superseded_by is None and i.kind in OURS]


# --- the cause ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "gpus", "share", "within"),
    [
        ("plane:B", 512, 0.5, 3),
        ("B-leaf-03", 64, 0.5, 3),
        ("A-spine-01", 512, 0.875, 3),
        ("n011/nic2/p1", 1, 0.5, 13),
    ],
)
def test_what_is_up_and_silent_is_one_incident_with_its_cause_and_cost(
    target: str, gpus: int, share: float, within: float
) -> None:
    (incident,) = run(Fault("mute", target, 10, 28), name=B300)
    assert (incident.kind, incident.cause, incident.affected.gpus) == ("plane_silent", target, gpus)
    assert incident.effect["bandwidth_fraction"] == share
    assert 10 < seconds(incident.started) <= 12 and seconds(incident.detected) <= 10 + within
    assert 28 < seconds(incident.resolved) <= 28 + 5


@pytest.mark.parametrize("seed", range(100, 110))
def test_a_silent_plane_is_found_at_once_for_other_seeds(seed: int) -> None:
    incidents = run(Fault("mute", "plane:A", 5), seed=seed, duration=12.0)
    assert told(incidents) == [("plane_silent", "plane:A")]
    assert seconds(incidents[0].detected) <= 9 and incidents[0].severity == "critical"


@pytest.mark.parametrize("seed", range(200, 210))
def test_silent_switches_and_jobs_that_leave_a_plane_are_found_at_once_for_other_seeds(seed: int) -> None:
    switches = run(Fault("mute", "B-leaf-02", 5), Fault("mute", "A-spine-01", 5), seed=seed, duration=12.0, name=B300)
    assert sorted(told(switches)) == [("plane_silent", "A-spine-01"), ("plane_silent", "B-leaf-02")]
    job = run(Fault("abandon", "train-8", 5, other="plane:A"), seed=seed, duration=12.0, jobs=JOBS)
    assert told(job) == [("plane_silent", "train-8/plane:A")]
    assert max(seconds(i.detected) for i in (*switches, *job)) <= 9


@pytest.mark.parametrize(("name", "sizes"), [("deepseek-mpft", {"nodes": 64}), (B300, {"planes": 4})])
def test_two_silent_planes_are_two_wherever_planes_lie(name: str, sizes: dict[str, int]) -> None:
    faults = [Fault("mute", f"plane:{p}", 10, 25) for p in "BC"]
    assert sorted(told(run(*faults, name=name, parameters=sizes))) == [
        ("plane_silent", "plane:B"),
        ("plane_silent", "plane:C"),
    ]


def test_a_rail_that_is_a_plane_costs_a_node_one_nic_of_eight() -> None:
    (incident,) = run(Fault("mute", "plane:C", 10), name="deepseek-mpft", parameters={"nodes": 64})
    assert incident.cause == "plane:C" and incident.effect["bandwidth_fraction"] == 7 / 8


def test_a_silent_leaf_of_a_fabric_of_one_plane_is_found_by_its_gpus_that_work() -> None:
    (incident,) = run(Fault("mute", "A-leaf-05", 10), name="b300-superpod-xdr")
    assert (incident.kind, incident.cause, incident.affected.gpus) == ("plane_silent", "A-leaf-05", 72)


def test_the_evidence_is_what_is_carried_against_what_siblings_carry() -> None:
    (incident,) = run(Fault("mute", "plane:B", 10), name=B300, duration=16.0)
    plane = incident.evidence[0]
    assert (plane.entity, plane.metric) == ("plane:B", "load_fraction")
    assert isinstance(plane.value, float) and plane.value < 0.01
    assert isinstance(plane.expected, float) and plane.expected > 0.5
    assert "routing" in incident.advice and "204.8Tb/s lie idle" in incident.summary


# --- jobs --------------------------------------------------------------------------------------------


def test_a_job_that_never_returned_to_a_plane_is_told_apart_from_one_that_never_used_it() -> None:
    fail = Fault("fail", "plane:B", 10, 20)
    down, left = run(fail, Fault("abandon", "train-7", 10, other="plane:B"), jobs=JOBS)
    assert (down.kind, left.kind, left.cause) == ("plane_down", "plane_silent", "train-7/plane:B")
    assert left.affected.names == names(0, 15) and left.severity == "warning"
    assert "never returned to plane B, which came back at 00:00:21Z" in left.summary
    assert seconds(left.detected) <= 20 + 10 + 4

    (never,) = run(Fault("abandon", "train-7", 0, other="plane:B"), jobs=JOBS)
    assert never.cause == "train-7/plane:B" and "has not used plane B since it was first seen" in never.summary
    assert seconds(never.detected) <= 4


def test_what_a_job_gives_away_is_told_for_it_and_for_no_other() -> None:
    (incident,) = run(Fault("abandon", "train-7", 10, 25, other="B"), jobs=JOBS, name=B300)
    assert [(j.name, j.bandwidth_fraction) for j in incident.jobs] == [("train-7", 0.5)]
    assert incident.to_json()["jobs"] == [{"name": "train-7", "bandwidth_fraction": 0.5}]
    assert "job train-7 runs at 50%" in incident.summary and "51.2Tb/s lie idle" in incident.summary
    assert incident.resolved is not None and seconds(incident.resolved) <= 30


def test_a_job_on_one_plane_of_four_is_one_incident() -> None:
    faults = [Fault("abandon", "train-7", 10, other=f"plane:{p}") for p in "BCD"]
    (incident,) = run(*faults, jobs=JOBS, name=B300, parameters={"planes": 4}, duration=20.0)
    assert incident.cause == "train-7" and incident.effect["bandwidth_fraction"] == 0.25
    assert "planes B, C and D" in incident.summary


def test_a_plane_that_no_job_uses_any_more_is_the_plane() -> None:
    faults = [Fault("abandon", job.name, 10, other="plane:B") for job in JOBS]
    assert told(run(*faults, jobs=JOBS)) == [("plane_silent", "plane:B")]


def test_nodes_without_a_job_are_told_together() -> None:
    faults = [Fault("abandon", node, 10, other="plane:B") for node in ("n003", "n017", "n030")]
    (incident,) = run(*faults)
    assert incident.cause == "nodes/plane:B" and incident.affected.names == ("n003", "n017", "n030")
    (alone,) = run(faults[0])
    assert alone.cause == "n003/plane:B" and alone.affected.gpus == 4


def test_a_job_that_ended_is_forgotten_and_one_that_writes_a_checkpoint_is_not() -> None:
    work = Phase("allreduce"), Phase("idle", at=20), Phase("allreduce", at=50), Phase("idle", at=60)
    fault = Fault("abandon", "train-7", 5, other="plane:B")
    (incident,) = run(fault, jobs=JOBS, workload=work, duration=112.0, rules={"plane_unused_idle": 40.0})
    assert incident.cause == "train-7/plane:B" and incident.count == 1
    assert 60 + 40 <= seconds(incident.resolved) <= 60 + 48


# --- what must not alarm -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        (SMALL, {}),
        (B300, {"planes": 4}),
        ("b300-superpod-xdr", {}),
        ("rtx-pro-6000", {}),
        ("deepseek-mpft", {"nodes": 32}),
        ("hgx-b200", {"nodes": 8}),
    ],
)
def test_work_that_comes_and_goes_raises_nothing_with_doubled_noise(name: str, sizes: dict[str, int]) -> None:
    work = (
        Phase("allreduce", 0.9), Phase("idle", at=20), Phase("alltoall", 0.6, at=30), Phase("idle", at=45),
        Phase("allreduce", 0.1, at=55), Phase("alltoall", 0.3, at=65),
    )  # fmt: skip
    silent = run(name=name, parameters=sizes, workload=work, duration=75.0, noise=2.0)
    assert [i for i in silent if i.kind == "plane_silent"] == []


def test_jobs_beside_idle_nodes_raise_nothing() -> None:
    assert run(jobs=JOBS, noise=2.0) == []


def test_a_plane_whose_load_comes_back_with_it_raises_nothing_more() -> None:
    assert told(run(Fault("fail", "plane:B", 10, 20), duration=50.0)) == [("plane_down", "plane:B")]


def test_a_plane_without_spines_is_down_and_not_silent() -> None:
    faults = [Fault("fail", f"B-spine-{k:02d}", 10) for k in range(4)]
    assert told(run(*faults, name=B300, duration=20.0)) == [("plane_down", "plane:B")]


def test_silent_sources_neither_raise_nor_clear() -> None:
    blind = Fault("silence", "all", 20, 50)
    assert "plane_silent" not in {i.kind for i in run(blind, duration=60.0)}
    incidents = run(Fault("mute", "plane:B", 10), blind, duration=70.0)
    (silent,) = [i for i in incidents if i.kind == "plane_silent"]
    assert silent.is_open and silent.count == 1


def test_idle_siblings_neither_raise_nor_clear() -> None:
    work = Phase("allreduce"), Phase("idle", at=20), Phase("allreduce", at=60)
    (incident,) = run(Fault("mute", "plane:B", 10, 50), workload=work, duration=75.0)
    assert incident.count == 1 and 60 < seconds(incident.resolved) <= 65


def test_a_plane_that_is_muted_while_nothing_runs_is_told_when_work_begins() -> None:
    work = Phase("idle"), Phase("allreduce", at=30)
    (incident,) = run(Fault("mute", "plane:B", 10), workload=work)
    assert incident.cause == "plane:B" and seconds(incident.started) > 30 and seconds(incident.detected) <= 34


# --- by hand, a reading at a time ------------------------------------------------------------------------


def traffic(
    rate_of: dict[str, float], until: int = 20, *, sources: str = "n", restart: int = 0, tx_only: bool = False
) -> Iterator[Frame]:
    """Every host port of a small fabric carries `rate` bytes/s, by its plane; counters begin anew at `restart`.

    sources: `n` hosts report, `L` switches do.
    """
    topo = preset("b300-superpod-ethernet")
    links = topo.links
    host = np.flatnonzero(links.tier == HOST_LEAF)
    ports = (links.a if sources == "n" else links.b)[host]
    rate = np.array([rate_of[topo.planes[p]] for p in links.plane[host]])
    owner = [topo.port_names[p].split("/")[0] for p in ports.tolist()]
    by_source = {s: np.flatnonzero(np.array(owner) == s) for s in dict.fromkeys(owner)}
    for second in range(until):
        for k, (source, rows) in enumerate(by_source.items()):
            age = second - restart if second >= restart else second + 1000
            count = (rate[rows] * age).astype(np.uint64)
            columns = {"up": np.ones(len(rows)), "tx_bytes": count}
            if not tx_only:
                columns["rx_bytes"] = count
            names = tuple(topo.port_names[p] for p in ports[rows].tolist())
            yield Frame(EPOCH + second * NS + k * NS // 1000, source, "port", names, columns)


def judge(frames: Iterator[Frame]) -> list[tuple[str, str]]:
    twin = Twin(preset("b300-superpod-ethernet"))
    twin.ingest_all(frames)
    twin.finish()
    return told([i for i in twin.incidents if i.superseded_by is None])


@pytest.mark.parametrize("sources", ["n", "L"])
def test_either_end_alone_shows_a_silent_plane(sources: str) -> None:
    assert judge(traffic({"A": 40e9, "B": 1e6}, sources=sources)) == [("plane_silent", "plane:B")]
    assert judge(traffic({"A": 40e9, "B": 20e9}, sources=sources)) == []


def test_a_reading_of_one_direction_is_not_silence() -> None:
    assert judge(traffic({"A": 40e9, "B": 1e6}, tx_only=True)) == []


def test_a_restart_of_counters_raises_nothing() -> None:
    assert judge(traffic({"A": 40e9, "B": 39e9}, restart=10)) == []


def test_a_plane_of_which_too_little_is_read_is_not_judged_as_one() -> None:
    few = (f for f in traffic({"A": 40e9, "B": 1e6}, until=40) if f.source in names(0, 9))
    assert judge(few) == [("plane_silent", "nodes/plane:B")]


# --- the simulator ---------------------------------------------------------------------------------------


def rates(*faults: Fault, at: float, **options: object) -> tuple[Simulation, np.ndarray]:
    """tx of every port at a time of a scenario, bytes/s."""
    simulation = Simulation(Scenario("t", B300, faults=faults, **options))  # type: ignore[arg-type]
    simulation._faults.advance(at)
    return simulation, simulation._world(at).flow.tx


def test_a_muted_plane_is_up_and_its_load_goes_over_the_other() -> None:
    simulation, tx = rates(Fault("mute", "plane:B", 0), at=1.0)
    topo = simulation.topology
    host = topo.links.tier == HOST_LEAF
    per_plane = [tx[topo.links.a[host & (topo.links.plane == p)]] / 50e9 for p in (0, 1)]
    assert per_plane[0].mean() > 0.75 and per_plane[0].max() <= 1 and 0 < per_plane[1].max() < 0.01
    assert (simulation._world(1.0).up[topo.links.a] == 1).all()


def test_jobs_load_their_own_nodes_and_no_others() -> None:
    simulation, tx = rates(at=1.0, jobs=JOBS)
    topo = simulation.topology
    load = [tx[topo.links.a[resolve(topo, n).links]].mean() / 50e9 for n in ("n003", "n020", "n050")]
    assert load[0] > 0.6 and 0.4 < load[1] <= 0.61 and 0 < load[2] < 0.01
    assert [j[0] for j in topo.jobs] == ["train-7", "train-8"]


def test_a_fault_of_jobs_changes_no_other_reading_than_those_of_its_ports() -> None:
    frames = [
        list(Simulation(Scenario("t", B300, faults=faults, duration=4.0)).frames())
        for faults in ((), (Fault("abandon", "n003", 2.0, other="B"),))
    ]
    up = [np.concatenate([f.columns["up"] for f in run if f.kind == "port"]) for run in frames]
    assert (up[0] == up[1]).all() and [f.time for f in frames[0]] == [f.time for f in frames[1]]
    before = [[f for f in run if f.time < EPOCH + 2 * NS] for run in frames]
    assert before[0] == before[1] and frames[0] != frames[1]


@pytest.mark.parametrize(
    ("scenario", "reason"),
    [
        (Scenario("t", B300, faults=(Fault("abandon", "train-9", 1, other="B"),)), "has no 'train-9'"),
        (Scenario("t", B300, faults=(Fault("abandon", "n003", 1, other="Q"),)), "'Q' is no plane"),
        (Scenario("t", B300, faults=(Fault("abandon", "A-leaf-01", 1, other="B"),)), "is no job and no node"),
        (Scenario("t", B300, faults=(Fault("mute", "n003/gpu1", 1),)), "mute: 'n003/gpu1' has no links"),
        (Scenario("t", B300, jobs=(Job("a", ("n999",)),)), "has no node 'n999'"),
        (Scenario("t", B300, jobs=(Job("a", ("n001",)), Job("b", ("n001",)))), "works for 'a' already"),
        (Scenario("t", B300, jobs=(Job("a", ("n001",)), Job("a", ("n002",)))), "two jobs are called 'a'"),
    ],
)
def test_a_scenario_that_names_what_is_not_there_is_refused(scenario: Scenario, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        Simulation(scenario)


def test_a_fork_judges_the_use_of_planes_on_its_own() -> None:
    simulation = Simulation(Scenario("t", B300, faults=(Fault("mute", "plane:B", 5),), duration=14.0))
    frames = list(simulation.frames())
    half = len(frames) // 2
    twin = Twin(simulation.topology)
    twin.ingest_all(frames[:half])
    fork = twin.fork()
    twin.ingest_all(frames[half:])
    assert fork.incidents == ()
    fork.ingest_all(frames[half:])
    assert [replace(i) for i in fork.incidents] == list(twin.incidents) and told(list(fork.incidents))
