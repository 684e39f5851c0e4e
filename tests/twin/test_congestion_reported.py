"""Reported and derived situations of congestion, rewritten in our own forms, with the verdict that was right."""

from __future__ import annotations

import numpy as np
import pytest

from tests.twin.counting import Counting, told
from twin.topology.model import Topology
from twin.topology.wiring import read_wiring
from twin.xmitwait import bytes_a_tick, model_bytes_a_tick
from twin.yamlfile import Document


def star(model: str = "", speed: str = "400G", hosts: int = 4) -> Topology:
    """Hosts with one port each at one leaf."""
    text = "name: star\nplanes: [A]\nnodes:\n"
    text += "".join(f"  - {{name: h{i}, gpus: 1, nics: 1}}\n" for i in range(hosts))
    text += f"switches:\n  - {{name: leaf, tier: leaf, plane: A{f', model: {model}' if model else ''}}}\nlinks:\n"
    text += "".join(f"  - {{a: h{i}/nic0/p0, b: leaf/p{i}, speed: {speed}}}\n" for i in range(hosts))
    return read_wiring(Document("case.yaml", text))


def pair() -> Topology:
    text = (
        "name: pair\nnodes:\n  - {name: a, gpus: 1, nics: 1}\n  - {name: b, gpus: 1, nics: 1}\n"
        "links:\n  - {a: a/nic0/p0, b: b/nic0/p0, speed: 400G}\n"
    )
    return read_wiring(Document("case.yaml", text))


# --- PortXmitWait to lost bandwidth (ibdiagnet user manual; UFM's event at 10 %) --------------------


@pytest.mark.parametrize(
    ("model", "speed", "increase", "lost", "share", "congested"),
    [
        ("mqm9700", 400e9, 3_750_000_000, 48e9, 0.12, True),
        ("msb7800", 100e9, 40_000_000, 8.192e9, 0.08192, False),
        ("mqm9700", 400e9, 41_864_608, 0.5359e9, 0.00134, False),
    ],
)
def test_ticks_of_waiting_are_lost_bandwidth_by_the_generation_of_the_switch(
    model: str, speed: float, increase: int, lost: float, share: float, congested: bool
) -> None:
    per_second = increase / 5 * model_bytes_a_tick(model) * 8
    assert per_second == pytest.approx(lost, rel=1e-3) and per_second / speed == pytest.approx(share, rel=1e-2)
    hand = Counting(star(model, f"{speed / 1e9:.0f}G"), interval=5.0)
    hand.set("tx_wait_ticks", increase / 5, "leaf/p2", others=0.0)
    hand.run(150)
    incidents = hand.finish()
    assert told(incidents) == ([("congestion", "slow_receiver", "h2/nic0/p0")] if congested else [])
    if congested:
        assert incidents[0].effect["lost_bits_per_second"] == pytest.approx(48e9, rel=1e-6)
        assert incidents[0].effect["waiting_fraction"] == pytest.approx(0.12)


def test_ports_of_unknown_generation_are_judged_by_their_peers_and_their_own_past() -> None:
    hand = Counting(star(hosts=8))
    assert np.isnan(bytes_a_tick(hand.topo)).all()
    hand.set("tx_wait_ticks", 2.5e9)  # all the same: 40 % if the ticks were a Quantum's, but who knows
    hand.run(60)
    hand.set("tx_wait_ticks", 2.5e7)
    hand.run(200)
    hand.set("tx_wait_ticks", 2.5e9, "leaf/p2")
    hand.run(220)
    assert told(hand.finish()) == [("congestion", "slow_receiver", "h2/nic0/p0")]


def test_data_counted_in_words_of_four_bytes_is_the_load_whatever_the_lanes() -> None:
    """2.8e9 words a second on a 2X HDR port of 100G are 89.6 Gb/s (infiniband_exporter issue 33)."""
    hand = Counting(star("mqm8700", "100G"))
    hand.set("tx_bytes", 4 * 2_800_000_000, "h0/nic0/p0", others=0.0)
    hand.run(5)
    hand.finish()
    snapshot = hand.twin.snapshot()
    assert snapshot.port["tx_bytes"][hand.topo.rows("port")["h0/nic0/p0"]] * 8 == pytest.approx(89.6e9)
    assert snapshot.link_load[0] == pytest.approx(0.896)


# --- paused without drops (daqiri issue 250) -----------------------------------------------------


def test_a_port_that_its_peer_pauses_is_throttled_by_the_peer() -> None:
    hand = Counting(pair())
    hand.set("tx_bytes", 308e9 / 8, "a/nic0/p0", others=0.0)
    hand.set("rx_pause_seconds", 0.217, "a/nic0/p0", others=0.0)
    hand.set("tx_discards", 0.0)
    hand.run(25)
    (incident,) = hand.finish()
    assert told([incident]) == [("congestion", "slow_receiver", "b/nic0/p0")]
    assert "takes only 308G of 400G" in incident.summary and incident.victims == ("a",)


def test_a_port_that_pauses_its_peer_is_on_a_host_that_cannot_drain() -> None:
    hand = Counting(star(), unread=("leaf",))
    hand.set("rx_bytes", 308e9 / 8, "h1/nic0/p0", others=0.0)
    hand.set("tx_pause_seconds", 0.217, "h1/nic0/p0", others=0.0)
    hand.run(25)
    (incident,) = hand.finish()
    assert told([incident]) == [("congestion", "slow_receiver", "h1/nic0/p0")]
    assert "PCIe" in incident.advice and "h1" in incident.advice


def test_what_lies_behind_a_switch_that_is_not_read_is_said_to_be_unknown() -> None:
    hand = Counting(star(), unread=("leaf",))
    hand.set("tx_bytes", 308e9 / 8, "h1/nic0/p0", others=0.0)
    hand.set("rx_pause_seconds", 0.217, "h1/nic0/p0", others=0.0)
    hand.run(25)
    (incident,) = hand.finish()
    assert incident.cause == "h1/nic0/p0" and "throttles h1/nic0/p0" in incident.summary
    assert "not at h1/nic0/p0" in incident.advice and "not read" in incident.advice


def test_a_lifetime_of_pause_that_does_not_grow_means_nothing() -> None:
    hand = Counting(star())
    hand.set("tx_bytes", 390e9 / 8)
    hand.set("rx_pause_seconds", 0.0)
    hand.jump("rx_pause_seconds", 132e6, "h0/nic0/p0", "leaf/p0")
    hand.run(30)
    assert hand.finish() == []


# --- XOFF that turns into XON (sonic-swss issue 4581) ---------------------------------------------


@pytest.mark.parametrize(("storm", "raised"), [(0.4, False), (8.0, True)])
def test_a_storm_is_over_when_the_time_paused_is_though_frames_of_pause_go_on(storm: float, raised: bool) -> None:
    hand = Counting(star(), interval=0.2)
    hand.set("tx_bytes", 100e9 / 8)
    hand.set("tx_packets", 3e6)
    hand.set("rx_pause_seconds", 0.0)
    hand.run(10)
    for metric, rate in (("rx_pause_seconds", 1.0), ("tx_bytes", 0.0), ("tx_packets", 0.0)):
        hand.set(metric, rate, "leaf/p1")
    hand.run(10 + storm)
    for metric, rate in (("rx_pause_seconds", 0.0), ("tx_bytes", 100e9 / 8), ("tx_packets", 3e6)):
        hand.set(metric, rate, "leaf/p1")
    hand.run(30 + storm)
    incidents = hand.finish()
    assert told(incidents) == ([("congestion", "pause_storm", "h1/nic0/p0")] if raised else [])
    assert all(i.resolved is not None for i in incidents)


# --- counters that begin anew (sonic-utilities issue 516), and those that are full -----------------


def test_a_switch_that_restarts_and_reports_absurd_counters_is_not_congested() -> None:
    hand = Counting(star("mqm9700"), interval=10.0)
    mine = tuple(f"leaf/p{i}" for i in range(4))
    hand.set("tx_bytes", 240e9 / 8)
    for metric in ("tx_wait_ticks", "tx_discards"):
        hand.set(metric, 0.0)
    hand.run(60)
    for value in (1.0, 3e14):
        for metric in ("tx_bytes", "tx_wait_ticks", "tx_discards"):
            hand.jump(metric, value, *mine)
        hand.run(hand.time + 10)
    hand.run(150)
    assert told(hand.finish()) == []
    row = hand.topo.rows("port")["leaf/p1"]
    assert hand.twin.snapshot().port["tx_bytes"][row] * 8 == pytest.approx(240e9)


def test_counters_at_their_limit_are_unknown_and_that_is_said_once() -> None:
    """LinkDowned of 8 bits, SymbolError of 16, XmitWait of 32 (infiniband-exporter issue 12)."""
    hand = Counting(star("mqm9700"), interval=30.0)
    for metric, limit in (("link_downed", 255), ("symbol_errors", 65535), ("tx_wait_ticks", 4294967295)):
        hand.set(metric, 0.0)
        hand.jump(metric, limit, "leaf/p3")
    hand.run(300)
    (incident,) = hand.finish()
    assert (incident.kind, incident.cause, incident.severity) == ("telemetry_stale", "leaf/p3", "info")
    assert "3 counters of 1 port" in incident.summary and "unknown, not zero" in incident.summary
    row = hand.topo.rows("port")["leaf/p3"]
    assert all(np.isnan(hand.twin.snapshot().port[m][row]) for m in ("link_downed", "symbol_errors", "tx_wait_ticks"))


def test_a_counter_that_fills_up_does_not_clear_what_it_showed() -> None:
    hand = Counting(star("mqm9700"))
    hand.set("tx_wait_ticks", 0.0)
    hand.run(10)
    hand.set("tx_wait_ticks", 3e8 * 8, "leaf/p1")
    hand.run(20)
    hand.set("tx_wait_ticks", 0.0, "leaf/p1")
    hand.jump("tx_wait_ticks", 4294967295, "leaf/p1")
    hand.run(60)
    found = [i for i in hand.finish() if i.kind == "congestion"]
    assert told(found) == [("congestion", "slow_receiver", "h1/nic0/p0")] and found[0].is_open


# --- drops ----------------------------------------------------------------------------------------


def test_a_host_that_drops_at_its_input_for_lack_of_buffers_cannot_drain() -> None:
    hand = Counting(star())
    hand.set("rx_bytes", 300e9 / 8, "h1/nic0/p0", others=0.0)
    hand.set("rx_discards", 20_000.0, "h1/nic0/p0", others=0.0)
    hand.run(15)
    assert told(hand.finish()) == [("congestion", "slow_receiver", "h1/nic0/p0")]


def test_a_full_port_that_drops_what_many_send_is_an_incast() -> None:
    hand = Counting(star())
    hand.set("tx_bytes", 395e9 / 8, "leaf/p1", others=10e9)
    hand.set("tx_discards", 5_000.0, "leaf/p1", others=0.0)
    hand.run(15)
    assert told(hand.finish()) == [("congestion", "incast", "h1/nic0/p0")]


def test_a_few_drops_are_not_congestion() -> None:
    hand = Counting(star())
    hand.set("tx_bytes", 395e9 / 8)
    hand.set("tx_discards", 50.0)
    hand.run(60)
    assert hand.finish() == []
