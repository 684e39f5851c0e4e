"""No text makes a parser of the InfiniBand tools fail otherwise than by `DumpError`, or take long."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from twin.ibtools import complaints, linkinfo, netdiscover, perfquery, queryerrors
from twin.ibtools.dump import DumpError

FIXTURES = Path(__file__).parents[1] / "fixtures" / "ib"
PARSERS: dict[str, Callable[[str | bytes], object]] = {
    "netdiscover": netdiscover.parse,
    "netdiscover-topology": netdiscover.parse_topology,
    "netdiscover-ports": netdiscover.parse_ports,
    "linkinfo": linkinfo.parse,
    "queryerrors": queryerrors.parse,
    "perfquery": perfquery.parse,
    "complaints": complaints.parse,
}
DUMPS = [path.read_bytes() for path in sorted(FIXTURES.glob("*.txt"))]
each_parser = pytest.mark.parametrize("parser", PARSERS.values(), ids=PARSERS.keys())
patient = settings(deadline=timedelta(seconds=5), suppress_health_check=[HealthCheck.too_slow])

pieces = st.one_of(
    st.binary(max_size=20),
    st.text(max_size=20).map(lambda text: text.encode("utf-8", "surrogatepass")),
    st.sampled_from(
        [b'"', b"'", b"\n", b"[", b"](", b" ", b"\t", b"0x", b"/", b"9" * 30, b"#", b"\0", b"==(", b"\xff"]
    ),
)


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """An output of one of the tools in which parts are cut out, doubled, overwritten or filled in."""
    dump = draw(st.sampled_from(DUMPS))
    for _ in range(draw(st.integers(1, 6))):
        start = draw(st.integers(0, len(dump)))
        end = min(len(dump), start + draw(st.integers(0, 300)))
        dump = dump[:start] + draw(st.one_of(pieces, st.just(dump[start:end] * 2))) + dump[end:]
    return dump


@each_parser
@patient
@given(dump=damaged())
def test_damaged_output_is_read_or_refused(parser: Callable[[str | bytes], object], dump: bytes) -> None:
    """What is left of a damaged output is read; where nothing is left, the error says so with a line."""
    read_or_refuse(parser, dump)


@each_parser
@patient
@given(dump=st.one_of(st.text(), st.binary(), st.lists(pieces).map(b"".join)))
def test_any_text_is_read_or_refused(parser: Callable[[str | bytes], object], dump: str | bytes) -> None:
    read_or_refuse(parser, dump)


@each_parser
def test_no_pattern_takes_long(parser: Callable[[str | bytes], object]) -> None:
    """Lines made to send a pattern back and forth are done with in a moment, as are lines without end."""
    evil = [
        '[1]\t"S-1"[1]' + " " * 4000 + "x",
        '[1]\t"S-1"[1]\t\t#' + ' "x" lid 1' * 400 + " 4y",
        'Switch\t8 "S-1"' + ' # "' * 1000,
        "CA 1 1 0x1 4x HDR - SW 1 1 0x1 ( '" + "' - '" * 800,
        '0x1 "' + '" 1 1[ ] ==(' * 340,
        '0x1 "x" 1 1[  ] ==(' + " " * 4000 + ")==>",
        '0x1 "x" 1 1[  ] ==( 4X 1 Gbps Active/ LinkUp)==> 0x1 1 1[  ] ' + '"a" (b) ' * 500 + "x",
        "   GUID 0x1 port 1:" + " [A == 1 (" * 400,
        "## Thresholds: " + "[A = " * 800,
        "ibwarn: [1] a: b query failed on " + ", DR path " * 400,
        "ibwarn: " + "_do_madrpc failed; dport (DR path " * 120,
        "umad (DR path slid 0; dlid 0; " * 130,
        "# " + "a " * 2000 + "counters: Lid 1",
        "x" * 1_000_000,
    ]
    start = time.process_time()
    for line in evil:
        for dump in (line, "\n".join([line] * 20)):
            read_or_refuse(parser, dump)
    assert time.process_time() - start < 5


def read_or_refuse(parser: Callable[[str | bytes], object], dump: str | bytes) -> None:
    try:
        parser(dump)
    except DumpError as error:
        assert error.line >= 1
        assert f"line {error.line}: " in str(error)
