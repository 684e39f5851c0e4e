"""InfluxDB line protocol, exactly, and whatever else may come in its place."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from collectors.mqtt import lineprotocol, telegraf
from collectors.mqtt.record import Record
from twin.frames import NS

NOW = 1_764_547_200 * NS


@pytest.mark.parametrize(
    ("text", "record"),
    [
        ("net,host=n0 a=1i 1764547200000000001", Record("net", {"host": "n0"}, {"a": 1}, NOW + 1)),
        ("m a=-5i,b=18446744073709551615u", Record("m", {}, {"a": -5, "b": 2**64 - 1}, None)),
        ("m a=1,b=-1.5e3,c=.5,d=2.", Record("m", {}, {"a": 1.0, "b": -1500.0, "c": 0.5, "d": 2.0}, None)),
        ("m a=t,b=F,c=true,d=FALSE", Record("m", {}, {"a": True, "b": False, "c": True, "d": False}, None)),
        (
            r'my\ m\,x,a\ tag=va\=l\,ue,b=c\d f\ 1="with \"quotes\", = and \\",g=1i 7',
            Record("my m,x", {"a tag": "va=l,ue", "b": r"c\d"}, {"f 1": r'with "quotes", = and \ '[:-1], "g": 1}, 7),
        ),
        ('m s="two\nlines",i=3i 9', Record("m", {}, {"s": "two\nlines", "i": 3}, 9)),
        ('m s="" 9', Record("m", {}, {"s": ""}, 9)),
        ("mé,h=ü f=1i", Record("mé", {"h": "ü"}, {"f": 1}, None)),
    ],
)
def test_a_line_is_read_exactly(text: str, record: Record) -> None:
    assert lineprotocol.parse(text.encode()) == ([record], [])


@pytest.mark.parametrize(
    "text",
    [
        "m", "m ", "m,t=1", "m a", "m a=", "m a=1x", "m a=1i2", "m a=9223372036854775808i", "m a=-1u", "m,t= a=1",
        "m a=18446744073709551616u", "m a=nan", "m a=1e999", "m a=inf", 'm a="open', "m a=1 12:30", "m a=1 -5",
        "m a=1 99999999999999999999", "m a=1 9999999999999999999", "m a=1_000i", "m a=1,", "m a=0x10", ",t=1 a=1",
        "m a=" + "1" * 500,
    ],
)  # fmt: skip
def test_a_line_that_is_none_is_told_and_the_next_one_is_read(text: str) -> None:
    records, problems = lineprotocol.parse(f"{text}\nok v=2i 5\n".encode())
    assert records[-1:] == [Record("ok", {}, {"v": 2}, 5)] or text.count('"') == 1
    assert len(problems) >= 1 and all("\n" not in p and p.startswith("not line protocol") for p in problems)


def test_comments_and_empty_lines_are_skipped() -> None:
    text = b"# a=1 comment\r\n\n  \nm a=1i 5\r\n#"
    assert lineprotocol.parse(text) == ([Record("m", {}, {"a": 1}, 5)], [])


NAMES = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=8).filter(
    lambda s: "\\" not in s
)
TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)
FIELDS = st.one_of(
    st.integers(-(2**63), 2**63 - 1), st.booleans(), st.floats(allow_nan=False, allow_infinity=False), TEXTS
)


def written(record: Record) -> str:
    def escaped(name: str, characters: str) -> str:
        return "".join("\\" + c if c in characters else c for c in name)

    def value(v: Any) -> str:
        if isinstance(v, str):
            return '"' + v.replace("\\", "\\\\").replace('"', '\\"') + '"'
        return str(v) if isinstance(v, bool) else f"{v}i" if isinstance(v, int) else repr(v)

    tags = "".join(f",{escaped(k, ',= ')}={escaped(v, ',= ')}" for k, v in record.tags.items())
    fields = ",".join(f"{escaped(k, ',= ')}={value(v)}" for k, v in record.fields.items())
    time = "" if record.time is None else f" {record.time}"
    return f"{escaped(record.measurement, ', ')}{tags} {fields}{time}"


RECORDS = st.builds(
    Record,
    NAMES.filter(lambda n: not n.startswith("#") and n.strip() == n),
    st.dictionaries(NAMES, NAMES, max_size=3),
    st.dictionaries(NAMES, FIELDS, min_size=1, max_size=4),
    st.none() | st.integers(1, 2**62),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(RECORDS, max_size=4))
def test_what_is_written_as_line_protocol_is_read_back(records: list[Record]) -> None:
    text = "\n".join(map(written, records))
    assert lineprotocol.parse(text.encode()) == (records, [])


NUMBER = re.compile(rb"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
GOOD_LINE = rb'net,host=n\ 0,interface=eth0 bytes_sent=12345i,s="a \"b\" \\",f=1.5,t=true,u=7u 1764547200000000000'


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_mutated_lines_never_crash_and_keep_their_numbers(data: st.DataObject) -> None:
    changed = bytearray(GOOD_LINE + b"\n" + GOOD_LINE)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(changed) - 1))
        changed[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    records, problems = lineprotocol.parse(bytes(changed))
    for record in records:
        for value in record.fields.values():
            if isinstance(value, int) and not isinstance(value, bool):
                assert b"%d" % abs(value) in changed
            elif isinstance(value, float):
                assert value in [float(n) for n in NUMBER.findall(changed)]
        assert record.time is None or b"%d" % record.time in changed
    assert all(p.isprintable() for p in problems)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200))
@example(b"\\" * 5000)
@example(b"a," * 5000)
@example(b'm a="' + b'\\"' * 5000)
@example(b"m " + b"a=1," * 5000)
def test_any_bytes_are_records_or_told(payload: bytes) -> None:
    for parse in (lineprotocol.parse, telegraf.parse):
        records, problems = parse(payload)
        assert all(isinstance(r, Record) for r in records) and all(isinstance(p, str) for p in problems)
