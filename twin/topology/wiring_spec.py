"""What a wiring file may hold: its keys, their types and limits."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from twin.topology.checks.accept import check_accept
from twin.units import bits_per_second
from twin.yamlfile import Strict

MOST_GPUS = 1024  # of a node
_NAME = re.compile(r"[^/\s]+")


def _check_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is not a name: it must not be empty nor hold '/' or whitespace")
    return name


Name = Annotated[str, BeforeValidator(lambda v: str(v) if isinstance(v, int) else v), AfterValidator(_check_name)]
Speed = Annotated[float, BeforeValidator(bits_per_second)]
Accept = Annotated[str, AfterValidator(check_accept)]  # a finding of `topology validate` that is meant so


def _gpus(value: Any) -> Any:
    """Where it is a number: so many GPUs, all those of the node that has the domain's name."""
    if isinstance(value, int) and not isinstance(value, bool):
        if not 0 <= value <= MOST_GPUS:
            raise ValueError(f"{value} GPUs; expected 0 to {MOST_GPUS}")
        return [f"{{name}}/gpu[0-{value - 1}]"] if value else []
    return _one(value)


def _one(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _cable(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, str | int | None) or (isinstance(value, int) and value < 1):
        raise ValueError(f"{value!r} is not a cable; expected a name, nic, or how many links of a switch share one")
    return value


Names = Annotated[list[str], BeforeValidator(_one)]


class NodeSpec(Strict):
    name: Name
    rack: Name | None = None
    role: Literal["compute", "storage", "management", "other"] = "compute"
    gpu_model: str = "unknown"
    gpus: int = Field(0, ge=0, le=MOST_GPUS)
    nics: int | list[int] = 0
    ports_per_nic: int = Field(1, ge=1, le=64)
    first_port: int = Field(0, ge=0, le=1)
    nic_of_gpu: list[int] | None = None
    psus: int = Field(0, ge=0, le=64)
    psu_watts: float | None = None
    label: str | None = None


class SwitchSpec(Strict):
    name: Name
    tier: Literal["leaf", "spine", "core"]
    plane: str | None = None
    model: str = "unknown"
    ports: int = Field(0, ge=0)
    rail: int | None = None
    label: str | None = None


class LinkSpec(Strict):
    a: str
    b: str
    speed: Speed | None = None  # unknown: such a link is never slow
    cable: Annotated[str | int | None, BeforeValidator(_cable)] = None


class DomainSpec(Strict):
    name: Name
    gpus: Annotated[list[str], BeforeValidator(_gpus)]
    switches: Names = []
    links_per_gpu: int = Field(0, ge=0, le=64)
    speed: Speed = 400e9  # of one link in one direction: 50GB/s, NVLink 5


class FeedSpec(Strict):
    name: str
    watts: float


class RackSpec(Strict):
    name: Name
    nodes: Names = []
    feeds: list[FeedSpec] = []
    redundancy: str = "none"
    psus: int = Field(0, ge=0, le=1024)
    psu_watts: float | None = None


class JobSpec(Strict):
    name: str
    nodes: Names
    collective: str = "allreduce"


class Wiring(Strict):
    name: str
    ranges: bool = True  # whether brackets in names are ranges
    planes: list[str] = []
    nodes: list[NodeSpec]
    switches: list[SwitchSpec] = []
    links: list[LinkSpec] = []
    domains: list[DomainSpec] = []
    racks: list[RackSpec] = []
    site_watts: float | None = Field(None, gt=0)
    jobs: list[JobSpec] = []
    accept: list[Accept] = []
