"""What a job's collective gets over the network as it is: before a failure and after it.

Every step of a collective waits for its slowest rank, and nothing goes by another way to make up for it. So all flows
keep the pace of the most loaded link. Between domains they run in lanes, the n-th NIC of one to the n-th of another:
from each domain to the next for rings, to every other for all-to-all. Trees and reduction in switches are taken as
rings that carry what the busiest domain of them sends, since which domain that is, is an accident of numbering.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from twin.collectives.formulas import (
    Algorithm,
    Collective,
    Machine,
    best,
    bus_bandwidth,
    collective_of,
    seconds,
)
from twin.collectives.technology import nvlink, technologies
from twin.errors import InputError
from twin.flows.router import Router
from twin.flows.routes import F64, I64
from twin.topology.model import Topology

Job = tuple[str, tuple[int, ...], str]  # as in Topology.jobs: name, node rows, collective
_SHIFTS = 64  # of an exchange of all domains with all; more change no link's load by much


@dataclass(frozen=True, slots=True)
class Prediction:
    """bus_bandwidth: bytes/s, as nccl-tests define it, for large buffers; 0 where ranks cannot reach each other.
    limit: what sets it; link: the address of the link that does, where that is the network."""

    collective: Collective
    algorithm: Algorithm
    bus_bandwidth: float
    limit: Literal["domain", "network"]
    link: str = ""


@dataclass(frozen=True, slots=True)
class Effect:
    """The same job, with the algorithm it began with, on the designed fabric and on the fabric now."""

    before: Prediction
    after: Prediction

    @property
    def fraction(self) -> float:
        """Bandwidth now over bandwidth as designed; NaN where there was none."""
        return self.after.bus_bandwidth / self.before.bus_bandwidth if self.before.bus_bandwidth else float("nan")


class _Place(NamedTuple):
    """Where a job runs. nics: int64[domains, lanes]. inside, inside_reduces: as in `Machine`."""

    ranks: int
    nics: I64
    inside: float
    inside_reduces: float


def effect(topo: Topology, speed: F64, job: Job, *, nvlinks: F64 | None = None, sharp: bool = False) -> Effect:
    """A job before and after: with links at their designed speed, and at `speed` (float64[links], bits/s, 0 where
    down, NaN as designed), NVLinks as `nvlinks` says. Else as `predict`."""
    before = predict(topo, topo.links.speed, job, sharp=sharp)
    return Effect(before, predict(topo, speed, job, nvlinks=nvlinks, sharp=sharp, algorithm=before.algorithm))


def predict(
    topo: Topology,
    speed: F64,
    job: Job,
    *,
    nvlinks: F64 | None = None,
    sharp: bool = False,
    algorithm: Algorithm | None = None,
) -> Prediction:
    """The collective of a job over a network that routes adaptively and uses all planes.

    speed: float64[links], bits/s now. nvlinks: float64[gpus], the part of each GPU's NVLinks that is up, all when not
    given. sharp: whether the switches of the network reduce. algorithm: the fastest one when not given.
    Raises InputError for a collective that is none, or a job without GPUs.
    """
    collective = collective_of(job[2])
    place = _place(topo, job, nvlinks)
    rate, link = _network(topo, Router(topo, speed), place.nics, to_all=collective == "alltoall")
    domains = len(place.nics)
    reduces = technologies()["network"].in_network if sharp else 0.0
    machine = Machine(domains, place.ranks / domains, place.inside, rate, place.inside_reduces, reduces)
    chosen = algorithm or best(collective, machine)
    unlimited = Machine(domains, machine.gpus, place.inside, np.inf, place.inside_reduces, reduces)
    outside = seconds(collective, chosen, 1.0, machine) > seconds(collective, chosen, 1.0, unlimited)
    bandwidth = bus_bandwidth(collective, chosen, machine)
    return Prediction(collective, chosen, bandwidth, "network" if outside else "domain", link if outside else "")


def _network(topo: Topology, router: Router, nics: I64, *, to_all: bool) -> tuple[float, str]:
    """Bytes/s that every domain can send at once over all its lanes, and the address of the link that sets it."""
    domains, lanes = nics.shape
    if domains == 1 or not lanes:
        return (np.inf if domains == 1 else 0.0), ""
    load = router.load(*_flows(nics, to_all=to_all))
    used = np.flatnonzero(load)
    rate = router.capacity[used] / 8 * technologies()["network"].efficiency / load[used]
    row = int(used[rate.argmin()])
    return float(rate.min()), topo.link_name(row % len(topo.links.a)) if row < len(load) - 1 else ""


def traffic(topo: Topology, job: Job) -> tuple[I64, I64, F64]:
    """What a job sends, for every unit that leaves each of its domains: NIC rows from and to, and how much.

    Nothing for a job in one domain. Raises InputError as `predict` does.
    """
    nics = _place(topo, job, None).nics
    if len(nics) == 1 or not nics.shape[1]:
        return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0)
    return _flows(nics, to_all=collective_of(job[2]) == "alltoall")


def _flows(nics: I64, *, to_all: bool) -> tuple[I64, I64, F64]:
    domains, lanes = nics.shape
    shifts = np.unique(np.linspace(1, domains - 1, min(domains - 1, _SHIFTS) if to_all else 1).astype(np.int64))
    source = np.tile(nics, (len(shifts), 1)).ravel()
    target = np.concatenate([np.roll(nics, -int(shift), axis=0) for shift in shifts]).ravel()
    return source, target, np.full(len(source), 1 / (lanes * len(shifts)))


def _place(topo: Topology, job: Job, nvlinks: F64 | None) -> _Place:
    gpus = np.flatnonzero(np.isin(topo.gpus.node, job[1]))
    if not len(gpus):
        raise InputError(f"job {job[0]!r} has no GPUs in {topo.name}: a collective needs some")
    domain = topo.gpus.domain[gpus].astype(np.int64)
    together = np.where(domain >= 0, domain, len(topo.domains.name) + topo.gpus.node[gpus])
    nics = [np.unique(topo.gpus.nic[gpus[together == key]]) for key in np.unique(together).tolist()]
    nics = [rows[rows >= 0] for rows in nics]
    lanes = min(map(len, nics))
    up = np.ones(len(gpus)) if nvlinks is None else nvlinks[gpus]
    return _Place(len(gpus), np.array([rows[:lanes] for rows in nics], np.int64), *_inside(topo, domain, up))


def _inside(topo: Topology, domain: I64, up: F64) -> tuple[float, float]:
    """Usable bytes/s of the slowest GPU to its domain, and the part of it left with reduction in NVLink switches.

    domain: int64[GPUs of the job]. up: float64[the same], the part of their NVLinks that is up.
    """
    used = np.unique(domain)
    if (used < 0).any() or (topo.domains.links_per_gpu[used] == 0).any():
        pcie = technologies()["pcie"]
        return pcie.link_bytes_per_second * pcie.efficiency, 0.0
    kind = [nvlink(speed) for speed in topo.domains.speed.tolist()]
    rate = topo.domains.links_per_gpu * topo.domains.speed * np.array([k.efficiency for k in kind])
    switched = all(topo.domains.switches[row] for row in used)
    return float((rate[domain] * up).min()), min(kind[row].in_network for row in used) if switched else 0.0
