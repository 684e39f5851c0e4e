"""A small fabric, the frames it sends while things break, and made-up frames of every shape."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
from hypothesis import strategies as st

from replay.recorder import Recorder
from twin.frames import NS, UNKNOWN_U64, Frame, column, to_line
from twin.metrics import KINDS, metrics_of
from twin.topology.model import Topology
from twin.topology.wiring import read_wiring
from twin.yamlfile import Document

T0 = 1_764_547_200 * NS
NODES, PLANES, NICS = 4, "AB", 2
SECONDS = 60


@cache
def fabric() -> Topology:
    """Four nodes of two GPUs and two NICs, each with a port in plane A and one in plane B; a leaf a plane."""
    wiring = {
        "name": "mini",
        "planes": list(PLANES),
        "nodes": [
            {"name": f"n{i}", "rack": "r0", "gpu_model": "b300", "gpus": 2, "nics": NICS, "ports_per_nic": 2}
            for i in range(NODES)
        ],
        "switches": [{"name": f"{p}-leaf-0", "tier": "leaf", "plane": p, "model": "sn5600"} for p in PLANES],
        "links": [
            {"a": f"n{i}/nic{k}/p{p}", "b": f"{PLANES[p]}-leaf-0/p{i * NICS + k}", "speed": "400G"}
            for i in range(NODES)
            for k in range(NICS)
            for p in range(len(PLANES))
        ],
        "racks": [{"name": "r0"}],
    }
    return read_wiring(Document("mini", json.dumps(wiring)))


def broken(second: int, port: str, seed: int) -> bool:
    """Plane B is down from 15 s to 30 s; `seed` breaks a few more links for a while."""
    if 15 <= second < 30 and (port.startswith("B-") or port.endswith("/p1")):
        return True
    dice = random.Random(f"{seed} {port.rpartition('/')[0]}")
    return dice.random() < 0.2 and dice.randrange(40) <= second % 50 < 25


def sample_frames(seconds: int = SECONDS, seed: int = 0) -> Iterator[Frame]:
    """What the small fabric sends, one frame a source, kind and second, at times that are whole microseconds."""
    topology = fabric()
    owners: dict[str, list[str]] = {}
    for name in topology.port_names:
        owners.setdefault(name.split("/")[0], []).append(name)
    for second in range(seconds):
        for k, (owner, ports) in enumerate(owners.items()):
            time = T0 + second * NS + k * 1_234_000
            up = np.array([0.0 if broken(second, port, seed) else 1.0 for port in ports])
            columns = {
                "up": up,
                "speed_bits_per_second": np.where(up > 0, 400e9, np.nan),
                "tx_bytes": np.array([second * 10**9 + i for i in range(len(ports))], dtype=np.uint64),
            }
            yield Frame(time, owner, "port", tuple(ports), columns)
            if owner.startswith("n"):
                gpus = (f"{owner}/gpu0", f"{owner}/gpu1")
                yield Frame(time, owner, "gpu", gpus, {"power_watts": np.array([500.25, 612.5]) + second})


def record(path: Path, frames: Iterator[Frame] | list[Frame], **options: object) -> Path:
    """Records `frames` of the small fabric at `path`."""
    with Recorder(path, fabric(), {"name": "mini"}, live=False, **options) as recorder:  # type: ignore[arg-type]
        for frame in frames:
            recorder.write(frame)
    return path


def write_text(path: Path, frames: Iterator[Frame] | list[Frame]) -> Path:
    """Writes `frames` as a text trace at `path`."""
    path.write_text("".join(to_line(frame) + "\n" for frame in frames))
    return path


_addresses = st.text(
    st.characters(exclude_categories=["Cs", "Cc", "Z"], exclude_characters="/"), min_size=1, max_size=8
)
_tails = {"gpu": "/gpu{}", "nvlink": "/gpu0/nvlink{}", "port": "/nic0/p{}", "psu": "/psu{}", "feed": "/feed{}"}
_u64 = st.integers(0, int(UNKNOWN_U64) - 1)
_f64 = st.floats(allow_nan=True, allow_infinity=False)


@st.composite
def any_frames(draw: st.DrawFn, *, text: bool = False) -> Frame:
    """A frame of any kind. text: only what the text form can hold, whose times are whole microseconds."""
    kind = draw(st.sampled_from(KINDS))
    count = draw(st.integers(1 if text else 0, 4))
    owner = draw(_addresses)
    names = tuple(owner + _tails.get(kind, "{}").format(i) for i in range(count))
    metrics = draw(st.lists(st.sampled_from(metrics_of(kind)), unique=True, min_size=0, max_size=4))
    columns = {}
    for metric in metrics:
        values = draw(st.lists(_u64 | st.none() if metric.counter else _f64, min_size=count, max_size=count))
        columns[metric.name] = column(values, counter=metric.counter)
    micros = draw(st.integers(0, 2**32 * 1_000_000 if text else 2**62 // 1000))
    nanos = 0 if text else draw(st.integers(0, 999))
    return Frame(micros * 1000 + nanos, draw(_addresses), kind, names, columns)


def known(frame: Frame) -> dict[tuple[str, str], float | int]:
    """The values of a frame that are known, by name and metric; what the text form has to keep."""
    found: dict[tuple[str, str], float | int] = {}
    for metric, values in frame.columns.items():
        for name, value in zip(frame.names, values.tolist(), strict=True):
            if value == value and not (values.dtype == np.uint64 and value == int(UNKNOWN_U64)):
                found[name, metric] = value
    return found
