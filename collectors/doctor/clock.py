"""Whether the kernel says that this host's clock is kept in time: what other clocks are compared with."""

from __future__ import annotations

import ctypes
import sys

from collectors.doctor.check import Check

# struct timex of 64-bit Linux (linux/timex.h): modes 0, maxerror 24, status 40; 208 bytes
_SIZE, _MAXERROR, _STATUS = 208, 24, 40
_UNSYNCHRONISED = 0x40  # STA_UNSYNC
_POOR_S = 1.0


def clock_check() -> Check:
    """Asks adjtimex(2) without changing anything, which anybody may."""
    answer = _adjtimex()
    if answer is None:
        return Check("clock", "none", "the kernel does not tell whether it is kept in time")
    status, error = answer
    advice = "Start chrony, ntpd or systemd-timesyncd: other hosts' times are compared with this clock."
    if status & _UNSYNCHRONISED:
        return Check("clock", "part", "not kept in time by NTP or PTP, as far as the kernel knows", advice)
    if error > _POOR_S:
        return Check("clock", "part", f"kept in time, but only to within {error:.1f} s", advice)
    return Check("clock", "ok", f"kept in time, to within {error * 1000:.0f} ms")


def _adjtimex() -> tuple[int, float] | None:
    """(status, largest error in seconds), None where there is no answer."""
    if not sys.platform.startswith("linux") or ctypes.sizeof(ctypes.c_long) != 8:
        return None
    buffer = ctypes.create_string_buffer(_SIZE)
    try:
        state = ctypes.CDLL(None, use_errno=True).adjtimex(buffer)
    except (OSError, AttributeError):
        return None
    if state < 0:
        return None
    maxerror = ctypes.c_long.from_buffer(buffer, _MAXERROR).value
    return ctypes.c_int.from_buffer(buffer, _STATUS).value, maxerror / 1e6
