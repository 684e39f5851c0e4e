"""Blocks that forward error correction repaired or could not: what `ethtool -I --show-fec` prints, by netlink.

Linux include/uapi/linux/ethtool_netlink.h, genetlink.h and Documentation/networking/ethtool-netlink.rst (FEC_GET);
statistics since Linux 5.13. Reading needs no privilege.
"""

from __future__ import annotations

import os
import socket
import struct
import sys
from collections.abc import Iterator

from collectors.sysfs import Value
from twin.frames import UNKNOWN_U64

SECONDS = 2.0  # the kernel answers at once; this only bounds a driver that does not
_NETLINK_GENERIC, _CONTROL = 16, 0x10
_GET_FAMILY, _FAMILY_ID, _FAMILY_NAME = 3, 1, 2
_FEC_GET, _FEC_HEADER, _FEC_STATS = 29, 1, 5
_DEVICE_NAME, _FLAGS, _WITH_STATISTICS = 2, 3, 1 << 2
_METRICS = {2: "fec_corrected", 3: "fec_uncorrected"}  # ETHTOOL_A_FEC_STAT_CORRECTED, _UNCORR: total, then lanes
_REQUEST, _DUMP = 0x1, 0x300
_ERROR, _DONE = 2, 3
_NESTED = 0x8000
_MASK = 0x3FFF  # of an attribute's type, without its two flags

_MESSAGE = struct.Struct("=IHHII")  # nlmsghdr: length, type, flags, sequence, port
_COMMAND = struct.Struct("=BBxx")  # genlmsghdr: command, version
_ATTRIBUTE = struct.Struct("=HH")  # nlattr: length, type
_U16, _U32, _U64 = struct.Struct("=H"), struct.Struct("=I"), struct.Struct("=Q")


class FecCounters:
    """One netlink socket. For one thread at a time."""

    def __init__(self, descriptor: socket.socket | None = None) -> None:
        """descriptor: a socket of another network namespace. Raises OSError where the kernel has no such family."""
        self._socket = descriptor or socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_GENERIC)
        self._socket.settimeout(SECONDS)
        self._sequence = 0
        try:
            self._family = self._find_family()
        except OSError:
            self._socket.close()
            raise

    def read(self) -> dict[str, dict[str, Value]]:
        """Interface to its metrics, for all interfaces of the namespace that count FEC. Raises OSError."""
        header = _attribute(_FEC_HEADER | _NESTED, _attribute(_FLAGS, _U32.pack(_WITH_STATISTICS)))
        found = {}
        for payload in self._ask(self._family, _DUMP, _COMMAND.pack(_FEC_GET, 1) + header):
            name, values = parse_fec(payload)
            if name and values:
                found[name] = values
        return found

    def close(self) -> None:
        self._socket.close()

    def _find_family(self) -> int:
        request = _COMMAND.pack(_GET_FAMILY, 1) + _attribute(_FAMILY_NAME, b"ethtool\0")
        for payload in self._ask(_CONTROL, 0, request):
            for kind, value in attributes(payload[_COMMAND.size :]):
                if kind == _FAMILY_ID and len(value) >= _U16.size:
                    return int(_U16.unpack_from(value)[0])
        raise OSError("the kernel has no ethtool netlink family")

    def _ask(self, kind: int, flags: int, body: bytes) -> Iterator[bytes]:
        """The payloads of all answers to one request."""
        self._sequence += 1
        length = _MESSAGE.size + len(body)
        self._socket.send(_MESSAGE.pack(length, kind, _REQUEST | flags, self._sequence, 0) + body)
        while True:
            for answer, sequence, payload in messages(self._socket.recv(1 << 18)):
                if sequence != self._sequence:  # left over from a request that was given up
                    continue
                if answer in (_ERROR, _DONE):
                    if code := int.from_bytes(payload[:4], sys.byteorder, signed=True):
                        raise OSError(-code, os.strerror(-code))
                    return
                yield payload
                if not flags & _DUMP:
                    return


def parse_fec(payload: bytes) -> tuple[str, dict[str, Value]]:
    """Interface and metrics in one answer to FEC_GET (the message without its netlink header)."""
    name = ""
    values: dict[str, Value] = {}
    for kind, value in attributes(payload[_COMMAND.size :]):
        if kind == _FEC_HEADER:
            names = [text for inner, text in attributes(value) if inner == _DEVICE_NAME]
            name = os.fsdecode(names[0].rstrip(b"\0")) if names else ""
        elif kind == _FEC_STATS:
            for inner, numbers in attributes(value):
                if inner in _METRICS and len(numbers) >= _U64.size:
                    total = int(_U64.unpack_from(numbers)[0])
                    values[_METRICS[inner]] = total if total != int(UNKNOWN_U64) else None
    return name, values


def messages(block: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Type, sequence number and payload of each netlink message; ends where one is cut short."""
    at = 0
    while at + _MESSAGE.size <= len(block):
        length, kind, _, sequence, _ = _MESSAGE.unpack_from(block, at)
        if not _MESSAGE.size <= length <= len(block) - at:
            return
        yield kind, sequence, block[at + _MESSAGE.size : at + length]
        at += _padded(length)


def attributes(block: bytes) -> Iterator[tuple[int, bytes]]:
    """Type and value of each netlink attribute; ends where one is cut short."""
    at = 0
    while at + _ATTRIBUTE.size <= len(block):
        length, kind = _ATTRIBUTE.unpack_from(block, at)
        if not _ATTRIBUTE.size <= length <= len(block) - at:
            return
        yield kind & _MASK, block[at + _ATTRIBUTE.size : at + length]
        at += _padded(length)


def _attribute(kind: int, value: bytes) -> bytes:
    length = _ATTRIBUTE.size + len(value)
    return _ATTRIBUTE.pack(length, kind) + value + bytes(_padded(length) - length)


def _padded(length: int) -> int:
    return (length + 3) & ~3
