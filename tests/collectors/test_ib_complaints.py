"""What the tools say on standard error tells the silent from the absent."""

from __future__ import annotations

from pathlib import Path

from twin.ibtools.complaints import Complaints, FailedQuery, Unreachable, parse
from twin.ibtools.dump import MAX_WARNINGS

FIXTURES = Path(__file__).parents[1] / "fixtures" / "ib"


def test_complaints_are_sorted() -> None:
    """Silent paths, failed queries, a missing subnet manager and the reason to give up are told apart."""
    found = parse((FIXTURES / "odd.stderr.txt").read_bytes())
    assert found.unreachable == [
        Unreachable("0,1,5,3,1", "110; Connection timed out", 0x11),
        Unreachable("0,1,20", "0x1c", 0x15),
        Unreachable("Lid 40", "110; Connection timed out", 0xFF90),
        Unreachable("Lid 9", "no reply"),
    ]
    assert found.failed == [
        FailedQuery("classportinfo", "node-05, rack 3 mlx5_0", 9, 1),
        FailedQuery("IB_GSI_PORT_COUNTERS_EXT", "MF0;leaf:MQM9700/U1", 1, 12),
    ]
    assert found.no_subnet_manager
    assert found.fatal == "Failed to open port; (null):0"
    assert len(found.other) == 1
    assert "ib_umad" in found.other[0]


def test_nothing_to_say_is_no_error() -> None:
    assert parse("") == Complaints()
    assert parse(b"\n\n") == Complaints()


def test_the_rest_is_bounded() -> None:
    """Endless complaints of a kind not known do not fill the memory."""
    assert len(parse("who knows\n" * 1000).other) == MAX_WARNINGS
