"""Which NVLinks are up: what their state says, and whether one that is inactive is missed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from collectors.nvml.columns import Layout
from collectors.nvml.gpu import Gpu
from collectors.nvml.values import F64

Bools = npt.NDArray[np.bool_]
# NVML_NVLINK_STATE_*: 0 inactive, 1 active, 2 sleep (idle, wakes by itself), 3 active with traffic disabled
_UP = np.array([0.0, 1.0, 1.0, 0.0, np.nan])


class Links:
    """The NVLinks of a layout. An inactive one is down if the design has it or it was seen active; else unknown.

    NVLink may be absent by design: no bridge, a single GPU. up: float64[links], 1, 0 or NaN; active: where it is 1.
    """

    def __init__(
        self, layout: Layout, gpus: Sequence[Gpu], design: int | Mapping[str, int], before: Links | None
    ) -> None:
        """design: NVLinks that an address, or every GPU, is to have. before: what was seen active stays so."""
        seen = set() if before is None else before._names_seen()
        designed = [design if isinstance(design, int) else design.get(g.address, 0) for g in gpus]
        self._names, self._gpu = layout.link_names, layout.link_gpu
        self._designed: Bools = layout.link_number < np.array(designed, np.intp)[layout.link_gpu]
        self._seen: Bools = np.array([name in seen for name in self._names], bool)
        self._state: F64 | None = None
        self._bytes = b""
        self.up: F64 = np.full(len(self._names), np.nan)
        self.active: Bools = np.zeros(len(self._names), bool)

    def judge(self, state: F64) -> list[int]:
        """Takes float64[links] of states. Returns rows of the GPUs of which a link changed since the last time."""
        text = state.tobytes()
        if text == self._bytes:
            return []
        before, self._state, self._bytes = self._state, state, text
        known = (state >= 0) & (state < len(_UP) - 1)
        up = _UP[np.where(known, state, len(_UP) - 1).astype(np.intp)]
        self._seen |= up == 1
        up[(up == 0) & ~self._seen & ~self._designed] = np.nan
        self.up, self.active = up, up == 1
        if before is None:
            return []
        rows: list[int] = np.unique(self._gpu[~np.equal(state, before)]).tolist()
        return rows

    def _names_seen(self) -> set[str]:
        return {name for name, seen in zip(self._names, self._seen.tolist(), strict=True) if seen}
