"""The NVML collector of a site file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collectors.base import Collector
from collectors.nvml import FASTEST_S, NvmlCollector
from twin.errors import InputError

if TYPE_CHECKING:
    from twin.site import Site
    from twin.sitespecs import NvmlSpec


def build(spec: NvmlSpec, site: Site) -> list[Collector]:
    """The GPUs of one host. Raises InputError where the wiring gives it none."""
    from collectors.build import this_host

    topo = site.topology
    host = spec.name or this_host()
    links = dict(zip(topo.gpu_names, topo.nvlinks_per_gpu.tolist(), strict=True))
    mine = {gpu: count for gpu, count in links.items() if gpu.startswith(host + "/")}
    if not mine:
        raise InputError(f"collectors: nvml: host {host!r} has no GPUs in the wiring of {topo.name}; set its name")
    if spec.every < FASTEST_S:
        raise InputError(
            f"collectors: nvml: every {spec.every:g} s: expected {FASTEST_S:g} s or more, since a call holds a lock "
            "of the driver that jobs need too"
        )
    unknown = [a for a in spec.gpus.values() if a not in mine]
    if unknown:
        raise InputError(f"collectors: nvml: {unknown[0]!r} is no GPU of {host} in the wiring of {topo.name}")
    collector = NvmlCollector(
        host, addresses=spec.gpus, gpus=len(mine), links=mine, name=f"{host}:nvml",
        interval=spec.every, deadline=spec.deadline,
    )  # fmt: skip
    return [collector]
