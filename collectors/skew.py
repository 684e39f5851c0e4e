"""How far the clocks of sources are from ours, as far as frames that have just come in make it certain."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable

from twin.frames import NS, Frame

KEPT = 8  # frames of a source: the least delayed of these tells most
MOST = 4096  # sources of one collector; a broker may bring names without end


class Skew:
    """Bounds from one-way times: a reading was made after the last collection and before it came in.

    A time outside of that is the clock's doing, by as much as it lies outside at least. A clock that is behind cannot
    be told from readings that are always that late, nor need it be: by our clock both are as old.
    """

    def __init__(self) -> None:
        self._seen: OrderedDict[str, deque[int]] = OrderedDict()

    def note(self, frames: Iterable[Frame], since: int, now: int) -> None:
        """Takes the frames of one collection. since: the end of the one before, or the beginning of this one, ns."""
        for frame in frames:
            seen = self._seen.get(frame.source)
            if seen is None:
                seen = self._seen[frame.source] = deque(maxlen=KEPT)
                if len(self._seen) > MOST:
                    self._seen.popitem(last=False)
            seen.append(max(0, frame.time - now) + min(0, frame.time - since))

    def seconds(self) -> dict[str, float]:
        """Source -> seconds that its clock is ahead at least; behind is below zero; zero: nothing tells."""
        return {source: max(seen) / NS for source, seen in self._seen.items()}
