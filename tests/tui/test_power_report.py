"""What `check --json` says of power."""

from __future__ import annotations

from tests.twin.power_fabric import Meters, read
from tui.commands.check import _power


def test_racks_feeds_and_the_site_are_listed_and_unknown_is_null() -> None:
    meters = Meters(read())
    meters.set("feed", "power_watts", {"r0/feedA": 22e3, "r0/feedB": 20e3})
    meters.run(5)
    meters.twin.finish()
    rows = {row["name"]: row for row in _power(meters.twin.snapshot().power)}
    assert list(rows) == ["r0", "r1", "r0/feedA", "r0/feedB", "r1/feedA", "r1/feedB", "site"]
    assert rows["r0"] == {
        "name": "r0", "kind": "rack", "watts": 42e3, "capacity_watts": 120e3, "headroom_watts": 78e3,
        "headroom_after_loss_watts": 18e3, "lost": 0,
    }  # fmt: skip
    assert rows["r1"]["watts"] is None and rows["r1"]["capacity_watts"] == 120e3
    assert rows["site"]["capacity_watts"] is None


def test_a_fabric_of_which_nothing_is_heard_has_no_power_to_report() -> None:
    assert _power(Meters(read()).twin.snapshot().power) == []
