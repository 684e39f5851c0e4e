"""Calibration: traffic that goes where the model says leaves no residual; what goes elsewhere is seen there."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twin.calibration import Calibration, calibrate, worst
from twin.collectives import traffic
from twin.errors import InputError
from twin.flows import Router
from twin.simulator.scenario import Fault, Scenario
from twin.simulator.simulation import Simulation
from twin.topology.presets import preset
from twin.topology.resolve import resolve
from twin.twin import Twin

TOPO = preset("b300-superpod-ethernet")
EVERYONE = ("everyone", tuple(range(64)), "alltoall")
HALVES = (("one", tuple(range(32)), "allreduce"), ("two", tuple(range(32, 64)), "alltoall"))


def counters(jobs: tuple, rates: list[float], speed: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """tx, rx of every port, bytes/s, where each job's domains send `rates` bits/s just as the model has it."""
    links, n = TOPO.links, len(TOPO.links.a)
    router = Router(TOPO, links.speed if speed is None else speed)
    load = sum(rate * router.load(*traffic(TOPO, job)) for job, rate in zip(jobs, rates, strict=True))
    tx, rx = np.full(len(TOPO.ports.nic), np.nan), np.full(len(TOPO.ports.nic), np.nan)
    for one, other, row in ((links.a, links.b, slice(0, n)), (links.b, links.a, slice(n, 2 * n))):
        tx[one] = rx[other] = load[row] / 8
    return tx, rx


def test_traffic_that_follows_the_model_leaves_no_residual() -> None:
    tx, rx = counters(HALVES, [2e12, 1e12])
    found = calibrate(TOPO, TOPO.links.speed, HALVES, tx, rx)
    assert found.jobs == pytest.approx(np.array([32 * 2e12, 32 * 1e12]))
    np.testing.assert_allclose(found.residual, 0, atol=1.0)
    assert found.host[:, 0] == pytest.approx(np.array([48e12, 48e12])) and found.error == pytest.approx(0)
    assert worst(found, 3) == [] or abs(found.residual[worst(found, 1)[0]]) < 1.0


def test_a_plane_that_is_left_out_shows_as_all_of_it_missing_there_and_twice_as_much_elsewhere() -> None:
    tx, rx = counters((EVERYONE,), [1e12])
    for port in (tx, rx):
        port[TOPO.ports.plane == 0] *= 2
        port[TOPO.ports.plane == 1] = 0
    found = calibrate(TOPO, TOPO.links.speed, (EVERYONE,), tx, rx)
    assert found.host[0].tolist() == pytest.approx([64e12, 32e12])
    assert found.host[1].tolist() == pytest.approx([0, 32e12])
    assert found.error == pytest.approx(0.5)


def test_a_plane_that_is_down_is_no_error_of_the_model() -> None:
    speed = TOPO.links.speed.copy()
    speed[resolve(TOPO, "plane:B").links] = 0
    tx, rx = counters((EVERYONE,), [1e12], speed)
    tx[TOPO.ports.plane == 1] = 40e9  # what was counted last, before it went down
    found = calibrate(TOPO, speed, (EVERYONE,), tx, rx)
    assert found.error == pytest.approx(0) and found.host[1].tolist() == [0, 0]


def test_the_link_that_carries_too_much_comes_first() -> None:
    tx, rx = counters((EVERYONE,), [1e12])
    uplink = int(resolve(TOPO, "A-leaf-03/p70").links[0])
    tx[TOPO.links.a[uplink]] = rx[TOPO.links.b[uplink]] = 50e9
    found = calibrate(TOPO, TOPO.links.speed, (EVERYONE,), tx, rx)
    assert worst(found, 1) == [(0, uplink)] and found.residual[0, uplink] > 200e9


def test_one_end_is_enough_and_what_nobody_reads_is_unknown() -> None:
    tx, rx = counters((EVERYONE,), [1e12])
    switches = TOPO.ports.switch >= 0
    both = calibrate(TOPO, TOPO.links.speed, (EVERYONE,), tx, rx)
    hosts_only = calibrate(
        TOPO, TOPO.links.speed, (EVERYONE,), np.where(switches, np.nan, tx), np.where(switches, np.nan, rx)
    )
    assert hosts_only.host == pytest.approx(both.host)
    assert np.isnan(hosts_only.observed[:, TOPO.links.tier == 1]).all() and (hosts_only.uplink == 0).all()


def test_without_readings_nothing_is_claimed() -> None:
    nothing = np.full(len(TOPO.ports.nic), np.nan)
    found = calibrate(TOPO, TOPO.links.speed, (EVERYONE,), nothing, nothing)
    assert np.isnan(found.jobs).all() and np.isnan(found.error) and worst(found, 5) == []


def test_nodes_without_a_job_are_left_out() -> None:
    tx, rx = counters(HALVES, [2e12, 1e12])
    found = calibrate(TOPO, TOPO.links.speed, HALVES[:1], tx, rx)
    assert found.host[:, 0] == pytest.approx(np.array([32e12, 32e12])), "of the first job's hosts alone"
    assert found.error == pytest.approx(0)


def test_a_job_without_gpus_is_refused() -> None:
    nothing = np.full(len(TOPO.ports.nic), np.nan)
    with pytest.raises(InputError, match="no GPUs"):
        calibrate(TOPO, TOPO.links.speed, (("empty", (), "allreduce"),), nothing, nothing)


def observed(*faults: Fault) -> Calibration:
    """A simulated fabric after 16 seconds, against the model."""
    simulation = Simulation(Scenario("t", "b300-superpod-ethernet", faults=faults, duration=16))
    twin = Twin(simulation.topology)
    twin.ingest_all(simulation.frames())
    twin.finish()
    now = twin.snapshot()
    job = ("everyone", tuple(range(64)), "allreduce")
    return calibrate(now.topology, now.link_speed, (job,), now.port["tx_bytes"], now.port["rx_bytes"])


def test_hosts_of_a_simulated_fabric_spread_their_traffic_as_the_model_says() -> None:
    assert observed().error < 0.02


def test_a_plane_that_a_job_abandons_is_seen_as_traffic_that_goes_elsewhere() -> None:
    found = observed(Fault("abandon", "job", 5, other="plane:B"))
    assert found.error > 0.4
    assert found.host[1, 0] < 0.05 * found.host[1, 1]


@settings(max_examples=15, deadline=None)
@given(st.lists(st.floats(1e9, 6e12), min_size=2, max_size=2))
def test_what_jobs_send_is_found_again(rates: list[float]) -> None:
    found = calibrate(TOPO, TOPO.links.speed, HALVES, *counters(HALVES, rates))
    assert found.jobs == pytest.approx(32 * np.array(rates))
    assert found.predicted[0][TOPO.links.tier == 0].sum() == pytest.approx(found.jobs.sum())
