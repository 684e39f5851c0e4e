"""The twin: the right cause, at once, once, and nothing on a healthy fabric."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from twin.frames import NS, Frame
from twin.incident import Incident, to_json_lines
from twin.simulator.scenario import DEMO, Fault, Phase, Scenario
from twin.simulator.simulation import EPOCH, Simulation
from twin.topology.presets import preset
from twin.twin import Twin


def run(*faults: Fault, preset: str = "b300-superpod-ethernet", **options: object) -> tuple[Incident, ...]:
    scenario = Scenario("test", preset, faults=faults, **{"duration": 40.0, **options})  # type: ignore[arg-type]
    simulation = Simulation(scenario)
    twin = Twin(simulation.topology)
    twin.ingest_all(simulation.frames())
    twin.finish()
    return twin.incidents


def told(incidents: tuple[Incident, ...]) -> list[tuple[str, str]]:
    return [(i.kind, i.cause) for i in incidents if i.superseded_by is None]


@pytest.mark.parametrize(
    ("fault", "kind", "cause", "gpus", "share"),
    [
        (Fault("fail", "plane:B", 10), "plane_down", "plane:B", 512, 0.5),
        (Fault("fail", "A-leaf-02", 10), "switch_down", "A-leaf-02", 64, 0.5),
        (Fault("fail", "B-spine-03", 10), "switch_down", "B-spine-03", 512, 0.875),
        (Fault("fail", "n011", 10), "link_down", "n011", 8, 0.0),
        (Fault("fail", "n011/nic2", 10), "link_down", "n011/nic2", 1, 0.0),
        (Fault("fail", "n011/nic2/p1", 10), "link_down", "n011/nic2/p1", 1, 0.5),
        (Fault("fail", "A-leaf-00/p64", 10), "link_down", "A-leaf-00/p64--A-spine-00/p0", 64, 0.9921875),
        (Fault("degrade", "n011/nic2/p1", 10, speed_fraction=0.5), "link_slow", "n011/nic2/p1", 1, 0.75),
        (Fault("degrade", "plane:A", 10, capacity_fraction=0.5), "plane_degraded", "plane:A", 512, 0.75),
    ],
)
def test_one_fault_is_one_incident_with_its_cause_and_cost(
    fault: Fault, kind: str, cause: str, gpus: int, share: float
) -> None:
    incidents = run(fault)
    assert told(incidents) == [(kind, cause)]
    incident = incidents[0]
    assert incident.affected.gpus == gpus
    assert incident.effect["bandwidth_fraction"] == pytest.approx(share)
    assert EPOCH + 10 * NS <= incident.started <= EPOCH + 11 * NS
    assert incident.detected - EPOCH <= 13 * NS


@pytest.mark.parametrize("seed", range(4))
def test_a_fault_that_ends_resolves_without_leaving_smaller_ones_behind(seed: int) -> None:
    incidents = run(Fault("fail", "plane:A", 10, until=20), seed=seed)
    assert told(incidents) == [("plane_down", "plane:A")]
    assert incidents[0].resolved is not None and incidents[0].resolved <= EPOCH + 25 * NS


def test_two_faults_at_once_stay_apart() -> None:
    incidents = run(Fault("fail", "A-leaf-02", 10), Fault("fail", "n030/nic6/p1", 10))
    assert sorted(told(incidents)) == [("link_down", "n030/nic6/p1"), ("switch_down", "A-leaf-02")]


def test_a_cause_that_comes_later_takes_over_its_symptoms() -> None:
    incidents = run(Fault("fail", "n030/nic2/p0", 10), Fault("fail", "A-leaf-02", 20))
    first, second = incidents
    assert (first.kind, second.kind) == ("link_down", "switch_down")
    assert first.superseded_by == second.id and second.affected.gpus == 64


def test_a_silent_source_is_blindness_and_not_a_fault() -> None:
    incidents = run(Fault("silence", "n005", 10))
    assert told(incidents) == [("telemetry_stale", "n005")]
    assert incidents[0].affected.names == ("n005",)


def test_an_incident_stays_open_while_its_evidence_is_stale() -> None:
    incidents = run(Fault("fail", "n005/nic0/p0", 10), Fault("silence", "all", 20), Fault("fail", "n005/nic0/p0", 10))
    down = [i for i in incidents if i.kind == "link_down"]
    assert len(down) == 1 and down[0].is_open


def test_many_silent_sources_are_one_incident() -> None:
    incidents = run(Fault("silence", "all", 10, until=25), interval=1.0)
    assert [k for k, _ in told(incidents)] == ["telemetry_stale"] or not incidents


@pytest.mark.parametrize("kind", ["allreduce", "alltoall", "idle"])
@pytest.mark.parametrize(
    "name", ["b300-superpod-ethernet", "b300-superpod-xdr", "gb300-nvl72-superpod", "rtx-pro-6000"]
)
def test_a_healthy_noisy_fabric_raises_nothing(name: str, kind: str) -> None:
    assert run(preset=name, workload=(Phase(kind, 0.9),), duration=60.0, seed=5) == ()  # type: ignore[arg-type]


def test_the_same_frames_give_the_same_incidents() -> None:
    simulation = [list(Simulation(DEMO).frames()) for _ in range(2)]
    results = []
    for frames in simulation:
        twin = Twin(preset(DEMO.preset))
        twin.ingest_all(frames)
        twin.finish()
        results.append(to_json_lines(twin.incidents))
    assert results[0] == results[1] and results[0]


def test_a_fork_goes_its_own_way() -> None:
    simulation = Simulation(replace(DEMO, duration=30.0))
    frames = list(simulation.frames())
    half = len(frames) // 2
    twin = Twin(simulation.topology)
    twin.ingest_all(frames[:half])
    fork = twin.fork()
    before = to_json_lines(fork.incidents)
    twin.ingest_all(frames[half:])
    assert to_json_lines(fork.incidents) == before
    fork.ingest_all(frames[half:])
    assert to_json_lines(fork.incidents) == to_json_lines(twin.incidents)
    assert fork.snapshot().version == twin.snapshot().version


# --- by hand, a reading at a time ----------------------------------------------------------------


def readings(up: list[float], *, port: str = "n000/nic0/p0", speed: float = 400e9) -> Iterator[Frame]:
    """One port read once a second, another source beside it so that time goes on."""
    for second, value in enumerate(up):
        time = EPOCH + second * NS + NS // 10
        known = {"up": np.array([value]), "speed_bits_per_second": np.array([speed if value == 1 else np.nan])}
        yield Frame(time, "n000", "port", (port,), known)
        yield Frame(time + 1000, "n001", "port", ("n001/nic0/p0",), {"up": np.array([1.0])})


def judge(frames: Iterator[Frame]) -> tuple[Incident, ...]:
    twin = Twin(preset("b300-superpod-ethernet"))
    twin.ingest_all(frames)
    twin.finish()
    return twin.incidents


def test_a_down_shorter_than_the_debounce_is_not_raised() -> None:
    assert judge(readings([1] * 5 + [0] + [1] * 10)) == ()


def test_three_short_downs_are_one_flapping_link_with_a_count() -> None:
    incidents = judge(readings([1, 1, 1, 0, 1, 1, 0, 1, 1, 0, 1, 1, 1, 1, 0, 1] + [1] * 40))
    assert told(incidents) == [("link_flapping", "n000/nic0/p0")]
    assert incidents[0].count == 4 and incidents[0].resolved is not None


def test_a_port_that_is_down_is_down_and_not_slow_whatever_rate_it_reports() -> None:
    def frames() -> Iterator[Frame]:
        for frame in readings([0] * 10):
            if frame.source == "n000":
                frame = replace(frame, columns={**frame.columns, "speed_bits_per_second": np.array([10e9])})
            yield frame

    assert told(judge(frames())) == [("link_down", "n000/nic0/p0")]


def test_a_port_at_half_speed_is_slow() -> None:
    incidents = judge(readings([1] * 10, speed=200e9))
    assert told(incidents) == [("link_slow", "n000/nic0/p0")]
    assert incidents[0].effect["speed_fraction"] == 0.5


def test_an_unknown_state_neither_raises_nor_clears() -> None:
    nan = float("nan")
    assert judge(readings([1, 1, nan, nan, nan, 1])) == ()
    incidents = judge(readings([1, 1, 0, 0, 0, nan, nan, nan, nan]))
    assert told(incidents) == [("link_down", "n000/nic0/p0")] and incidents[0].is_open


def test_names_that_the_wiring_lacks_are_counted_and_harm_nothing() -> None:
    twin = Twin(preset("b300-superpod-ethernet"))
    twin.ingest(Frame(EPOCH, "x", "port", ("who/nic0/p0", "n000/nic0/p0"), {"up": np.array([0.0, 1.0])}))
    twin.finish()
    assert twin.unknown_names == {"who/nic0/p0": 1} and twin.incidents == ()


def test_frames_of_every_kind_and_of_none_are_taken() -> None:
    twin = Twin(preset("gb300-nvl72-superpod"))
    twin.ingest(Frame(EPOCH, "n000", "nvlink", ("n000/gpu0/nvlink3",), {"up": np.array([1.0])}))
    twin.ingest(Frame(EPOCH + 1, "n000", "gpu", (), {"power_watts": np.zeros(0)}))
    twin.ingest(Frame(EPOCH + 2, "s", "source", ("n000",), {"up": np.array([1.0])}))
    twin.finish()
    assert twin.snapshot().topology is twin.topology


# --- cabling ---------------------------------------------------------------------------------------


def discovery(second: int, *swap: str) -> Frame:
    """What a discovery of the whole fabric sees, with the upper ends of two cables (by their lower ends) swapped."""
    topo = preset("b300-superpod-ethernet")
    ends = dict(name.split("--") for name in topo.rows("link"))
    if swap:
        ends[swap[0]], ends[swap[1]] = ends[swap[1]], ends[swap[0]]
    names = tuple(f"{a}--{b}" for a, b in ends.items())
    return Frame(EPOCH + second * NS, "discovery", "link", names, {"found": np.ones(len(names))})


def with_time(*frames: Frame) -> Iterator[Frame]:
    """Those frames, and one port that is read every second so that time goes on."""
    yield from sorted([*frames, *readings([1.0] * 30)], key=lambda f: f.time)


def test_two_swapped_cables_are_one_miscabled_that_names_both_and_resolves_when_put_right() -> None:
    swap = ("n002/nic0/p0", "n002/nic1/p0")
    incidents = judge(with_time(discovery(2), discovery(8, *swap), discovery(20)))
    assert told(incidents) == [("miscabled", "n002/nic0/p0--A-leaf-00/p2")]
    incident = incidents[0]
    assert all(name in incident.summary for name in ("n002/nic0/p0--A-leaf-01/p2", "n002/nic1/p0--A-leaf-00/p2"))
    assert incident.affected.names == ("n002/gpu0", "n002/gpu1") and incident.severity == "warning"
    assert ("n002/nic0/p0", "A-leaf-01/p2", "A-leaf-00/p2") in [
        (e.entity, e.value, e.expected) for e in incident.evidence
    ]
    assert incident.resolved is not None and incident.resolved <= EPOCH + 23 * NS


def test_a_cable_that_a_discovery_does_not_see_is_not_miscabled() -> None:
    whole = discovery(5)
    part = replace(whole, names=whole.names[:100], columns={"found": np.ones(100)})
    assert judge(with_time(part)) == ()


def source_frame(second: float, **up: float) -> Frame:
    """What the supervisor says of sources; `__` in a name stands for `:`."""
    names = tuple(name.replace("__", ":") for name in up)
    columns = {"up": np.array(list(up.values())), "failures": np.array([0.0 if u else 3.0 for u in up.values()])}
    return Frame(EPOCH + round(second * NS), "fabrictwin", "source", names, columns)


def test_many_sources_that_begin_to_fail_together_are_one_incident_with_their_nodes() -> None:
    twin = Twin(preset("hgx-h100", nodes=4))
    twin.ingest(source_frame(0.5, n000__nvml=1, n001__nvml=1, n002__nvml=1, n003__nvml=1))
    for second in range(1, 9):
        twin.ingest(source_frame(second + 0.5, n000__nvml=0, n001__nvml=0, n002__nvml=0, n003__nvml=1))
    twin.finish()
    (incident,) = twin.incidents
    assert (incident.kind, incident.cause) == ("collector_failed", "sources")
    assert incident.affected.names == ("n000", "n001", "n002")


def test_two_sources_that_fail_are_told_apart() -> None:
    twin = Twin(preset("hgx-h100", nodes=4))
    for second in range(1, 9):
        twin.ingest(source_frame(second + 0.5, n000__nvml=0, n001__nvml=0))
    twin.finish()
    assert sorted(i.cause for i in twin.incidents) == ["n000:nvml", "n001:nvml"]


def test_what_reads_a_dead_node_is_not_told_to_fail_as_well() -> None:
    simulation = Simulation(Scenario("x", "hgx-h100", {"nodes": 4}, duration=40, faults=(Fault("fail", "n001", 10),)))
    twin = Twin(simulation.topology)
    second = 0
    for frame in simulation.frames():
        while (frame.time - EPOCH) / NS > second + 0.5:
            twin.ingest(source_frame(second + 0.5, n001__nvml=float(second < 10)))
            second += 1
        twin.ingest(frame)
    twin.finish()
    assert [(i.kind, i.cause) for i in twin.incidents if i.superseded_by is None] == [("link_down", "n001")]
