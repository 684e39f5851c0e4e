"""A veth pair in a network namespace of its own: a real driver with real statistics, and sockets to ask about it."""

from __future__ import annotations

import ctypes
import os
import socket
import subprocess
import threading
from pathlib import Path
from secrets import token_hex
from typing import Self

_NEW_NET = 0x40000000  # CLONE_NEWNET
ETHERNET = b"\xff" * 6 + b"\x02\0\0\0\0\1" + b"\x08\0"  # broadcast, IPv4
IPV4 = b"\x45\0\0\x56" + bytes(4) + b"\x40\x11\0\0" + b"\x0a\0\0\1" + b"\x0a\0\0\2"  # UDP, without its checksum


class Veth:
    """Interfaces `v0` and `v1`, up, with four queues each of which one is used; removed on exit."""

    def __init__(self) -> None:
        self.namespace = f"ft{os.getpid()}-{token_hex(2)}-veth"

    def __enter__(self) -> Self:
        _run("ip", "netns", "add", self.namespace)
        try:
            # IPv6 would talk at moments of its own
            self.run("sh", "-c", "echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6")
            queues = "numtxqueues 4 numrxqueues 4"
            _run(*f"ip -n {self.namespace} link add v0 {queues} type veth peer name v1 {queues}".split())
            for end in ("v0", "v1"):
                self.run("ethtool", "-L", end, "rx", "1", "tx", "1")
                self.run("ethtool", "-K", end, "gro", "on", "tso", "off")  # makes veth count what it receives
                _run(*f"ip -n {self.namespace} link set {end} up".split())
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        _run("ip", "netns", "del", self.namespace)

    def run(self, *command: str) -> str:
        """What a program prints that runs in the namespace, with the namespace's own /sys."""
        return _run("ip", "netns", "exec", self.namespace, *command)

    def socket(self, family: int, kind: int, protocol: int = 0) -> socket.socket:
        """A socket of the namespace, made by a thread that enters it and ends."""
        made: list[socket.socket] = []

        def body() -> None:
            with Path("/run/netns", self.namespace).open("rb") as there:
                if ctypes.CDLL(None, use_errno=True).setns(there.fileno(), _NEW_NET):
                    raise OSError(ctypes.get_errno(), "setns")
            made.append(socket.socket(family, kind, protocol))

        thread = threading.Thread(target=body)
        thread.start()
        thread.join()
        return made[0]

    def send(self, interface: str, frames: int) -> int:
        """Sends frames from an interface to the other; how many of them the interface's queue took."""
        sent = 0
        with self.socket(socket.AF_PACKET, socket.SOCK_RAW) as out:
            out.bind((interface, 0))
            for n in range(frames):
                try:
                    sent += out.send(frame(n)) > 0
                except OSError:  # ENOBUFS: dropped by the queueing discipline
                    continue
        return sent


def frame(flow: int) -> bytes:
    """100 bytes of UDP from a port that is the flow's own, so that flows spread over queues."""
    return ETHERNET + IPV4 + (1024 + flow).to_bytes(2) + bytes(64)


def missing() -> str | None:
    """Why there can be no such namespace here, None where there can."""
    if os.geteuid():
        return "network namespaces need root"
    try:
        with Veth():
            return None
    except subprocess.SubprocessError as problem:
        return f"no veth in a namespace: {problem}"


def _run(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=20).stdout
