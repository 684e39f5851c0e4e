"""What NVML tells of this host's wiring: GPUs, their NVLinks and far ends, the NVLink domain, the place in a rack."""

from __future__ import annotations

import contextlib
import ctypes
import re
import threading
from dataclasses import dataclass
from math import nan

from collectors.base import CollectorError
from collectors.nvml.fabric import NO_CLUSTER, Fabric, Place, or_none, read_fabric, read_place
from collectors.nvml.fields import LINK_FIELDS, Batch
from collectors.nvml.gpu import Identity, link_count, pci_address
from collectors.nvml.library import LACKING, NvmlFault, said
from collectors.nvml.machine import Machine
from collectors.nvml.values import decode
from twin.catalog import hardware
from twin.topology.builder import Builder
from twin.topology.importers.hostfacts import HostFacts, SharedDomain
from twin.topology.model import NONE, Topology

FAR_ENDS = {0: "gpu", 1: "npu", 2: "switch"}  # NVML_NVLINK_DEVICE_TYPE_*
_STATE, _SPEED, _VERSION, _REMOTE_LINK = 165, 164, 166, 146
_GENERATION = {1: 1, 2: 2, 3: 2, 4: 3, 5: 3, 6: 4, 7: 5, 8: 6}  # NVML_NVLINK_VERSION_*


@dataclass(frozen=True, slots=True)
class FoundLink:
    """speed: bytes/s, NaN unknown. far: gpu, npu, switch or unknown; far_pci, far_gpu, far_link: where it is told."""

    number: int
    active: bool | None
    speed: float
    generation: int | None
    far: str
    far_pci: str | None
    far_gpu: str | None
    far_link: int | None


@dataclass(frozen=True, slots=True)
class FoundGpu:
    address: str
    identity: Identity | None  # None for a GPU that cannot be asked
    model: str  # key of the catalogue, or `unknown`
    links: tuple[FoundLink, ...] = ()
    fabric: Fabric | None = None
    place: Place | None = None
    problem: str | None = None

    @property
    def domain(self) -> tuple[str, int] | None:
        """(cluster UUID, clique): GPUs of one fabric that can reach each other. None on a single board."""
        if self.fabric is None or self.fabric.cluster == NO_CLUSTER:
            return None
        return self.fabric.cluster, self.fabric.clique


@dataclass(frozen=True, slots=True)
class NvmlHost:
    """One host as NVML sees it."""

    host: str
    driver: str | None
    gpus: tuple[FoundGpu, ...]

    @property
    def model(self) -> str:
        return next((g.model for g in self.gpus if g.model != "unknown"), "unknown")

    @property
    def chassis(self) -> str | None:
        """Serial number of the rack's chassis, which stands for the rack; None where the platform does not tell."""
        return next((g.place.chassis for g in self.gpus if g.place is not None and g.place.chassis), None)

    def groups(self) -> list[tuple[str, list[int], int, float]]:
        """NVLink domains of this host's GPUs: name, GPUs by position, links a GPU, bytes/s of a link as designed.

        GPUs of one cluster and clique are one domain, with other hosts' GPUs of the same name; else GPUs whose
        links go to switches, or to each other, are a domain of this host. A GPU without active links is in none.
        """
        of: dict[str, list[int]] = {}
        for i, gpu in enumerate(self.gpus):
            used = [link for link in gpu.links if link.active]
            if not used:
                continue
            if gpu.domain is not None:
                of.setdefault(f"nvl-{gpu.domain[0]}-{gpu.domain[1]}", []).append(i)
            elif any(link.far in ("switch", "gpu") for link in used):
                of.setdefault(f"nvl-{self.host}", []).append(i)
        out = []
        for name, members in of.items():
            links = max(sum(bool(link.active) for link in self.gpus[i].links) for i in members)
            nominal = hardware()["gpu"].get(self.model, {}).get("nvlink_link_bytes_per_second")
            read = [link.speed for i in members for link in self.gpus[i].links if link.speed == link.speed]
            out.append((name, members, links, float(nominal or (max(read) if read else nan))))
        return [g for g in out if len(g[1]) > 1 or self.gpus[g[1][0]].domain is not None]

    def modules(self) -> dict[str, list[str]]:
        """Board serial -> the GPUs that sit on it; two of them share the power of a GB200 module."""
        out: dict[str, list[str]] = {}
        for gpu in self.gpus:
            if gpu.identity is not None and gpu.identity.board is not None:
                out.setdefault(gpu.identity.board, []).append(gpu.address)
        return out

    def facts(self) -> HostFacts:
        """For `hostfacts.refine`, which adds these GPUs to a wiring of the same host."""
        shared = [g for g in self.groups() if any(self.gpus[i].domain is not None for i in g[1])]
        own = [g for g in self.groups() if g not in shared]
        facts = HostFacts(len(self.gpus), [], None, model=self.model, rack=self.chassis)
        facts.groups = [(members, links) for _, members, links, _ in own]
        facts.speed = next((speed for *_, speed in own), nan)
        facts.domains = [SharedDomain(*g) for g in shared]
        facts.notes += self.notes()
        return facts

    def notes(self) -> list[str]:
        return [f"nvml: {g.address}: {g.problem}" for g in self.gpus if g.problem]

    def topology(self, nics: int = 0) -> Topology:
        """This host alone: its GPUs, their NVLink domains, its rack where the platform tells it."""
        builder = Builder(self.host, ())
        rack = NONE if self.chassis is None else builder.rack(self.chassis)
        row = builder.node(self.host, gpus=len(self.gpus), nics=nics, gpu_model=self.model, rack=rack)
        first = builder.nodes[row].gpu0
        for name, members, links, speed in self.groups():
            builder.domain(name, [first + i for i in members], (), links, speed)
        for gpu in self.gpus:
            if gpu.identity is not None:
                where = "" if gpu.place is None else f" slot {gpu.place.slot} tray {gpu.place.tray}"
                builder.labels[gpu.address] = f"{gpu.identity.uuid} {gpu.identity.pci}{where}"
        builder.notes += self.notes()
        return builder.build()


def model_of(name: str) -> str:
    """The catalogue's key of a product name: `NVIDIA H100 80GB HBM3` is h100; `unknown` where none fits."""
    words = "-".join(re.findall(r"[a-z0-9]+", name.lower()))
    fitting = [key for key in hardware()["gpu"] if re.search(rf"(?:^|-){re.escape(key)}(?:-|$)", words)]
    return max(fitting, key=len, default="unknown")


def nvml_topology(host: str) -> NvmlHost:
    """What NVML says of this host. It blocks while it asks. Raises CollectorError where NVML cannot be opened."""
    machine = Machine(host, {}, lambda: 0.0)
    machine.open()
    try:
        known = {g.pci: g.address for g in machine.gpus}
        found = []
        for gpu in machine.gpus:
            if gpu.handle is None or gpu.identity is None:
                found.append(FoundGpu(gpu.address, None, "unknown", problem=said(gpu.fault)))
                continue
            model = model_of(gpu.identity.name)
            try:
                links = _links(machine, gpu.handle, known)
                fabric = or_none(read_fabric, machine.library, gpu.handle)
                place = or_none(read_place, machine.library, gpu.handle)
                found.append(FoundGpu(gpu.address, gpu.identity, model, links, fabric, place))
            except NvmlFault as fault:
                found.append(FoundGpu(gpu.address, gpu.identity, model, problem=said(fault.code)))
        return NvmlHost(host, machine.driver, tuple(found))
    finally:
        machine.close()


def own_gpus(host: str, seconds: float = 10.0) -> NvmlHost | None:
    """What `nvml_topology` finds, None where there is no NVML or it does not answer within `seconds`."""
    found: list[NvmlHost] = []

    def ask() -> None:
        with contextlib.suppress(CollectorError):
            found.append(nvml_topology(host))

    asking = threading.Thread(
        target=ask, name="NVML discovery", daemon=True
    )  # a sick driver must not hold up the start
    asking.start()
    asking.join(seconds)
    return found[0] if found and found[0].gpus else None


def _links(machine: Machine, handle: ctypes.c_void_p, known: dict[str, str]) -> tuple[FoundLink, ...]:
    count = link_count(machine.library, handle)
    asked = (_STATE, _SPEED, _VERSION, _REMOTE_LINK)
    batch = Batch([(field, link) for field in asked for link in range(count)])
    code = batch.read(machine.library, handle)
    if code and code not in LACKING:
        raise NvmlFault(code, "nvmlDeviceGetFieldValues")
    rows = decode(batch.entries)[0].reshape(len(asked), count).T.tolist()
    scale = LINK_FIELDS["speed_bytes_per_second"][0].scale
    out = []
    for number, (state, speed, version, far_link) in enumerate(rows):
        far, far_pci = _far_end(machine, handle, number)
        out.append(
            FoundLink(
                number, None if state != state else state in (1, 2), speed * scale if speed > 0 else nan,
                _GENERATION.get(int(version)) if version == version else None, far, far_pci,
                known.get(far_pci or ""), int(far_link) if far_link == far_link else None,
            )
        )  # fmt: skip
    return tuple(out)


def _far_end(machine: Machine, handle: ctypes.c_void_p, number: int) -> tuple[str, str | None]:
    kind = ctypes.c_uint()
    link = ctypes.c_uint(number)
    if machine.library.code("nvmlDeviceGetNvLinkRemoteDeviceType", handle, link, ctypes.byref(kind)):
        return "unknown", None
    try:
        pci = pci_address(machine.library, "nvmlDeviceGetNvLinkRemotePciInfo_v2", handle, link)
    except NvmlFault:
        pci = None
    return FAR_ENDS.get(kind.value, "unknown"), pci
