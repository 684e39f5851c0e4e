"""What-if: known losses against figures worked out by hand, and what is foreseen against what the twin then finds."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest

from tests.twin.power_fabric import read as power_fabric
from twin.errors import InputError
from twin.simulator.scenario import Fault, Scenario
from twin.simulator.simulation import Simulation
from twin.snapshot import Snapshot
from twin.topology.presets import preset
from twin.twin import Twin
from twin.whatif import Answer, Change, WhatIf, to_json
from twin.whatif.change import apply

SPLIT = WhatIf(preset("b300-superpod-ethernet"))
RTX = WhatIf(preset("rtx-pro-6000"))
NVL72 = WhatIf(preset("gb300-nvl72-ethernet"))


def fail(whatif: WhatIf, *addresses: str) -> Answer:
    return whatif.ask(Change(fail=addresses))


@lru_cache
def snapshot(*faults: Fault, of: str = "b300-superpod-ethernet", **sizes: int) -> tuple[Twin, Snapshot]:
    """A simulated fabric after 18 seconds."""
    simulation = Simulation(Scenario("test", of, sizes, faults=faults, duration=18))
    twin = Twin(simulation.topology)
    twin.ingest_all(simulation.frames())
    twin.finish()
    return twin, twin.snapshot()


# --- figures ----------------------------------------------------------------------------------------


def test_one_of_two_planes_lost_leaves_half_to_every_gpu() -> None:
    answer = fail(SPLIT, "plane:B")
    assert to_json(answer)["bandwidth_fraction"] == {"min": 0.5, "mean": 0.5, "by_fraction": {"0.5": 512}}
    assert answer.after.plane.tolist() == [1, 0] and answer.losers.sum() == 512
    assert answer.jobs[0].fraction == pytest.approx(0.5)


def test_one_of_four_planes_lost_leaves_three_quarters() -> None:
    answer = fail(WhatIf(preset("b300-superpod-ethernet", planes=4)), "plane:C")
    assert to_json(answer)["bandwidth_fraction"]["by_fraction"] == {"0.75": 512}


def test_one_of_eight_rail_planes_lost_leaves_seven_eighths_to_every_node() -> None:
    answer = fail(WhatIf(preset("deepseek-mpft", nodes=16)), "plane:C")
    assert to_json(answer)["bandwidth_fraction"]["by_fraction"] == {"0.875": 128}


def test_an_nvl72_that_loses_one_of_18_switch_chips_keeps_17_18ths_of_nvlink_a_gpu() -> None:
    answer = fail(NVL72, "r00/nvsw03")
    assert np.unique(answer.after.nvlink[:72]).tolist() == [17 / 18] and (answer.after.nvlink[72:] == 1).all()
    assert answer.losers.sum() == 72 and (answer.after.gpu == 1).all()


@pytest.mark.parametrize(("supplies", "left"), [(1, 3600), (2, 400), (3, -2800)])
def test_a_server_of_6_kw_on_four_supplies_of_3_2_kw_has_this_to_spare(supplies: int, left: float) -> None:
    answer = fail(RTX, *(f"n003/psu{i}" for i in range(supplies)))
    (row,) = to_json(answer)["power"]
    assert (row["name"], row["watts"], row["headroom_watts"]) == ("n003", 6000, left)
    assert row["headroom_watts_before"] == 6800


def test_a_server_without_any_supply_is_dark_and_its_rack_draws_that_much_less() -> None:
    answer = fail(RTX, *(f"n003/psu{i}" for i in range(4)))
    rows = {row["name"]: row for row in to_json(answer)["power"]}
    assert (rows["r00"]["watts_before"], rows["r00"]["watts"], rows["n003"]["watts"]) == (96_000, 90_000, 0)
    assert to_json(answer)["bandwidth_fraction"]["by_fraction"] == {"0": 8, "1": 120}
    assert answer.jobs[0].lost == 8 and answer.jobs[0].fraction == 0


def test_a_feed_that_is_lost_leaves_its_rack_the_other_one() -> None:
    whatif = WhatIf(power_fabric())
    rows = {row["name"]: row for row in to_json(fail(whatif, "r0/feedA"))["power"]}
    assert rows["r0"]["capacity_watts"] == rows["r0"]["capacity_watts_before"] / 2 == 60_000
    assert rows["r0"]["watts"] == 48_000 and rows["n0"]["headroom_watts"] == 400
    assert set(rows) == {"r0", *(f"n{i}" for i in range(8))}, "the other rack is untouched"


def test_lower_limits_of_gpus_give_their_racks_the_difference_back() -> None:
    rows = to_json(RTX.ask(Change(limit=450)))["power"]
    assert rows[-1]["name"] == "r00" and rows[-1]["watts_before"] - rows[-1]["watts"] == 128 * 150
    assert {row["watts"] for row in rows if row["kind"] == "node"} == {6000 - 8 * 150}


def test_a_limit_above_what_gpus_draw_changes_nothing() -> None:
    answer = RTX.ask(Change(limit=700))
    assert to_json(answer)["power"] == [] and not answer.losers.any() and answer.incidents == ()


def test_a_port_at_half_its_speed_costs_its_gpu_a_quarter_and_the_job_as_much() -> None:
    answer = SPLIT.ask(Change(degrade=(("n012/nic3/p0", 0.5),)))
    assert to_json(answer)["bandwidth_fraction"]["by_fraction"] == {"0.75": 1, "1": 511}
    assert answer.jobs[0].fraction == pytest.approx(0.75)
    assert answer.jobs[0].after.link.startswith("n012/nic3/p0--")


def test_a_lost_gpu_stops_its_job_and_no_other() -> None:
    jobs = (("a", tuple(range(32)), "allreduce"), ("b", tuple(range(32, 64)), "alltoall"))
    whatif = WhatIf(replace(SPLIT.topo, jobs=jobs))
    one, other = fail(whatif, "n012/gpu3").jobs
    assert (one.lost, one.after.bus_bandwidth, other.lost, other.fraction) == (1, 0, 0, 1)


def test_a_node_without_links_is_cut_off_and_one_without_a_plane_is_not() -> None:
    assert to_json(fail(SPLIT, "n012"))["gpus_cut_off"] == 8
    assert to_json(fail(SPLIT, "n012/nic0", "plane:B"))["gpus_cut_off"] == 0


def test_what_holds_before_is_worked_out_once() -> None:
    first, second = fail(SPLIT, "A-leaf-00"), fail(SPLIT, "A-leaf-01")
    assert first.jobs[0].before is second.jobs[0].before and first.before is second.before


# --- incidents --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "size", "address"),
    [
        ("b300-superpod-ethernet", {}, "plane:B"),
        ("b300-superpod-ethernet", {}, "n012/nic3/p0"),
        ("deepseek-mpft", {"nodes": 16}, "plane:C"),
        ("hgx-b200", {"nodes": 8}, "A-leaf-00"),
        ("hgx-b200", {"nodes": 8}, "A-spine-00"),
        ("hgx-b200", {"nodes": 8}, "n003"),
        ("hgx-b200", {"nodes": 8}, "n003/nic3"),
        ("hgx-b200", {"nodes": 8}, "A-leaf-00/p12"),
        ("hgx-b200", {"nodes": 8}, "n003/nvsw1"),
        ("hgx-b200", {"nodes": 8}, "n003/gpu3/nvlink7"),
        ("gb300-nvl72-ethernet", {"racks": 2}, "r01/nvsw04"),
        ("gb300-nvl72-ethernet", {"racks": 2}, "r01/psu7"),
        ("gb300-nvl72-ethernet", {"racks": 2}, "r01/feedA0"),
        ("rtx-pro-6000", {"servers": 4}, "n003/psu1"),
    ],
)
def test_what_is_foreseen_is_what_the_twin_finds_when_it_happens(
    name: str, size: dict[str, int], address: str
) -> None:
    twin, _ = snapshot(Fault("fail", address, 7), of=name, **size)
    found = {(i.kind, i.cause) for i in twin.incidents if i.superseded_by is None}
    foreseen = {(i.kind, i.cause) for i in fail(WhatIf(twin.topology), address).incidents}
    assert found and foreseen == found


def test_an_incident_is_told_with_the_words_of_the_twin() -> None:
    twin, _ = snapshot(Fault("fail", "A-leaf-01", 7), of="hgx-b200", nodes=8)
    (incident,), (foreseen,) = twin.incidents, fail(WhatIf(twin.topology), "A-leaf-01").incidents
    assert (foreseen.story.summary, foreseen.story.advice) == (incident.summary, incident.advice)
    assert (foreseen.story.severity, foreseen.story.affected) == (incident.severity, incident.affected)


def test_a_lost_gpu_and_a_lost_rack_are_foreseen() -> None:
    assert [(i.kind, i.cause) for i in fail(RTX, "n003/gpu1").incidents] == [("gpu_lost", "n003/gpu1")]
    assert [(i.kind, i.cause) for i in fail(WhatIf(power_fabric()), "r0").incidents] == [("feed_down", "r0")]


# --- from the state of the twin ---------------------------------------------------------------------


def test_questions_to_a_running_twin_start_from_what_it_knows() -> None:
    _, now = snapshot(Fault("fail", "plane:B", 7))
    whatif = WhatIf.of_snapshot(now)
    assert (whatif.before.gpu == 0.5).all() and whatif.before.plane.tolist() == [1, 0]
    answer = fail(whatif, "A-leaf-03")
    assert to_json(answer)["bandwidth_fraction"]["by_fraction"] == {"0": 64, "0.5": 448}
    assert [(i.kind, i.cause) for i in answer.incidents] == [("switch_down", "A-leaf-03")], "plane B is no news"


def test_a_repair_gives_back_what_was_lost_and_ends_the_incident() -> None:
    _, now = snapshot(Fault("fail", "plane:B", 7))
    answer = WhatIf.of_snapshot(now).ask(Change(repair=("plane:B",)))
    assert answer.ended == (("plane_down", "plane:B"),) and answer.incidents == ()
    assert answer.gainers.all() and (answer.after.gpu == 1).all()
    assert answer.jobs[0].fraction == pytest.approx(2)


def test_the_loads_of_a_running_twin_are_those_it_measures() -> None:
    _, now = snapshot(of="rtx-pro-6000", servers=4)
    answer = fail(WhatIf.of_snapshot(now), "n003/psu0", "n003/psu1")
    rows = {row["name"]: row for row in to_json(answer)["power"]}
    measured = float(now.node["power_watts"][3])
    assert rows["n003"]["watts"] == pytest.approx(measured, abs=0.1)
    assert rows["n003"]["headroom_watts"] == pytest.approx(6400 - measured, abs=0.1)


def test_repairing_a_supply_that_left_a_node_dark_brings_the_node_back() -> None:
    model = RTX.meter.power_model
    dark = apply(model, RTX.state, Change(fail=tuple(f"n003/psu{i}" for i in range(4))))
    back = WhatIf(RTX.topo, dark).ask(Change(repair=("n003/psu2",)))
    assert (back.before.gpu[24:32] == 0).all() and (back.after.gpu == 1).all()
    assert back.ended == (("link_down", "n003"),)
    assert [(i.kind, i.cause) for i in back.incidents] == []


def test_the_twin_that_is_watched_is_never_touched() -> None:
    faults = (Fault("fail", "A-leaf-01", 6, until=14), Fault("degrade", "n005/nic5/p0", 9, speed_fraction=0.5))
    simulation = Simulation(Scenario("test", "hgx-b200", {"nodes": 8}, faults=faults, duration=22))
    asked, alone = Twin(simulation.topology), Twin(simulation.topology)
    for i, frame in enumerate(simulation.frames()):
        asked.ingest(frame)
        alone.ingest(frame)
        if i % 200 == 199:
            now = asked.snapshot()
            before = now.link_speed.tobytes(), now.gpu_bandwidth.tobytes(), now.nvlink["up"].tobytes()
            whatif = WhatIf.of_snapshot(now)
            fail(whatif, "plane:A", "n004/gpu2", "n005/nvsw0")
            whatif.ask(Change(degrade=(("A-spine-00", 0.5),), limit=500))
            assert before == (now.link_speed.tobytes(), now.gpu_bandwidth.tobytes(), now.nvlink["up"].tobytes())
    asked.finish()
    alone.finish()
    assert asked.incidents == alone.incidents and len(asked.incidents) == 2
    one, other = asked.snapshot(), alone.snapshot()
    np.testing.assert_array_equal(one.link_speed, other.link_speed)
    np.testing.assert_array_equal(one.gpu_bandwidth, other.gpu_bandwidth)


# --- nonsense ---------------------------------------------------------------------------------------


def test_a_limit_below_what_a_gpu_can_be_set_to_is_refused() -> None:
    with pytest.raises(InputError, match="cannot be set below 400 W"):
        RTX.ask(Change(limit=399))
    assert not RTX.ask(Change(limit=400)).losers.any()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (Change(fail=("B-leaf-9",)), "did you mean B-leaf-0"),
        (Change(fail=("plane:Q",)), "planes are A, B"),
        (Change(fail=("n012/gpu9",)), "has no 'n012/gpu9'"),
        (Change(fail=("plane:B", "B-leaf-01")), "'B-leaf-01' is down already"),
        (Change(fail=("A-leaf-00", "A-leaf-00")), "is down already"),
        (Change(repair=("A-leaf-00",)), "is whole already"),
        (Change(degrade=(("A-leaf-00", 1.0),)), "between 0 and 1"),
        (Change(degrade=(("n012/gpu3", 0.5),)), "no links of the network"),
        (Change(fail=("plane:B",), degrade=(("B-leaf-00", 0.5),)), "is down already"),
        (Change(limit=0), "above 0"),
    ],
)
def test_nonsense_is_refused_in_one_line(change: Change, words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        SPLIT.ask(change)
    assert len(caught.value.problems) == 1 and "\n" not in str(caught.value)
