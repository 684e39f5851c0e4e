"""What feeds and supplies can give, what is left after losses, and what a site says of its power."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import yaml

from tests.twin.power_fabric import WIRING, read
from twin.errors import InputError
from twin.power import (
    PowerModel,
    PowerState,
    amperes,
    breaker_watts,
    left_after,
    lower_limit,
    more_gpus,
)
from twin.site import load_site
from twin.topology.explicit import to_wiring
from twin.topology.model import Topology
from twin.topology.presets import preset
from twin.topology.short.write import to_short

NAN = float("nan")


def state(
    topo: Topology,
    *,
    load: dict[str, float] | None = None,
    readings: dict[tuple[str, str], dict[str, float]] | None = None,
    lost: tuple[str, ...] = (),
    dark: tuple[str, ...] = (),
) -> tuple[PowerModel, PowerState]:
    """load: of nodes and, by their first feed, of racks."""
    model = PowerModel(topo)
    given = {("node", "power_watts"): load or {}} | (readings or {})

    def read_(kind: str, metric: str) -> np.ndarray:
        values = given.get((kind, metric), {})
        return np.array([values.get(name, NAN) for name in topo.names(kind)], dtype=np.float64)

    psus = np.array([name in lost for name in topo.psu_names], dtype=bool)
    feeds = np.array([name in dark for name in topo.feeds.name], dtype=bool)
    return model, model.at(read_, psus, feeds)


def one_node(psus: int, watts: float, *, model: str = "x", redundancy: str = "none", feeds: str = "[]") -> Topology:
    return read(
        f"name: one\nnodes: [{{name: n0, rack: r0, gpus: 8, gpu_model: {model}, psus: {psus}, psu_watts: {watts}}}]\n"
        f"racks: [{{name: r0, redundancy: {redundancy}, feeds: {feeds}}}]\n"
    )


# --- arithmetic ------------------------------------------------------------------------------------


def test_a_rack_of_96_kw_draws_461_a_of_one_phase_or_266_a_of_three() -> None:
    assert amperes(96_000, 208) == pytest.approx(461.5, abs=0.05)
    assert amperes(96_000, 208, phases=3) == pytest.approx(266.5, abs=0.05)


def test_a_breaker_of_60_a_at_415_v_three_phase_carries_34_5_kw_continuously() -> None:
    assert breaker_watts(415, 60, phases=3) == pytest.approx(34_500, abs=10)
    assert breaker_watts(230, 32) == pytest.approx(230 * 32 * 0.8)


@pytest.mark.parametrize(
    ("supplies", "watts", "load", "losses", "left"),
    [
        (4, 3200, 6000, 2, 400),  # RTX PRO 6000 server as N+N
        (4, 3200, 6000, 1, 3600),  # and as N+1
        (6, 3300, 14_300, 1, 16_500 - 14_300),  # DGX B200, 5+1
        (6, 3300, 14_300, 2, 13_200 - 14_300),  # four are not enough
        (1, 490, 290 + 170 + 135 + 100, 0, -205),  # a small host that will trip
        (1, 490, 130 + 110 + 135 + 100, 0, 15),  # and with its GPUs' limits lowered
        (48, 5500, 120_000, 1, 258_500 - 120_000),  # GB200 rack: a supply
        (8, 33_000, 120_000, 1, 231_000 - 120_000),  # a shelf
        (8, 33_000, 120_000, 4, 12_000),  # half the shelves: 9 % of 132 kW
    ],
)
def test_what_is_left_after_losses(supplies: int, watts: float, load: float, losses: int, left: float) -> None:
    assert left_after(np.full(supplies, float(watts)), load, losses) == left


def test_limits_come_down_as_far_as_they_must_and_no_further_than_they_can() -> None:
    draws = np.full(8, 600.0)
    assert lower_limit(draws, 800, 400) == 500
    assert lower_limit(draws, 1600, 400) == 400
    assert lower_limit(draws, 1601, 400) is None
    assert lower_limit(np.array([600.0, 200.0]), 100, 0) == 500  # one that draws little gives nothing
    assert lower_limit(np.array([600.0, 580.0]), 100, 0) == 540
    assert lower_limit(draws, 0, 400) == 600


def test_lower_limits_save_exactly_what_was_asked_for() -> None:
    rng = np.random.default_rng(1)
    for _ in range(100):
        draws = rng.uniform(100, 700, rng.integers(1, 20))
        excess = float(rng.uniform(1, 0.9 * draws.sum()))
        limit = lower_limit(draws, excess, 0.0)
        assert limit is not None
        assert np.minimum(draws, limit).sum() == pytest.approx(draws.sum() - excess)


def test_as_many_gpus_may_start_as_the_headroom_holds() -> None:
    assert more_gpus(1200, 600) == 2 and more_gpus(1199, 600) == 1 and more_gpus(-5, 600) == 0
    assert more_gpus(1200, 600, idle_watts=120) == 2


# --- the fabric ------------------------------------------------------------------------------------


def test_supplies_hang_on_the_feeds_of_their_rack_in_blocks() -> None:
    topo = read()
    model = PowerModel(topo)
    feeds = [topo.feeds.name[f] for f in model.psu_feed[:4].tolist()]
    assert feeds == ["r0/feedA", "r0/feedA", "r0/feedB", "r0/feedB"]


def test_a_server_on_two_feeds_survives_the_loss_of_either_with_400_w() -> None:
    topo = one_node(4, 3200, redundancy="N+N", feeds="[{name: r0/feedA, watts: 1e4}, {name: r0/feedB, watts: 1e4}]")
    _, at = state(topo, load={"n0": 6000})
    assert (at.capacity[0], at.after_next[0], at.after_loss[0] - at.load[0]) == (12_800, 6400, 400)
    _, at = state(topo, load={"n0": 6000}, lost=("n0/psu0",))
    assert (at.capacity[0], at.after_next[0]) == (9600, 3200)


def test_n_plus_n_without_feeds_counts_halves_and_n_plus_1_supplies() -> None:
    _, at = state(one_node(4, 3200, redundancy="N+N"), load={"n0": 6000})
    assert at.after_loss[0] - at.load[0] == 400
    _, at = state(one_node(4, 3200, redundancy="N+1"), load={"n0": 6000})
    assert at.after_loss[0] - at.load[0] == 3600


def test_a_dgx_b200_may_lose_one_of_its_six_supplies() -> None:
    model, at = state(one_node(6, 3300, model="b200"), load={"n0": 14_300})
    assert model.spare[0] == 1 and at.after_loss[0] == 16_500
    _, at = state(one_node(6, 3300, model="b200"), load={"n0": 14_300}, lost=("n0/psu5",))
    assert at.capacity[0] == 16_500 and at.after_next[0] == 13_200 < at.load[0]


def test_an_nvl72_rack_loses_supplies_shelves_and_half_its_shelves() -> None:
    topo = preset("gb300-nvl72-superpod")
    rack = len(topo.nodes.name)
    feeds = tuple(f"r00/feed{side}{i}" for side in "AB" for i in range(4))

    def left(lost: tuple[str, ...], dark: tuple[str, ...] = ()) -> float:
        return float(state(topo, lost=lost, dark=dark)[1].capacity[rack])

    assert left(()) == 264_000 and left(("r00/psu3",)) == 258_500
    assert left((), feeds[:1]) == 231_000 == left(tuple(f"r00/psu{i}" for i in range(6)))
    assert left((), feeds[:4]) == 132_000
    assert state(topo)[1].after_loss[rack] == 165_000  # N+3


def test_what_is_not_known_to_be_lost_counts_as_designed_and_a_reading_replaces_the_design() -> None:
    topo = one_node(2, 3200)
    assert state(topo)[1].capacity[0] == 6400
    derated = {("psu", "capacity_watts"): {"n0/psu1": 1600.0}}
    assert state(topo, readings=derated)[1].capacity[0] == 4800
    assert np.isnan(state(one_node(2, NAN))[1].capacity[0])


def test_a_load_is_the_meter_s_else_the_sum_of_its_parts_where_all_are_known() -> None:
    topo = one_node(2, 3200)
    both = {("psu", "output_watts"): {"n0/psu0": 300.0, "n0/psu1": 280.0}}
    one = {("psu", "output_watts"): {"n0/psu0": 287.0}}
    assert state(topo, readings=both)[1].load.tolist() == [580.0, 580.0]
    assert state(topo, load={"n0": 600.0}, readings=both)[1].load.tolist() == [600.0, 600.0]
    assert np.isnan(state(topo, readings=one)[1].load).all()  # missing power is no reading, not 0 W
    assert state(topo, readings=one, lost=("n0/psu1",))[1].load[0] == 287.0  # but a supply that is down gives none


def test_the_load_of_the_site_is_at_least_what_is_known_of_it() -> None:
    readings = {("feed", "power_watts"): {"r0/feedA": 20e3, "r0/feedB": 21e3}}
    _, at = state(read(), readings=readings)
    assert at.site_load == 41e3 and at.site_known == 0.5


# --- the site --------------------------------------------------------------------------------------

SITE = "topology: {preset: rtx-pro-6000, servers: 32}\n"


def site(tmp_path: Path, power: str) -> Topology:
    path = tmp_path / "site.yaml"
    path.write_text(SITE + f"power: {power}\n")
    return load_site(path).topology


def test_racks_without_feeds_get_two_of_the_site(tmp_path: Path) -> None:
    topo = site(tmp_path, "{rack_feed_watts: 66000, redundancy: N+N, site_watts: 3e5}")
    assert topo.feeds.name == ("r00/feedA", "r00/feedB", "r01/feedA", "r01/feedB")
    assert topo.feeds.watts.tolist() == [66_000.0] * 4 and topo.racks.redundancy == ("N+N", "N+N")
    assert topo.site_watts == 3e5


def test_a_feed_may_be_given_by_its_breaker(tmp_path: Path) -> None:
    topo = site(tmp_path, "{breaker: {volts: 415, amps: 60, phases: 3}}")
    assert topo.feeds.watts[0] == pytest.approx(34_500, abs=10)


def test_a_wiring_that_says_its_own_feeds_keeps_them(tmp_path: Path) -> None:
    (tmp_path / "w.yaml").write_text(WIRING)
    path = tmp_path / "s.yaml"
    path.write_text("topology: {file: w.yaml}\npower: {rack_feed_watts: 1000, redundancy: N+1}\n")
    topo = load_site(path).topology
    assert topo.feeds.watts.tolist() == [60_000.0] * 4 and topo.racks.redundancy == ("N+N", "N+N")


@pytest.mark.parametrize(
    ("power", "reason"),
    [
        ("{rack_feed_watts: -1}", "rack_feed_watts"),
        ("{redundancy: N+M}", "redundancy"),
        ("{rack_feed_watts: 1000, breaker: {volts: 208, amps: 30}}", "either rack_feed_watts or breaker"),
        ("{breaker: {volts: 208, amps: 30, phases: 2}}", "phases"),
        ("{site_watts: 0}", "site_watts"),
    ],
)
def test_power_that_makes_no_sense_is_refused_with_its_line(tmp_path: Path, power: str, reason: str) -> None:
    with pytest.raises(InputError, match=rf"site\.yaml:2: .*{reason}"):
        site(tmp_path, power)


@pytest.mark.parametrize("form", [to_wiring, to_short])
def test_the_limit_of_the_site_is_exported_and_read_again(form: object) -> None:
    topo = read(WIRING + "site_watts: 250000\n")
    assert topo.site_watts == 250_000
    assert read(yaml.safe_dump(form(topo))).site_watts == 250_000  # type: ignore[operator]
