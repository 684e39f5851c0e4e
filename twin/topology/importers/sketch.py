"""What an input says of a fabric before anything is inferred: devices and cables under their own names."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import nan
from typing import Literal

ASSUMED_SPEED = 400e9  # bits/s of a link, where nothing says better
ASSUMED_GPUS = "one GPU a NIC is assumed"
DeviceKind = Literal["host", "switch"]


@dataclass(slots=True)
class Device:
    """A host or a switch. None: the input does not say. tier: index into TIERS. description: what it runs."""

    name: str
    kind: DeviceKind | None = None
    tier: int | None = None
    plane: str | None = None
    model: str = "unknown"
    role: str | None = None
    gpus: int | None = None
    rack: str | None = None
    nic_ports: int | None = None
    description: str = ""
    bridge: bool | None = None  # says that it switches or routes


@dataclass(frozen=True, slots=True)
class End:
    """One end of a cable. port: the interface's own name, None where the input has none."""

    device: str
    port: str | None = None


@dataclass(slots=True)
class Cable:
    """speed: bits/s, NaN where the input does not say."""

    a: End
    b: End
    speed: float = nan


@dataclass(slots=True)
class Scaleup:
    """An NVLink domain over all GPUs of some hosts. speed: bytes/s of one link in one direction."""

    name: str
    hosts: list[str]
    links_per_gpu: int = 0
    speed: float = nan


@dataclass(slots=True)
class Sketch:
    """devices: by the name that cables use for them. notes: what the importer had to decide."""

    name: str
    devices: dict[str, Device] = field(default_factory=dict)
    cables: list[Cable] = field(default_factory=list)
    domains: list[Scaleup] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def device(self, name: str) -> Device:
        """The device of that name, made when it is new."""
        if name not in self.devices:
            self.devices[name] = Device(name)
        return self.devices[name]


@dataclass(frozen=True, slots=True)
class Sizes:
    """What the user says because inputs do not. link_speed: bits/s; gpu_model: a key of the catalogue, or any."""

    link_speed: float | None = None
    gpus_per_node: int | None = None
    gpu_model: str | None = None
