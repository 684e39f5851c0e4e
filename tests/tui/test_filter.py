"""The filter language: what it reads, what it finds, what it says of mistakes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.filter import Comparison, Filterable, FilterError, Labels, Number, Term, Text, Word, parse, select

NAN = float("nan")
# five rows; the NIC of each has ports in planes A and B, the last has none
TABLE = Filterable(
    5,
    {
        "power": Number(np.array([950.0, 400.0, NAN, 990.0, 100.0]), {"W": 1.0, "kW": 1e3}, np.full(5, 1000.0)),
        "util": Number(np.array([0.99, 0.5, NAN, 0.0, 1.0]), whole=1.0, bare="%"),
        "rail": Number(np.array([0.0, 1.0, 2.0, 3.0, NAN])),
        "node": Text(Labels(["n001", "N012"]), np.array([0, 0, 1, 1, -1])),
        "plane": Text(Labels(["A", "B"]), np.array([[0, 1], [0, 1], [0, 1], [0, 1], [-1, -1]])),
    },
    {
        "lost": np.array([True, False, False, False, False]),
        "down": np.array([[True, False], [False, True], [True, True], [False, False], [False, False]]),
        "slow": np.array([[False, True], [False, False], [False, False], [False, False], [False, False]]),
    },
    Text(Labels(["n001/gpu0", "n001/gpu1", "N012/gpu0", "N012/gpu1", "spare"])),
)


def found(text: str) -> list[int]:
    return np.flatnonzero(select(parse(text), TABLE)).tolist()


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("", [0, 1, 2, 3, 4]),
        ("power>90%", [0, 3]),
        ("power>=0.95kW", [0, 3]),
        ("power<=400 util<60%", [1]),
        ("power<500W", [1, 4]),
        ("util>50", [0, 4]),
        ("rail=3", [3]),
        ("rail=0,2", [0, 2]),
        ("rail!=0,2", [1, 3]),
        ("power=?", [2]),
        ("power!=?", [0, 1, 3, 4]),
        ("!power=?", [0, 1, 3, 4]),
        ("!power>90%", [1, 2, 4]),
        ("node=n01*", [2, 3]),
        ("node:N001", [0, 1]),
        ("node=n001,n012", [0, 1, 2, 3]),
        ("node=?", [4]),
        ("node!=n001", [2, 3, 4]),
        ("n012", [2, 3]),
        ("n0*/gpu1", [1, 3]),
        ("gpu1 !n001", [3]),
        ("LOST", [0]),
        ("!lost power>0", [1, 3, 4]),
        ("down", [0, 1, 2]),
        ("!down", [3, 4]),
        ("plane:B down", [1, 2]),
        ("plane=a down", [0, 2]),
        ("plane:A !down", [1, 3]),
        ("plane:A down slow", []),  # row 0 is down in A and slow in B
        ("plane:A,B down slow", [0]),
        ("plane:B", [0, 1, 2, 3]),
        ("!plane:B down", [0, 2]),
    ],
)
def test_a_filter_finds_the_rows_of_which_all_its_terms_hold(text: str, rows: list[int]) -> None:
    assert found(text) == rows


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("powr>3", "powr>3: there is no 'powr' here; there is power, util, rail, node, plane"),
        ("power>hot", "power>hot: 'hot' is no such number: a number is expected, with W, kW, % or nothing behind it"),
        ("power>3GHz", "with W, kW, % or nothing behind it"),
        ("rail=10%", "rail=10%: '10%' is no such number: a number is expected"),
        ("power>", "power>: a value is missing, as in power>90%; unknown is power=?"),
        ("rail=1,,2", "a value is missing"),
        ("power<1,2", "one value goes with <; several go with ="),
        ("node>3", "node>3: node is a name, it goes with = or !=, and \\* for any characters"),
        ("power>?", "'\\?' is no such number"),
        ("power", "power: no address has it; power can be compared, as in power=\\?"),
        (">90%", ">90%: a name is missing before it, without a space: power>90%"),
        ("!", "a word is missing"),
        ("job=x", "there is no 'job' here"),
    ],
)
def test_a_filter_that_makes_no_sense_says_where_and_what_was_expected(text: str, says: str) -> None:
    with pytest.raises(FilterError, match=says.replace("(", "\\(")):
        found(text)


def test_an_address_with_a_colon_is_a_word_where_the_table_has_no_such_column() -> None:
    causes = Filterable(2, {}, {}, Text(Labels(["plane_down plane:B", "link_down n0/nic1"])))
    assert select(parse("plane:b"), causes).tolist() == [True, False]


NAMES = st.from_regex(r"[a-z_]+", fullmatch=True)
PLAIN = st.text(st.characters(blacklist_categories=["Z", "C"], blacklist_characters=",<>=:!"), min_size=1, max_size=8)
COMPARISONS = st.builds(
    Comparison, NAMES, st.sampled_from(["=", "!="]), st.lists(PLAIN, min_size=1, max_size=3).map(tuple), st.booleans()
) | st.builds(Comparison, NAMES, st.sampled_from(["<", "<=", ">", ">="]), PLAIN.map(lambda v: (v,)), st.booleans())
TERMS = st.lists(COMPARISONS | st.builds(Word, PLAIN, st.booleans()), max_size=5).map(tuple)


@given(TERMS)
def test_what_is_written_out_is_read_back_as_the_same(terms: tuple[Term, ...]) -> None:
    assert parse("  ".join(map(str, terms))) == terms


@given(st.text(max_size=30))
def test_any_text_is_a_filter_or_a_mistake_that_is_told(text: str) -> None:
    try:
        rows = select(parse(text), TABLE)
    except FilterError as problem:
        assert str(problem)
    else:
        assert rows.shape == (5,) and rows.dtype == bool


ASKED = st.lists(
    st.sampled_from(["power>50%", "util<60", "rail=1,3", "node=n001", "lost", "gpu", "down", "n012", "power=?"]),
    max_size=4,
)


@given(ASKED, ASKED)
def test_more_terms_never_find_more_and_their_order_does_not_matter(one: list[str], other: list[str]) -> None:
    both = set(found(" ".join([*one, *other])))
    assert both == set(found(" ".join(one))) & set(found(" ".join(other))) == set(found(" ".join([*other, *one])))


@given(st.lists(st.floats(-1e6, 1e6) | st.just(NAN), min_size=1, max_size=20), st.integers(-1000, 1000))
def test_what_is_known_is_either_below_or_not_and_what_is_not_is_neither(values: list[float], limit: int) -> None:
    table = Filterable(len(values), {"x": Number(np.array(values))}, {}, Text(Labels(map(str, range(len(values))))))

    def count(text: str) -> int:
        return int(select(parse(text), table).sum())

    known = sum(value == value for value in values)
    assert count(f"x<{limit}") + count(f"x>={limit}") == known == len(values) - count("x=?")
    assert count(f"x={limit}") + count(f"x!={limit}") == known


@given(st.lists(st.text("ab*[].?\\", max_size=5), min_size=1, max_size=8), st.text("ab[].\\", min_size=1, max_size=4))
def test_only_a_star_stands_for_other_characters(names: list[str], pattern: str) -> None:
    labels: Any = Labels(names)
    assert labels.match(pattern).tolist() == [name == pattern for name in names]
    assert labels.match(f"{pattern}*").tolist() == [name.startswith(pattern) for name in names]
    assert labels.match(pattern, part=True).tolist() == [pattern in name for name in names]
