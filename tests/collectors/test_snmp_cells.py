"""What cells mean, whatever they hold; and what a site file may say of SNMP."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from collectors.base import CollectorError
from collectors.build import build
from collectors.snmp import parse_target
from collectors.snmp.agent import Agent, Login, repetitions
from collectors.snmp.interfaces import COUNTER_COLUMNS, COUNTERS, counters, speeds, text, unsigned, ups
from twin.errors import InputError, MissingLibrary
from twin.frames import UNKNOWN_U64
from twin.site import Site, load_site

ODD = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.integers(0, 2**64), st.floats(), st.binary(max_size=9),
    st.text(max_size=9),
)  # fmt: skip
INDEX = st.sampled_from([str(i) for i in range(8)])
COLUMN = st.dictionaries(INDEX, ODD)
ROWS = [str(i) for i in range(10)] + [""]


def number(cell: object, limit: int = 2**64 - 1) -> int | None:
    """Known where it is a whole number below the limit, by other means than the code under test."""
    return cell if isinstance(cell, int) and not isinstance(cell, bool) and cell in range(limit) else None


@given(COLUMN)
def test_a_column_holds_what_the_cells_say_or_unknown(cells: dict[str, object]) -> None:
    said = unsigned(cells, ROWS)  # type: ignore[arg-type]
    assert (said.dtype, said.shape) == (np.uint64, (len(ROWS),))
    for index, value in zip(ROWS, said.tolist(), strict=True):
        known = number(cells.get(index))
        assert value == (int(UNKNOWN_U64) if known is None else known)


@given(st.dictionaries(st.sampled_from(COUNTER_COLUMNS), COLUMN))
def test_a_sum_is_that_of_all_its_parts_or_unknown(columns: dict[str, dict[str, object]]) -> None:
    said = counters(columns, ROWS)  # type: ignore[arg-type]
    assert set(said) == set(COUNTERS)
    for metric, parts in COUNTERS.items():
        for index, value in zip(ROWS, said[metric].tolist(), strict=True):
            known = [number(columns.get(part, {}).get(index)) for part in parts]
            wanted = None if None in known else sum(n for n in known if n is not None) % 2**64
            assert value == (int(UNKNOWN_U64) if wanted is None else wanted)


@given(COLUMN)
def test_states_and_speeds_are_plain_numbers_or_unknown(cells: dict[str, object]) -> None:
    for index, up, speed in zip(ROWS, ups(cells, ROWS), speeds(cells, ROWS), strict=True):  # type: ignore[arg-type]
        said = number(cells.get(index))
        assert up == 1 if said == 1 else up == 0 if said in (2, 3, 5, 6, 7) else np.isnan(up)
        assert speed == said * 1e6 if said is not None and 0 < said < 2**32 - 1 else np.isnan(speed)


@given(ODD)
def test_a_name_is_text_without_what_surrounds_it(cell: object) -> None:
    assert text(cell) == text(cell).strip()  # type: ignore[arg-type]
    assert text(cell) == "" or isinstance(cell, bytes)  # type: ignore[arg-type]


def test_a_name_that_ends_with_a_zero_byte_is_the_name_without_it() -> None:
    assert text(b"Eth1/1\0") == "Eth1/1"


@given(st.integers(1, 5000), st.integers(1, 100))
def test_all_rows_are_asked_for_in_the_fewest_requests(rows: int, most: int) -> None:
    at_once = repetitions(rows, most)
    assert 1 <= at_once <= most
    assert -(-rows // at_once) == -(-rows // most)


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("leaf-1", ("leaf-1", 161)),
        ("leaf-1.example:1161", ("leaf-1.example", 1161)),
        ("10.0.0.1", ("10.0.0.1", 161)),
        ("10.0.0.1:1161", ("10.0.0.1", 1161)),
        ("::1", ("::1", 161)),
        ("2001:db8::5", ("2001:db8::5", 161)),
        ("[::1]:1161", ("::1", 1161)),
        ("[::1]", ("::1", 161)),
    ],
)
def test_a_target_is_a_host_and_perhaps_a_port(said: str, meant: tuple[str, int]) -> None:
    assert parse_target(said) == meant


@given(st.text(max_size=20))
def test_any_other_target_is_refused_with_what_was_expected(said: str) -> None:
    try:
        host, port = parse_target(said)
    except InputError as problem:
        assert "expected host or host:port" in str(problem)
    else:
        assert host in said and 0 < port < 65536


@pytest.mark.parametrize("said", ["", ":161", "a:b", "a:0", "a:65536", "a:1:2", "http://a", "[::1", "a b"])
def test_a_wrong_target_is_refused(said: str) -> None:
    with pytest.raises(InputError, match="expected host or host:port"):
        parse_target(said)


def site(tmp_path: Path, **options: object) -> Site:
    (tmp_path / "community").write_text("secret\n")
    (tmp_path / "key").write_text("long-enough")
    (tmp_path / "short").write_text("short")
    path = tmp_path / "site.yaml"
    path.write_text(
        yaml.safe_dump({"topology": {"preset": "b300-superpod-ethernet"}, "collectors": [{"snmp": options}]})
    )
    return load_site(path)


KEPT = {"file": "community"}


def test_a_site_gives_a_collector_for_each_switch(tmp_path: Path) -> None:
    targets = {"A-leaf-00": "10.0.0.1", "B-leaf-01": "sw:1161"}
    made = build(site(tmp_path, targets=targets, community=KEPT, every="2s", deadline="4s"))
    assert [(c.name, c.interval, c.deadline) for c in made] == [("snmp:A-leaf-00", 2, 4), ("snmp:B-leaf-01", 2, 4)]


def test_every_mistake_of_a_site_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(InputError) as refused:
        build(site(tmp_path, targets={"nowhere": "a:b:c"}))
    problems = "\n".join(refused.value.problems)
    assert "'nowhere' is no switch" in problems and "'a:b:c'" in problems and "needs a community" in problems
    with pytest.raises(InputError) as refused:
        build(
            site(
                tmp_path, targets={"A-leaf-00": "a"}, version=3, user="u",
                auth={"protocol": "sha", "key": {"file": "short"}}, priv={"protocol": "aes", "key": {"file": "none"}},
            )
        )  # fmt: skip
    short, missing = refused.value.problems
    assert short == "collectors: snmp: the key of auth is too short: expected at least 8 characters"
    assert missing.startswith("collectors: snmp: the key of priv: ") and "none" in missing


def test_a_missing_library_is_told_with_what_brings_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gufo.snmp.aio", None)
    with pytest.raises(MissingLibrary, match=r"pip install 'fabrictwin\[snmp\]'"):
        build(site(tmp_path, targets={"A-leaf-00": "a"}, community=KEPT))


async def test_an_agent_that_answers_in_circles_is_told_so_and_not_followed() -> None:
    class Circle:
        async def getbulk(self, column: str, at_once: int) -> AsyncIterator[tuple[str, int]]:
            while True:
                for index in (1, 2, 3):
                    yield f"{column}.{index}", 0

    agent = Agent("10.0.0.1", 161, Login(community="c"))
    agent._session = Circle()  # type: ignore[assignment]
    with pytest.raises(CollectorError, match=r"10.0.0.1:161 answers in circles: 1\.3\.1 came twice"):
        await agent.walk("1.3")


def test_secrets_are_not_shown() -> None:
    shown = repr(Login(community="secret", user="u", auth=("sha", "secret"), priv=("aes", "secret")))
    assert "secret" not in shown and "'u'" in shown
