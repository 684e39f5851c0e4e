"""Reports: what they say, that no name becomes markup, and that they look right in a real browser."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trace_samples import NS, T0, fabric, record, sample_frames, write_text

from replay.merge import MergedTrace
from replay.recorder import Recorder
from replay.records import Note
from replay.report import gather, write_report
from replay.report.gather import Findings
from replay.report.markdown import code, markdown, text
from replay.report.markup import tag
from replay.report.page import page
from replay.report.plots import plot
from replay.report.series import Line, Wanted, read_lines
from replay.report.wiring import Map, reach
from replay.report.words import amount, lasting
from replay.trace import open_trace
from tests.tui.test_command_line import run
from twin.errors import InputError
from twin.frames import Frame
from twin.simulator.scenario import DEMO
from twin.simulator.simulation import Simulation
from twin.topology.presets import preset
from twin.topology.wiring import read_wiring
from twin.yamlfile import Document

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "a|b`c*d_e[f](javascript:alert(1))",
    "&lt;&#39;'",
]
NAMES = [re.sub(r"[/\s]", "", name) for name in HOSTILE]


class Read(HTMLParser):
    """A page as its reader gets it: elements, attributes, text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.attributes: list[tuple[str, str]] = []
        self.text = ""
        self.open: list[str] = []
        self._style = False
        self.feed(html)
        self.close()

    def handle_starttag(self, name: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags[name] += 1
        self.attributes += [(key, value or "") for key, value in attributes]
        if name not in ("meta", "br", "hr"):
            self.open.append(name)

    def handle_startendtag(self, name: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags[name] += 1
        self.attributes += [(key, value or "") for key, value in attributes]

    def handle_endtag(self, name: str) -> None:
        assert self.open.pop() == name

    def handle_data(self, data: str) -> None:
        self.text += data if "style" not in self.open else ""


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo: a plane, a leaf, two links; and a node that is not heard of for a while."""
    path = tmp_path_factory.mktemp("demo") / "demo.mcap"
    simulation = Simulation(DEMO)
    with Recorder(path, simulation.topology, live=False) as out:
        for frame in simulation.frames():
            if not (frame.source == "n005" and 20 < (frame.time - simulation.start) / NS < 45):
                out.write(frame)
    open_trace(path).add_note(Note(simulation.start + 30 * NS, "somebody pulled a breaker", "ops"))
    return path


@pytest.fixture(scope="module")
def found(demo: Path) -> Findings:
    return gather(open_trace(demo))


def hostile(path: Path) -> Path:
    """A trace in which every name and every word tries to be markup."""
    wiring = {
        "name": HOSTILE[0],
        "planes": ["A"],
        "nodes": [{"name": n, "gpus": 1, "nics": 1, "ports_per_nic": 1} for n in NAMES],
        "switches": [{"name": f"leaf{NAMES[1]}", "tier": "leaf", "plane": "A"}],
        "links": [{"a": f"{n}/nic0/p0", "b": f"leaf{NAMES[1]}/p{i}", "speed": "400G"} for i, n in enumerate(NAMES)],
        "domains": [], "racks": [], "ranges": False,
        "jobs": [{"name": NAMES[2], "nodes": NAMES, "collective": "allreduce"}],
    }  # fmt: skip
    topology = read_wiring(Document("hostile", json.dumps(wiring)))
    with Recorder(path, topology, live=False) as out:
        for second in range(40):
            for name in NAMES:
                up = np.array([0.0 if 10 <= second < 20 else 1.0])
                out.write(Frame(T0 + second * NS, name, "port", (f"{name}/nic0/p0",), {"up": up}))
        for words in HOSTILE:
            out.note(Note(T0 + 5 * NS, f"{words}\n# not a heading\n- nor a list", words))
    return path


# --- what it says ---


def test_a_report_tells_every_incident_with_its_evidence_cost_and_plots(found: Findings) -> None:
    html = page(found)
    read = Read(html)
    incidents = found.analysis.incidents
    assert read.tags["article"] == len(incidents) >= 5
    for story in found.stories:
        i = story.incident
        assert i.summary in read.text and i.cause in read.text and i.advice in read.text
        assert f'id="i{i.id}"' in html and f'href="#i{i.id}"' in html
        assert all(e.entity in read.text for e in i.evidence)
        assert story.lines
    assert "somebody pulled a breaker" in read.text
    assert re.search(r"n005\s*2026-01-01 00:00:19 UTC", read.text)
    assert read.tags["svg"] > 2 * len(incidents)


def test_plots_show_before_during_and_after(found: Findings) -> None:
    plane = next(s for s in found.stories if s.incident.kind == "plane_down")
    capacity = next(line for line in plane.lines if (line.entity, line.metric) == ("plane:B", "capacity_fraction"))
    started, resolved = plane.incident.started, plane.incident.resolved or 0
    assert capacity.mean(0, started) == 1.0
    assert capacity.mean(started + 2 * NS, resolved - 4 * NS) == 0.0
    assert capacity.mean(resolved, 1 << 62) == 1.0
    sent = next(line for line in plane.lines if line.metric == "tx_bytes")
    assert sent.unit == "bytes/s"
    assert sent.mean(started + 3 * NS, resolved - 6 * NS) < 0.01 * sent.mean(0, started)
    slow = next(s for s in found.stories if s.incident.kind == "link_slow")
    speed = next(line for line in slow.lines if line.metric == "speed_bits_per_second")
    assert set(np.unique(speed.values)) == {200e9, 400e9}


def test_the_reach_on_the_wiring_is_that_of_the_incident(found: Findings) -> None:
    topology = found.topology
    by_kind = {s.incident.kind: s.incident for s in found.stories}
    plane = reach(topology, by_kind["plane_down"])
    b = topology.planes.index("B")
    assert plane.cause_switches == set(np.flatnonzero(topology.switches.plane == b).tolist())
    assert set(plane.nodes) == set(range(64)) and set(plane.nodes.values()) == {1.0}
    leaf = reach(topology, by_kind["switch_down"])
    assert [topology.switches.name[s] for s in leaf.cause_switches] == ["A-leaf-03"]
    assert set(leaf.nodes.values()) == {1 / 8}
    assert len(leaf.links) == 128
    slow = reach(topology, by_kind["link_slow"])
    assert [topology.nodes.name[n] for n in slow.cause_nodes] == ["n012"]


@pytest.mark.parametrize("name", ["dgx-b200-ndr", "gb300-nvl72-superpod", "dgx-station-pair", "alibaba-hpn"])
def test_every_switch_and_node_has_a_place_of_its_own_in_the_picture(name: str) -> None:
    drawn = Map.of(preset(name))
    boxes = [*drawn.switches.values(), *drawn.nodes.values()]
    assert len(boxes) == len(drawn.topology.switches.name) + len(drawn.topology.nodes.name)
    assert len({(round(x, 1), round(y, 1)) for x, y, _ in boxes}) == len(boxes)
    assert all(x >= 0 and x + size <= 361 and y >= 0 and y + size <= drawn.height for x, y, size in boxes)


def test_markdown_tells_the_same(found: Findings) -> None:
    said = markdown(found)
    for story in found.stories:
        i = story.incident
        assert f"{i.kind} `{i.cause}`" in said
        assert text(i.summary) in said and text(i.advice) in said
    assert "| ■ critical | 00:00:10 | 00:00:29 | plane_down | `plane:B` |" in said
    assert "`n005` | 2026-01-01 00:00:19 UTC" in said
    assert "** ops: somebody pulled a breaker" in said
    assert re.search(r"- `█+[▇▁]*▁+█+` `plane:B` capacity\\_fraction before 100 % · during", said)


def test_power_is_shown_where_it_is_known(tmp_path: Path) -> None:
    from replay.drills.file import find_drill, load_drill

    drill = load_drill(find_drill("feed-down"))
    simulation = Simulation(replace(drill.scenario, duration=40.0))
    with Recorder(tmp_path / "t.mcap", simulation.topology, live=False) as out:
        for frame in simulation.frames():
            out.write(frame)
    got = gather(open_trace(tmp_path / "t.mcap"))
    assert got.power
    assert all(line.unit == "W" and np.nanmax(line.values) > 1000 for line in got.power)
    assert "Power" in Read(page(got)).text


def test_a_trace_without_incidents_without_frames_of_text_or_of_several_gives_a_report(tmp_path: Path) -> None:
    healthy = record(tmp_path / "a.mcap", sample_frames(10, seed=1))
    empty = record(tmp_path / "b.mcap", [])
    lines = write_text(tmp_path / "c.jsonl", sample_frames(30))
    several = MergedTrace([open_trace(record(tmp_path / f"{i}.mcap", list(sample_frames(30))[i::2])) for i in (0, 1)])
    for trace in (open_trace(healthy), open_trace(empty), open_trace(lines, topology=fabric()), several):
        got = gather(trace)
        Read(page(got))
        assert markdown(got)
    assert "Nothing happened" in page(gather(open_trace(healthy))) and "no frames" in markdown(
        gather(open_trace(empty))
    )


def test_the_same_trace_gives_the_same_bytes_and_files_that_cannot_be_written_are_told(tmp_path: Path) -> None:
    record(tmp_path / "t.mcap", sample_frames())
    once, again = (gather(open_trace(tmp_path / "t.mcap")) for _ in range(2))
    assert (page(once), markdown(once)) == (page(again), markdown(again))
    with pytest.raises(InputError, match=r"expected a name ending in \.html or \.md"):
        write_report(once, tmp_path / "r.pdf")
    code, _, err = run("analyze", "t.mcap", "--report", "r.html", "--report", "r.md", cwd=tmp_path)
    assert (code, err) == (2, "wrote r.html\nwrote r.md\n")
    assert (tmp_path / "r.html").read_text().startswith("<!DOCTYPE html>")
    code, _, err = run("analyze", "t.mcap", "--report", "no/r.html", cwd=tmp_path)
    assert (code, "no/r.html: cannot be written: No such file" in err) == (3, True)


def test_unknown_is_a_hole_in_a_line_and_not_zero() -> None:
    times = [T0 + s * NS for s in range(30) if not 10 <= s < 20]
    frames = [Frame(t, "n0", "gpu", ("n0/gpu0",), {"power_watts": np.array([500.0])}) for t in times]
    want = Wanted("n0/gpu0", "gpu", "power_watts", 0, 1 << 62)
    line = read_lines(frames, [want])[want]
    assert np.isnan(line.values).sum() == 1
    assert plot(line).count("<polyline") == 2
    counted = [
        Frame(T0 + s * NS, "n0", "port", ("n0/nic0/p0",), {"tx_bytes": np.array([v], np.uint64)})
        for s, v in enumerate([10, 20, 40, 5, 15])
    ]
    want = Wanted("n0/nic0/p0", "port", "tx_bytes", 0, 1 << 62)
    rates = read_lines(counted, [want])[want]
    assert np.array_equal(rates.values, [10, 20, np.nan, 10], equal_nan=True)


@settings(max_examples=60, deadline=None)
@given(values=st.lists(st.floats(-1e300, 1e300) | st.just(float("nan")), min_size=2, max_size=900))
def test_any_line_can_be_drawn_within_its_frame(values: list[float]) -> None:
    times = T0 + np.arange(len(values)) * NS
    drawn = plot(Line("x", "y", "W", times, np.array(values)), (T0, T0 + NS))
    Read(drawn)
    for points in re.findall(r'points="([^"]*)"', drawn):
        for point in points.split():
            x, y = map(float, point.split(","))
            assert 0 <= x <= 340 and 0 <= y <= 112


# --- names that would be markup ---


@settings(max_examples=200, deadline=None)
@given(words=st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=30))
def test_any_text_comes_back_from_html_as_text(words: str) -> None:
    read = Read(tag("p", words, title=words))
    assert (read.text, read.attributes, read.tags) == (words, [("title", words)], {"p": 1})


def test_hostile_names_and_notes_stay_text(tmp_path: Path) -> None:
    got = gather(open_trace(hostile(tmp_path / "t.mcap")))
    assert got.analysis.incidents
    read = Read(page(got))
    usual = Read(page(gather(open_trace(record(tmp_path / "usual.mcap", sample_frames())))))
    assert set(read.tags) <= set(usual.tags) | {"ul", "li", "a"}
    assert not [key for key, _ in read.attributes if key.startswith("on") or key == "src"]
    assert all(value.startswith("#") for key, value in read.attributes if key == "href")
    assert all(" ".join(words.split()) in " ".join(read.text.split()) for words in (*HOSTILE, *NAMES))
    said = markdown(got)
    assert not re.search(r"(?<!\\)<", re.sub(r"`[^`\n]*`", "", said))
    rows = [line for line in said.splitlines() if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} <= {5, 7}
    assert "\n# not a heading" not in said and "](javascript" not in re.sub(r"`[^`\n]*`|\\.", "", said)
    assert code("a`b|c") == "`a'b¦c`"


def test_amounts_and_spans_are_written_as_people_do() -> None:
    shown = [
        amount(*x) for x in ((45.2e9, "bytes/s"), (0.5, "ratio"), (1.0, "bool"), (float("nan"), "W"), (1310, "W"))
    ]
    assert shown == ["45.2 GB/s", "50 %", "up", "unknown", "1.31 kW"]
    assert [lasting(round(s * NS)) for s in (5.25, 65, 3725)] == ["5.2 s", "1m05s", "1h02m05s"]


# --- in a browser ---


@pytest.mark.service("chromium-headless-shell")
@pytest.mark.parametrize("width", [1280, 400])
async def test_a_browser_shows_it_without_complaint_request_or_overflow(
    found: Findings, tmp_path: Path, width: int
) -> None:
    from tests.rigs.chromium import browser

    (tmp_path / "r.html").write_text(page(found))
    (tmp_path / "h.html").write_text(page(gather(open_trace(hostile(tmp_path / "t.mcap")))))
    async with browser() as shown:
        for name in ("r.html", "h.html"):
            await shown.show(tmp_path / name, width)
            assert await shown.evaluate("document.documentElement.scrollWidth") <= width
            over = "e => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest('.wide')"
            wide = f"[...document.querySelectorAll('main *')].filter({over}).map(e => e.outerHTML.slice(0, 99))"
            assert await shown.evaluate(wide) == []
            assert await shown.evaluate("document.scripts.length") == 0
            flat = ".filter(e => e.getBoundingClientRect().height < 20).length"
            assert await shown.evaluate(f"[...document.querySelectorAll('svg.plot, svg.wiring')]{flat}") == 0
            assert await shown.evaluate("document.querySelectorAll('article').length") > 0
        await shown.picture(tmp_path / "r.png")
    assert shown.complaints == []
    assert shown.asked == [(tmp_path / name).as_uri() for name in ("r.html", "h.html")]
