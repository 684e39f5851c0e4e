"""A full sample of a host's ports: 8 NICs of two ports each, by the kernel's files and driver statistics."""

from __future__ import annotations

import asyncio
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from secrets import token_hex

from collectors import sysfs
from collectors.base import Collector
from collectors.ethtool import Ethtool
from collectors.infiniband_sysfs import InfinibandCollector
from collectors.netdev import NetdevCollector
from tests.benchmarks.measure import compare

PORTS = 16
SAMPLES = 50
INTERFACES = {f"v{n}": f"n0/nic{n // 2}/p{n % 2}" for n in range(PORTS)}
DEVICES = {(f"mlx5_{n}", 1): f"n0/nic{n // 2}/p{n % 2}" for n in range(PORTS)}


def run() -> Iterator[str]:
    """CPU of one sample of 16 interfaces (veth, in a namespace) beside `ethtool -S` for each and one `ip -s -j link`,
    and of 16 RoCE ports (files of a plain tree); each also beside the same with no file kept open."""
    if os.geteuid():
        yield "interfaces: needs root for a network namespace"
    else:
        yield from _in_namespace()
    with tempfile.TemporaryDirectory() as folder:
        _tree(Path(folder))
        ours, values = asyncio.run(_sample(InfinibandCollector(DEVICES, root=Path(folder))))
        with _nothing_kept_open():
            peer, _ = asyncio.run(_sample(InfinibandCollector(DEVICES, root=Path(folder))))
        yield compare(f"RoCE ports, {values} values", ours, "opening each file      ", peer)


def _in_namespace() -> Iterator[str]:
    name = f"ft{os.getpid()}-{token_hex(2)}-bench"
    subprocess.run(["ip", "netns", "add", name], check=True, timeout=20)
    try:
        lines = [f"link add v{n} up type veth peer name w{n}" for n in range(PORTS)]
        lines += [f"link set w{n} up" for n in range(PORTS)]
        subprocess.run(["ip", "-n", name, "-batch", "-"], input="\n".join(lines).encode(), check=True, timeout=20)
        command = ["ip", "netns", "exec", name, sys.executable, "-m", "tests.benchmarks.host"]
        done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=300)
        yield from done.stdout.splitlines()
    finally:
        subprocess.run(["ip", "netns", "del", name], check=True, timeout=20)


def _interfaces() -> Iterator[str]:
    """What is measured inside the namespace."""
    ours, values = asyncio.run(_sample(NetdevCollector("n0", INTERFACES)))
    yield compare(f"interfaces, {values} values", ours, "ethtool -S + ip -s link", _spawned())
    with _nothing_kept_open():
        peer, _ = asyncio.run(_sample(NetdevCollector("n0", INTERFACES)))
    yield compare(f"interfaces, {values} values", ours, "opening each file      ", peer)
    asked = Ethtool()
    ioctls = _cpu(lambda: [asked.values(interface) for interface in INTERFACES])
    yield compare("  of it, driver statistics", ioctls, "ethtool -S             ", _spawned(link=False))


async def _sample(collector: Collector) -> tuple[float, int]:
    """Median CPU seconds of a sample, after one that is not counted, and how many values it has."""
    sample = await collector.collect()
    times = []
    for _ in range(SAMPLES):
        start = time.process_time()
        sample = await collector.collect()
        times.append(time.process_time() - start)
    await collector.close()
    return statistics.median(times), sum(len(f.names) * len(f.columns) for f in sample.frames)


def _cpu(work: Callable[[], object]) -> float:
    work()
    start = time.process_time()
    for _ in range(SAMPLES):
        work()
    return (time.process_time() - start) / SAMPLES


def _spawned(link: bool = True) -> float:
    """CPU seconds of the programs, and of starting them, for the same ports."""
    commands = [["ethtool", "-S", interface] for interface in INTERFACES]
    commands += [["ip", "-s", "-j", "link"]] * link
    runs = 5

    def used() -> float:
        times = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return sum(t.ru_utime + t.ru_stime for t in times)

    start = used()
    for _ in range(runs):
        for command in commands:
            subprocess.run(command, capture_output=True, check=True, timeout=20)
    return (used() - start) / runs


class _nothing_kept_open:
    def __enter__(self) -> None:
        self._kept = sysfs._KEPT_OPEN
        sysfs._KEPT_OPEN = threading.Semaphore(0)

    def __exit__(self, *_: object) -> None:
        sysfs._KEPT_OPEN = self._kept


def _tree(root: Path) -> None:
    counters = ("port_xmit_data", "port_rcv_data", "port_xmit_packets", "port_rcv_packets")
    hw = (
        "np_ecn_marked_roce_packets", "np_cnp_sent", "rp_cnp_handled", "out_of_sequence", "packet_seq_err",
        "local_ack_timeout_err", "roce_adp_retrans",
    )  # fmt: skip
    for device, port in DEVICES:
        path = root / "class/infiniband" / device / "ports" / str(port)
        files = {
            "state": "4: ACTIVE",
            "phys_state": "5: LinkUp",
            "rate": "400 Gb/sec (4X NDR)",
            "link_layer": "Ethernet",
        }
        files |= {f"counters/{name}": "123456789" for name in counters} | {
            f"hw_counters/{name}": "12345" for name in hw
        }
        for name, text in files.items():
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            (path / name).write_text(text)


if __name__ == "__main__":
    for line in _interfaces():
        print(line)
