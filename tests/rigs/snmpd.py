"""A real snmpd: of a switch made of a network namespace, or of a device whose tables a test writes."""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from typing import Any, Self

from .netns import NAMESPACES, RigError

COMMUNITY, USER, AUTH_KEY, PRIV_KEY = "rig-community", "rig", "rig-auth-key", "rig-priv-key"
PORT = 1161  # within a namespace of its own any will do
SECONDS = 120.0  # after which a daemon ends in any case
_CLONE_NEWNET = 0x40000000
_SCRIPT = Path(__file__).parent / "snmp_pass.py"
_BASE = f"rocommunity {COMMUNITY}\ninterface_replace_old yes\ninterface_fadeout 1\n"


class Snmpd:
    """The daemon; `start` waits until it listens. engines: its persistent state, so that users survive a restart."""

    def __init__(self, port: int, config: str = "", namespace: str | None = None) -> None:
        self.port, self._namespace = port, namespace
        self._directory = Path(tempfile.mkdtemp(prefix="ft-snmpd-"))
        (self._directory / "conf").write_text(f"agentaddress udp:127.0.0.1:{port}\n{_BASE}{config}\n")
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        inside = ["ip", "netns", "exec", self._namespace] if self._namespace else []
        log = str(self._directory / "log")
        self._process = subprocess.Popen(
            [*inside, "timeout", "--kill-after=1", str(SECONDS), "snmpd", "-f", "-Lf", log, "-C",
             "-c", str(self._directory / "conf"), "-I", "-smux", "-r"],
            env={**os.environ, "MIBS": "", "SNMP_PERSISTENT_DIR": str(self._directory / "persistent")},
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        deadline = time.monotonic() + 10
        local = f" 0100007F:{self.port:04X} 00000000:0000 "  # as /proc has an address, and that of nobody
        while local not in Path(f"/proc/{self._process.pid}/net/udp").read_text():
            if time.monotonic() > deadline or self._process.poll() is not None:
                raise RigError(f"snmpd does not listen: {Path(log).read_text()}")
            time.sleep(0.02)

    def stop(self) -> None:
        """Ends it; without an answer to anyone."""
        if self._process is not None:
            self._process.terminate()  # timeout hands it on
            self._process.wait(timeout=5)
            self._process = None

    def close(self) -> None:
        self.stop()
        shutil.rmtree(self._directory)


class Switch:
    """A namespace whose ports `swp1` up are cabled to a second one, with snmpd in it; built on enter.

    cut and heal a port: its far end, so that it loses carrier. An address a port, and no chatter: counters move
    with what `send` sends alone.
    """

    def __init__(self, ports: int = 4, config: str = "") -> None:
        self.ports = [f"swp{n}" for n in range(1, ports + 1)]
        self.name = f"ft{os.getpid()}-{token_hex(2)}-snmp"
        self.far = f"{self.name}-far"
        config += f"\ncreateUser {USER} SHA {AUTH_KEY} AES {PRIV_KEY}\nrouser {USER} priv"
        config += f"\ncreateUser {USER}256 SHA-256 {AUTH_KEY} AES {PRIV_KEY}\nrouser {USER}256 priv"
        self.daemon = Snmpd(PORT, config, self.name)

    def __enter__(self) -> Self:
        try:
            for name in (self.name, self.far):
                _run("ip", "netns", "add", name)
                _run("ip", "netns", "exec", name, "sysctl", "-qew", "net.ipv6.conf.default.disable_ipv6=1")
            self._ip(self.name, "link set lo up")
            for n, _ in enumerate(self.ports, start=1):
                self.plug(n)
            self.daemon.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.daemon.close()
        for name in (self.name, self.far):
            if (NAMESPACES / name).exists():
                _run("ip", "netns", "del", name)

    def plug(self, n: int) -> None:
        """Makes port n and its cable; one that is made again gets another index."""
        self._ip(
            self.name,
            f"link add swp{n} type veth peer name far{n} netns {self.far}",
            f"link set swp{n} up address 02:00:00:00:00:{n:02x}",
            f"addr add 10.9.{n}.1/30 dev swp{n}",
            f"neigh add 10.9.{n}.2 lladdr 02:00:00:00:01:{n:02x} dev swp{n}",
        )
        self._ip(
            self.far,
            f"link set far{n} up address 02:00:00:00:01:{n:02x}",
            f"addr add 10.9.{n}.2/30 dev far{n}",
            f"neigh add 10.9.{n}.1 lladdr 02:00:00:00:00:{n:02x} dev far{n}",
        )

    def unplug(self, n: int) -> None:
        self._ip(self.name, f"link del swp{n}")

    def cut(self, n: int) -> None:
        self._ip(self.far, f"link set far{n} down")

    def heal(self, n: int) -> None:
        self._ip(self.far, f"link set far{n} up")

    def send(self, n: int, packets: int, size: int = 1000) -> None:
        """Datagrams out of port n; the far end answers some of them with ICMP."""
        with self.inside(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
            for _ in range(packets):
                out.sendto(bytes(size), (f"10.9.{n}.2", 9))

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Sockets that this thread makes meanwhile are the namespace's. (os.setns came with Python 3.12.)"""
        libc = ctypes.CDLL(None, use_errno=True)

        def enter(handle: int) -> None:
            if libc.setns(handle, _CLONE_NEWNET):
                raise RigError(f"setns: {os.strerror(ctypes.get_errno())}")

        with Path("/proc/thread-self/ns/net").open() as before, (NAMESPACES / self.name).open() as wanted:
            enter(wanted.fileno())
            try:
                yield
            finally:
                enter(before.fileno())

    def counted(self, n: int) -> dict[str, int]:
        """What the kernel says of port n, by our names of metrics."""
        shown = subprocess.run(
            ["ip", "-n", self.name, "-s", "-j", "link", "show", f"swp{n}"],
            capture_output=True,
            check=True,
            timeout=10,
        )
        stats = json.loads(shown.stdout)[0]["stats64"]
        out = {f"{way}_{what}": stats[way][what] for way in ("tx", "rx") for what in ("bytes", "packets")}
        return {**out, "tx_discards": stats["tx"]["dropped"], "rx_errors": stats["rx"]["errors"]}

    def _ip(self, namespace: str, *lines: str) -> None:
        _run("ip", "-n", namespace, "-batch", "-", stdin="\n".join(lines))


Cell = tuple[str, int | str]  # a type of pass_persist and a value
IF, IFX = "1.3.6.1.2.1.2.2.1", "1.3.6.1.2.1.31.1.1.1"
# sysUpTime, ifNumber, ifTable, ifXTable, ifTableLastChange: as finely as snmpd itself registers them
OBJECTS = ("1.3.6.1.2.1.1.3", "1.3.6.1.2.1.2.1", "1.3.6.1.2.1.2.2", "1.3.6.1.2.1.31.1.1", "1.3.6.1.2.1.31.1.5")


class Device:
    """snmpd on loopback whose uptime and IF-MIB are what a test has written last; needs no rights."""

    def __init__(self, cells: Mapping[str, Cell]) -> None:
        self._table = Path(tempfile.mkdtemp(prefix="ft-snmp-")) / "table.json"
        self.write(cells)
        command = f"{sys.executable} -S -E {_SCRIPT} {self._table}"
        self.daemon = Snmpd(free_port(), "\n".join(f"pass_persist -p 1 .{oid} {command}" for oid in OBJECTS))
        self.port = self.daemon.port

    def __enter__(self) -> Self:
        self.daemon.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.daemon.close()
        shutil.rmtree(self._table.parent)

    def write(self, cells: Mapping[str, Cell]) -> None:
        new = self._table.with_suffix(".new")
        new.write_text(json.dumps(cells))
        new.rename(self._table)


def cells(
    names: Mapping[int, str], *, uptime: int = 100_000, changed: int | None = 0, octets: int = 10**12, **columns: Any
) -> dict[str, Cell]:
    """A switch at 400 Gbit/s whose interfaces all have counted their index more than `octets`.

    columns: what other cells hold instead, `status={3: 2}`, or None for a column that is missing, `speed=None`.
    """
    said: dict[str, tuple[str, str, Callable[[int], int | str]]] = {
        "name": (f"{IFX}.1", "string", lambda i: names[i]),
        "descr": (f"{IF}.2", "string", lambda i: f"interface {i}"),
        "alias": (f"{IFX}.18", "string", lambda _: ""),
        "status": (f"{IF}.8", "integer", lambda _: 1),
        "speed": (f"{IFX}.15", "gauge", lambda _: 400_000),
        "in_octets": (f"{IFX}.6", "counter64", lambda i: octets + i),
        "out_octets": (f"{IFX}.10", "counter64", lambda i: 2 * octets + i),
        **{f"packets{n}": (f"{IFX}.{n}", "counter64", lambda i: 1000 + i) for n in (7, 8, 9, 11, 12, 13)},
        "discards": (f"{IF}.19", "counter", lambda i: i),
        "errors": (f"{IF}.14", "counter", lambda i: 2 * i),
        "discontinuity": (f"{IFX}.19", "timeticks", lambda _: 0),
    }
    out: dict[str, Cell] = {"1.3.6.1.2.1.1.3.0": ("timeticks", uptime), "1.3.6.1.2.1.2.1.0": ("integer", len(names))}
    if changed is not None:
        out["1.3.6.1.2.1.31.1.5.0"] = ("timeticks", changed)
    for column, (oid, kind, value) in said.items():
        if columns.get(column, {}) is not None:
            for i in names:
                out[f"{oid}.{i}"] = (kind, columns.get(column, {}).get(i, value(i)))
    return out


def free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as tried:
        tried.bind(("127.0.0.1", 0))
        return int(tried.getsockname()[1])


class Relay(asyncio.DatagramProtocol):
    """Stands between a client and an agent on loopback. change: answer -> what arrives of it, in order."""

    def __init__(self, agent: int, change: Callable[[bytes], list[bytes]]) -> None:
        self._agent, self.change = agent, change
        self._clients: dict[Any, socket.socket] = {}
        self.port = 0
        self.requests = 0

    @classmethod
    async def to(cls, agent: int, change: Callable[[bytes], list[bytes]] = lambda answer: [answer]) -> Relay:
        loop = asyncio.get_running_loop()
        _, relay = await loop.create_datagram_endpoint(lambda: cls(agent, change), local_addr=("127.0.0.1", 0))
        return relay

    def connection_made(self, transport: Any) -> None:
        self._front = transport
        self.port = transport.get_extra_info("sockname")[1]

    def datagram_received(self, data: bytes, client: Any) -> None:
        self.requests += 1
        if client not in self._clients:
            back = self._clients[client] = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            back.setblocking(False)
            back.connect(("127.0.0.1", self._agent))
            asyncio.get_running_loop().add_reader(back, self._answered, client, back)
        self._clients[client].send(data)

    def _answered(self, client: Any, back: socket.socket) -> None:
        for data in self.change(back.recv(65535)):
            self._front.sendto(data, client)

    def close(self) -> None:
        for back in self._clients.values():
            asyncio.get_running_loop().remove_reader(back)
            back.close()
        self._front.close()


def _run(*argv: str, stdin: str | None = None) -> None:
    done = subprocess.run(argv, input=stdin, text=True, capture_output=True, timeout=20)
    if done.returncode:
        raise RigError(f"{' '.join(argv)}: {(done.stderr or done.stdout).strip()}")
