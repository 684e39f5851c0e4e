"""What views 3, 4 and 5 are made of: orders, counts, what would be left."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from machine_samples import Machines, ill, racks, silent, well

from tui.filter import parse, select
from tui.ring import Ring
from tui.rows.entity import incidents_of, page_of
from tui.rows.gputable import STATES, gpu_index, gpu_states, gpu_table, nvlink_counts
from tui.rows.nvlink import cells_of, domain_look, domain_tally
from tui.rows.nvmatrix import cell, domain_matrix, matrix_lines
from tui.rows.powertable import PowerIndex, PowerReadings, power_table, watts
from tui.rows.table import Column, chosen_columns, ordered
from tui.text import plain, width_of
from twin.topology.presets import preset

NAN = float("nan")
NUMBERS = st.lists(st.floats(-1e9, 1e9) | st.just(NAN), min_size=1, max_size=40)


def column(values: list[float], *, least: bool = False, width: int = 5, rank: int = 0) -> Column:
    return Column("x", "x", width, lambda row: (str(row), "text"), lambda: np.array(values), least=least, rank=rank)


@given(NUMBERS, st.booleans(), st.booleans())
def test_rows_are_sorted_the_worst_first_or_last_and_unknown_ones_come_last_either_way(
    values: list[float], least: bool, reverse: bool
) -> None:
    rows = ordered(column(values, least=least), reverse=reverse)
    shown = np.array(values)[rows]
    known = shown[~np.isnan(shown)]
    assert sorted(rows.tolist()) == list(range(len(values)))
    assert np.isnan(shown[len(known) :]).all()
    assert (np.diff(known) >= 0).all() if least != reverse else (np.diff(known) <= 0).all()


@given(
    st.lists(st.tuples(st.integers(1, 20), st.integers(0, 5)), max_size=12), st.integers(1, 220), st.integers(1, 30)
)
def test_columns_go_one_by_one_where_there_is_no_room_and_the_needed_ones_stay(
    sizes: list[tuple[int, int]], width: int, name: int
) -> None:
    columns = tuple(column([], width=w, rank=r) for w, r in sizes)
    shown = chosen_columns(columns, width, name)
    needed = [c for c in columns if c.rank == 0]
    assert [c for c in shown if c.rank == 0] == needed
    assert all(c.rank == 0 for c in shown) or sum(c.width + 1 for c in shown) + name + 4 <= width
    assert max((c.rank for c in shown), default=0) <= min((c.rank for c in columns if c not in shown), default=5)


@given(st.floats(-1e8, 1e8) | st.just(NAN))
def test_watts_fit_their_column_and_are_right_to_three_figures(value: float) -> None:
    said = watts(value)
    assert width_of(said) <= 8
    if value == value:
        number, unit = said.split()
        size = {"W": 1.0, "kW": 1e3, "MW": 1e6}[unit]
        assert float(number) * size == pytest.approx(value, rel=0.006, abs=0.51)


def test_the_title_of_a_column_has_room_for_the_arrow_of_the_order() -> None:
    tables = (gpu_table(well(), gpu_index(racks())), power_table(PowerReadings(well(), PowerIndex(racks()), Ring())))
    assert [c.name for table in tables for c in table.columns if width_of(c.title) >= c.width] == []


# --- GPUs ---


def test_a_gpu_is_in_the_worst_state_that_an_open_incident_says_of_it() -> None:
    topo, states = racks(), gpu_states(ill())
    told = {topo.gpu_names[g]: STATES[states[g]][0] for g in np.flatnonzero(states).tolist()}
    assert told == {"n004/gpu2": "lost", "n020/gpu1": "throttled"}
    assert set(gpu_states(silent()).tolist()) == {2}  # all are stale


def test_what_is_known_of_a_gpu_that_says_nothing_any_more_is_dim_and_its_nvlinks_are_unknown() -> None:
    table = gpu_table(ill(), gpu_index(racks()))
    lost = table.find("n004/gpu2")
    assert lost is not None
    shown = {c.name: c.cell(lost) for c in table.columns}
    assert shown["temp"][1] == "dim" and shown["nvlink"] == ("?", "dim") and shown["age"] == ("17 s", "warn")


def test_gpus_can_be_asked_for_by_every_name_and_number_of_theirs() -> None:
    topo = racks()
    table = gpu_table(ill(), gpu_index(topo))

    def found(text: str) -> list[str]:
        return [table.name(row) for row in np.flatnonzero(select(parse(text), table.asks())).tolist()]

    assert found("throttled") == found("temp>90") == found("clock<1.5GHz") == ["n020/gpu1"]
    assert found("plane:B down") == ["n010/gpu1"] and not found("plane:A down")
    assert len(found("rack=r01")) == len(found("domain=r01")) == len(found("nvlink<90%")) == 72
    assert len(found("rail=3")) == len(found("gpu=3")) == 36 and found("power=?") == ["n033/gpu1"]
    assert len(found("model=gb300 mem>70%")) == 144 and not found("power>90%")


# --- NVLink ---


def test_a_domain_is_told_by_its_links_and_by_what_the_twin_says_of_errors() -> None:
    topo = racks()
    tally = domain_tally(ill(), gpu_index(topo))
    assert [topo.domains.name[row] for row in tally.order] == ["r01", "r00"] and tally.sick == 2
    assert tally.up.tolist() == [1277, 1152] and tally.known.tolist() == [1278, 1296]
    few = Machines(topo, 10)
    few.values["nvlink"]["crc_errors"][5] = 1  # one a second is noise
    snapshot = few.run(10).snapshot()
    quiet = domain_tally(snapshot, gpu_index(topo))
    assert quiet.errors.tolist() == [1.0, 0.0] and quiet.sick == 0
    assert domain_look(quiet, 0)[2] == "healthy"


def test_stale_links_are_neither_up_nor_healthy() -> None:
    index = gpu_index(racks())
    tally = domain_tally(silent(), index)
    assert not tally.known.any() and tally.stale.all() and tally.sick == 0
    assert domain_look(tally, 0)[0] == "?" and not nvlink_counts(silent(), index)[0].any()


@pytest.mark.parametrize("name", ["hgx-b200", "hgx-h100", "gb300-nvl72-ethernet", "vera-rubin-spectrum6"])
def test_a_matrix_holds_every_link_of_a_domain_once(name: str) -> None:
    topo = preset(name)
    snapshot = Machines(topo, 2).run(2).snapshot()
    matrix = domain_matrix(snapshot, gpu_index(topo), 1)
    assert matrix.columns == topo.domains.switches[1] and matrix.chips
    each = int(topo.domains.links_per_gpu[1])
    assert (matrix.total.sum(1) == each).all() and (matrix.up == matrix.total).all()
    for width in (80, 200):
        lines = matrix_lines(snapshot, matrix, width, 200, name="d", cursor=0, first=0)
        assert max(width_of(plain(line)) for line in lines) <= width
        assert all(plain(line).count("…") == 0 for line in lines)


def test_gpus_in_trouble_come_first_in_a_matrix() -> None:
    matrix = domain_matrix(ill(), gpu_index(racks()), 0)
    assert [racks().gpu_names[g] for g in matrix.gpus[:3]] == ["n002/gpu0", "n003/gpu3", "n004/gpu2"]


@pytest.mark.parametrize(
    ("links", "glyph"),
    [((9, 9, 9, 0.0), "·"), ((9, 9, 0, 0.0), "■"), ((9, 9, 4, 2.0), "4"), ((9, 9, 9, 2.0), "▲"),
     ((9, 0, 0, NAN), "?"), ((9, 5, 5, 0.0), "?"), ((18, 18, 17, 0.0), "+"), ((0, 0, 0, NAN), " ")],
)  # fmt: skip
def test_a_cell_of_a_matrix_is_one_glyph(links: tuple[int, int, int, float], glyph: str) -> None:
    assert cell(*links)[0] == glyph


@given(st.integers(1, 30), st.integers(0, 20_000), st.integers(20, 220), st.integers(1, 60))
def test_all_healthy_domains_have_a_cell_with_a_name_where_they_fit(
    longest: int, healthy: int, width: int, room: int
) -> None:
    cells = cells_of(longest, healthy, width, room)
    assert cells.across * cells.rows >= healthy > cells.across * (cells.rows - 1) or not healthy
    assert not cells.named or cells.rows <= room
    assert cells.across == 1 or cells.across * cells.pitch <= width


# --- power ---


def test_what_is_left_at_the_limits_of_gpus_counts_what_they_may_draw_more() -> None:
    snapshot, topo = well(), racks()
    r = PowerReadings(snapshot, PowerIndex(topo), Ring())
    at = r.layout.find
    more = np.maximum(1400 - snapshot.gpu["power_watts"], 0)
    rack = float(more[topo.nodes.rack[topo.gpus.node] == 0].sum())
    assert r.left_at_limits[at["r00"]] == pytest.approx(r.left[at["r00"]] - rack)
    assert r.after_at_limits[at["r00"]] == pytest.approx(r.after[at["r00"]] - rack)
    feed = at["r00/feedA0"]  # eight share the load, seven when one is lost
    assert r.left_at_limits[feed] == pytest.approx(r.left[feed] - rack / 8)
    assert r.after_at_limits[feed] == pytest.approx(r.after[feed] - rack / 7)
    assert r.site_more == pytest.approx(more.sum())


def test_a_gpu_that_says_nothing_of_its_power_counts_in_full_where_its_neighbours_do() -> None:
    snapshot, topo = ill(), racks()
    r = PowerReadings(snapshot, PowerIndex(topo), Ring())
    drawn = np.nan_to_num(snapshot.gpu["power_watts"])
    assert r.site_more == pytest.approx(np.maximum(1400 - drawn, 0).sum())
    dark = replace(snapshot, gpu={})
    assert np.isnan(PowerReadings(dark, PowerIndex(topo), Ring()).site_more)


def test_what_a_lost_feed_brings_about_stands_above_the_supplies_that_went_with_it() -> None:
    table = power_table(PowerReadings(ill(), PowerIndex(racks()), Ring()))
    rows = ordered(table.columns[0], reverse=False).tolist()
    first = [table.name(row) for row in rows[:8]]
    assert first == ["r01/feedB1", "r01", *(f"r01/psu{i}" for i in range(30, 36))]


def test_where_the_design_knows_no_capacity_the_state_is_unknown_and_not_ok() -> None:
    power = well().power
    none = np.full(len(power.names), np.nan)
    blind = replace(well(), psu={}, power=replace(power, capacity=none, headroom=none, after_loss=none))
    r = PowerReadings(blind, PowerIndex(racks()), Ring())
    assert {power_table(r).glyph(row)[0] for row in range(len(r.load))} == {"?"} and not np.isnan(r.load).any()


def test_the_layout_of_power_is_made_once_for_the_same_rows() -> None:
    index = PowerIndex(racks())
    assert index.layout(well()) is index.layout(replace(well(), version=9))


# --- pages ---


@pytest.mark.parametrize(
    ("address", "page"),
    [
        ("n004/gpu2", ("gpu", "n004/gpu2")), ("n004", ("node", "n004")), ("r01", ("rack", "r01")),
        ("r01/feedB1", ("rack", "r01")), ("r01/psu30", ("rack", "r01")), ("domain:r01", ("domain", "domain:r01")),
        ("A-leaf-00", None), ("nowhere", None),
    ],
)  # fmt: skip
def test_a_feed_is_on_the_page_of_its_rack_and_a_supply_with_its_holder(
    address: str, page: tuple[str, str] | None
) -> None:
    assert page_of(racks(), address) == page


@pytest.mark.parametrize(
    ("address", "causes"),
    [
        ("n004/gpu2", {"n004/gpu2"}),
        ("n010", {"n010/nic1/p1"}),
        ("n018/gpu0", {"r01/nvsw04+nvsw05"}),  # the feed that its rack lost costs it nothing
        ("r01", {"r01/nvsw04+nvsw05", "n020/gpu1", "r01/feedB1"}),
        ("domain:r00", {"n004/gpu2", "n002/gpu0/nvlink7", "n003/gpu3/nvlink9"}),
        ("domain:r01", {"r01/nvsw04+nvsw05", "n020/gpu1"}),
    ],
)
def test_the_incidents_of_a_part_are_those_in_it_and_those_that_affect_it(address: str, causes: set[str]) -> None:
    assert {i.cause for i in incidents_of(ill(), address)} == causes


# --- what a screen remembers ---


@given(st.lists(st.tuples(st.integers(0, 50), st.floats(0, 1e6) | st.just(NAN)), min_size=1, max_size=60))
def test_a_ring_keeps_the_last_readings_in_order_and_begins_anew_where_time_goes_back(
    readings: list[tuple[int, float]],
) -> None:
    ring, kept = Ring(8), list[tuple[int, float]]()
    for time, value in readings:
        ring.note("x", time, np.array([value]))
        if kept and time < kept[-1][0]:
            kept = []
        if kept and time == kept[-1][0]:
            kept.pop()
        kept = [*kept, (time, value)][-8:]
    assert np.array_equal(ring.rows[:, 0], [value for _, value in kept], equal_nan=True)
    known = [value for _, value in kept if value == value]
    swing = float(ring.swing()[0])
    assert swing == max(known) - min(known) if len(known) > 1 else swing != swing


def test_a_ring_is_of_one_thing() -> None:
    ring = Ring()
    ring.note("n000", 1, np.array([1.0]))
    ring.note("n001", 2, np.array([2.0]))
    assert ring.rows.tolist() == [[2.0]]


def test_the_page_on_the_screen_names_everything_that_a_filter_may_ask_for() -> None:
    said = set(re.findall(r"[a-z-]+", Path(__file__).parents[2].joinpath("docs", "screen.md").read_text()))
    tables = (gpu_table(well(), gpu_index(racks())), power_table(PowerReadings(well(), PowerIndex(racks()), Ring())))
    asked = {word for table in tables for word in (*table.asks().fields, *table.asks().states)}
    assert asked - said == set()
