"""Exposition text, against the official parsers and against itself."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client.parser import text_string_to_metric_families

from collectors.prometheus.exposition import Page, PageError, readings, split_key

Sample = tuple[str, dict[str, str], float, float]

NAMES = st.from_regex(r"[a-zA-Z_:][a-zA-Z0-9_:]{0,10}", fullmatch=True)
LABELS = st.from_regex(r"[a-zA-Z][a-zA-Z0-9_]{0,6}", fullmatch=True).filter(lambda x: x != "__name__")
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\r"), max_size=12)
NUMBERS = st.one_of(
    st.floats().map(repr),
    st.integers(-(2**70), 2**70).map(str),
    st.sampled_from(["NaN", "+Inf", "-Inf", "1e+06", "1.8446744073709552e+19", "0"]),
)
STAMPS = st.one_of(st.none(), st.integers(0, 2**41))
SPACES = st.sampled_from([" ", "  ", "\t", " \t "])


def escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


@st.composite
def lines(draw: Callable[..., object]) -> str:
    labels = draw(st.dictionaries(LABELS, TEXTS, max_size=4))
    inner = ",".join(f'{k}="{escaped(v)}"' for k, v in labels.items())  # type: ignore[attr-defined]
    comma = "," if inner and draw(st.booleans()) else ""
    braces = f"{{{inner}{comma}}}" if inner or draw(st.booleans()) else ""
    stamp = draw(STAMPS)
    tail = "" if stamp is None else f"{draw(SPACES)}{stamp}"
    return f"{draw(NAMES)}{braces}{draw(SPACES)}{draw(NUMBERS)}{tail}"


COMMENTS = st.sampled_from(["", "# HELP a b c", "# TYPE zz counter", "# EOF", "#", "  # indented"])
PAGES = st.lists(st.one_of(lines(), COMMENTS), max_size=12).map(lambda found: "\n".join([*found, ""]))


def ours(page: bytes, **how: bool) -> list[Sample]:
    return [(*split_key(key), value, time) for key, value, time in readings(page, **how)]


def same(a: list[Sample], b: list[Sample]) -> bool:
    def plain(samples: list[Sample]) -> list[tuple[str, list[tuple[str, str]], str, str]]:
        return [(n, sorted(ls.items()), repr(float(v)), repr(float(t))) for n, ls, v, t in samples]

    return plain(a) == plain(b)


def official(page: str) -> list[Sample]:
    return [
        (s.name, s.labels, s.value, math.nan if s.timestamp is None else float(s.timestamp))
        for family in text_string_to_metric_families(page)
        for s in family.samples
    ]


@given(PAGES)
@settings(max_examples=150, deadline=None)
def test_a_page_is_read_as_the_official_parser_reads_it(page: str) -> None:
    mine = [(n, ls, v, t if t != t else round(t, 3)) for n, ls, v, t in ours(page.encode())]
    assert same(sorted(mine, key=repr), sorted(official(page), key=repr))


@given(PAGES, st.lists(NUMBERS, min_size=12, max_size=12), st.data())
@settings(max_examples=150, deadline=None)
def test_a_later_page_is_read_as_if_it_were_the_first(page: str, numbers: list[str], data: st.DataObject) -> None:
    """New numbers behind the same keys take the fast way, other pages do not; the answer is the same."""
    reader = Page()
    reader.read(page.encode())
    fresh = iter(numbers)
    renewed = "\n".join(
        f"{line.rpartition(' ')[0]} {next(fresh)}" if line and line[0] != "#" and " " in line.strip() else line
        for line in page.split("\n")
    )
    mutated = bytearray(renewed.encode())
    for at in data.draw(st.lists(st.integers(0, max(len(mutated) - 1, 0)), max_size=2)):
        mutated[at : at + 1] = data.draw(st.binary(max_size=2))
    try:
        expected = list(readings(bytes(mutated)))
    except PageError:
        with pytest.raises(PageError):
            reader.read(bytes(mutated))
        return
    values, times = reader.read(bytes(mutated))
    assert reader.keys == [key for key, _, _ in expected]
    assert [repr(v) for v in values.tolist()] == [repr(v) for _, v, _ in expected]
    assert [repr(t) for t in times.tolist()] == [repr(t) for _, _, t in expected]


@given(PAGES, st.data())
@settings(max_examples=150, deadline=None)
def test_a_damaged_page_gives_an_error_or_what_the_official_parser_sees_too(page: str, data: st.DataObject) -> None:
    damaged = bytearray(page.encode())
    for at in data.draw(st.lists(st.integers(0, max(len(damaged) - 1, 0)), min_size=1, max_size=3)):
        damaged[at : at + 1] = data.draw(st.binary(max_size=2))
    try:
        mine = ours(bytes(damaged))
    except PageError:
        return
    try:
        theirs = official(damaged.decode())
    except Exception:  # it raises what it comes across
        return
    mine = [(n, ls, v, t if t != t else round(t, 3)) for n, ls, v, t in mine]
    assert same(sorted(mine, key=repr), sorted(theirs, key=repr))


@given(st.binary(max_size=200))
@settings(deadline=None)
def test_bytes_that_are_no_page_raise_nothing_else(junk: bytes) -> None:
    for how in (True, False):
        try:
            ours(junk, openmetrics=how)
        except PageError as problem:
            assert "\n" not in str(problem)


def test_openmetrics_with_exemplars_and_times_in_seconds_is_read_as_the_official_parser_reads_it() -> None:
    page = (
        '# TYPE a counter\na_total{x="1 # {"} 5 12.5 # {trace_id="KOO5S4vxi0o"} 1.0 1520879607.789\n'
        '# TYPE b_seconds gauge\n# UNIT b_seconds seconds\nb_seconds{y="} 7"} 2.5\n# EOF\n'
    )
    found = [
        (s.name, s.labels, float(s.value), math.nan if s.timestamp is None else float(s.timestamp))
        for family in openmetrics.text_string_to_metric_families(page)
        for s in family.samples
    ]
    assert same(ours(page.encode(), openmetrics=True), found)


def test_an_openmetrics_page_without_its_end_is_cut_short() -> None:
    whole = b"# TYPE a gauge\na 1\n# EOF\n"
    reader = Page()
    reader.read(whole, openmetrics=True)
    for cut in (whole[:-6], whole[:-1] + b"\na 1", b""):
        with pytest.raises(PageError, match="cut short"):
            reader.read(cut, openmetrics=True)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("a 1_0", "line 2: 'a 1_0': the value or time is no number"),
        ("a", "line 2: 'a': expected a name with labels and a value"),
        ('a{b="c} 1', "line 2: 'a{b=\"c} 1': the value"),
        ("<html>", "line 2: '<html>'"),
        ("a 1 2 3", "expected a name"),
    ],
)
def test_a_malformed_line_is_told_with_its_number(line: str, says: str) -> None:
    with pytest.raises(PageError) as problem:
        list(readings(f"ok 1\n{line}\n".encode()))
    assert says in str(problem.value)


def test_a_name_of_other_characters_stands_in_the_braces() -> None:
    assert split_key(b'{"http.latency", "service.name"="x", b="\\n\\\\"}') == (
        "http.latency",
        {"service.name": "x", "b": "\n\\"},
    )
    for wrong in (b'{a="b"}', b'a{"b"}', b'a{b="1",b="2"}', b'a{b="1" c="2"}'):
        with pytest.raises(PageError):
            split_key(wrong)
