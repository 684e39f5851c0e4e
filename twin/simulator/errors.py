"""Quality of links in the simulation: what forward error correction repairs all the time, and what it does not."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from twin.errors import InputError
from twin.simulator.scenario import Fault
from twin.simulator.world import Counter, World
from twin.topology.model import Topology
from twin.topology.resolve import Target

F64 = npt.NDArray[np.float64]

FORMS = ("symbol", "fec", "crc")
_RATE = 5.0  # errors a second, unless the fault says
_WORSE = 300.0  # times the usual repairs on a link whose errors are beyond repair; estimated
PAM4 = 400e9  # ports from this speed on always have errors to repair


def is_link_fault(target: Target) -> bool:
    """Whether a `corrupt` is of links of the network: a port, a link, a NIC or a switch, not a whole node."""
    return len(target.links) > 0 and not len(target.nodes) and not len(target.nvlinks)


def check_corrupt(fault: Fault, target: Target) -> None:
    """Raises InputError for errors of a kind that links do not have."""
    if is_link_fault(target) and fault.kind not in FORMS:
        raise InputError(f"corrupt: kind is {fault.kind!r}, expected one of {', '.join(FORMS)} for {fault.target!r}")


class LinkErrors:
    """symbol_errors, rx_errors, fec_corrected and fec_uncorrected of every port, as the receiving end counts them."""

    def __init__(self, topo: Topology, rng: np.random.Generator) -> None:
        self.topo, self._rng = topo, rng
        n = len(topo.ports.link)
        wired = topo.ports.link >= 0
        self._quality = rng.lognormal(0, 1, n)  # of a link: some repair ten times as much as others
        self._up = np.ones(n, bool)

        def counter(metric: str, most: int, where: npt.NDArray[np.bool_]) -> Counter:
            return Counter("port", metric, np.where(where, rng.integers(0, most, n).astype(np.float64), np.nan))

        self._symbol = counter("symbol_errors", 50, wired)
        self._crc = counter("rx_errors", 50, wired)
        fec = wired & (topo.port_speed >= PAM4)
        self._corrected = counter("fec_corrected", 10**9, fec)
        self._uncorrected = counter("fec_uncorrected", 50, fec)

    def step(self, world: World) -> None:
        noise, rng = world.noise, self._rng
        speed = np.nan_to_num(world.speed) * np.nan_to_num(world.up)
        symbol = self._some(world, noise["symbol_ber"] * speed)
        crc = self._some(world, np.full(len(speed), noise["rx_errors"]))
        uncorrected = self._some(world, np.full(len(speed), noise["fec_uncorrected"]))
        corrected = noise["pre_fec_ber"] * self._quality * speed * rng.uniform(0.8, 1.2, len(speed))
        alive = speed > 0
        for active in world.faults("corrupt"):
            if is_link_fault(active.target):
                ports = self._ports(active.fault.target, active.target)
                more = np.zeros(len(speed))
                more[ports] = active.fault.rate or _RATE
                more = self._some(world, more) * alive
                if active.fault.kind == "symbol":
                    symbol += more
                elif active.fault.kind == "crc":
                    crc += more
                else:
                    uncorrected += more
                    corrected[ports] *= _WORSE
        trained = alive & ~self._up
        symbol[trained] += rng.poisson(noise["training_errors"], int(trained.sum())) / world.interval
        self._up = alive
        for counter, rate in (
            (self._symbol, symbol), (self._crc, crc), (self._corrected, corrected), (self._uncorrected, uncorrected),
        ):  # fmt: skip
            fresh = world.restarted_ports
            counter.value[fresh] = np.where(np.isnan(counter.value[fresh]), np.nan, 0.0)
            counter.go(world, rate)

    def _some(self, world: World, rate: F64) -> F64:
        """Random errors of this rate a second: whole ones, in one interval."""
        return self._rng.poisson(rate * world.interval) / world.interval

    def _ports(self, address: str, target: Target) -> npt.NDArray[np.intp]:
        """The port itself where one is named, else both ends of the links."""
        port = self.topo.rows("port").get(address)
        if port is not None:
            return np.array([port], np.intp)
        links = self.topo.links
        return np.concatenate([links.a[target.links], links.b[target.links]]).astype(np.intp)
