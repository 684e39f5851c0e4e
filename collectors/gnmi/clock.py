"""A switch's times in ours: exact distances between samples, whatever the switch's clock says and the way delays."""

from __future__ import annotations

EARLIEST = 10**17  # ns; what is less is no time since 1970 in nanoseconds: unset clocks, seconds, milliseconds
STEP = 5 * 10**9  # ns; a difference that grows by more at once is a clock that was set
_CREEP = 256  # part of a growing difference that is believed with each message, so that slow clocks are followed


class DeviceClock:
    """Nothing arrives before it was sent, so the smallest difference seen is the one between the clocks."""

    def __init__(self) -> None:
        self._ahead: int | None = None  # ours, ns

    def ours(self, stamp: int, arrival: int) -> int:
        """The time by our clock of something stamped by the switch that arrives now. Never later than `arrival`."""
        if stamp < EARLIEST:
            return arrival
        ahead = arrival - stamp
        if self._ahead is None or ahead < self._ahead or ahead - self._ahead > STEP:
            self._ahead = ahead
        else:
            self._ahead += (ahead - self._ahead) // _CREEP
        return stamp + self._ahead
