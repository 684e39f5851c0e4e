"""From snapshots to lines, without a terminal."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from screen_samples import (
    FLAP,
    LINK_SLOW,
    NS,
    OVERSUBSCRIBED,
    PLANE_DOWN,
    SLOW_RECEIVER,
    STALE,
    T0,
    broken,
    empty,
    healthy,
    make_snapshot,
    superpod,
)

from tui.rows.detail import detail_lines, reading, ticket
from tui.rows.gpus import gpu_classes, gpu_lines, host_lines
from tui.rows.header import header_line
from tui.rows.heatmap import ALL_DOWN, GOOD, NOT_KNOWN, PART, merge_columns, plane_index, plane_map
from tui.rows.incidents import cursor_of, incident_line, incidents_lines, matching, window
from tui.rows.keys import KeyHint, keys_line
from tui.rows.leaf import leaf_grid
from tui.rows.leaves import leaf_lines
from tui.rows.links import link_lines, troubled_links
from tui.rows.planes import planes_lines, resample
from tui.rows.sources import sources_lines
from tui.rows.timeline import lane, pack, time_at, timeline_lines
from tui.rows.verdict import status, verdict_lines
from tui.screens.goto import parse_when
from tui.shown import Mark, Shown, marks_of
from tui.text import line_width, plain, plain_lines
from twin.snapshot import DOWN, UNKNOWN
from twin.topology.builder import Builder
from twin.topology.presets import preset


def test_the_verdict_says_first_what_is_broken_and_then_what_it_costs() -> None:
    said = [plain(line) for line in verdict_lines(broken(), 120)]
    assert said[0].startswith(" ■ 1 critical  ▲ 2 warning  plane B down")
    assert "512 of 512 GPUs below full bandwidth: 1 at 25 %, 511 at 50 %" in said[1]


def test_nothing_heard_is_unknown_and_not_ok() -> None:
    assert [status(s) for s in (None, empty(), healthy(), broken())] == ["unknown", "unknown", "ok", "critical"]
    assert "nothing known" in plain(verdict_lines(empty(), 80)[0])
    assert "none known" in plain_lines(incidents_lines(empty(), [], 80, 5))


def test_a_superseded_incident_is_not_counted() -> None:
    taken = replace(LINK_SLOW, superseded_by=PLANE_DOWN.id)
    assert status(make_snapshot(incidents=(taken,))) == "ok"
    assert marks_of([taken, FLAP]) == (Mark(FLAP.started, FLAP.resolved, "warning", FLAP.id),)


@pytest.mark.parametrize("width", [40, 48, 60, 80, 120, 200])
def test_no_line_is_wider_than_the_screen(width: int) -> None:
    snapshot = broken()
    shown = Shown("a-site-with-quite-a-long-name", "live", snapshot, T0, T0, marks=marks_of(snapshot.incidents))
    index = plane_index(snapshot.topology, 1)
    made = plane_map(snapshot, index)
    lines = [
        header_line(shown, width),
        *verdict_lines(snapshot, width),
        *planes_lines(snapshot, width, 20, selected=1, charts=4),
        *gpu_lines(snapshot, width, 6),
        *host_lines(snapshot, width, 6),
        *incidents_lines(snapshot, list(snapshot.incidents), width, 30, two_lines=True, preview=True),
        *sources_lines(snapshot, width, 1),
        *sources_lines(snapshot, width, 8),
        *leaf_lines(snapshot.topology, made, width, 20, cursor=1, first=0, states=False),
        *leaf_grid(snapshot, index, 2, width, 20, states=False),
        *link_lines(snapshot, 0, width, 6),
        *timeline_lines(shown, width, 4),
        *detail_lines(PLANE_DOWN, T0, width),
    ]
    assert [plain(line) for line in lines if line_width(line) > width] == []


def test_bandwidth_classes_are_exact_where_few_and_binned_where_many() -> None:
    bandwidth = np.array([1.0] * 6 + [0.5] * 3 + [np.nan])
    assert [(label, n) for label, n, _ in gpu_classes(bandwidth, 4)] == [("100 %", 6), ("50 %", 3), ("unknown", 1)]
    spread = gpu_classes(np.linspace(0, 1, 101), 4)
    assert len(spread) == 4 and sum(n for _, n, _ in spread) == 101


def test_the_map_sums_parallel_links_and_shows_the_worst() -> None:
    topology = superpod()
    snapshot = make_snapshot()
    index = plane_index(topology, 0)
    state, speed, load = snapshot.link_state.copy(), snapshot.link_speed.copy(), np.full(len(snapshot.link_load), 0.5)
    pair = [index.up_links[(index.up_leaf == 2) & (index.up_spine == s)] for s in range(4)]
    state[pair[0]] = DOWN
    state[pair[1][:3]] = DOWN
    speed[pair[2][0]] /= 2
    state[pair[3]] = UNKNOWN
    load[pair[2][1:]] = np.nan
    made = plane_map(replace(snapshot, link_state=state, link_speed=speed, link_load=load), index)
    assert made.pairs.total.tolist() == [16] * 32
    assert made.pairs.kind.reshape(8, 4)[2].tolist() == [ALL_DOWN, PART, PART, NOT_KNOWN]
    assert made.pairs.kind.reshape(8, 4)[3].tolist() == [GOOD] * 4
    assert made.pairs.load[2 * 4 + 2] == 0.5
    assert (made.ups.up[2], made.ups.down[2], made.hosts.up[2]) == (16 - 3 + 16, 19, 64)
    merged, columns = merge_columns(made.pairs, 8, 4, 2)
    assert (columns, merged.total.tolist()[:2], merged.down.reshape(8, 2)[2].tolist()) == (2, [32, 32], [19, 0])


def test_a_fabric_of_one_leaf_and_one_without_switches_are_drawn_too() -> None:
    one = make_snapshot(preset("rtx-pro-6000", servers=2))
    made = plane_map(one, plane_index(one.topology, 0))
    assert "A-leaf-00 16/16" in plain_lines(leaf_lines(one.topology, made, 80, 8, cursor=0, first=0, states=False))
    b = Builder("none", ())
    b.node("n0", gpus=8, nics=0)
    bare = make_snapshot(b.build())
    made = plane_map(bare, plane_index(bare.topology, -1))
    assert "no switches" in plain_lines(leaf_lines(bare.topology, made, 80, 8, cursor=0, first=0, states=False))
    assert "no planes" in plain_lines(planes_lines(bare, 80, 4))


def test_a_dead_switch_is_one_line_and_links_that_stay_unknown_are_not_down() -> None:
    snapshot = healthy()
    topology = snapshot.topology
    leaf = topology.switches.name.index("B-leaf-03")
    ends = [topology.ports.switch[e] == leaf for e in (topology.links.a, topology.links.b)]
    state = np.where(ends[0] | ends[1], DOWN, snapshot.link_state).astype(np.int8)
    found = troubled_links(replace(snapshot, link_state=state), 1, 5)
    assert [(t.word, t.name, t.says) for t in found.rows] == [("down", "B-leaf-03", "all 128 links")]
    assert found.down == 128
    assert "unknown" not in plain_lines(link_lines(empty(), 1, 80, 4)) and "?" in plain_lines(
        link_lines(empty(), 1, 80, 4)
    )


def test_sources_are_listed_worst_first() -> None:
    lines = sources_lines(make_snapshot(stale=1, failed=1), 80, 6)
    assert [plain(line).split()[:3] for line in lines[1:4]] == [
        ["■", "n000", "failed"], ["▲", "n001", "stale"], ["●", "n002", "ok"],
    ]  # fmt: skip
    assert "62 ok" in plain(lines[0])


def test_filter_words_may_stand_anywhere_in_an_incident() -> None:
    listed = [PLANE_DOWN, LINK_SLOW, STALE, FLAP]
    assert matching(listed, "plane down") == [PLANE_DOWN]
    assert matching(listed, "WARNING n001") == [FLAP]
    assert matching(listed, "") == listed


def test_the_cursor_stays_with_its_incident_when_the_list_moves() -> None:
    assert cursor_of([STALE, LINK_SLOW, PLANE_DOWN], PLANE_DOWN.id, 0) == 2
    assert cursor_of([STALE, LINK_SLOW], PLANE_DOWN.id, 4) == 1
    assert [window(c, 3, 4, 20) for c in (0, 3, 6, 7, 19)] == [0, 3, 3, 4, 16]


def test_evidence_has_units_and_unknown_is_said() -> None:
    assert [reading(m, v) for m, v in [
        ("up", 0.0), ("speed_bits_per_second", 200e9), ("capacity_fraction", 0.5), ("power_watts", 842.0),
        ("temperature_celsius", None), ("link_downed", 12.0),
    ]] == ["down", "200Gb/s", "50 %", "842 W", "?", "12"]  # fmt: skip


def test_a_ticket_holds_all_an_operator_must_tell() -> None:
    text = ticket(PLANE_DOWN, T0, "prod-su1")
    for part in ("[CRITICAL] plane B down (prod-su1)", "512 GPUs on 64 hosts", "2025-12-01 11:57:46 UTC",
                 "2 s after it started", "B-leaf-00/p64--B-spine-00/p0  up  down, up", "Advice", PLANE_DOWN.id,
                 "and 44 more"):  # fmt: skip
        assert part in text
    assert text.isascii()


def test_the_timeline_shows_begin_end_and_the_worst_on_top() -> None:
    marks = [Mark(T0 + 10 * NS, T0 + 50 * NS, "warning", "a"), Mark(T0 + 30 * NS, None, "critical", "b")]
    drawn = plain(lane(marks, T0, T0 + 100 * NS, T0 + 60 * NS, 101, replay=False))
    assert (drawn[9:12], drawn[29:32], drawn[60], drawn[61:]) == ("·▲─", "─■━", "━", "·" * 40)
    assert [[m.id for m in row] for row in pack(marks, 2, T0 + 100 * NS)] == [["b"], ["a"]]


def test_a_click_on_the_timeline_is_a_time() -> None:
    assert [time_at(c, 0, 100 * NS, 101) // NS for c in (-3, 0, 50, 100, 400)] == [0, 0, 50, 100, 100]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("+90s", 190), ("-1m", 40), ("50%", 300), ("12:05", 300), ("12:01:30", 90), ("2025-12-01 12:05:30", 330),
     ("soon", None), ("25:00", None), ("", None)],
)  # fmt: skip
def test_a_time_to_go_to_is_read_as_people_write_it(text: str, seconds: int | None) -> None:
    when = parse_when(text, T0 + 100 * NS, T0, T0 + 600 * NS)
    assert (None if when is None else (when - T0) // NS) == seconds


def test_a_time_past_midnight_is_the_next_day() -> None:
    start = T0 + 11 * 3600 * NS
    assert parse_when("00:30", start, start, start + 2 * 3600 * NS) is not None
    when = parse_when("00:30", start, start, start + 40 * 3600 * NS)
    assert when == T0 + int(12.5 * 3600) * NS


def test_history_means_are_unknown_only_where_all_of_a_run_is() -> None:
    assert resample(np.array([1.0, np.nan, 3.0, 5.0]), 2) == [1.0, 4.0]
    assert np.isnan(resample(np.array([np.nan, np.nan, 3.0, 5.0]), 2)[0])


def test_keys_go_by_rank_where_there_is_no_room() -> None:
    hints = [KeyHint("1", "overview", "", 1), KeyHint("y", "copy", "", 2), KeyHint("q", "quit", "", 0)]
    assert plain(keys_line(hints, 80)).split() == ["1", "overview", "y", "copy", "q", "quit"]
    assert plain(keys_line(hints, 24)).split() == ["1", "overview", "q", "quit"]
    assert plain(keys_line(hints, 8)).split() == ["q", "quit"]


# --- congestion ------------------------------------------------------------------------------------


def test_the_list_says_which_congestion_and_is_found_by_it_and_by_its_victims() -> None:
    line = plain(incident_line(SLOW_RECEIVER, T0, 80, selected=False))
    assert "slow receiver" in line and "n012/nic3/p0" in line
    both = [SLOW_RECEIVER, OVERSUBSCRIBED]
    assert matching(both, "congestion") == both
    assert matching(both, "slow receiver") == matching(both, "n018/gpu3") == [SLOW_RECEIVER]


@pytest.mark.parametrize("width", [60, 78, 200])
def test_the_page_sets_the_root_apart_from_its_victims(width: int) -> None:
    text = [plain(line).strip() for line in detail_lines(SLOW_RECEIVER, T0, width)]
    assert any(line.split() == ["root", "n012/nic3/p0"] for line in text)
    victims, root = (next(i for i, line in enumerate(text) if title in line) for title in ("VICTIMS", "AT THE ROOT"))
    assert victims < root
    assert "13 names" in text[victims] and not any("n012/gpu3" in line for line in text[victims:root])
    assert text[root + 1] == "n012/gpu3" and not any("AFFECTED" in line for line in text)


def test_a_ticket_of_congestion_names_class_root_and_victims() -> None:
    text = ticket(SLOW_RECEIVER, T0, "prod-su1")
    assert text.startswith("[WARNING] congestion: slow receiver n012/nic3/p0 (prod-su1)\n")
    for line in ("Class:      slow receiver", "Root:       n012/nic3/p0", "Lost:       214.7Gb/s"):
        assert line in text.splitlines()
    assert "At the root: n012/gpu3\n" in text
    assert "Victims: n005/gpu3, " in text
