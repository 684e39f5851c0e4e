"""A real two-plane fabric from network namespaces: hosts that route, switches that bridge, cables to cut.

Every cable is two veth pairs. Their inner ends, the middles, meet in one "wire" namespace, where each
redirects what it receives to the other. A cut downs both middles, so both ports lose carrier as from a pulled
cable; downing a port instead would delete its routes, and a cable cut at one end only would swallow answers.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from pathlib import Path
from secrets import token_hex
from socket import inet_aton
from typing import Literal, Self

PLANES = ("A", "B")
WIRE = "wire"
TOOLS = ("ip", "tc", "iperf3", "mount", "nsenter", "sysctl", "timeout", "umount")
NAMESPACES = Path("/run/netns")
# A host's address in routes, and what it has at a plane's port, by the host's number.
ROUTED, HOP, MAC = "10.255.0.{}", "10.{}.0.{}", "02:00:00:00:{:02x}:{:02x}"
MOUNT_SYSFS = ("mount", "-t", "sysfs", "-o", "ro,nosuid,nodev,noexec", "sysfs")
LIMIT = "qdisc add dev {} root tbf rate {}mbit burst 64kb limit 256kb"
REDIRECT = "filter add dev {} ingress protocol all u32 match u32 0 0 action mirred egress redirect dev {}"

SWITCH_SYSCTL = {"net.ipv6.conf.default.disable_ipv6": 1}
HOST_SYSCTL = SWITCH_SYSCTL | {
    "net.ipv4.conf.all.ignore_routes_with_linkdown": 1,
    "net.ipv4.fib_multipath_hash_policy": 1,
    # Streams that a cut has stalled try again every second (since Linux 6.15), and do not give up meanwhile.
    "net.ipv4.tcp_rto_max_ms": 1000,
    "net.ipv4.tcp_retries2": 255,
}

Kind = Literal["host", "uplink"]
Process = subprocess.Popen[bytes]


class RigError(RuntimeError):
    """A tool failed while the rig was built, used or removed."""


@dataclass(frozen=True)
class Cable:
    """A cable between two addresses, the lower tier's first; `middles` lie in the wire namespace."""

    plane: str
    kind: Kind
    a: str
    b: str
    rate_mbit: int
    middles: tuple[str, str]


@dataclass(frozen=True)
class Traffic:
    """Senders and receivers, which run until their time is up or they are stopped."""

    servers: list[Process] = field(default_factory=list)
    clients: list[Process] = field(default_factory=list)

    @property
    def running(self) -> bool:
        return all(client.poll() is None for client in self.clients)

    def stop(self) -> None:
        _end([*self.clients, *self.servers])


class TwoPlanes:
    """Hosts `h0` up and, per plane, some leaves under one spine; built on enter, removed on exit."""

    def __init__(self, hosts: int = 4, leaves: int = 2, rate_mbit: int = 200) -> None:
        if not 0 < leaves <= hosts <= 250 or hosts % leaves:
            raise ValueError(f"{hosts} hosts over {leaves} leaves: expected a multiple, at most 250")
        self.prefix = f"ft{os.getpid()}-{token_hex(2)}-"
        self.rate_mbit = rate_mbit
        self.hosts_per_leaf = hosts // leaves
        self.hosts = [f"h{n}" for n in range(hosts)]
        self.leaves = [f"{plane}-leaf-{n}" for plane in PLANES for n in range(leaves)]
        self.spines = [f"{plane}-spine-0" for plane in PLANES]
        self.nodes = [*self.hosts, *self.leaves, *self.spines]
        self.cables = list(self._plan())
        self._listening_ports = count(5201)
        self._processes: list[Process] = []
        self._directory: Path | None = None

    def _plan(self) -> Iterator[Cable]:
        size, rate = self.hosts_per_leaf, self.rate_mbit
        middles = ((f"w{n}a", f"w{n}b") for n in count())
        for p, plane in enumerate(PLANES):
            for h, host in enumerate(self.hosts):
                port = f"{plane}-leaf-{h // size}/p{h % size}"
                yield Cable(plane, "host", f"{host}/nic0/p{p}", port, rate, next(middles))
            for n in range(len(self.hosts) // size):
                ends = f"{plane}-leaf-{n}/p{size}", f"{plane}-spine-0/p{n}"
                yield Cable(plane, "uplink", *ends, rate * size, next(middles))

    def __enter__(self) -> Self:
        try:
            self._build()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _build(self) -> None:
        self._directory = Path(tempfile.mkdtemp(prefix=self.prefix))
        for node in (WIRE, *self.nodes):
            name = self.namespace(node)
            wanted = HOST_SYSCTL if node in self.hosts else SWITCH_SYSCTL
            _run("ip", "netns", "add", name)
            _run("ip", "netns", "exec", name, "sysctl", "-qew", *(f"{k}={v}" for k, v in wanted.items()))
        self._lay_cables()
        for node in (*self.leaves, *self.spines):
            ports = [f"link set {port} master br0 up" for port, _ in self._ports(node)]
            self._batch("ip", node, ["link add br0 up type bridge stp_state 0 mcast_snooping 0", *ports])
        for number, host in enumerate(self.hosts, start=1):
            self._batch("ip", host, self._host_lines(number))
        for node in self.nodes:
            self.sysfs(node).mkdir()
            inside = f"--net={NAMESPACES / self.namespace(node)}"
            _run("nsenter", inside, *MOUNT_SYSFS, str(self.sysfs(node)))

    def _lay_cables(self) -> None:
        links: list[str] = []
        joints: list[str] = []
        for cable in self.cables:
            for address, middle in zip((cable.a, cable.b), cable.middles, strict=True):
                node, port = _place(address)
                links.append(f"link add {middle} up type veth peer name {port} netns {self.namespace(node)}")
                joints.append(f"qdisc add dev {middle} clsact")
            joints += [REDIRECT.format(*cable.middles), REDIRECT.format(*cable.middles[::-1])]
        self._batch("ip", WIRE, links)
        self._batch("tc", WIRE, joints)
        for node in self.nodes:
            self._batch("tc", node, [LIMIT.format(port, cable.rate_mbit) for port, cable in self._ports(node)])

    def _host_lines(self, me: int) -> Iterator[str]:
        """A routed address on lo, one a plane, and to every other host one route over both planes."""
        others = [n for n, _ in enumerate(self.hosts, start=1) if n != me]
        yield from ("link set lo up", f"addr add {ROUTED.format(me)}/32 dev lo")
        for p, _ in enumerate(PLANES):
            yield f"link set nic0p{p} up address {MAC.format(p, me)}"
            yield f"addr add {HOP.format(p, me)}/24 dev nic0p{p}"
            # Fixed neighbours, so that traffic moves by carrier alone and not by what was last heard of whom.
            yield from (f"neigh add {HOP.format(p, n)} lladdr {MAC.format(p, n)} dev nic0p{p}" for n in others)
        for n in others:
            hops = (f"nexthop via {HOP.format(p, n)} dev nic0p{p}" for p, _ in enumerate(PLANES))
            yield f"route add {ROUTED.format(n)} src {ROUTED.format(me)} {' '.join(hops)}"

    def close(self) -> None:
        """Remove all that this rig made, in whatever state it is."""
        _end(self._processes)
        mounts = sorted(self._directory.iterdir()) if self._directory else []
        # lazily: a collector that was stopped may be in the middle of reading a file
        steps = [["umount", "--lazy", str(path)] for path in mounts if path.is_mount()]
        steps += [["ip", "netns", "del", path.name] for path in NAMESPACES.glob(f"{self.prefix}*")]
        if failures := [failure for step in steps if (failure := _failure(*step))]:
            raise RigError("; ".join(failures))
        if self._directory:
            for path in (*mounts, self._directory):
                path.rmdir()
        self._directory = None

    def namespace(self, node: str) -> str:
        return self.prefix + node

    def sysfs(self, node: str) -> Path:
        """The node's own /sys, live and read-only: `<path>/class/net/nic0p0/statistics/rx_bytes`."""
        if self._directory is None:
            raise RigError(f"sysfs of {node}: the rig is not built; use it in a with statement")
        return self._directory / node

    def cable(self, address: str) -> Cable:
        """The cable with an end at this address."""
        return next(cable for cable in self.cables if address in (cable.a, cable.b))

    def plane_cables(self, plane: str, kind: Kind | None = None) -> list[Cable]:
        return [cable for cable in self.cables if cable.plane == plane and kind in (None, cable.kind)]

    def cut(self, cables: Iterable[Cable]) -> None:
        self._batch("ip", WIRE, [f"link set {m} down" for cable in cables for m in cable.middles])

    def heal(self, cables: Iterable[Cable]) -> None:
        self._batch("ip", WIRE, [f"link set {m} up" for cable in cables for m in cable.middles])

    def spawn(self, node: str, *argv: str, seconds: float) -> Process:
        """Start a process in a node's namespace; it ends with the rig, and in any case after `seconds`."""
        limit = ("timeout", "--kill-after=1", str(seconds))
        command = ("ip", "netns", "exec", self.namespace(node), *limit, *argv)
        null = subprocess.DEVNULL
        self._processes.append(subprocess.Popen(command, stdin=null, stdout=null, stderr=null))
        return self._processes[-1]

    def start_traffic(
        self, pairs: Iterable[tuple[str, str]] | None = None, seconds: int = 30, streams: int = 8
    ) -> Traffic:
        """Send both ways between pairs of hosts; by default between all, each with one under another leaf."""
        halves = zip(self.hosts, self.hosts[len(self.hosts) // 2 :], strict=False)
        traffic = Traffic()
        for a, b in halves if pairs is None else pairs:
            address, port = ROUTED.format(self.hosts.index(b) + 1), next(self._listening_ports)
            serve = f"iperf3 -s -1 -B {address} -p {port}"
            send = f"iperf3 -c {address} -p {port} --bidir -P {streams} -t {seconds}"
            traffic.servers.append(self.spawn(b, *serve.split(), seconds=seconds + 10))
            _wait_for_listener(traffic.servers[-1], address, port)
            traffic.clients.append(self.spawn(a, *send.split(), seconds=seconds + 5))
        return traffic

    def site(self) -> dict[str, object]:
        """The wiring in a site file's explicit form."""
        node = {"gpu_model": "unknown", "gpus": 1, "nics": 1, "ports_per_nic": len(PLANES)}
        racks = [f"r{n // self.hosts_per_leaf}" for n, _ in enumerate(self.hosts)]
        tiers = [(name, "leaf") for name in self.leaves] + [(name, "spine") for name in self.spines]
        return {
            "name": "netns",
            "planes": list(PLANES),
            "nodes": [{"name": h, "rack": rack} | node for h, rack in zip(self.hosts, racks, strict=True)],
            "switches": [{"name": s, "tier": tier, "plane": s[0], "ports": len(self._ports(s))} for s, tier in tiers],
            "links": [{"a": c.a, "b": c.b, "speed": f"{c.rate_mbit}M"} for c in self.cables],
        }

    def _ports(self, node: str) -> list[tuple[str, Cable]]:
        ends = [(*_place(address), cable) for cable in self.cables for address in (cable.a, cable.b)]
        return [(port, cable) for owner, port, cable in ends if owner == node]

    def _batch(self, tool: str, node: str, lines: Iterable[str]) -> None:
        _run(tool, "-n", self.namespace(node), "-batch", "-", stdin="\n".join(lines))


@cache
def missing_requirements() -> list[str]:
    """What this machine lacks for the rig, tried out in a scratch namespace; empty if nothing."""
    missing = [f"tool {tool}" for tool in TOOLS if not shutil.which(tool)] + ["root"] * bool(os.geteuid())
    scratch = f"ft{os.getpid()}-{token_hex(2)}-probe"
    if missing or (failure := _failure("ip", "netns", "add", scratch)):
        return missing or [f"network namespaces ({failure})"]
    parts = {
        "veth": "ip link add v0 type veth peer name v1",
        "bridge": "ip link add br0 type bridge",
        "tbf": f"tc {LIMIT.format('v0', 1)}",
        "clsact": "tc qdisc add dev v0 clsact",
        "u32 or mirred": f"tc {REDIRECT.format('v0', 'v1')}",
    }
    tried = {part: _failure("ip", "netns", "exec", scratch, *line.split()) for part, line in parts.items()}
    _run("ip", "netns", "del", scratch)
    return [f"kernel part {part} ({failure})" for part, failure in tried.items() if failure]


def _place(address: str) -> tuple[str, str]:
    """Node and interface of an address: `h0/nic0/p0` is `nic0p0` in `h0`."""
    node, _, port = address.partition("/")
    return node, port.replace("/", "")


def _run(*argv: str, stdin: str | None = None) -> None:
    done = subprocess.run(argv, input=stdin, text=True, capture_output=True, timeout=20)
    if done.returncode:
        raise RigError(f"{' '.join(argv)}: {(done.stderr or done.stdout).strip()}")


def _failure(*argv: str) -> str:
    """Why a command failed; empty if it did not."""
    try:
        _run(*argv)
    except (RigError, subprocess.TimeoutExpired) as error:
        return str(error)
    return ""


def _wait_for_listener(process: Process, address: str, port: int) -> None:
    """Wait until something in the process's namespace listens there."""
    local = f"{inet_aton(address)[::-1].hex().upper()}:{port:04X}"
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        rows = [row.split() for row in Path(f"/proc/{process.pid}/net/tcp").read_text().splitlines()]
        if any((row[1], row[3]) == (local, "0A") for row in rows):  # 0A: listening
            return
        time.sleep(0.02)
    raise RigError(f"nothing listens on {address} port {port}")


def _end(processes: Iterable[Process]) -> None:
    alive = [process for process in processes if process.poll() is None]
    for process in alive:
        process.terminate()
    for process in alive:
        process.wait(timeout=5)
