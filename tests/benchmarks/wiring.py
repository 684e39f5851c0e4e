"""Building the wiring."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator

from twin.topology.presets import preset
from twin.topology.summary import summary

LARGEST = (
    ("b300-superpod-ethernet", "scalable_units", 16),
    ("b300-superpod-xdr", "scalable_units", 18),
    ("meta-24k-roce", "pods", 8),
    ("mrc-8plane", "racks", 1389),  # the first whole rack beyond 100,000 GPUs
)


def run() -> Iterator[str]:
    """The largest presets, each built in a process of its own for its memory, beside a networkx-like dict graph."""
    for name, size, units in LARGEST:
        code = f"import tests.benchmarks.wiring as w; w.child({name!r}, {size!r}, {units})"
        out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
        found = json.loads(out.stdout)
        yield (
            f"{name} x {units}: {found['gpus']} GPUs in {found['seconds']:.2f} s, dict graph {found['peer']:.2f} s "
            f"(ratio {found['seconds'] / found['peer']:.1f}), process peak when built {found['mib']:.0f} MiB"
        )


def child(name: str, size: str, units: int) -> None:
    start = time.perf_counter()
    topo = preset(name, **{size: units})
    seconds = time.perf_counter() - start
    built = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    start = time.perf_counter()
    graph: dict[str, dict[str, float]] = {}
    ports = topo.port_names
    for a, b, speed in zip(topo.links.a.tolist(), topo.links.b.tolist(), topo.links.speed.tolist(), strict=True):
        graph.setdefault(ports[a], {})[ports[b]] = speed
        graph.setdefault(ports[b], {})[ports[a]] = speed
    peer = time.perf_counter() - start
    print(json.dumps({"gpus": summary(topo)["gpus"], "seconds": seconds, "peer": peer, "mib": built}))
