"""Frames: both encodings give back what went in, and bad input is refused with a reason."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twin.errors import InputError
from twin.frames import UNKNOWN_U64, Decoder, Frame, column, decode, encode, parse_line, to_line
from twin.metrics import KINDS, REGISTRY

NAMES = st.lists(
    st.text(st.characters(codec="utf-8", exclude_characters="\n/ \t"), min_size=1), max_size=6, unique=True
)
U64 = st.integers(0, 2**64 - 1)
SOME_METRICS = ("up", "tx_bytes", "rx_bytes", "speed_bits_per_second")


@st.composite
def frames(draw: st.DrawFn) -> Frame:
    names = tuple(draw(NAMES))
    columns = {}
    for metric in draw(st.lists(st.sampled_from(SOME_METRICS), unique=True)):
        whole = draw(st.booleans())
        values = draw(st.lists(U64 if whole else st.floats(), min_size=len(names), max_size=len(names)))
        columns[metric] = np.array(values, dtype=np.uint64 if whole else np.float64)
    return Frame(draw(st.integers(0, 2**62)), draw(st.text(max_size=20)), "port", names, columns)


@given(frames())
def test_binary_form_gives_back_the_frame(frame: Frame) -> None:
    assert decode(encode(frame)) == frame


def test_columns_are_views_on_the_payload() -> None:
    payload = encode(Frame(1, "s", "port", ("a/p0", "a/p1"), {"tx_bytes": np.array([1, 2], np.uint64)}))
    values = decode(payload).columns["tx_bytes"]
    assert not values.flags.owndata
    assert values.ctypes.data % 8 == np.frombuffer(payload, np.uint8).ctypes.data % 8


def test_a_decoder_gives_the_same_names_object_for_the_same_names() -> None:
    decoder = Decoder()
    payload = encode(Frame(1, "s", "port", ("a/p0", "a/p1"), {"up": np.array([1.0, 0.0])}))
    assert decoder.decode(payload).names is decoder.decode(payload).names


@given(st.binary(max_size=200))
def test_random_bytes_are_refused_as_input_errors(payload: bytes) -> None:
    with pytest.raises(InputError):
        decode(payload)


@given(frames(), st.data())
def test_a_cut_or_changed_payload_never_crashes(frame: Frame, data: st.DataObject) -> None:
    payload = bytearray(encode(frame))
    cut = data.draw(st.integers(0, len(payload)))
    for place in data.draw(st.lists(st.integers(0, max(0, cut - 1)), max_size=4)):
        if place < cut:
            payload[place] ^= 0x55
    with contextlib.suppress(InputError):
        decode(bytes(payload[:cut]))


def test_the_text_form_of_the_design_is_read() -> None:
    line = (
        '{"time": 1764547200.0, "source": "n001", "samples": '
        '{"n001/gpu0": {"power_watts": 512.3}, "n001/nic0/p0": {"up": 1, "tx_bytes": 90112}}}'
    )
    gpu, port = parse_line(line)
    assert (gpu.kind, gpu.names, gpu.columns["power_watts"].tolist()) == ("gpu", ("n001/gpu0",), [512.3])
    assert (port.kind, port.time) == ("port", 1764547200 * 10**9)
    assert port.columns["tx_bytes"].dtype == np.uint64


def test_null_and_missing_metrics_are_unknown() -> None:
    (frame,) = parse_line('{"time":1,"source":"s","samples":{"a/p0":{"up":1,"tx_bytes":null},"a/p1":{"tx_bytes":5}}}')
    assert np.isnan(frame.columns["up"][1])
    assert frame.columns["tx_bytes"].tolist() == [int(UNKNOWN_U64), 5]


@given(st.integers(0, 2**33 * 10**6 - 1), st.lists(st.none() | U64.filter(lambda v: v < 2**64 - 1), max_size=4))
def test_text_form_gives_back_time_to_the_microsecond_and_all_64_bits(micros: int, values: list[int | None]) -> None:
    names = tuple(f"s/p{i}" for i in range(len(values)))
    frame = Frame(micros * 1000, "s", "port", names, {"tx_bytes": column(values, counter=True)})
    back = parse_line(to_line(frame))
    if values:
        assert abs(back[0].time - frame.time) < 2000
        assert back[0].names == names
        got = back[0].columns.get("tx_bytes", column([None] * len(values), counter=True))
        assert got.tolist() == frame.columns["tx_bytes"].tolist()


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("", "not a text frame"),
        ("{", "not a text frame"),
        ('{"time":"x","source":"s","samples":{}}', "time"),
        ('{"time":-1,"source":"s","samples":{}}', "seconds since the epoch"),
        ('{"time":1,"source":"s","samples":{"a/p0":{"tx_byte":1}}}', "no metric 'tx_byte'"),
        ('{"time":1,"source":"s","samples":{"a/p0":{"up":"yes"}}}', "got `str`"),
        ('{"time":1,"source":"s","kind":"bus","samples":{}}', "unknown kind 'bus'"),
        ('{"time":1,"source":"s","samples":{},"extra":1}', "extra"),
    ],
)
def test_a_broken_line_says_what_is_wrong(line: str, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        parse_line(line)


def test_every_metric_has_a_known_kind_and_each_is_listed_once() -> None:
    assert {m.kind for m in REGISTRY.values()} <= set(KINDS)
    assert all(m.help and m.unit for m in REGISTRY.values())
