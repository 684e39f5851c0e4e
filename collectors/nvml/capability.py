"""What can be had of each GPU through NVML, and why the rest cannot: what `doctor` shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from collectors.nvml import fields, slow
from collectors.nvml.columns import GPU_METRICS, LINK_METRICS
from collectors.nvml.events import Events
from collectors.nvml.fields import NARROW
from collectors.nvml.gpu import Gpu
from collectors.nvml.library import (
    DEPRECATED,
    FUNCTION_NOT_FOUND,
    INVALID_ARGUMENT,
    NO_PERMISSION,
    NOT_SUPPORTED,
    WRONG_VERSION,
    said,
)  # fmt: skip

Lacking = Literal["gpu", "driver", "library", "permission", "trouble"]

# By what a call is answered that asks for something which is not there. A field that the driver does not know is a
# wrong argument to it; a function or a layout that is missing is one of a later library.
_LACKING: dict[int, Lacking] = {
    NOT_SUPPORTED: "gpu", NARROW: "driver", INVALID_ARGUMENT: "driver", DEPRECATED: "driver",
    FUNCTION_NOT_FOUND: "library", WRONG_VERSION: "library", NO_PERMISSION: "permission",
}  # fmt: skip
# metrics of the registry that go by another name where they are read
_READ_AS = {"up": ".state", "fabric_state": ".fabric"}
_OF_GPU = (*GPU_METRICS, *(m for m in (*fields.GPU_FIELDS, *slow.GPU_FIELDS, *slow.CALLS) if m.startswith(".")))
_OF_LINKS = (*LINK_METRICS, *slow.LINK_FIELDS)


@dataclass(frozen=True, slots=True)
class Capability:
    """Whether one thing can be had of a GPU or of its NVLinks.

    address: of the GPU. metric: a name of the registry, or what else is read: recovery_action, module_watts,
    remap_pending, remap_failed, effective_ber, symbol_ber, fabric (cluster, clique, health), mig, place (rack, tray).
    source: the field or call that gives it, None where nothing does; then lacking says who does not have it, with
    `trouble` for a GPU that does not answer now, and reason says so in words.
    """

    address: str
    metric: str
    source: str | None
    lacking: Lacking | None = None
    reason: str | None = None


def capabilities(gpu: Gpu, events: Events | None) -> list[Capability]:
    """All that is read of a GPU, and of its NVLinks where it has any."""
    metrics = (*_OF_GPU, *(_OF_LINKS if gpu.n_links else ()))
    return [_capability(gpu, metric, events) for metric in metrics]


def _capability(gpu: Gpu, metric: str, events: Events | None) -> Capability:
    shown = metric.removeprefix(".")
    if gpu.fault:
        return Capability(gpu.address, shown, None, "trouble", said(gpu.fault))
    if metric == "xid":
        if events is not None and gpu.handle is not None and gpu.handle.value in events.xid:
            return Capability(gpu.address, shown, "events")
        return Capability(gpu.address, shown, None, "gpu", "events are not supported")
    metric = _READ_AS.get(metric, metric)
    source = _source(gpu, metric)
    if source is not None:
        return Capability(gpu.address, shown, source)
    code = _code(gpu, metric)
    reason = "only 32 bits, which wrap within a sample" if code == NARROW else said(code)
    return Capability(gpu.address, shown, None, _LACKING.get(code, "trouble"), reason)


def _source(gpu: Gpu, metric: str) -> str | None:
    for plan in (gpu.plan, *(() if gpu.slow is None else (gpu.slow.plan,))):
        for table in (plan.gpu, plan.links):
            if metric in table:
                return f"field {table[metric][1].field}"
    if metric in slow.CALLS:
        return slow.CALLS[metric] if gpu.slow is not None and metric not in gpu.slow.lacking else None
    return None if gpu.answers is None else gpu.answers.source(metric)


def _code(gpu: Gpu, metric: str) -> int:
    """The nvmlReturn_t for what is lacking; that of an older call where one stands behind."""
    found = dict(gpu.plan.lacking)
    if gpu.slow is not None:
        found |= gpu.slow.lacking
    if gpu.answers is not None:
        found |= gpu.answers.lacking
    return found.get(metric, NOT_SUPPORTED)
