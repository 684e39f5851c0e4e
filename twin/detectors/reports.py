"""How long it takes until all have been heard once: what is seen of a part of them may look like something else."""

from __future__ import annotations

import numpy as np

from twin.frames import NS
from twin.sources import Sources

_SHARE = 0.9  # of an interval, which sources do not keep to the millisecond


def one_report(sources: Sources) -> float:
    """Seconds in which most sources report once, at least one."""
    return max(1.0, _SHARE * float(np.median(sources.expected())) / NS)
