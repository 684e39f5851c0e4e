"""The namespace rig is a fabric: what its cables and counters must do before anything is judged on them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator

import pytest

from .netns import NAMESPACES, PLANES, Cable, TwoPlanes, missing_requirements

pytestmark = pytest.mark.service("iproute2", "iperf3")

RATE_MBIT = 50  # low, so that streams fill every cable on a busy machine too
SETTLE = 1.5  # seconds; a stalled stream tries again every second
WINDOW = 1.0


@pytest.fixture
def rig(unavailable: Callable[[str], None]) -> Iterator[TwoPlanes]:
    if missing := missing_requirements():
        unavailable("missing: " + ", ".join(missing))
    with TwoPlanes(rate_mbit=RATE_MBIT) as built:
        yield built


@pytest.fixture
def loaded(rig: TwoPlanes) -> TwoPlanes:
    """The rig with streams between all hosts."""
    rig.start_traffic(seconds=30)
    time.sleep(SETTLE)
    return rig


def read(rig: TwoPlanes, address: str, name: str) -> int:
    node, _, port = address.partition("/")
    return int((rig.sysfs(node) / "class/net" / port.replace("/", "") / name).read_text())


def at_both_ends(rig: TwoPlanes, cables: Iterable[Cable], name: str) -> list[int]:
    return [read(rig, address, name) for cable in cables for address in (cable.a, cable.b)]


def counted(rig: TwoPlanes, plane: str) -> list[int]:
    """Bytes of all ports of a plane, at hosts and switches, both ways."""
    cables = rig.plane_cables(plane)
    return [n for way in ("rx", "tx") for n in at_both_ends(rig, cables, f"statistics/{way}_bytes")]


def received(rig: TwoPlanes) -> dict[str, int]:
    """Bytes that all hosts have received, by plane."""
    name = "statistics/rx_bytes"
    return {p: sum(read(rig, cable.a, name) for cable in rig.plane_cables(p, "host")) for p in PLANES}


def rates_mbit(rig: TwoPlanes) -> dict[str, float]:
    before, start = received(rig), time.monotonic()
    time.sleep(WINDOW)
    after, seconds = received(rig), time.monotonic() - start
    return {plane: (after[plane] - before[plane]) * 8e-6 / seconds for plane in PLANES}


def test_every_port_of_the_wiring_exists_in_its_node_and_has_carrier(rig: TwoPlanes) -> None:
    ports = [address for cable in rig.cables for address in (cable.a, cable.b)]
    assert len(set(ports)) == len(ports) == 2 * len(PLANES) * (4 + 2)
    assert at_both_ends(rig, rig.cables, "carrier") == [1] * len(ports)


def test_the_site_has_the_cables_as_links_with_the_rates_they_are_held_to(rig: TwoPlanes) -> None:
    assert rig.site()["links"] == [
        *({"a": f"h{n}/nic0/p0", "b": f"A-leaf-{n // 2}/p{n % 2}", "speed": "50M"} for n in range(4)),
        *({"a": f"A-leaf-{n}/p2", "b": f"A-spine-0/p{n}", "speed": "100M"} for n in range(2)),
        *({"a": f"h{n}/nic0/p1", "b": f"B-leaf-{n // 2}/p{n % 2}", "speed": "50M"} for n in range(4)),
        *({"a": f"B-leaf-{n}/p2", "b": f"B-spine-0/p{n}", "speed": "100M"} for n in range(2)),
    ]


def test_losing_a_plane_halves_the_throughput_until_it_is_healed(loaded: TwoPlanes) -> None:
    whole = rates_mbit(loaded)
    loaded.cut(loaded.plane_cables("B"))
    time.sleep(SETTLE)
    half = rates_mbit(loaded)
    loaded.heal(loaded.plane_cables("B"))
    time.sleep(SETTLE)
    healed = rates_mbit(loaded)

    total = sum(whole.values())
    assert 0.7 < total / (2 * RATE_MBIT * len(loaded.hosts)) < 1.05
    assert 0.4 < whole["B"] / total < 0.6
    assert 0.4 < sum(half.values()) / total < 0.6
    assert 0.7 < sum(healed.values()) / total < 1.3
    assert 0.3 < healed["B"] / sum(healed.values()) < 0.7


def test_ports_of_a_cut_plane_count_no_more_bytes_while_the_other_plane_does(loaded: TwoPlanes) -> None:
    loaded.cut(loaded.plane_cables("B"))
    before = {plane: counted(loaded, plane) for plane in PLANES}
    time.sleep(WINDOW)
    after = {plane: counted(loaded, plane) for plane in PLANES}
    assert min(before["B"]) > 100_000
    assert after["B"] == before["B"]
    assert all(new > old for new, old in zip(after["A"], before["A"], strict=True))


def test_cut_uplinks_silence_a_plane_whose_host_ports_keep_carrier(loaded: TwoPlanes) -> None:
    loaded.cut(loaded.plane_cables("B", "uplink"))
    time.sleep(SETTLE)
    silent = rates_mbit(loaded)
    assert at_both_ends(loaded, loaded.plane_cables("B", "host"), "carrier") == [1] * 8
    assert silent["B"] < 0.01 * silent["A"]
    loaded.heal(loaded.plane_cables("B", "uplink"))
    time.sleep(SETTLE)
    assert rates_mbit(loaded)["B"] > 0.5 * silent["A"]


def test_a_cut_cable_loses_carrier_at_both_ends_and_both_count_the_change(rig: TwoPlanes) -> None:
    cable = rig.cable("h1/nic0/p1")
    others = [other for other in rig.cables if other is not cable]
    changes = at_both_ends(rig, [cable], "carrier_changes")
    rig.cut([cable])
    assert at_both_ends(rig, [cable], "carrier") == [0, 0]
    assert at_both_ends(rig, [cable], "carrier_changes") == [count + 1 for count in changes]
    assert set(at_both_ends(rig, others, "carrier")) == {1}
    rig.heal([cable])
    assert at_both_ends(rig, [cable], "carrier") == [1, 1]
    assert at_both_ends(rig, [cable], "carrier_changes") == [count + 2 for count in changes]


def test_a_rig_leaves_nothing_behind_even_when_its_user_fails(rig: TwoPlanes) -> None:
    with pytest.raises(ZeroDivisionError), TwoPlanes(hosts=2, rate_mbit=RATE_MBIT) as other:
        traffic = other.start_traffic()
        directory = other.sysfs("h0").parent
        raise ZeroDivisionError
    assert [process.poll() is None for process in (*traffic.servers, *traffic.clients)] == [False, False]
    assert not directory.exists()
    assert not [path for path in NAMESPACES.iterdir() if path.name.startswith(other.prefix)]
    assert len([path for path in NAMESPACES.iterdir() if path.name.startswith(rig.prefix)]) == 11


def test_a_machine_without_the_tools_is_told_which(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert {"tool tc", "tool iperf3"} <= set(missing_requirements.__wrapped__())
