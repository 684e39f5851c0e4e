"""From the entries of all GPUs to the columns of two frames, in a few numpy steps."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import numpy.typing as npt

from collectors.nvml.fields import F64, U64, Plan, decode, scaled
from collectors.nvml.gpu import Gpu
from twin.frames import UNKNOWN_U64, Column
from twin.metrics import REGISTRY

Places = npt.NDArray[np.intp]
FLOAT_COUNTERS = ("energy_joules",)  # mJ in the driver
# NVML_NVLINK_STATE_*: 0 inactive, 1 active, 2 sleep (idle, wakes by itself), 3 active with traffic disabled
_UP = np.array([0.0, 1.0, 1.0, 0.0])
GPU_METRICS = tuple(name for kind, name in REGISTRY if kind == "gpu")
LINK_METRICS = tuple(name for kind, name in REGISTRY if kind == "nvlink")


class Layout:
    """Where each value of each metric lies in the entries of all GPUs, put one behind the other.

    Made anew when a GPU's plan changed; place -1 is a value that nobody gives.
    """

    def __init__(self, gpus: Sequence[Gpu]) -> None:
        self.plans: list[Plan] = [g.plan for g in gpus]
        self.gpu_names = tuple(g.address for g in gpus)
        counts = [max(g.n_links, p.n_links) for g, p in zip(gpus, self.plans, strict=True)]
        self.counts = counts
        self.link_names = tuple(f"{g.address}/nvlink{k}" for g, n in zip(gpus, counts, strict=True) for k in range(n))
        self.link_number = np.array([k for n in counts for k in range(n)], np.intp)
        self.link_gpu = np.repeat(np.arange(len(gpus)), counts)
        self.gpu: dict[str, tuple[Places, F64]] = {}
        self.links: dict[str, tuple[Places, F64]] = {}
        start = 0
        first_link = np.cumsum([0, *counts])
        for row, plan in enumerate(self.plans):
            for metric, (at, source) in plan.gpu.items():
                places, scale = self._row(self.gpu, metric, len(gpus))
                places[row], scale[row] = start + at, source.scale
            for metric, (at, source) in plan.links.items():
                places, scale = self._row(self.links, metric, len(self.link_names))
                mine = slice(first_link[row], first_link[row] + plan.n_links)
                places[mine], scale[mine] = start + at + np.arange(plan.n_links), source.scale
            start += len(plan.batch.entries)

    def fits(self, gpus: Sequence[Gpu]) -> bool:
        return len(gpus) == len(self.plans) and all(g.plan is p for g, p in zip(gpus, self.plans, strict=True))

    @staticmethod
    def _row(table: dict[str, tuple[Places, F64]], metric: str, n: int) -> tuple[Places, F64]:
        if metric not in table:
            table[metric] = (np.full(n, -1, np.intp), np.ones(n))
        return table[metric]

    def values(self, read: Collection[int]) -> Values:
        """What the GPUs of rows `read` answered; those of the others are unknown."""
        parts = [p.batch.entries if row in read else p.batch.unread for row, p in enumerate(self.plans)]
        floats, wholes = decode(np.concatenate(parts)) if parts else (np.zeros(0), np.zeros(0, np.uint64))
        return Values(self, np.append(floats, np.nan), np.append(wholes, UNKNOWN_U64))


class Values:
    """One sample: float64 and uint64 of every entry, and one more that is unknown."""

    def __init__(self, layout: Layout, floats: F64, wholes: U64) -> None:
        self._layout, self._floats, self._wholes = layout, floats, wholes

    def gauge(self, kind: str, metric: str) -> F64 | None:
        """float64[names], None where no GPU gives it."""
        found = (self._layout.gpu if kind == "gpu" else self._layout.links).get(metric)
        return None if found is None else self._floats[found[0]] * found[1]

    def column(self, kind: str, metric: str) -> Column | None:
        if not REGISTRY[kind, metric].counter or metric in FLOAT_COUNTERS:
            return self.gauge(kind, metric)
        found = (self._layout.gpu if kind == "gpu" else self._layout.links).get(metric)
        return None if found is None else scaled(self._wholes[found[0]], found[1].astype(np.uint64))

    def up(self) -> F64:
        """float64[links]: 1, 0, NaN where the state is unknown."""
        state = self.gauge("nvlink", ".state")
        if state is None:
            return np.full(len(self._layout.link_names), np.nan)
        known = (state >= 0) & (state < len(_UP))
        return np.where(known, _UP[np.where(known, state, 0).astype(np.intp)], np.nan)


def unknown(kind: str, metric: str, n: int) -> Column:
    """A column of which nothing is known."""
    if REGISTRY[kind, metric].counter and metric not in FLOAT_COUNTERS:
        return np.full(n, UNKNOWN_U64, np.uint64)
    return np.full(n, np.nan)
