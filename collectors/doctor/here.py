"""What a host without a site file is watched by, in two lines for a person."""

from __future__ import annotations

from collections.abc import Sequence

from collectors.base import CollectorError
from collectors.nvml.library import Library
from twin.topology.model import Topology

_MOST = 6  # names in a line
_HINT = "For a fabric, name a site file: `fabrictwin watch site.yaml`; `fabrictwin doctor` says what is missing here."


def no_gpu_reason() -> str | None:
    """Why NVML gives nothing, in a few words; None where it can be opened. It may block while a driver wakes."""
    library = Library()
    try:
        library.open()
    except CollectorError as problem:
        return "library not found" if isinstance(problem.__cause__, OSError) else str(problem).removeprefix("NVML: ")
    library.close()
    return None


def here(topology: Topology) -> tuple[str, str]:
    """topology: of `collectors.build.build_own`, whose labels name the devices of each port."""
    words = [word for address in topology.port_names for word in topology.labels.get(address, "").split()]
    rdma, net = [w for w in words if "/" in w], [w for w in words if "/" not in w]
    gpus = len(topology.gpu_names)
    lacking = []
    if not gpus:
        reason = no_gpu_reason()
        lacking.append("no GPU" if reason is None else f"no GPU (NVML: {reason})")
    if not rdma:
        lacking.append("no InfiniBand")
    watching = [_count(gpus, "GPU")] if gpus else []
    for what, names in (("RDMA port", rdma), ("network interface", net)):
        if names:
            alone = not gpus and not (rdma and net)
            listed = f": {_listed(names)}" if alone else f" ({_listed(names)})"
            watching.append(_count(len(names), what) + listed)
    line = f"watching {_and(watching)}" if watching else "nothing to watch"
    if lacking:
        line = f"{_and(lacking)} here; {line}"
    return line[0].upper() + line[1:], _HINT if len(lacking) == 2 else _guess(topology)


def _guess(topology: Topology) -> str:
    """What the wiring of one host had to guess."""
    note = topology.notes[0] if topology.notes else _HINT
    return note[0].upper() + note[1:]


def _count(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:_MOST]) + (f" and {len(names) - _MOST} more" if len(names) > _MOST else "")


def _and(parts: Sequence[str]) -> str:
    return " and ".join(part for part in (", ".join(parts[:-1]), parts[-1]) if part)
