"""From the answers of all GPUs to the columns of two frames, in a few numpy steps."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from collectors.nvml.gpu import NUMBERS, UNREAD, Gpu
from collectors.nvml.library import UNKNOWN
from collectors.nvml.values import F64, TAG, U64, VALUE, WORDS, Decoder, Places
from twin.frames import Column
from twin.metrics import REGISTRY

T = TypeVar("T", bound=np.generic)

FLOAT_COUNTERS = ("energy_joules",)  # mJ in the driver
GPU_METRICS = tuple(name for kind, name in REGISTRY if kind == "gpu")
LINK_METRICS = tuple(name for kind, name in REGISTRY if kind == "nvlink")


def _is_whole(kind: str, metric: str) -> bool:
    return REGISTRY[kind, metric].counter and metric not in FLOAT_COUNTERS


# The rows of a sample. Names with a dot are no metrics: they are not in the frames. What calls give and not fields
# comes first, so that it is put in at once.
GPU_FLOATS = (
    *NUMBERS, *(m for m in GPU_METRICS if m not in NUMBERS and not _is_whole("gpu", m)),
    ".recovery_action", ".module_watts",
)  # fmt: skip
GPU_WHOLES = tuple(m for m in GPU_METRICS if _is_whole("gpu", m))
LINK_FLOATS = (".state", *(m for m in LINK_METRICS if m != "up" and not _is_whole("nvlink", m)))
LINK_WHOLES = tuple(m for m in LINK_METRICS if _is_whole("nvlink", m))
_GPU_SHOWN, _LINK_SHOWN = slice(None, -2), slice(1, None)
_TABLES = ((GPU_FLOATS, False), (LINK_FLOATS, True), (GPU_WHOLES, False), (LINK_WHOLES, True))  # (rows, of links?)


@dataclass(frozen=True, slots=True)
class Values:
    """One sample: a row a metric, a column a GPU or NVLink; NaN, or all ones, where unknown. Nobody else keeps it.

    gpu_floats: float64[GPU_FLOATS, gpus]; gpu_wholes: uint64[GPU_WHOLES, gpus]; those of links in the same way.
    """

    gpu_floats: F64
    link_floats: F64
    gpu_wholes: U64
    link_wholes: U64

    def gpu(self, metric: str) -> F64:
        """float64[gpus] of one of GPU_FLOATS."""
        row: F64 = self.gpu_floats[GPU_FLOATS.index(metric)]
        return row

    def link(self, metric: str) -> F64:
        """float64[links] of one of LINK_FLOATS."""
        row: F64 = self.link_floats[LINK_FLOATS.index(metric)]
        return row

    def gpu_columns(self) -> dict[str, Column]:
        columns: dict[str, Column] = dict(zip(GPU_FLOATS[_GPU_SHOWN], self.gpu_floats[_GPU_SHOWN], strict=True))
        columns.update(zip(GPU_WHOLES, self.gpu_wholes, strict=True))
        return columns

    def link_columns(self, up: F64) -> dict[str, Column]:
        columns: dict[str, Column] = {"up": up}
        columns.update(zip(LINK_FLOATS[_LINK_SHOWN], self.link_floats[_LINK_SHOWN], strict=True))
        columns.update(zip(LINK_WHOLES, self.link_wholes, strict=True))
        return columns


class Layout:
    """The names of all GPUs and NVLinks, and where their values lie in the entries, put one behind the other.

    Made anew when a GPU's plan changed.
    """

    def __init__(self, gpus: Sequence[Gpu]) -> None:
        self.plans = [g.plan for g in gpus]
        self.gpu_names = tuple(g.address for g in gpus)
        counts = [max(g.n_links, p.n_links) for g, p in zip(gpus, self.plans, strict=True)]
        self.link_names = tuple(f"{g.address}/nvlink{k}" for g, n in zip(gpus, counts, strict=True) for k in range(n))
        self.link_number = np.array([k for n in counts for k in range(n)], np.intp)
        self.link_gpu = np.repeat(np.arange(len(gpus)), counts)
        n_entries = sum(len(p.batch.words) for p in self.plans)
        self._words: U64 = np.zeros((n_entries + 1, WORDS), np.uint64)
        self._words[-1, TAG] = UNKNOWN << 32  # one more, which stands for all that nobody gives
        self._shapes = [
            (len(metrics), len(self.link_names if of_links else self.gpu_names)) for metrics, of_links in _TABLES
        ]
        sizes = [rows * columns for rows, columns in self._shapes]
        self._n_floats = sum(sizes[:2])
        places, scale = np.full(sum(sizes), n_entries, np.intp), np.ones(sum(sizes))
        self._fill(places, scale, np.cumsum([0, *counts]).tolist())
        self._tags, self._values = places * WORDS + TAG, places * WORDS + VALUE
        self._decoder = Decoder(scale, self._n_floats)

    def fits(self, gpus: Sequence[Gpu]) -> bool:
        return len(gpus) == len(self.plans) and all(g.plan is p for g, p in zip(gpus, self.plans, strict=True))

    def values(self, gpus: Sequence[Gpu], read: Collection[int]) -> Values:
        """What the GPUs of rows `read` answered; all of the others is unknown."""
        parts = [p.batch.words if row in read else p.batch.unread for row, p in enumerate(self.plans)]
        if parts:
            np.concatenate(parts, out=self._words[:-1])
        floats, wholes = self._decoder.read(self._words.take(self._tags), self._words.take(self._values))
        of_gpus, of_links = _tables(floats, self._shapes[:2])
        whole_of_gpus, whole_of_links = _tables(wholes, self._shapes[2:])
        numbers = chain.from_iterable(g.numbers if row in read else UNREAD for row, g in enumerate(gpus))
        called = np.fromiter(numbers, np.float64).reshape(-1, len(NUMBERS)).T
        np.copyto(of_gpus[: len(NUMBERS)], called, where=called == called)
        return Values(of_gpus, of_links, whole_of_gpus, whole_of_links)

    def _fill(self, places: Places, scale: F64, first_links: list[int]) -> None:
        """Where in the entries each value lies, and what it is multiplied with."""
        n = self._n_floats
        all_places = _tables(places[:n], self._shapes[:2]) + _tables(places[n:], self._shapes[2:])
        all_scales = _tables(scale[:n], self._shapes[:2]) + _tables(scale[n:], self._shapes[2:])
        start = 0
        for row, plan in enumerate(self.plans):
            for (metrics, of_links), to_places, to_scale in zip(_TABLES, all_places, all_scales, strict=True):
                first, count = (first_links[row], plan.n_links) if of_links else (row, 1)
                for metric, (at, source) in (plan.links if of_links else plan.gpu).items():
                    if metric in metrics:
                        mine = metrics.index(metric), slice(first, first + count)
                        to_places[mine] = start + at + np.arange(count)
                        to_scale[mine] = source.scale
            start += len(plan.batch.words)


def _tables(flat: npt.NDArray[T], shapes: Sequence[tuple[int, int]]) -> tuple[npt.NDArray[T], npt.NDArray[T]]:
    """Views of two tables that lie one behind the other: that of GPUs, that of NVLinks."""
    of_gpus, of_links = shapes
    cut = of_gpus[0] * of_gpus[1]
    return flat[:cut].reshape(of_gpus), flat[cut:].reshape(of_links)
