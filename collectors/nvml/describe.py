"""What NVML tells of a host's wiring as plain data: `topology nvml` prints it, `discover --nvml` reads it."""

from __future__ import annotations

from typing import Any

from collectors.nvml.discovery import FoundGpu, NvmlHost


def describe(found: NvmlHost) -> dict[str, Any]:
    """JSON values; `twin.topology.importers.nvml` reads them back. speed: bytes/s of a link in one direction."""
    return {
        "host": found.host,
        "driver": found.driver,
        "gpu_model": found.model,
        "rack": next((g.place.chassis for g in found.gpus if g.place is not None and g.place.chassis), None),
        "gpus": [_gpu(gpu) for gpu in found.gpus],
        "domains": [
            {
                "name": name,
                "gpus": members,
                "links_per_gpu": links,
                "speed": speed if speed == speed else None,
                "shared": any(found.gpus[i].domain is not None for i in members),
            }
            for name, members, links, speed in found.groups()
        ],
    }


def _gpu(gpu: FoundGpu) -> dict[str, Any]:
    identity, place = gpu.identity, gpu.place
    return {
        "uuid": identity and identity.uuid,
        "pci": identity and identity.pci,
        "board": identity and identity.board,
        "slot": place and place.slot,
        "tray": place and place.tray,
        "module": place and place.module,
        "links": [
            {"active": link.active, "far": link.far, "far_pci": link.far_pci, "far_link": link.far_link}
            for link in gpu.links
        ],
        "problem": gpu.problem,
    }
