"""Situations that operators reported, rewritten in our own forms, with the verdict that was right."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.twin.by_hand import ByHand, seconds, told
from twin.frames import NS, Frame
from twin.ibtools.netdiscover import parse
from twin.ibtools.speeds import link_rate
from twin.simulator.simulation import EPOCH
from twin.topology.discovery import discover
from twin.topology.drift import cables_of, mistaken_cables
from twin.topology.ibexport import to_ibnetdiscover
from twin.topology.model import Topology
from twin.topology.resolve import resolve
from twin.topology.wiring import read_wiring
from twin.twin import Twin
from twin.yamlfile import Document


def wiring(text: str) -> Topology:
    return read_wiring(Document("case.yaml", text))


def rows(*lines: str) -> str:
    return "".join(f"  - {line}\n" for line in lines)


RAILS, PLANES = range(8), "AB"
HPN = "name: hpn\nplanes: [A, B]\nnodes:\n" + rows(
    *(f"{{name: h{h}, gpus: 8, nics: 8, ports_per_nic: 2}}" for h in range(4))
) + "switches:\n" + rows(
    *(f"{{name: tor{r}{p}, tier: leaf, plane: {p}, ports: 128}}" for r in range(8) for p in "AB"),
    *(f"{{name: agg{p}{k}, tier: spine, plane: {p}, ports: 128}}" for p in "AB" for k in range(2)),
) + "links:\n" + rows(
    *(
        f"{{a: h{h}/nic{r}/p{i}, b: tor{r}{p}/p{h}, speed: 200G}}"
        for h in range(4) for r in RAILS for i, p in enumerate(PLANES)
    ),
    *(
        f"{{a: tor{r}{p}/p{64 + k}, b: agg{p}{k}/p{r}, speed: 400G}}"
        for r in RAILS for p in PLANES for k in range(2)
    ),
)  # fmt: skip


def test_a_dead_tor_of_one_plane_is_one_incident_at_half_rate_for_its_rail() -> None:
    """Dual ToR, dual plane: every host runs on, rail 3 at half rate, nobody is cut off (notes on Alibaba HPN)."""
    hand = ByHand(wiring(HPN))
    hand.run(10)
    hand.up[hand.links("tor3B")] = 0
    hand.silent = {"tor3B"}
    hand.run(20)
    (incident,) = hand.finish()
    assert (incident.kind, incident.cause) == ("switch_down", "tor3B")
    assert incident.affected.names == ("h0/gpu3", "h1/gpu3", "h2/gpu3", "h3/gpu3")
    assert incident.effect["bandwidth_fraction"] == 0.5
    planes = [p.capacity_fraction for p in hand.twin.snapshot().planes]
    assert sum(planes) / 2 == 60 / 64


def test_two_hosts_that_drop_in_the_same_second_are_one_incident_at_their_switch() -> None:
    """Two hosts, same NIC, down 23:32:01 and 02, back 15 min 30 s later; only hosts are read (gpud scenarios)."""
    text = (
        "name: c11\nplanes: [A]\nnodes:\n"
        + rows(*(f"{{name: node{n}, gpus: 2, nics: 2}}" for n in "AB"))
        + "switches:\n"
        + rows("{name: leaf-r8, tier: leaf, plane: A}", "{name: leaf-r9, tier: leaf, plane: A}")
        + "links:\n"
        + rows(
            *(
                f"{{a: node{n}/nic{k}/p0, b: leaf-r{8 + k}/p{i}, speed: 400G}}"
                for i, n in enumerate("AB")
                for k in (0, 1)
            )
        )
    )
    hand = ByHand(wiring(text), sources=lambda name: name.startswith("node"))
    hand.run(120)
    hand.up[hand.links("nodeB/nic1")] = 0
    hand.run(121)
    hand.up[hand.links("nodeA/nic1")] = 0
    hand.run(120 + 930)
    hand.up[:] = 1
    hand.run(1100)
    incidents = hand.finish()
    assert told(incidents) == [("switch_down", "leaf-r9")]
    assert (
        incidents[0].affected.nodes == 2
        and 930 < seconds(incidents[0].resolved) - seconds(incidents[0].started) < 940
    )


def with_storage() -> Topology:
    """Compute NICs on two leaves, storage NICs of the same hosts on one storage switch."""
    text = (
        "name: c37\nplanes: [A]\nnodes:\n"
        + rows(*(f"{{name: {n}, gpus: 1, nics: [0, 4], nic_of_gpu: [0]}}" for n in "ABCDEF"))
        + "switches:\n"
        + rows(
            "{name: switch1, tier: leaf, plane: A}", "{name: switch2, tier: leaf, plane: A}",
            "{name: spine1, tier: spine, plane: A}", "{name: switch-storage1, tier: leaf}",
        )
        + "links:\n"
        + rows(
            *(f"{{a: {n}/nic0/p0, b: switch{1 + (n > 'C')}/p{i}, speed: 400G}}" for i, n in enumerate("ABCDEF")),
            *(f"{{a: {n}/nic4/p0, b: switch-storage1/p{i}, speed: 200G}}" for i, n in enumerate("ABCDEF")),
            "{a: switch1/p60, b: spine1/p0, speed: 400G}", "{a: switch2/p60, b: spine1/p1, speed: 400G}",
        )
    )  # fmt: skip
    return wiring(text)


def found_by_discovery(topo: Topology) -> Topology:
    """The same as a dump of ibnetdiscover shows it, which knows of no planes and mixes both fabrics."""
    return discover({"A": parse(to_ibnetdiscover(topo))})


@pytest.mark.parametrize("seen", [lambda topo: topo, found_by_discovery], ids=["wired", "discovered"])
def test_a_storage_switch_that_fails_claims_no_compute_bandwidth(seen: Callable[[Topology], Topology]) -> None:
    """Two fabrics of the same hosts, one of them for storage (topograph issue 488)."""
    topo = seen(with_storage())
    assert (len(topo.gpus.node), topo.planes) == (6, ("A",))
    assert topo.links.plane[resolve(topo, "switch-storage1").links].tolist() == [-1] * 6
    hand = ByHand(topo)
    hand.run(10)
    hand.up[hand.links("switch-storage1")] = 0
    hand.silent = {"switch-storage1"}
    hand.run(20)
    (incident,) = hand.finish()
    assert (incident.kind, incident.cause, incident.affected.gpus) == ("switch_down", "switch-storage1", 0)
    assert hand.twin.snapshot().planes[0].capacity_fraction == 1


@pytest.mark.parametrize("seen", [lambda topo: topo, found_by_discovery], ids=["wired", "discovered"])
def test_a_compute_leaf_that_fails_beside_storage_costs_its_own_hosts(seen: Callable[[Topology], Topology]) -> None:
    hand = ByHand(seen(with_storage()))
    hand.run(10)
    hand.up[hand.links("switch2")] = 0
    hand.silent = {"switch2"}
    hand.run(20)
    (incident,) = hand.finish()
    assert (incident.kind, incident.cause, incident.affected.names) == ("switch_down", "switch2", ("D", "E", "F"))
    assert incident.effect["bandwidth_fraction"] == 0


def test_a_swap_across_rails_is_serious_and_a_wrong_port_of_the_right_leaf_is_not() -> None:
    """Expected cabling against discovered links (vendor cable validation)."""
    text = (
        "name: c38\nplanes: [A]\nnodes:\n"
        + rows(*(f"{{name: h{h}, gpus: 2, nics: 2}}" for h in (1, 2, 3)))
        + "switches:\n"
        + rows(*(f"{{name: leaf{r}, tier: leaf, plane: A}}" for r in (0, 1)))
        + "links:\n"
        + rows(*(f"{{a: h{h}/nic{r}/p0, b: leaf{r}/p{h}, speed: 400G}}" for h in (1, 2, 3) for r in (0, 1)))
    )
    design = wiring(text)
    found = dict(cables_of(design))
    for a, b in (("h2/nic0/p0", "leaf0/p2"), ("h2/nic1/p0", "leaf1/p2"), ("h3/nic0/p0", "leaf0/p3")):
        del found[a, b]
    moved = [("h2/nic0/p0", "leaf1/p2"), ("h2/nic1/p0", "leaf0/p2"), ("h3/nic0/p0", "leaf0/p4")]
    mistakes = {m.cause: m for m in mistaken_cables(design, [*found, *moved])}
    assert {c: (m.kind, m.crossing) for c, m in mistakes.items()} == {
        "h2/nic0/p0--leaf0/p2": ("swapped", True),
        "h3/nic0/p0--leaf0/p3": ("moved", False),
    }


def test_a_source_that_is_lost_makes_its_ports_unknown_and_no_others() -> None:
    """A target that a collector silently dropped: its verdicts become unknown (gnmic issue 513)."""
    hand = ByHand(wiring(HPN), sources=lambda name: name.startswith("tor"))
    hand.run(10)
    hand.silent = {"tor0A"}
    hand.run(40)
    assert told(hand.finish()) == [("telemetry_stale", "tor0A")]
    known = hand.twin.snapshot().link_state >= 0
    assert not known[hand.links("tor0A")].any() and known[hand.links("tor1A")].all()


def test_a_link_at_half_its_width_is_slow_only_where_the_design_expects_more() -> None:
    """2X of a 4X HDR port, a split cable as planned, NDR fallen to HDR, one lane of NDR (openucx pull 6553)."""
    ports = [("2x", "HDR", "200G"), ("2x", "HDR", "100G"), ("4x", "HDR", "400G"), ("1x", "NDR", "400G")]
    text = (
        "name: c07\nplanes: [A]\nnodes:\n" + rows(*(f"{{name: {n}, gpus: 1, nics: 1}}" for n in "abcd"))
        + "switches:\n" + rows("{name: leaf, tier: leaf, plane: A}")
        + "links:\n"
        + rows(*(f"{{a: {n}/nic0/p0, b: leaf/p{i}, speed: {ports[i][2]}}}" for i, n in enumerate("abcd")))
    )  # fmt: skip
    hand = ByHand(wiring(text))
    hand.speed = np.array([link_rate(width, speed) for width, speed, _ in ports])
    hand.run(10)
    assert {i.cause: i.effect["speed_fraction"] for i in hand.finish() if i.kind == "link_slow"} == {
        "a/nic0/p0": 0.5, "c/nic0/p0": 0.5, "d/nic0/p0": 0.25,
    }  # fmt: skip


def test_ports_that_are_switched_off_are_down_at_no_rate_and_only_told_where_they_are_planned() -> None:
    """Disabled ports report a placeholder of 10 or 40 Gb/s (nccl issue 1935); one of them is in no design."""
    text = (
        "name: c08\nplanes: [A]\nnodes:\n  - {name: h, gpus: 1, nics: 3}\n  - {name: k, gpus: 1, nics: 1}\n"
        + "switches:\n" + rows("{name: leaf, tier: leaf, plane: A}")
        + "links:\n" + rows("{a: h/nic0/p0, b: leaf/p0, speed: 200G}", "{a: h/nic1/p0, b: leaf/p1, speed: 200G}")
    )  # fmt: skip
    twin = Twin(wiring(text))
    names = ("h/nic0/p0", "h/nic1/p0", "h/nic2/p0")
    for second in range(10):
        columns = {"up": np.array([1.0, 0, 0]), "speed_bits_per_second": np.array([200e9, 10e9, 40e9])}
        twin.ingest(Frame(EPOCH + second * NS, "h", "port", names, columns))
    twin.finish()
    assert told(list(twin.incidents)) == [("link_down", "h/nic1/p0")]
    assert twin.snapshot().link_speed.tolist() == [200e9, 0]
