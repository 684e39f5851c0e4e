"""SimGrid as a second opinion on completion times: its CM02 model without cross-traffic, which is max-min fair.

Debian's bindings belong to the system's Python, so this file is also the program that runs there; it imports
nothing of the project. A star zone joins two hosts by the links out of the one and into the other, so a pair of hosts
a flow, with the whole path as the way out of the first, gives every flow just the path wanted.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

PYTHON = "/usr/bin/python3"
OPTIONS = ("network/model:CM02", "network/crosstraffic:0", "maxmin/precision:1e-9")  # the last is 1e-5 as shipped


class Answer(NamedTuple):
    """times: when each transfer was done. seconds: what the simulation itself took, without making the platform."""

    times: list[float]
    seconds: float


def installed() -> bool:
    return any(Path("/usr/lib/python3/dist-packages").glob("simgrid.*.so"))


def transfers(paths: Sequence[Sequence[int]], capacity: Sequence[float], size: Sequence[int]) -> Answer:
    """All transfers from time 0. paths: rows of `capacity` (bytes/s) of each flow. size: bytes."""
    asked = json.dumps({"paths": paths, "capacity": capacity, "size": size})
    out = subprocess.run([PYTHON, __file__], input=asked, capture_output=True, text=True, timeout=900)
    if out.returncode:
        raise RuntimeError(f"SimGrid: {out.stderr[-2000:]}")
    return Answer(*json.loads(out.stdout))


def main() -> None:
    from simgrid import Actor, Comm, Engine, LinkInRoute, NetZone  # type: ignore[import-not-found]

    asked = json.load(sys.stdin)
    engine = Engine(["rig", *(f"--cfg={option}" for option in OPTIONS)])
    zone = NetZone.create_star_zone("fabric")
    links = [zone.create_link(f"link{i}", c).set_latency(0).seal() for i, c in enumerate(asked["capacity"])]
    ends = []
    for i, path in enumerate(asked["paths"]):
        source, target = zone.create_host(f"source{i}", 1e9), zone.create_host(f"target{i}", 1e9)
        way = [LinkInRoute(links[link]) for link in path]
        zone.add_route(source.netpoint, None, None, None, way, False)
        zone.add_route(None, target.netpoint, None, None, [], False)
        ends.append((source, target))
    zone.seal()
    times: list[float] = []

    def send_all() -> None:
        comms = [Comm.sendto_async(*end, size) for end, size in zip(ends, asked["size"], strict=True)]
        Comm.wait_all(comms)
        times.extend(comm.finish_time for comm in comms)

    Actor.create("all", ends[0][0], send_all)
    start = time.perf_counter()
    engine.run()
    print(json.dumps([times, time.perf_counter() - start]))


if __name__ == "__main__":
    sys.path = [entry for entry in sys.path if Path(entry or ".").resolve() != Path(__file__).parent]
    main()
