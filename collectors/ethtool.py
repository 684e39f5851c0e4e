"""Statistics that a network driver keeps of its device: what `ethtool -S` prints, by the system call beneath it.

The ioctl and its structures are Linux's stable interface (include/uapi/linux/ethtool.h, sockios.h); reading them
needs no privilege.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import socket
import struct

import numpy as np
import numpy.typing as npt

U64 = npt.NDArray[np.uint64]

# The kernel writes as many values as the driver has at that moment, whatever was asked before: rings may be added
# between two calls. So there is room for far more than any driver has (mlx5: some 150 for each of 512 channels);
# memory is taken only by the part of it that was ever written.
ROOM = 1 << 18

_SIOCETHTOOL = 0x8946
_DRIVER, _STRINGS, _STATISTICS = 0x03, 0x1B, 0x1D  # ETHTOOL_GDRVINFO, ETHTOOL_GSTRINGS, ETHTOOL_GSTATS
_NAMES = 1  # ETH_SS_STATS
_NAME_SIZE = 32  # ETH_GSTRING_LEN
_IFNAME_SIZE = 16
_REQUEST = struct.Struct(f"{_IFNAME_SIZE}sP16x")  # struct ifreq: a name and a pointer
_DRIVER_INFO = struct.Struct("I32s128x12xII12x")  # command, driver, four more texts, reserved, flags, statistics
_STRINGS_HEAD = struct.Struct("III")
_STATISTICS_HEAD = struct.Struct("II")


class Ethtool:
    """One socket and one buffer for all interfaces; for one thread at a time.

    descriptor: the socket to ask by, which decides the network namespace; one of this process by default.
    """

    def __init__(self, descriptor: socket.socket | None = None) -> None:
        self._socket = descriptor or socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._buffer = mmap.mmap(-1, ROOM * _NAME_SIZE + _STRINGS_HEAD.size)
        self._bytes = np.frombuffer(self._buffer, np.uint8)
        self._requests: dict[str, bytes] = {}

    def driver(self, interface: str) -> tuple[str, int]:
        """The driver's name, and how many statistics it has now. Raises OSError where there is no such interface."""
        _DRIVER_INFO.pack_into(self._buffer, 0, _DRIVER, b"", 0, 0)
        self._ask(interface)
        _, name, _, count = _DRIVER_INFO.unpack_from(self._buffer)
        return name.partition(b"\0")[0].decode("ascii", "replace"), count

    def names(self, interface: str) -> tuple[str, ...]:
        """The names of all statistics, in order; none where the driver keeps none. Raises OSError as `driver`."""
        if not 0 < self.driver(interface)[1] <= ROOM:
            return ()
        _STRINGS_HEAD.pack_into(self._buffer, 0, _STRINGS, _NAMES, 0)
        self._ask(interface)
        count = _STRINGS_HEAD.unpack_from(self._buffer)[2]
        block = self._bytes[_STRINGS_HEAD.size :][: count * _NAME_SIZE].tobytes()
        return tuple(
            block[at : at + _NAME_SIZE].partition(b"\0")[0].decode("ascii", "replace")
            for at in range(0, len(block), _NAME_SIZE)
        )

    def values(self, interface: str) -> U64:
        """uint64[statistics], in the order of `names`, of which there may be another number by now.

        The array is overwritten by the next call. Raises OSError where there is no such interface, or no statistics.
        """
        _STATISTICS_HEAD.pack_into(self._buffer, 0, _STATISTICS, 0)
        self._ask(interface)
        count = _STATISTICS_HEAD.unpack_from(self._buffer)[1]
        return self._bytes[_STATISTICS_HEAD.size :][: count * 8].view(np.uint64)

    def close(self) -> None:
        self._socket.close()

    def _ask(self, interface: str) -> None:
        request = self._requests.get(interface)
        if request is None:
            name = os.fsencode(interface)
            if not 0 < len(name) < _IFNAME_SIZE or b"\0" in name:
                raise OSError(f"{interface!r} is no name of a network interface")
            request = self._requests[interface] = _REQUEST.pack(name, self._bytes.ctypes.data)
        fcntl.ioctl(self._socket, _SIOCETHTOOL, request)
