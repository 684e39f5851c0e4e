"""What the tests of the NVML collector share: the stand-in in this process, a clock to set, and frames as rows."""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from collectors.base import Sample
from collectors.nvml import NvmlCollector
from tests.conftest import give_up
from tests.rigs.nvml.rig import FakeGpu, Standin, build, gpu
from twin.frames import as_float


class Time:
    """A monotonic clock that a test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def rows(sample: Sample) -> dict[str, dict[str, float]]:
    """Address -> metric -> value; what is unknown is left out."""
    out: dict[str, dict[str, float]] = {}
    for frame in sample.frames:
        for i, name in enumerate(frame.names):
            values = {m: float(as_float(c)[i]) for m, c in frame.columns.items()}
            out[name] = {m: v for m, v in values.items() if not math.isnan(v)}
    return out


def eight(**options: object) -> list[FakeGpu]:
    return [gpu(i, **options) for i in range(8)]  # type: ignore[arg-type]


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("cc") is None:
        give_up("no C compiler for the stand-in of NVML")
    return build(tmp_path_factory.mktemp("nvml"))


@pytest.fixture
def nvml(library: Path, tmp_path: Path) -> Iterator[Standin]:
    standin = Standin(library, tmp_path / "machine.txt")
    yield standin
    standin.write([])  # whoever still waits in a call comes back


def collector(time: Time | None = None, **options: object) -> NvmlCollector:
    return NvmlCollector("n0", monotonic=time or Time(), **options)  # type: ignore[arg-type]
