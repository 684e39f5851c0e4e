"""Our own frames and statuses as messages hold them, and whatever else may come in their place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collectors.mqtt.inbox import Message
from collectors.mqtt.payload import FrameReader
from collectors.mqtt.status import Status, encode_status
from twin.frames import NS, Frame, decode, encode, to_line

NOW = 1_764_547_200 * NS
STATUS_TOPIC = "fabrictwin/v1/site/pod0/n000/STATUS"


def port_frame(**changes: Any) -> Frame:
    base = {"time": NOW, "source": "n000", "kind": "port", "names": ("n000/nic0/p0",), "columns": {"up": np.ones(1)}}
    return Frame(**{**base, **changes})


def test_what_an_agent_says_of_its_sources_is_told_anew_by_our_clock_and_in_our_name() -> None:
    read = FrameReader("mqtt:broker")
    columns = {"up": np.array([1.0, 0.0]), "failures": np.array([0.0, 3.0]), "clock_offset_seconds": np.zeros(2)}
    said = Frame(NOW + 10**15, "fabrictwin", "source", ("n000", "n000:nvml"), columns)
    assert read.take(Message("t", encode(said)), NOW) == []
    (frame,) = read.frames()
    assert (frame.time, frame.source, frame.names) == (NOW, "mqtt:broker", said.names)
    assert list(frame.columns) == ["up", "failures"], "its clock was measured against another one"


def test_a_status_says_of_every_source_whether_it_is_there_and_how_often_it_reports() -> None:
    read = FrameReader("mqtt:broker")
    for state in ("online", "offline"):
        status = encode_status(Status(state, "n000", {"n000": 1.0, "n000:nvml": 2.0}))  # type: ignore[arg-type]
        assert read.take(Message(STATUS_TOPIC, status, retained=True), NOW) == []
    online, offline = read.frames()
    assert [c.tolist() for c in online.columns.values()] == [[1, 1], [1, 2], [0, 0]]
    assert [c.tolist() for c in offline.columns.values()] == [[0, 0], [1, 2], [2, 2]]
    assert (online.time, online.source, online.kind) == (NOW, "mqtt:broker", "source")


@pytest.mark.parametrize(
    "payload",
    [
        b"FTF1", b"FTF1" + bytes(40), b"nonsense", b"{}", encode(port_frame(source="")), encode(port_frame(time=-1)),
        encode(port_frame(source="fabrictwin")), encode(port_frame(source="a\nb")),
        encode(port_frame(time=2**63 - 1)),
        b'{"time": 1, "source": "s", "samples": {"a\\nb/nic0/p0": {"up": 1}}}',
    ],
)  # fmt: skip
def test_a_frame_that_cannot_be_used_is_one_problem(payload: bytes) -> None:
    read = FrameReader("mqtt:broker")
    assert len(read.take(Message("t", payload), NOW)) == 1
    assert read.frames() == []


@pytest.mark.parametrize(
    "payload", [b"gone", b'{"state": "maybe"}', b'{"state":"online","node":"n","sources":{"":1}}']
)
def test_a_status_that_is_none_is_one_problem(payload: bytes) -> None:
    read = FrameReader("mqtt:broker")
    assert len(read.take(Message(STATUS_TOPIC, payload), NOW)) == 1
    assert read.take(Message(STATUS_TOPIC, b""), NOW) == [] == read.frames(), "an empty one only takes it back"


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_mutated_frames_never_crash_and_what_comes_through_can_be_recorded(data: st.DataObject) -> None:
    good: Mapping[str, bytes] = {
        "binary": encode(port_frame(columns={"up": np.ones(1), "tx_bytes": np.array([7], np.uint64)})),
        "text": to_line(port_frame()).encode(),
    }
    payload = bytearray(good[data.draw(st.sampled_from(sorted(good)))])
    for _ in range(data.draw(st.integers(0, 3))):
        at = data.draw(st.integers(0, len(payload) - 1))
        payload[at : at + data.draw(st.integers(0, 4))] = data.draw(st.binary(max_size=4))
    read = FrameReader("mqtt:broker")
    read.take(Message("t", bytes(payload)), NOW)
    for frame in read.frames():
        assert frame.time >= 0 and frame.source.isprintable()
        assert decode(encode(frame)) == frame


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=120), st.booleans())
def test_any_bytes_are_frames_or_told(payload: bytes, binary: bool) -> None:
    read = FrameReader("mqtt:broker")
    problems = read.take(Message("t", (b"FTF1" if binary else b"") + payload), NOW)
    assert problems or not payload.strip() or read.frames()
