"""`perfquery` is read into a section a port and kind of counters."""

from __future__ import annotations

from pathlib import Path

import pytest

from twin.ibtools.dump import DumpError
from twin.ibtools.perfquery import parse

FIXTURES = Path(__file__).parents[1] / "fixtures" / "ib"
SAMPLES = Path(__file__).parents[3] / "shared" / "samples" / "infiniband-diags"
samples = pytest.mark.skipif(not SAMPLES.exists(), reason="real outputs are not kept beside the repository")


def test_one_section_a_port() -> None:
    """`perfquery -x -l 1 1-8` repeats its heading for each port."""
    found = parse((FIXTURES / "mini.perfquery.txt").read_text())
    assert [(section.lid, section.port) for section in found.sections] == [(1, port) for port in range(1, 9)]
    assert found.sections[0].counters["PortXmitData"] > 10**15
    assert "PortSelect" not in found.sections[0].counters
    assert found.warnings == []


def test_kinds_and_widths_of_counters() -> None:
    """The heading tells the kind, and CapMask2 whether error counters have 64 bits or saturate early."""
    found = parse((FIXTURES / "odd.perfquery.txt").read_text())
    assert [(section.kind, section.port, section.wide_errors) for section in found.sections] == [
        ("Port extended", 1, True),
        ("Port extended", 2, False),
        ("PortRcvErrorDetails", 2, False),
        ("Port", 3, False),
    ]
    assert found.sections[0].counters["PortRcvData"] == 2**64 - 1
    assert found.sections[2].counters == {"PortLocalPhysicalErrors": 9}
    assert found.sections[3].counters == {"SymbolErrorCounter": 65535}
    assert [warning.split(":")[0] for warning in found.warnings] == ["line 11"]


def test_numbers_are_decimal_unless_they_say_otherwise() -> None:
    """A leading zero is no octal, and some counters are printed in hexadecimal."""
    found = parse("# Port counters: Lid 7 port 3 (CapMask: 0x1200)\nVL15Dropped:....0070\nOther:....0x1f\n")
    assert found.sections[0].counters == {"VL15Dropped": 70, "Other": 31}


@pytest.mark.parametrize("dump", ["", "PortXmitData:....1\n", "perfquery: iberror: failed: classportinfo query\n"])
def test_what_has_no_heading_is_an_error(dump: str) -> None:
    """Counters of nobody are not read."""
    with pytest.raises(DumpError):
        parse(dump)


@samples
def test_real_outputs() -> None:
    """Every real file is read whole; an empty one is an error."""
    for path in sorted(SAMPLES.glob("perfquery*/*.out")):
        if path.stat().st_size:
            found = parse(path.read_bytes())
            assert found.sections, path
            assert found.warnings == [], path
        else:
            with pytest.raises(DumpError):
                parse(path.read_bytes())
    (first, second) = parse((SAMPLES / "perfquery" / "0x7cfe9003009ce5b0.out").read_bytes()).sections
    assert first.counters["PortXmitData"] == 36298026860928
    assert (second.port, second.wide_errors, second.counters["PortXmitWait"]) == (2, True, 36510964)
