"""Time and bus bandwidth of collectives, from what each algorithm moves over NVLink and over the network.

n GPUs in d domains of g (a domain: GPUs joined by NVLink, or by PCIe in one server). For a buffer of S bytes an
algorithm moves a multiple of S over every GPU's links inside its domain, and another out of every domain. Large
buffers are cut in chunks and the two go on at once, so the slower sets the time; latency is left out. S is what
nccl-tests call the size: the whole buffer, of one rank in all-to-all. (Patarasuk and Yuan, JPDC 2009, for rings;
Sanders, Speck, Träff, Parallel Computing 2009, for two trees; NVIDIA/nccl-tests, doc/PERFORMANCE.md.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from twin.errors import InputError

Collective = Literal["allreduce", "allgather", "reducescatter", "alltoall", "broadcast"]
Algorithm = Literal["ring", "tree", "nvls", "nvls+sharp", "pairwise"]
COLLECTIVES: tuple[Collective, ...] = ("allreduce", "allgather", "reducescatter", "alltoall", "broadcast")
ALGORITHMS: dict[Collective, tuple[Algorithm, ...]] = {
    "allreduce": ("ring", "tree", "nvls", "nvls+sharp"),
    "allgather": ("ring", "nvls"),
    "reducescatter": ("ring", "nvls"),
    "alltoall": ("pairwise",),
    "broadcast": ("ring", "tree", "nvls"),
}


@dataclass(frozen=True, slots=True)
class Machine:
    """Where a collective runs: `domains` of `gpus` each.

    gpus may be the mean of uneven domains. inside: bytes/s of one GPU to its domain, one direction; outside: bytes/s
    of a domain's NICs together; both usable, not nominal. inside_reduces, outside_reduces: the part left of them with
    reduction in switches, 0 without.
    """

    domains: int
    gpus: float
    inside: float
    outside: float
    inside_reduces: float = 0.0
    outside_reduces: float = 0.0

    @property
    def ranks(self) -> int:
        return round(self.domains * self.gpus)


@dataclass(frozen=True, slots=True)
class Volume:
    """What moves, as multiples of S: over the links of a GPU inside, and out of a domain, the busiest each."""

    inside: float
    outside: float


def bus_factor(collective: Collective, ranks: int) -> float:
    """Bus bandwidth over algorithm bandwidth (S / time), as nccl-tests define it."""
    parts = {"allreduce": 2.0 * (ranks - 1) / ranks, "broadcast": 1.0}
    return parts.get(collective, (ranks - 1) / ranks)


def volume(collective: Collective, algorithm: Algorithm, on: Machine) -> Volume | None:
    """What moves, or None where the algorithm cannot run: not for this collective, or no switches that reduce."""
    if algorithm not in ALGORITHMS[collective]:
        return None
    if algorithm.startswith("nvls") and not on.inside_reduces:
        return None
    d, g, n = on.domains, on.gpus, on.ranks
    if algorithm == "nvls+sharp" and not (d > 1 and on.outside_reduces):
        return None
    if algorithm == "pairwise":
        inside, outside = (g - 1) / n, g * (n - g) / n
    elif algorithm == "ring":
        inside = outside = bus_factor(collective, n)
    elif algorithm == "tree":
        inside, outside = (2.0, _two_trees(d)) if collective == "allreduce" else (1.0, 1.0)
    elif collective == "allreduce":  # the switch reads S from every GPU and writes it S; a GPU handles its 1/g of it
        inside, outside = (1 + 1 / g) / on.inside_reduces, _two_trees(d)
        if algorithm == "nvls+sharp":
            outside = 1 / on.outside_reduces
    elif collective == "broadcast":
        inside, outside = 1 / on.inside_reduces, 1.0
    else:
        inside, outside = (n - 1) / n / on.inside_reduces, (n - g) / n
    return Volume(inside if g > 1 else 0.0, outside if d > 1 else 0.0)


def _two_trees(domains: int) -> float:
    """What the busiest domain sends in an all-reduce over two binary trees, half of S each, up and down.

    A domain is inside one tree, where it sends up and to two children, and a leaf of the other, where it sends up:
    4 halves. Two domains send each other 2; of three, the busiest has one child, a parent, and the other tree: 3.
    """
    return min(2.0, domains / 2)


def seconds(collective: Collective, algorithm: Algorithm, size: float, on: Machine) -> float:
    """Time for a buffer of `size` bytes; inf where the algorithm cannot run, or a part has no bandwidth."""
    if (moved := volume(collective, algorithm, on)) is None:
        return float("inf")
    return size * max(_over(moved.inside, on.inside), _over(moved.outside, on.outside))


def _over(amount: float, rate: float) -> float:
    if not amount:
        return 0.0
    return amount / rate if rate > 0 else float("inf")


def bus_bandwidth(collective: Collective, algorithm: Algorithm, on: Machine) -> float:
    """Bytes/s of bus bandwidth for large buffers; 0 where the algorithm cannot run, inf for a rank alone."""
    time = seconds(collective, algorithm, 1.0, on)
    return bus_factor(collective, on.ranks) / time if time else float("inf")


def best(collective: Collective, on: Machine) -> Algorithm:
    """The algorithm with the shortest time, as the library would choose it for large buffers."""
    return min(ALGORITHMS[collective], key=lambda algorithm: seconds(collective, algorithm, 1.0, on))


def collective_of(name: str) -> Collective:
    """`all_reduce`, `all-reduce`, `AllReduce` and the like. Raises InputError for what is no collective."""
    plain = name.lower().replace("-", "").replace("_", "")
    for collective in COLLECTIVES:
        if plain == collective:
            return collective
    raise InputError(f"{name!r} is not a collective; expected one of {', '.join(COLLECTIVES)}")
