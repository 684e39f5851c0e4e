"""Conversion between the forms of a trace: `.mcap`, `.jsonl` and `.jsonl.zst`."""

from __future__ import annotations

import os
from typing import Any

from replay.trace import open_trace
from replay.writing import Progress, Written, everything, rewrite
from twin.topology.model import Topology


def convert(
    source: str | os.PathLike[str], target: str | os.PathLike[str], *,
    topology: Topology | None = None, site: dict[str, Any] | None = None, progress: Progress | None = None,
) -> Written:  # fmt: skip
    """Writes the trace at `source` to `target`, in the form that the name of `target` says.

    A file that is there is replaced, and only by a finished one. topology, site: for a text trace that
    becomes an `.mcap`. A cut trace gives what is left of it. Raises InputError, and FabrictwinError where the
    target cannot be written.
    """
    trace = open_trace(source, topology=topology)
    kept = trace.site if site is None else site
    return rewrite([trace], target, everything(trace), lambda: trace.topology, kept, progress=progress)
